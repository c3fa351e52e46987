/* SPDX-License-Identifier: Apache-2.0 */
/* What is left to an egress that somebody else has taken over. Each case is a process that seals itself and then tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "egress/report/report.h"
#include "egress/start.h"
#include "sealed.h"
#include "sys/seal.h"

void say_log(const char *fmt, ...)
{
	(void)fmt;
}

int seal_this(void)
{
	struct fail fail;

	return seal_has_filter() ? seal(&fail) : 1;
}

/* --- what it still can -------------------------------------------------------------------------------------------- */

static int own_addresses(void)
{
	struct ifaddrs *all;

	if (getifaddrs(&all) < 0)
		return 1;
	freeifaddrs(all);
	return 0;
}

static int use_sockets(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), pipe_fd[2];

	if (fd < 0 || pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return 1;
	return fcntl(pipe_fd[0], F_SETPIPE_SZ, 65536) >= 65536 ? 0 : 1;
}

static int lock_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && (mlock(p, 4096) == 0 || errno == ENOMEM || errno == EPERM) &&
			       munmap(p, 4096) == 0 ?
		       0 :
		       1;
}

/* --- what it cannot ------------------------------------------------------------------------------------------------- */

static int open_files(void)
{
	static const char *const paths[] = { "/etc/passwd", "/etc/hosts", "/proc/self/mem",
					     "/dev/null",   "/tmp",       "/" };

	return open_none(paths, ARRAY_SIZE(paths));
}

/* Behind the filter there is Landlock: calls that open a file and are not in the list at all. */
static int open_otherwise(void)
{
	return syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", (uint64_t[3]){ 0 },
		       sizeof(uint64_t[3])) < 0 &&
			       errno == ENOSYS ?
		       0 :
		       1;
}

static int odd_sockets(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || listen(fd, 1) == 0)
		return 1;
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && socket(AF_INET, SOCK_RAW, 1) < 0 ? 0 : 1;
}

static int be_dumped(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? 0 : 1;
}

static int enter_network(void)
{
	return (int)syscall(SYS_setns, 0, 0);
}

static int end_somebody(void)
{
	return kill(getppid(), 0);
}

static void test_can(void **state)
{
	(void)state;
	works(own_addresses);
	works(use_sockets);
	works(lock_memory);
}

static void test_refused(void **state)
{
	(void)state;
	works(open_files);
	works(open_otherwise);
	works(odd_sockets);
	works(be_dumped);
}

static void test_killed(void **state)
{
	(void)state;
	is_killed(execute);
	is_killed(make_process);
	is_killed(enter_network);
	is_killed(end_somebody);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_can),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
