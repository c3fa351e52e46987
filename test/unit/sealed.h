/* SPDX-License-Identifier: Apache-2.0 */
/* What is left to a program that somebody else has taken over: each case is a process that seals itself and then
 * tries. */
#pragma once

#include <stddef.h>

/* The test's own: seals this process. Positive where there is no filter, negative when it failed. */
int seal_this(void);

/* attempt() returns 0 when it is sealed, or does not return. */
void works(int (*attempt)(void));
void is_killed(int (*attempt)(void));

/* Attempts. Those that must be the end of the process return as the system call does. */
int open_none(const char *const *paths, size_t n);
int execute(void);
int make_process(void);
