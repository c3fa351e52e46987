/* SPDX-License-Identifier: Apache-2.0 */
/* Ending the largest process of a command's cgroup, as the kernel does when its memory is used up. */
#include "sys/cgroup_priv.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define MEMBERS_TEXT 65536 /* some nine thousand processes; who is beyond them is small */

/* Pages that a process has to itself in memory; 0 when it is gone. */
static uint64_t resident_pages(const char *pid)
{
	char path[40], text[128], *save = NULL, *field = NULL;
	uint64_t pages = 0;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/statm", pid);
	if (cgroup_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	for (int i = 0; i < 2; i++)
		field = strtok_r(i ? NULL : text, " \n", &save);
	return field && parse_u64(field, &pages) == 0 ? pages : 0;
}

static int members_read(const struct cgroup_box *b, const struct cgroup_exec *e, char *text,
			size_t size)
{
	for (size_t i = 0; i < b->host->n_hier; i++)
		if (e->fd[i] >= 0 && (b->host->hier[i].controllers & CGROUP_MEMORY))
			return cgroup_read_lines(e->fd[i], "cgroup.procs", text, size);
	return -EOPNOTSUPP;
}

int cgroup_exec_kill_largest(const struct cgroup_box *b, const struct cgroup_exec *e,
			     int *ret_pidfd)
{
	static char members[MEMBERS_TEXT], again[MEMBERS_TEXT];
	char largest[24] = "", *save = NULL;
	_cleanup_(fd_closep) int pidfd = -EBADF;
	uint64_t most = 0, number;
	int r = members_read(b, e, members, sizeof(members));

	if (r < 0)
		return r;
	for (char *pid = strtok_r(members, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		uint64_t pages = resident_pages(pid);

		if (pages > most) {
			most = pages;
			(void)snprintf(largest, sizeof(largest), "%s", pid);
		}
	}
	if (most == 0 || parse_u64(largest, &number) < 0)
		return -ESRCH;
	/* PL-09: held by descriptor, and still a member, it is not a stranger with the same number. */
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
	if (pidfd < 0) /* the kernel has several words for a process that is gone */
		return cgroup_is_passing(-errno) ? -errno : -ESRCH;
	r = members_read(b, e, again, sizeof(again));
	if (r < 0 || !cgroup_has_word(again, largest))
		return r < 0 ? r : -ESRCH;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
		return -errno;
	if (ret_pidfd)
		*ret_pidfd = take_fd(&pidfd);
	return 0;
}
