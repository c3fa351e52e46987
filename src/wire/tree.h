/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file tree over an operation's socket, depth first, one component at a time: DIR name … DIR_END,
 * FILE name, DATA…, FILE_END. The receiver keeps a stack of directory descriptors and creates each
 * name beside it, exclusively and without following links, so that no path from the other side is
 * ever resolved. Only regular files and directories travel out of a box; anything else is REFUSED
 * by name. Into a box symbolic links may travel as well: they can only point within it.
 */
#pragma once

#include "wire/wire.h"

#define TREE_DEPTH_MAX 64

struct tree_limits {
	uint64_t bytes;            /* of all files together */
	uint64_t entries;          /* files, directories and refusals together */
	uint64_t deadline_boot_us; /* 0: none */
	int cancel_fd;             /* readable: give up (-ECANCELED); -EBADF: none */
};

/* What the receiver tells its owner; each may be NULL. path is relative to the tree's root. */
struct tree_events {
	void *arg;
	void (*data)(void *arg, const void *data, size_t len);
	int (*file)(void *arg, const char *path, uint64_t size);
	int (*refused)(void *arg, const char *path, uint32_t type);
};

/*
 * Sends the contents of dir_fd (not dir_fd itself). Into a box (in is given): symbolic links
 * travel, and anything else that is neither a file nor a directory is -EOPNOTSUPP, with its name in
 * *in. Out of a box (in is NULL): all of these are REFUSED by name. TREE_END is the caller's.
 */
struct tree_inward {
	char refused[WIRE_NAME_MAX + 1];
};
_must_check_ int tree_send_dir(int sock, int dir_fd, struct tree_inward *in);

/* Sends one open regular file under the given name. */
_must_check_ int tree_send_file(int sock, const char *name, int fd);

/* Starts and ends a directory that is not there on this side. */
_must_check_ int tree_send_enter(int sock, const char *name, uint32_t mode);

/*
 * Receives a tree into dir_fd up to TREE_END. -EPROTO for a hostile or broken sender, -EFBIG and
 * -E2BIG at the byte and entry limits, -ETIME at the deadline, -ELOOP when nested too deep, or what
 * creating a file returned. What was created so far stays: the caller owns the directory.
 */
_must_check_ int tree_recv(int sock, enum wire_socket where, int dir_fd,
			   const struct tree_limits *limits, const struct tree_events *events);
