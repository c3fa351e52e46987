/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

struct program {
	struct sock_filter code[BPF_MAXINSNS];
	size_t len;
};

/* Makes the program shorter; what it says stays the same. */
void program_shorten(struct program *p);
