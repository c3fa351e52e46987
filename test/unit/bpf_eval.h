/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a seccomp program in user space, the way the kernel would, and remembers where it has been.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifdef __x86_64__
#define BPF_NATIVE AUDIT_ARCH_X86_64
#define BPF_FOREIGN AUDIT_ARCH_I386
#else
#define BPF_NATIVE AUDIT_ARCH_AARCH64
#define BPF_FOREIGN AUDIT_ARCH_ARM
#endif

enum bpf_mark {
	BPF_RAN = 1 << 0,
	BPF_JUMPED = 1 << 1, /* conditional jumps only: the test held */
	BPF_PASSED = 1 << 2, /* conditional jumps only: it did not */
};

struct bpf_run {
	uint32_t verdict;
	unsigned steps;
	/* The kernel can answer from its bitmap: nothing but number and architecture was looked at,
	 * and only by instructions its own little evaluator knows. */
	bool constant;
};

/*
 * marks is NULL or has len bytes, to which this run's enum bpf_mark bits are added. Returns
 * -EINVAL for a program the kernel would not accept: an instruction or load it does not know, a
 * jump or a path past the end.
 */
int bpf_eval(const struct sock_filter *code, size_t len, const struct seccomp_data *data,
	     uint8_t *marks, struct bpf_run *ret);

bool bpf_is_conditional(const struct sock_filter *f);

/* What the program says of a call with three arguments; a cmocka test fails when the kernel would not accept it. */
uint32_t bpf_verdict(const struct sock_filter *code, size_t len, uint32_t arch, int nr, uint64_t a0,
		     uint64_t a1, uint64_t a2);
