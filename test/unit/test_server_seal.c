/* SPDX-License-Identifier: Apache-2.0 */
/* AP-18: what is left to a server that somebody else has taken over. Each case is a process that seals itself and
 * then tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "server/seal.h"
#include "sealed.h"
#include "wire/warden.h"

static char directory[] = "/tmp/glovebox-seal-XXXXXX";

static int set_up(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	return fd < 0 || dup2(fd, WARDEN_STATE_FD) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(WARDEN_STATE_FD, "file", 0);
	return rmdir(directory);
}

int seal_this(void)
{
	static struct server s;
	struct fail fail;

	int r = seal(&s, &fail);

	return r < 0 || s.has_filter ? r : 1;
}

/* --- what it still can ------------------------------------------------------------------------------ */

static int use_store(void)
{
	int fd = openat(WARDEN_STATE_FD, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0 && ftruncate(fd, 0) == 0 ? 0 : 1;
}

static void *nothing(void *arg)
{
	return arg;
}

static int start_thread(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, nothing, NULL) == 0 && pthread_join(t, NULL) == 0 ? 0 : 1;
}

/* --- what it cannot --------------------------------------------------------------------------------- */

static int open_files(void)
{
	static const char *const paths[] = { "/etc/passwd",
					     "/etc/shadow",
					     "/proc/1/environ",
					     "/proc/self/mem",
					     "/usr/bin/id",
					     "/root",
					     "/tmp",
					     "/" };

	return open_none(paths, ARRAY_SIZE(paths));
}

static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0)
		return 1;
	return mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 0 :
											       1;
}

static int odd_sockets(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || listen(fd, 1) == 0)
		return 1;
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 && socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 ? 0 : 1;
}

static int be_dumped(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 && errno == EINVAL ? 0 : 1;
}

static int trace(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int become_root(void)
{
	return setresuid(0, 0, 0);
}

static void test_can(void **state)
{
	(void)state;
	works(use_store);
	works(start_thread);
}

static void test_refused(void **state)
{
	(void)state;
	works(open_files);
	works(make_code);
	works(odd_sockets);
	works(be_dumped);
}

static void test_killed(void **state)
{
	(void)state;
	is_killed(execute);
	is_killed(make_process);
	is_killed(trace);
	is_killed(become_root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_can),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
