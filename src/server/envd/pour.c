/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rest of a large body that is a file as it is: the kernel moves it from the connection into a pipe which the box
 * reads, so none of it is copied here. What the box gets is the read end of a pipe in which there is nothing but this body.
 */
#include "server/envd/upload.h"

#include <poll.h>

/* Less is not worth a pipe, and a connection that cannot be used again. */
#define POUR_MIN (UINT64_C(1) << 20)
#define STALL_MS 10000 /* AG-09: in which the box reads nothing */

/* Until there is more of the body and room for it. A box that says something meanwhile has failed. */
static int wait_for_both(struct upload *u, int pipe_fd)
{
	struct pollfd said = { .fd = u->sink.talk->op.sock, .events = POLLIN };
	int r = stream_wait_space(u->request, pipe_fd, said.fd, STALL_MS);

	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	r = body_wait(u->request, said.fd);
	if (r < 0)
		return r;
	return poll(&said, 1, 0) > 0 ? sink_failure(u) : 0;
}

static int pour_some(struct upload *u, int pipe_fd)
{
	ssize_t n = body_splice(u->request, pipe_fd);

	if (n == -EAGAIN) {
		int r = wait_for_both(u, pipe_fd);

		if (r < 0)
			return r;
		n = body_splice(u->request, pipe_fd);
		/* Both are there, and nothing moves: TCP's urgent data, of which HTTP knows nothing. It would be so for ever. */
		if (n == -EAGAIN)
			return -ECONNRESET;
	}
	if (n == -EPIPE)
		return sink_failure(u);
	return n < 0 ? (int)n : 0;
}

/* Tells the box what comes through the pipe's other end. */
static int send_pipe(struct upload *u, int theirs)
{
	const struct wire_pipe message = { .bytes = body_rest(u->request) };
	int r = sink_flush(u);

	if (r == 0)
		r = wire_send_fds(u->sink.talk->op.sock, WIRE_PIPE, &message, sizeof(message),
				  &theirs, 1);
	if (r == -EPIPE)
		return sink_failure(u);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

int sink_pour(struct upload *u)
{
	_cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
	int fds[2], r;

	if (body_rest(u->request) < POUR_MIN)
		return 0;
	r = talk_pipe(fds, 1);
	if (r < 0)
		return 0; /* it goes on in frames */
	theirs = fds[0];
	ours = fds[1];
	/* The kernel gives all pipes of a user so much and no more. Through a small one it takes longer than in frames. */
	if (r < ENVD_PIPE_SIZE)
		return 0;
	r = send_pipe(u, theirs);
	fd_closep(&theirs); /* what the box closes is to have no reader left */
	while (r == 0 && body_rest(u->request) > 0)
		r = pour_some(u, ours);
	return r;
}
