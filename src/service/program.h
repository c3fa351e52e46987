/* SPDX-License-Identifier: Apache-2.0 */
/* The other programs of ours. */
#pragma once

#include "base/util.h"

#include <limits.h>

/*
 * The path of one: beside our own in a build tree (each has a directory there: "client"), or where
 * they are installed. -ENOENT, and *ret is where it would be then.
 */
_must_check_ int program_find(const char *dir, const char *name, char *ret, size_t size);

/* Our own path, and that of the front, which does plain runs: without links in it, for people and
 * for rules. -ENOENT: there is none, or it is what we are. */
_must_check_ int program_self(char ret[static PATH_MAX]);
_must_check_ int program_front(char ret[static PATH_MAX]);
