/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

/* The CPUs of this machine that are switched on, whichever of them we ourselves may use:
 * get_nprocs() means the one in glibc and the other in musl. */
unsigned cpus_online(void);

/* How many are in a list of the kernel's, such as "0-3,8"; 0 when it is none. */
unsigned cpus_in_list(const char *text);
