/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, for the person who has to do something about it. Carried by value, filled once
 * by the code that knows what the user can do, printed once by the room that owns the conversation.
 */
#pragma once

#include "base/util.h"

struct fail {
	int err;        /* errno value behind it, or 0 */
	char where[32]; /* the step, e.g. "mount /proc" */
	char msg[232];  /* one line, no trailing newline */
};

/* Fills *fail and returns -err (or -EINVAL when err is 0), for `return fail_set(...)`. */
int fail_set(struct fail *fail, int err, const char *where, const char *fmt, ...) _printf_(4, 5);
