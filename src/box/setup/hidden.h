/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts inside a template's layer (FS-19). An overlay shows what lies under them, which the host's
 * administrator may have hidden on purpose, so a box covers those places.
 */
#pragma once

#include "base/util.h"

#define HIDDEN_MAX 64
#define HIDDEN_PATH_MAX 256

struct hidden {
	size_t n;
	/* in the box; the second layer is /usr, without the leading slash */
	char path[HIDDEN_MAX][HIDDEN_PATH_MAX];
};

/* Looks for them in this process's mount namespace. -E2BIG, -ENAMETOOLONG when there are too many
 * or their names too long: then the box is refused rather than leaky. */
_must_check_ int hidden_find(const char *const *layers, size_t n_layers, struct hidden *ret);

/* The mount point in a line of mountinfo, or NULL. Changes the line. */
const char *hidden_mount_point(char *line);

/* What follows dir in a path below it, or NULL. */
const char *hidden_below(const char *point, const char *dir);
