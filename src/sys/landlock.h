/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

/* The kernel's Landlock ABI, 0 when it has none or it is switched off; -errno when it cannot be
 * told. */
int landlock_abi(void);

/* What may be done below a path. */
enum landlock_rule {
	LANDLOCK_READ = 1 << 0,   /* read, list, execute */
	LANDLOCK_CHANGE = 1 << 1, /* create, remove, rename and write files, never device nodes */
	LANDLOCK_WRITE = 1 << 2,  /* write existing files */
	LANDLOCK_IOCTL = 1 << 3,  /* ioctl on devices opened from now on */
};

struct landlock_path {
	const char *path;
	unsigned rules;
	const int *fd; /* instead of a path, for what has none */
};

/*
 * Restricts this process and its descendants to the given paths (a missing one is passed over),
 * cuts them off from abstract sockets and from signalling processes outside. Asks for what the
 * kernel's ABI knows; *ret_abi says which that was. Needs no_new_privs.
 */
_must_check_ int landlock_restrict(const struct landlock_path *paths, size_t n_paths, int *ret_abi);

/* The same about files only: what else it may reach, its namespaces decide. */
_must_check_ int landlock_restrict_files(const struct landlock_path *paths, size_t n_paths,
					 int *ret_abi);

/*
 * Takes nothing away but this: from now on the process can neither trace nor enter, by pid or
 * pidfd, one that is not its descendant, whatever capabilities it has over it. Needs no_new_privs.
 */
_must_check_ int landlock_keep_apart(void);
