/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about the arguments of a system call. A rule is a list of clauses read like a firewall:
 * the first clause whose tests all hold gives the verdict, and the last clause has no test.
 *
 * A test looks at the low 32 bits of an argument and nothing else. That is right for all we test
 * (int, unsigned int, mode_t): the kernel truncates those itself, so a caller who sets the upper
 * half must get the verdict of the lower one (AB-06, DV-04). Do not test a pointer or a size_t.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <linux/seccomp.h>

#define VERDICT_ALLOW SECCOMP_RET_ALLOW
#define VERDICT_ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

enum arg_op {
	ARG_DONE,     /* no further test in this clause */
	ARG_IN,       /* (arg & mask) is one of values[] */
	ARG_NOT_IN,   /* (arg & mask) is none of values[] */
	ARG_ANY_BIT,  /* (arg & mask) != 0 */
	ARG_AT_LEAST, /* arg, unsigned, >= mask */
};

struct arg_test {
	enum arg_op op;
	unsigned arg;
	uint32_t mask;
	const uint32_t *values;
	size_t n_values;
};

#define ARG_TESTS_MAX 2

struct arg_clause {
	struct arg_test when[ARG_TESTS_MAX];
	uint32_t verdict;
};

struct arg_rule {
	const struct arg_clause *clauses;
	size_t n_clauses;
};

/* One rule for each CHECK() of filter/syscalls.def: arg_rule_socket, arg_rule_ioctl, ... */
#define ALLOW(call)
#define REFUSE(call, err)
#define PRETEND(call)
#define CHECK(call) extern const struct arg_rule arg_rule_##call;
#include "box/filter/syscalls.def"
#undef ALLOW
#undef REFUSE
#undef PRETEND
#undef CHECK
