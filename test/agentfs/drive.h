/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives file operations over the wire, as the server does. Where they run is the program's: in a
 * process forked from the test (test/unit/test_agent_fs.c: fast, under the sanitizers), or in a
 * real box (box.c).
 */
#pragma once

#include "wire/wire.h"

/* clang-format off: cmocka wants these first */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
/* clang-format on */

struct drive {
	int (*open)(const struct wire_fs *request); /* a socket that waits at most some seconds */
	void (*sh)(const char *script); /* in the home directory, as the user; must succeed */
	const char *home;               /* of the user, absolute */
	const char *far;                /* a directory on another file system */
	bool in_box;
};
extern const struct drive *drive;

struct seen_entry {
	struct wire_fs_entry head;
	char path[WIRE_PATH_MAX + 1];
	char owner[64];
	char group[64];
	char target[WIRE_PATH_MAX + 1];
	char attrs[32768]; /* key=value, one a line */
};

/* Begins an operation up to and with GO. Paths end with NULL. */
int begin(uint32_t op, uint32_t flags, uint32_t depth, const char *path, ...)
	__attribute__((sentinel));
int begin_request(const struct wire_fs *request, const char *user, const char *const *paths);

/* What comes next must be this. */
void want_entry(int sock, struct seen_entry *ret);
void want_done(int sock); /* and the end behind it */
void want_failed(int sock, uint32_t step, int err);
/* CHANGE with this name; the entry behind it, if there is one, goes to ret when given. */
void want_change(int sock, uint32_t what, const char *name, struct seen_entry *ret);
/* No frame within a short while. */
void want_silence(int sock);
/* The next frame, whatever it is; false at the end. */
bool next_frame(int sock, struct wire_frame *ret);

/* Whole operations. 0, or the errno of FAILED (which must be of step FILE). */
int do_stat(const char *path, struct seen_entry *ret);
int do_write(const char *path, const char *text);
int do_read(const char *path, char *ret, size_t size);
int do_simple(uint32_t op, const char *path, const char *second);
/* The paths of a list, one a line, without the part that is asked for. */
int do_list(const char *path, uint32_t depth, char *ret, size_t size);

/* home + "/" + name, in one of several static buffers. */
const char *at_home(const char *name);
