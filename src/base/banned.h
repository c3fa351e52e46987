/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are easy to misuse become compile errors. Included first by base/util.h,
 * after the libc headers have declared them.
 */
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strtok gets
#pragma GCC poison atoi atol atoll strtol strtoul strtoll strtoull
#pragma GCC poison system popen tmpnam mktemp
