/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the built-in root that this program carries: the interpreters' side in a box (kernels/)
 * and what they load. tools/embed makes the table while building; kernels/meson.build says of what.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

struct embedded_file {
	const char *name; /* in the root, without a slash at the beginning; NULL ends the table */
	mode_t mode;
	const unsigned char *data, *end;
};

extern const struct embedded_file embedded_files[];

/* Another one for other names, modes or bytes. */
extern const uint64_t embedded_key;

/* Writes them below dir_fd, with the directories they need. *ret_what is the name that failed. */
_must_check_ int embedded_write(int dir_fd, const char **ret_what);
