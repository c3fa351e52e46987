/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files that boxes have made: copied and deleted by descriptor, in a helper process. */
#pragma once

#include "base/util.h"

#include <sys/types.h>

#define LAYER_DEPTH_MAX 1000 /* of directories in each other */

/* Opens a name in a directory and nothing else: no link is followed, no mount entered. */
_must_check_ int tree_open(int dir_fd, const char *name, int flags, mode_t mode);
bool tree_is_dots(const char *name);

_must_check_ int tree_remove(int dir_fd, const char *name);

/* Copies what is in one directory into the other, empty one. */
struct tree_copy {
	uint64_t bytes_left;
	uint64_t files_left;
	/* what stays free where the copy lies, whatever else writes there */
	uint64_t leave_bytes;
	uint64_t leave_files;
	uint64_t written;        /* about that much since we looked */
	const char *const *skip; /* names at the top that are not copied, NULL at the end */
	pid_t parent;            /* with whom the copying process is to end; 0: nobody */
	/* as whom it makes files now */
	uid_t uid;
	gid_t gid;
	bool is_owner;
	/* files with several names, by inode, as far as there is space to remember them */
	void *links;
	size_t links_bytes;
	int root_fd; /* of the copy: what the paths of links start from */
	char path[4096];
	size_t path_len;
	bool path_lost; /* where we are is too deep for a path */
};
/* -EFBIG, -ENOSPC, -ELOOP: too much, no space, too deep. */
_must_check_ int tree_copy(struct tree_copy *c, int from_fd, int to_fd);
