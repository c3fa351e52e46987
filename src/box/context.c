/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters in a box: the host's side of starting them and of giving them cells. */
#include "box/exec_priv.h"

#include "sys/sock.h"

static int fail_agent(struct fail *fail, int r)
{
	return fail_set(fail, -r, "agent", "the box's agent does not answer: %s", strerror(-r));
}

/* Sends a request with one end of a new operation's socket: the other end. */
static int start_operation(struct box *b, enum wire_type type, const void *request, size_t size,
			   struct fail *fail)
{
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return fail_set(fail, -r, "sockets", "cannot make a socket: %s", strerror(-r));
	r = box_limit_waiting(pair[0]);
	if (r == 0)
		r = wire_send_fds(b->control_fd, type, request, size, &pair[1], 1);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return fail_agent(fail, r);
	}
	return pair[0];
}

int box_kernel(struct box *b, const struct box_command *c, const struct wire_context *context,
	       struct fail *fail)
{
	struct wire_kernel request = { .exec = box_exec_request(b, c), .context = *context };
	_cleanup_(fd_closep) int sock = -EBADF;
	int r;

	/* It is one of several things in its box, and stays: its end is not the box's. */
	request.exec.flags = 0;
	sock = start_operation(b, WIRE_KERNEL, &request, sizeof(request), fail);
	if (sock < 0)
		return sock;
	r = box_send_command(sock, c);
	return r < 0 ? fail_agent(fail, r) : take_fd(&sock);
}

int box_cell(struct box *b, const struct wire_cell *cell, const char *code, size_t len,
	     struct fail *fail)
{
	_cleanup_(fd_closep) int sock = start_operation(b, WIRE_CELL, cell, sizeof(*cell), fail);
	int r = 0;

	if (sock < 0)
		return sock;
	for (size_t at = 0; r == 0 && at < len;) {
		size_t n = MIN(len - at, (size_t)WIRE_DATA_MAX);

		r = wire_send(sock, WIRE_CODE, code + at, n);
		at += n;
	}
	if (r == 0)
		r = wire_send(sock, WIRE_GO, NULL, 0);
	/* Whoever hung up has said why: that can still be read. */
	return r < 0 && r != -EPIPE ? fail_agent(fail, r) : take_fd(&sock);
}

int box_tell_context(struct box *b, const char *context, uint32_t signal, struct fail *fail)
{
	struct wire_context_tell request = { .signal = signal };

	(void)snprintf(request.context, sizeof(request.context), "%s", context);
	return start_operation(b, WIRE_CONTEXT_TELL, &request, sizeof(request), fail);
}
