/* SPDX-License-Identifier: Apache-2.0 */
/* How a room that reads hostile bytes shuts itself in, once everything that it needs is open. */
#pragma once

#include "base/fail.h"
#include "sys/landlock.h"

#include <linux/filter.h>

struct seal {
	const struct landlock_path *paths; /* all that can still be opened */
	size_t n_paths;
	const struct sock_filter *filter; /* all that can still be called */
	size_t filter_len;
};

/*
 * For good: no new privileges, no core, no file but those, no memory that others of the same user
 * can read, no other system call. There must be no other thread: threads inherit it, those that are
 * there already would not. *ret_abi: the Landlock ABI that is in force; 0: the kernel has none, and
 * the filter stands alone.
 */
_must_check_ int seal_room(const struct seal *s, int *ret_abi, struct fail *fail);

/* Is there a filter? Not in builds with sanitizers: they make calls, and start programs, that no
 * room has a place for. Such a build is for tests only, and seal_room() does nothing in it. */
bool seal_has_filter(void);
