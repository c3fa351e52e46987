/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a command between fork and exec. */
#pragma once

#include "agent/request.h"

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
_noreturn_ void agent_child_exec(const struct agent_child *c, struct request *q);
