/* SPDX-License-Identifier: Apache-2.0 */
/* What to run, as it comes on an operation's socket. The process that becomes the command reads
 * it. */
#pragma once

#include "wire/wire.h"

#define REQUEST_ARGS_MAX 4096
#define REQUEST_ENVS_MAX 1024
#define REQUEST_DEFAULTS_MAX 5                /* variables that are set for it */
#define REQUEST_BYTES_MAX (UINT64_C(1) << 20) /* of all arguments and variables together */

struct agent_request {
	char user[WIRE_USER_MAX + 1]; /* empty: the ids that came with it hold */
	char cwd[WIRE_PATH_MAX + 1];
	char *args[REQUEST_ARGS_MAX + 1];
	char *envs[REQUEST_ENVS_MAX + REQUEST_DEFAULTS_MAX + 1];
	size_t n_args;
	size_t n_envs;
	char **last; /* the argument or variable that MORE goes on with */
	uint64_t bytes;
	int label_fd; /* a LABEL is passed on to here as it comes, or dropped (-EBADF) */
};

/* Reads up to GO. */
_must_check_ int agent_request_read(int sock, struct agent_request *ret);

/* The limits that come with the order to run it, for this process. */
_must_check_ int agent_request_set_limits(const struct wire_exec *q);
