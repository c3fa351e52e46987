/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "wire/wire.h"

#define AGENT_CONTROL_FD 3

/* Gives up what a payload must not have and becomes the user. Only in a forked child. */
_must_check_ int agent_become(uint32_t uid, uint32_t gid);

/* The forked child of a command: never returns. Failures go to status_fd as struct wire_failed. */
struct agent_child {
	struct wire_exec request;
	int sock;
	int in_fd;
	int out_fd;
	int err_fd;
	int status_fd;
	const int *join_fds;
	size_t n_join;
};
_noreturn_ void agent_child_run(const struct agent_child *c);

/* The forked child of a file transfer: never returns. */
_noreturn_ void agent_files_run(enum wire_type type, const struct wire_files *request, int sock);
