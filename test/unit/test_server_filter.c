/* SPDX-License-Identifier: Apache-2.0 */
/* AP-18: the server's system-call filter, as it is installed, against what its table means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/util.h"
#include "box/filter/syscall_nr.h"
#include "server_filter_data.h"
#include "filter_is_table.h"

#define KILLED SECCOMP_RET_KILL_PROCESS

static uint32_t call(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return bpf_verdict(server_filter_code, ARRAY_SIZE(server_filter_code), BPF_NATIVE, nr, a0,
			   a1, a2);
}

static void test_table(void **state)
{
	(void)state;
	assert_true(filter_is_its_table(server_filter_code, ARRAY_SIZE(server_filter_code)) > 100);
}

static void test_no_processes(void **state)
{
	const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;

	(void)state;
	assert_int_equal(call(__NR_clone, thread, 0, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_clone, 17, 0, 0), KILLED); /* fork: SIGCHLD */
	assert_int_equal(call(__NR_clone, thread | CLONE_NEWUSER, 0, 0), KILLED);
	assert_int_equal(call(__NR_clone, CLONE_VM | CLONE_VFORK, 0, 0), KILLED);
	assert_int_equal(call(__NR_clone3, 0, 0, 0), VERDICT_ERRNO(ENOSYS));
	assert_int_equal(call(__NR_execve, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_execveat, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_ptrace, 0, 0, 0), KILLED);
	assert_int_equal(call(__NR_setresuid, 0, 0, 0), KILLED);
}

static void test_no_code(void **state)
{
	(void)state;
	assert_int_equal(call(__NR_mmap, 0, 4096, PROT_READ | PROT_WRITE), VERDICT_ALLOW);
	assert_int_equal(call(__NR_mmap, 0, 4096, PROT_READ | PROT_EXEC), VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_mprotect, 0, 4096, PROT_EXEC), VERDICT_ERRNO(EPERM));
	/* AB-06: the upper half does not count for the kernel, so it must not for us. */
	assert_int_equal(call(__NR_mprotect, 0, 4096, UINT64_C(1) << 32 | PROT_EXEC),
			 VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_memfd_create, 0, 0, 0), VERDICT_ERRNO(EPERM));
}

static void test_sockets(void **state)
{
	(void)state;
	assert_int_equal(call(__NR_socket, AF_INET, SOCK_STREAM, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_socket, AF_NETLINK, SOCK_RAW, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_socket, AF_NETLINK, SOCK_RAW, 12), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_PACKET, SOCK_RAW, 0), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socket, AF_ALG, SOCK_SEQPACKET, 0), VERDICT_ERRNO(EAFNOSUPPORT));
	assert_int_equal(call(__NR_socketpair, AF_UNIX, SOCK_SEQPACKET, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_listen, 3, 1, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(call(__NR_prctl, PR_SET_NAME, 0, 0), VERDICT_ALLOW);
	assert_int_equal(call(__NR_prctl, PR_SET_DUMPABLE, 1, 0), VERDICT_ERRNO(EINVAL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_no_processes),
		cmocka_unit_test(test_no_code),
		cmocka_unit_test(test_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
