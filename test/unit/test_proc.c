/* SPDX-License-Identifier: Apache-2.0 */
/* Starting processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "sys/proc.h"

static void test_pidfd(void **state)
{
	siginfo_t info = { 0 };
	int pidfd = -EBADF;
	pid_t pid = proc_clone(0, -EBADF, &pidfd);

	(void)state;
	if (pid == 0)
		_exit(7);
	assert_true(pid > 0 && pidfd >= 0);
	assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
	assert_int_equal(info.si_status, 7);
	fd_close(pidfd);
}

/* The kernel numbers the descriptor before it asks the cgroups, and leaves the number when they refuse. */
static void test_refused(void **state)
{
	_cleanup_(fd_closep) int no_cgroup = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int pidfd = -EBADF;
	pid_t pid = proc_clone(0, no_cgroup, &pidfd);

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(pid < 0);
	assert_int_equal(pidfd, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pidfd),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
