/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody whom a kernel left behind in its session: background jobs of a shell have groups of their own.
 * Who started a new session is out of reach, as with nohup or a daemon, and who forks faster than we look
 * may get away; the box's end ends them all.
 */
#include "agent/kernel/kernel.h"

#include "base/parse.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#define PASSES_MAX 8

static bool kill_if_member(const char *name, pid_t session)
{
	struct kernel_proc p;
	uint64_t pid;

	if (parse_u64(name, &pid) < 0 || pid <= 1 || pid > INT32_MAX ||
	    kernel_proc_stat((pid_t)pid, &p) < 0)
		return false;
	return p.session == session && p.state != 'Z' && p.state != 'X' &&
	       kill((pid_t)pid, SIGKILL) == 0;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* True when there was somebody. */
static bool sweep_once(pid_t session)
{
	int fd = openat(agent_pids(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir)
		fd_close(fd);
	while (dir && (entry = readdir(dir)))
		found |= kill_if_member(entry->d_name, session);
	return found;
}

void kernel_sweep(pid_t session)
{
	for (int i = 0; session > 1 && i < PASSES_MAX; i++)
		if (!sweep_once(session))
			return;
}
