/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

/* Makes a new file below dir_fd. */
_must_check_ int template_write_file(int dir_fd, const char *name, mode_t mode, const void *data,
				     size_t size);
