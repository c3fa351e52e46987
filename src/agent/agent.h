/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "wire/wire.h"

#define AGENT_CONTROL_FD 3
#define AGENT_OPS_MAX 64     /* commands at once */
#define AGENT_POLLS_PER_OP 5 /* descriptors each is watched by */

/* op.c: starts a command. sock is the command's from then on; on failure it stays the caller's. */
_must_check_ int agent_exec(const struct wire_exec *request, int sock, const int *join_fds,
			    size_t n_join);

/* Takes the exits of commands, and of whatever else ended in the box. */
void agent_reap(void);

/* What the commands wait for, before poll(), and what came of it, after. */
struct pollfd;
size_t agent_poll_prepare(struct pollfd *polls, size_t *ret_used, bool *ret_draining);
void agent_poll_handle(const struct pollfd *polls, const size_t *used, size_t n);

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
