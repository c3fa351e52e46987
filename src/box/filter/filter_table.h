/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter/syscalls.def as an array. Used at build time by tools/mkfilter.c and by the unit test; the
 * product itself carries only the compiled program (box/filter/filter.h).
 */
#pragma once

#include "box/filter/filter_args.h"

struct syscall_policy {
	const char *name;
	int nr;
	uint32_t verdict;            /* SECCOMP_RET_*, when there is no rule */
	const struct arg_rule *rule; /* NULL: the verdict does not depend on arguments */
};

const struct syscall_policy *syscall_table(size_t *ret_len);
