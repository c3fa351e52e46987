/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a process's own /proc/PID/maps. */
#pragma once

#include "base/util.h"

#define MAPS_LINE_MAX 512

struct maps_range {
	uint64_t from, to;
	bool of_file; /* it began as a copy of a file */
};

/* "7f0c-7f0d rw-p 00000000 00:00 0 [heap]": memory of its own that it can write. Not its stack. */
bool maps_is_own(const char *line, struct maps_range *ret);
