/* SPDX-License-Identifier: Apache-2.0 */
/* egress' system-call filter, as it is installed, against what its table means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/util.h"
#include "box/filter/syscall_nr.h"
#include "egress_filter_data.h"
#include "filter_is_table.h"

#define KILLED SECCOMP_RET_KILL_PROCESS

static uint32_t call(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return bpf_verdict(egress_filter_code, ARRAY_SIZE(egress_filter_code), BPF_NATIVE, nr, a0,
			   a1, a2);
}

static void test_table(void **state)
{
	(void)state;
	assert_true(filter_is_its_table(egress_filter_code, ARRAY_SIZE(egress_filter_code)) > 80);
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
