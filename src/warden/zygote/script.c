/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote that scripts are forked from: the template's Python, started exactly as a run starts it, with its arguments,
 * its variables and its directory, and stopped by a library of ours when it is about to open its script. The script that it
 * sees while it starts is empty; the one that a fork opens is its box's.
 */
#include "warden/warden_priv.h"

#include "wire/script.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ROOM_SIZE 16384 /* for a script's own variables, in the place of these */

/* SCRIPT_HOME and SCRIPT_FILE in it. */
int zygote_script_home(int root_fd)
{
	_cleanup_(fd_closep) int fd = -EBADF;

	_Static_assert(sizeof(SCRIPT_HOME) == sizeof("/home/user"), "made one by one");
	if (mkdirat(root_fd, "home", 0755) < 0 || mkdirat(root_fd, "home/user", 0755) < 0)
		return -errno;
	fd = openat(root_fd, "home/user/" SCRIPT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0644);
	return fd < 0 ? -errno : 0;
}

int zygote_script_execute(const char *controls)
{
	static char room[ROOM_SIZE] = "GLOVEBOX_ROOM=";
	/* Those of a run that an interpreter looks at while it starts: see src/zygote/command.c. */
	const char *const env[] = {
		"PATH=" SCRIPT_PATH,
		"HOME=" SCRIPT_HOME,
		"LANG=" SCRIPT_LANG,
		"PYTHONUNBUFFERED=1",
		"LD_PRELOAD=" SCRIPT_LIBRARY,
		room,
		controls,
		NULL,
	};
	static char program[] = SCRIPT_PROGRAM, file[] = SCRIPT_FILE;
	char *const argv[] = { program, file, NULL };

	memset(room + strlen(room), '.', sizeof(room) - strlen(room) - 1);
	/* Found as the agent finds it: by the PATH that it will have. */
	if (chdir(SCRIPT_HOME) < 0 || setenv("PATH", SCRIPT_PATH, 1) < 0)
		return -errno;
	execvpe(program, argv, (char *const *)(uintptr_t)env);
	return -errno;
}
