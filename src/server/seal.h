/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/server.h"

/*
 * Shuts the room, for good: from here on this process can open files of the store only (and read what is needed to
 * call a webhook), and make only the system calls of syscalls.def. Everything must be open by now, and there must be
 * no other thread: threads inherit it, those that are there already would not.
 */
_must_check_ int seal(struct server *s, struct fail *fail);

/* Is the filter in force? Not in builds with sanitizers. */
bool seal_has_filter(void);
/* The Landlock ABI that is in force, 0: the kernel has none. */
int seal_landlock_abi(void);
