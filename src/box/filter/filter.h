/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system-call filter of a box: one program for the agent and everything it starts. The policy
 * is filter/syscalls.def, compiled at build time by tools/mkfilter.c.
 */
#pragma once

#include <stddef.h>

#include "base/util.h"

struct sock_filter;

/*
 * Puts the calling thread, and all it will ever fork or execute, under the filter. There is no way
 * back. The caller has set no_new_privs (AB-09: nobody may choose the filter of a program that
 * gains privileges, so without it the kernel answers -EACCES) and is the only thread of its
 * process (AB-08). Makes one system call and allocates nothing: fit for use between clone and exec.
 */
int box_filter_install(void) _must_check_;

const struct sock_filter *box_filter_program(size_t *ret_len);
