/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell of a language that keeps no state: the code becomes a file in a directory of its own below /tmp, is compiled
 * where the language does that, and run. The commands are ordinary ones that end with their socket, so a client that
 * goes away ends them.
 */
#pragma once

#include "server/sandbox/id.h"
#include "server/interp/interp.h"

struct once {
	struct request *request; /* gone when the stream is closed */
	struct sandbox *sandbox; /* a reference */
	const struct language *language;
	struct interp_execute what; /* its texts belong to the request's body */
	struct talk *talk;
	char dir[sizeof("/tmp/cell-") + ID_LEN];
	bool compiling;
	bool started;
	bool numbered;
	struct buf compiler; /* what it said */
	struct interp_carry out, err;
	uint64_t out_bytes, err_bytes;
	uint64_t begun_us;
	const char *reason;
	json_t *error;
};

/* interp/once_start.c */
_must_check_ int once_write_code(struct once *o, struct rpc_error *e);
/* As well as can be: nothing depends on it. */
void once_remove_directory(struct once *o);
/* Starts the compiler, or what is to be run. */
_must_check_ int once_start(struct once *o);
