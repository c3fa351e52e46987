/* SPDX-License-Identifier: Apache-2.0 */
/* One command of a sandbox with our own terminal or pipes at its ends: what exec and shell have in
 * common. */
#pragma once

#include "base/termsafe.h"
#include "client/client.h"
#include "client/own.h"
#include "client/api/stream.h"

struct session {
	struct api *api;
	struct api_sandbox sandbox;
	struct own_sandbox *own; /* it exists for this session; NULL: it does not */
	struct stream_events events;
	int fds[2]; /* signals, then our input */
	uint32_t pid;
	bool is_pty;
	bool safe[2]; /* our output is a terminal: defuse what it must not do */
	struct termsafe filter[2];
	int interrupts;
};

/* Runs body (taken) to its end: an exit status. */
int session_run(struct session *s, json_t *body, const char *user, bool with_input);

struct session_options {
	const char *user;
	const char *cwd;
	json_t *env;
	bool with_input;
	bool raw;
};

/* -1 when there is more to do, else an exit status. */
int session_options(int argc, char **argv, const char *help, struct session_options *o);
