/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument rules of the box's filter a second time: written as plain C with plain numbers, not
 * derived from src/box, so that a slip in one of the two shows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The values to try for one argument: 0..below, powers of two and their neighbours when bits is
 * set, and the extra ones with their neighbours. Other arguments are filled with noise. */
struct expect_arg {
	unsigned index;
	uint32_t below;
	int bits;
	const uint32_t *extra;
	size_t n_extra;
};

#define EXPECT_ARGS_MAX 3

struct expect_call {
	const char *name;
	/* low holds the low 32 bits of the six arguments; returns SECCOMP_RET_*. */
	uint32_t (*verdict)(const uint32_t low[6]);
	struct expect_arg args[EXPECT_ARGS_MAX];
	size_t n_args;
};

extern const struct expect_call expect_calls[];
extern const size_t n_expect_calls;
