/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runner was forked outside, from an interpreter that is loaded, and has walked into the box. It is our child, sealed
 * and in the cgroup of commands as any of them, has run nothing foreign, and waits for us to hand it what a command
 * gets. It becomes the command, or executes it where it is not what it was loaded for; there is one at most.
 */
#include "agent/command/command.h"

#include <poll.h>

/* How long it is waited for. It was sent before whoever asks now has heard of the box, so it is here, or nearly; or
 * something is wrong with it, and it is quicker to execute. Nothing else has to be done in the box meanwhile. */
#define COME_MS 250

static int runner_sock = -EBADF;

void runner_keep(int sock)
{
	fd_close(runner_sock);
	runner_sock = sock;
}

/* It says who it is, in the box's own numbers. */
static pid_t await(int sock)
{
	static struct wire_frame f;
	const struct wire_process *who = (const struct wire_process *)f.data;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int r = poll(&p, 1, COME_MS) == 1 ? wire_recv(sock, &f, WIRE_ON_FROM_OP) : -ETIMEDOUT;

	if (r < 0)
		return r;
	return r == 1 && f.head.type == WIRE_STARTED && who->pid > 1 && who->pid <= INT32_MAX ?
		       (pid_t)who->pid :
		       -EPROTO;
}

pid_t runner_take(const struct wire_exec *q, const int fds[_WIRE_RUNNER_MAX])
{
	/* Whatever comes of it, this was its chance: who is not wanted sees his socket close, and ends. */
	_cleanup_(fd_closep) int sock = take_fd(&runner_sock);
	size_t n = q->flags & WIRE_EXEC_STDIN ? _WIRE_RUNNER_MAX : WIRE_RUNNER_IN;
	pid_t pid = sock < 0 ? -ENOENT : await(sock);
	int r = pid < 0 ? pid : wire_send_fds(sock, WIRE_EXEC, q, sizeof(*q), fds, n);

	return r < 0 ? r : pid;
}
