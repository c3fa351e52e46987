/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's filter against the box's. It stays on below the box's in each context, so whatever a box
 * allows it has to allow; and what it allows beyond that is four calls, of which the box's filter
 * leaves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#include "base/util.h"
#include "bpf_eval.h"
#include "box/filter/filter.h"
#include "box/filter/filter_args.h"
#include "box/filter/syscall_nr.h"
#include "zygote_filter_data.h"

#define CALLS 1000
#define SCHED_CORE 62
#define GET_TID_ADDRESS 40

static uint32_t zygote(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return bpf_verdict(zygote_filter_code, ARRAY_SIZE(zygote_filter_code), BPF_NATIVE, nr, a0,
			   a1, a2);
}

static uint32_t box(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	size_t len;
	const struct sock_filter *code = box_filter_program(&len);

	return bpf_verdict(code, len, BPF_NATIVE, nr, a0, a1, a2);
}

/* Small numbers, single bits, and what options of prctl and ioctl look like. */
static uint64_t sample(unsigned i)
{
	static const uint64_t odd[] = { 0x53564d41, 0x41555856, 0x59616d61, 0x5412,
					0x5423,     UINT32_MAX, 0x20008,    0x7e020000 };

	if (i < 80)
		return i;
	if (i < 112)
		return UINT64_C(1) << (i - 80);
	return i - 112 < ARRAY_SIZE(odd) ? odd[i - 112] : UINT64_MAX;
}
#define SAMPLES 121

static bool is_ours(int nr)
{
	return nr == __NR_setns || nr == __NR_keyctl || nr == __NR_prctl || nr == __NR_clone3;
}

static void compare(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	uint32_t in_box = box(nr, a0, a1, a2), in_zygote = zygote(nr, a0, a1, a2);

	if (in_box == VERDICT_ALLOW)
		assert_int_equal(in_zygote, VERDICT_ALLOW);
	else if (!is_ours(nr))
		assert_int_equal(in_zygote, in_box);
	assert_int_not_equal(in_zygote, SECCOMP_RET_KILL_PROCESS);
}

static void test_allows_what_a_box_allows(void **state)
{
	(void)state;
	for (int nr = 0; nr < CALLS; nr++)
		for (unsigned i = 0; i < SAMPLES; i++) {
			compare(nr, sample(i), 0, 0);
			compare(nr, 0, sample(i), 0);
			compare(nr, 1, sample(i), 2);
			compare(nr, sample(i), 1, sample(SAMPLES - 1 - i));
		}
}

static void test_four_calls_more(void **state)
{
	static const uint64_t kinds[] = { CLONE_NEWUSER,   CLONE_NEWNS,  CLONE_NEWPID,
					  CLONE_NEWNET,    CLONE_NEWIPC, CLONE_NEWUTS,
					  CLONE_NEWCGROUP, CLONE_NEWTIME };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(zygote(__NR_setns, 5, kinds[i], 0), VERDICT_ALLOW);
		assert_int_equal(box(__NR_setns, 5, kinds[i], 0), VERDICT_ERRNO(EPERM));
	}
	assert_int_equal(zygote(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0), VERDICT_ALLOW);
	assert_int_equal(zygote(__NR_prctl, SCHED_CORE, 1, 0), VERDICT_ALLOW);
	assert_int_equal(zygote(__NR_prctl, GET_TID_ADDRESS, 0, 0), VERDICT_ALLOW);
	assert_int_equal(zygote(__NR_clone3, 0, 0, 0), VERDICT_ALLOW);
	assert_int_equal(box(__NR_clone3, 0, 0, 0), VERDICT_ERRNO(ENOSYS));
}

/* By a pidfd one can enter all of a process's namespaces at once, or without saying which. */
static void test_never_by_pidfd_alone(void **state)
{
	(void)state;
	assert_int_equal(zygote(__NR_setns, 5, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_setns, 5, CLONE_NEWUSER | CLONE_NEWNS, 0),
			 VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_keyctl, KEYCTL_READ, 0, 0), VERDICT_ERRNO(ENOSYS));
	assert_int_equal(zygote(__NR_unshare, CLONE_NEWUSER, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_clone, CLONE_NEWUSER, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_ptrace, 0, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_pidfd_getfd, 0, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_process_vm_readv, 0, 0, 0), VERDICT_ERRNO(EPERM));
	assert_int_equal(zygote(__NR_mount, 0, 0, 0), VERDICT_ERRNO(EPERM));
}

static void test_foreign_calls_kill(void **state)
{
	(void)state;
	for (int nr = 0; nr < CALLS; nr++)
		assert_int_equal(bpf_verdict(zygote_filter_code, ARRAY_SIZE(zygote_filter_code),
					     BPF_FOREIGN, nr, 0, 0, 0),
				 SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allows_what_a_box_allows),
		cmocka_unit_test(test_four_calls_more),
		cmocka_unit_test(test_never_by_pidfd_alone),
		cmocka_unit_test(test_foreign_calls_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
