/* SPDX-License-Identifier: Apache-2.0 */
/* What many threads take of something that is bounded for all of them together. */
#pragma once

#include "base/util.h"

static inline void budget_give_back(size_t *of, size_t n)
{
	(void)__atomic_sub_fetch(of, n, __ATOMIC_RELAXED);
}

static inline bool budget_take(size_t *of, size_t n, size_t max)
{
	if (__atomic_add_fetch(of, n, __ATOMIC_RELAXED) <= max)
		return true;
	budget_give_back(of, n);
	return false;
}
