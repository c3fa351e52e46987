/* SPDX-License-Identifier: Apache-2.0 */
/* Forked children that do one thing by themselves: a file operation, a sudo, a spill. Bounded, or a
 * flood of requests would be a flood of processes. */
#pragma once

#include "base/util.h"

#include <sys/types.h>

enum helper_kind { HELPER_FILES, HELPER_SUDO, HELPER_SPILL, _HELPER_MAX };

#define HELPER_FILES_MAX 128
#define HELPER_SUDO_MAX 32
#define HELPER_SPILL_MAX 32

/* fork(), remembered; -EAGAIN when there are too many of the kind. */
_must_check_ pid_t helper_fork(enum helper_kind kind);
void helper_reaped(pid_t pid);

/* Waits for its end, and reaps it. Everybody else waits as well. */
void helper_await(pid_t pid);

/* In the child: keeps only sock, and joins the cgroups of commands, where there are any. */
_must_check_ int helper_confine(int sock);
