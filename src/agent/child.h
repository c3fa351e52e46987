/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a command between fork and exec, and what every process does that the agent forks. */
#pragma once

#include "agent/agent.h"
#include "wire/request.h"

/* Where an interpreter finds its pipes. */
#define KERNEL_REQUESTS_FD 3
#define KERNEL_EVENTS_FD 4

/* Closes everything but 0 to 2 and these; negative ones are passed over. A child that keeps a copy
 * of another command's pipe keeps that command from seeing its end. */
void agent_keep_fds(const int *fds, size_t n);

_must_check_ int agent_join_cgroups(const int *fds, size_t n);
void agent_unblock_signals(void);

/* In the agent: a pipe that belongs to the user, so that /dev/stdout and /dev/stderr can be opened
 * by name. */
_must_check_ int agent_pipe(const struct wire_exec *q, int *ret_read, int *ret_write);

struct agent_child {
	struct wire_exec request;
	bool tty;       /* in_fd is to be its controlling terminal */
	bool own_stdio; /* the pipes were made for it, by the ids of the request */
	int in_fd;      /* negative: nothing to read */
	int out_fd;
	int err_fd;
	bool kernel; /* the next two go to KERNEL_REQUESTS_FD and KERNEL_EVENTS_FD */
	int requests_fd;
	int events_fd;
	int status_fd; /* a SEQPACKET socket: LABEL and FAILED go here, and it closes with exec */
};

/* Reads what to run from sock and becomes it. Never returns. */
_noreturn_ void agent_child_run(const struct agent_child *c, int sock, const int *join_fds,
				size_t n_join);

/* The second half: what to run has been read, the cgroups have been joined. */
_noreturn_ void agent_child_exec(const struct agent_child *c, struct agent_request *q);
