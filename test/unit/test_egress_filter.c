/* SPDX-License-Identifier: Apache-2.0 */
/* egress' system-call filter, as it is installed, against what its table means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/util.h"
#include "bpf_eval.h"
#include "box/filter/filter_table.h"
#include "box/filter/syscall_nr.h"
#include "egress_filter_data.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define ARCH AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

#define KILLED SECCOMP_RET_KILL_PROCESS

static uint32_t run(uint32_t arch, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct seccomp_data data = { .nr = nr, .arch = arch, .args = { a0, a1, a2 } };
	struct bpf_run result;

	assert_int_equal(bpf_eval(egress_filter_code, ARRAY_SIZE(egress_filter_code), &data, NULL,
				  &result),
			 0);
	return result.verdict;
}

static uint32_t call(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return run(ARCH, nr, a0, a1, a2);
}

static void test_table(void **state)
{
	size_t n;
	const struct syscall_policy *table = syscall_table(&n);

	(void)state;
	assert_true(n > 80);
	for (size_t i = 0; i < n; i++) {
		if (!table[i].rule)
			assert_int_equal(call(table[i].nr, 0, 0, 0), table[i].verdict);
		assert_int_equal(run(FOREIGN, table[i].nr, 0, 0, 0), KILLED);
	}
	for (int nr = 900; nr < 1000; nr++)
		assert_int_equal(call(nr, 0, 0, 0), VERDICT_ERRNO(ENOSYS));
}

static void test_nothing_new(void **state)
{
	(void)state;
	assert_int_equal(call(__NR_clone, CLONE_VM | CLONE_THREAD, 0, 0), KILLED);
	assert_int_equal(call(__NR_clone3, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_execve, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_kill, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_setns, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_openat, 0, 0, 0), VERDICT_ERRNO(EACCES));
	assert_int_equal(call(__NR_listen, 3, 1, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_mprotect, 0, 4096, PROT_EXEC), VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_mmap, 0, 4096, PROT_READ | PROT_EXEC), VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_mmap, 0, 4096, PROT_READ | PROT_WRITE), VERDICT_ALLOW);
	assert_int_equal(call(__NR_fcntl, 3, F_SETPIPE_SZ, 4096), VERDICT_ALLOW);
	assert_int_equal(call(__NR_fcntl, 3, F_DUPFD, 0), VERDICT_ERRNO(EINVAL));
}

static void test_sockets(void **state)
{
	(void)state;
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
			 VERDICT_ALLOW);
	assert_int_equal(call(__NR_socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP), VERDICT_ALLOW);
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP),
			 VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, 0),
			 VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
			 VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP),
			 VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_UNIX, SOCK_STREAM, 0), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_PACKET, SOCK_DGRAM, 0), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_NETLINK, SOCK_RAW, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_socket, AF_NETLINK, SOCK_RAW, 12), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_setsockopt, 3, SOL_SOCKET, SO_LINGER), VERDICT_ALLOW);
	assert_int_equal(call(__NR_setsockopt, 3, SOL_SOCKET, SO_BINDTODEVICE),
			 VERDICT_ERRNO(ENOPROTOOPT));
	assert_int_equal(call(__NR_setsockopt, 3, SOL_IP, 64), VERDICT_ERRNO(ENOPROTOOPT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nothing_new),
		cmocka_unit_test(test_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
