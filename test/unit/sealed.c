/* SPDX-License-Identifier: Apache-2.0 */
#include "sealed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/util.h"

#define SEAL_FAILED 100
#define NO_FILTER 101

/* How the process ends in which attempt() runs sealed: its wait status. */
static int sealed(int (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int r = seal_this();

		_exit(r > 0 ? NO_FILTER : r < 0 ? SEAL_FAILED : attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
		skip();
	return status;
}

void works(int (*attempt)(void))
{
	int status = sealed(attempt);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void is_killed(int (*attempt)(void))
{
	int status = sealed(attempt);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

int open_none(const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0)
			return 1;
	return open("/tmp/glovebox-seal-new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0 ? 0 : 1;
}

int execute(void)
{
	char *argv[] = { (char[]){ "id" }, NULL };

	return execv("/usr/bin/id", argv);
}

int make_process(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}
