/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "template/template.h"

#include <sys/types.h>
#include <time.h>

#define TEMPLATE_STATE_SIZE (PATH_MAX - 64) /* leaves room for a root's name */

/* A root that nobody has found for so long is removed. Finding one leaves it at
 * least half of that, which is longer than any run may last. */
#define TEMPLATE_KEEP_SECONDS ((time_t)4 * 86400)

/* What template_state_dir() makes where it is missing. */
_must_check_ int template_state_path(char *ret, size_t size, struct fail *fail);

/* Makes a new file below dir_fd. */
_must_check_ int template_write_file(int dir_fd, const char *name, mode_t mode, const void *data,
				     size_t size);
