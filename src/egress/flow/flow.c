/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a connection. It reads only when everything it read before has been passed on: a
 * side that does not read costs what its sockets hold and no more, and stops the other one. Where
 * nobody needs to look at the bytes they go through a pipe in the kernel.
 */
#include "egress/flow/conn.h"

#include <fcntl.h>
#include <sys/socket.h>

#define PIPE_LARGE (1024 * 1024) /* what the kernel gives to everybody: fs.pipe-max-size */
#define PIPE_SMALL 65536
#define COPY_BYTES 65536
#define SPLICE_FEW 65536 /* less than this: there was no more */
#define STALLED_MAX 8    /* large pipes that one box can keep waiting; then it gets small ones */

/* One thread: a flow that reads has them for itself until it has passed on what it read. */
static unsigned char scratch[COPY_BYTES], framed[COPY_BYTES + HTTP_BODY_MORE];

#define KEPT 16      /* pipes of each size */
#define LARGE_MAX 48 /* at once, of all boxes */
/* --- pipes ---------------------------------------------------------------------------------- */

/*
 * Pipes for splice(): bytes go from socket to socket through one without being copied. They are
 * only held while there is something in them, so a few do for a thousand connections. The kernel
 * gives a user 64 MiB of large ones and then only tiny ones, so that large ones are for those whose
 * bytes flow: see flow_move().
 */
static struct pool {
	int pipe[KEPT][2];
	size_t n;
} pools[2];

static size_t n_large;

static int pipe_make(bool large, int ret[2])
{
	if (pipe2(ret, O_NONBLOCK | O_CLOEXEC) < 0) {
		ret[0] = ret[1] = -EBADF;
		return -errno;
	}
	/* Not given where the operator allows less: then it does it as it is, more slowly. */
	if (large)
		(void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_LARGE);
	n_large += large;
	return 0;
}

static int pipes_take(bool want_large, int ret[2], bool *ret_large)
{
	bool large = want_large && (pools[true].n || n_large < LARGE_MAX);
	struct pool *p = &pools[large];

	*ret_large = large;
	if (!p->n)
		return pipe_make(large, ret);
	p->n--;
	memcpy(ret, p->pipe[p->n], sizeof(p->pipe[0]));
	return 0;
}

static void pipes_give(int pipe[2], bool large, bool is_empty)
{
	struct pool *p = &pools[large];

	if (pipe[0] < 0)
		return;
	if (is_empty && p->n < KEPT) {
		memcpy(p->pipe[p->n++], pipe, sizeof(p->pipe[0]));
	} else {
		(void)fd_close(pipe[0]);
		(void)fd_close(pipe[1]);
		n_large -= large;
	}
	pipe[0] = pipe[1] = -EBADF;
}

/* --- what waits to be sent ------------------------------------------------------------------ */

struct flow *flow_of(struct conn *c, bool up)
{
	return up ? &c->up : &c->down;
}

bool flow_waits(const struct flow *f)
{
	return f->data || f->in_pipe;
}

static void drop_data(struct flow *f)
{
	if (f->data)
		explicit_bzero(f->data, f->len);
	free(f->data);
	f->data = NULL;
	f->at = f->len = 0;
}

static void set_stalled(struct conn *c, struct flow *f, bool is_stalled)
{
	c->net->n_stalled += (size_t)is_stalled;
	c->net->n_stalled -= (size_t)f->is_stalled;
	f->is_stalled = is_stalled;
}

static void drop_pipe(struct conn *c, struct flow *f)
{
	set_stalled(c, f, false);
	pipes_give(f->pipe, f->is_large, f->in_pipe == 0);
	f->in_pipe = 0;
}

void flow_done(struct conn *c, struct flow *f)
{
	drop_data(f);
	drop_pipe(c, f);
}

static void flow_count(struct conn *c, bool up, size_t n)
{
	flow_of(c, up)->bytes += n;
	if (up)
		c->net->bytes_up += n;
	else
		c->net->bytes_down += n;
}

void flow_put(struct conn *c, struct flow *f, unsigned char *data, size_t len)
{
	f->data = data;
	f->at = 0;
	f->len = len;
	flow_count(c, f == &c->up, len);
}

/* How much more the box may send or receive. */
static size_t allowance(const struct conn *c, bool up)
{
	const struct net *n = c->net;
	uint64_t limit = up ? n->limits.bytes_up : n->limits.bytes_down;
	uint64_t used = up ? n->bytes_up : n->bytes_down;

	if (limit == 0)
		return SIZE_MAX;
	return used < limit ? (size_t)(limit - used) : 0;
}

int flow_refuse(struct conn *c, enum policy_reason reason)
{
	c->verdict = reason;
	return -EPERM;
}

/* --- sending -------------------------------------------------------------------------------- */

static ssize_t send_to(struct conn *c, bool up, const void *data, size_t len)
{
	ssize_t n;

	if (up && c->tls)
		return tls_send(c, data, len);
	n = send(up ? c->host_fd : c->client_fd, data, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/* How much of it was sent at once, without waiting. */
static ssize_t send_some(struct conn *c, bool up, const unsigned char *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = send_to(c, up, data + at, len - at);

		if (n == -EAGAIN || n == -EINTR)
			break;
		if (n < 0)
			return n;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

/* Sends what was read; the rest waits. 1: there is no rest. */
static int flow_pass_on(struct conn *c, bool up, const unsigned char *data, size_t len)
{
	struct flow *f = flow_of(c, up);
	ssize_t n = send_some(c, up, data, len);

	if (n < 0)
		return (int)n;
	if ((size_t)n == len)
		return 1;
	f->data = malloc(len - (size_t)n);
	if (!f->data)
		return -ENOMEM;
	f->at = 0;
	f->len = len - (size_t)n;
	memcpy(f->data, data + n, f->len);
	return 0;
}

static int empty_pipe(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	int to = up ? c->host_fd : c->client_fd;

	while (f->in_pipe) {
		ssize_t n = splice(f->pipe[0], NULL, to, NULL, f->in_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			set_stalled(c, f, f->is_large);
			return 0;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		f->in_pipe -= (size_t)n;
	}
	drop_pipe(c, f);
	return 1;
}

/* 1: nothing waits any more. */
int flow_settle(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	ssize_t n;

	if (f->data) {
		n = send_some(c, up, f->data + f->at, f->len - f->at);
		if (n < 0)
			return (int)n;
		f->at += (size_t)n;
		if (f->at < f->len)
			return 0;
		drop_data(f);
	}
	return f->in_pipe ? empty_pipe(c, up) : 1;
}

/* --- reading -------------------------------------------------------------------------------- */

/* The first bytes of the answer to an upgrade: only when the host agrees is the rest of what the
 * client sends no request. */
static void note_status(struct conn *c, const unsigned char *data, size_t len)
{
	size_t n = MIN(len, sizeof(c->status) - c->status_len);
	bool agrees;

	memcpy(c->status + c->status_len, data, n);
	c->status_len += n;
	if (c->status_len < sizeof(c->status))
		return;
	agrees = memcmp(c->status, "HTTP/1.1 101", sizeof(c->status)) == 0;
	c->up_mode = agrees ? UP_RAW : UP_NONE;
	c->is_http = !agrees;
}

/* Through our own memory. 1: go on; 0: wait. */
int flow_copy(struct conn *c, bool up)
{
	size_t size = MIN(sizeof(scratch), allowance(c, up));
	ssize_t n;

	if (size == 0)
		return flow_refuse(c, POLICY_BYTES);
	if (!up && c->tls) {
		n = tls_recv(c, scratch, size);
	} else {
		n = recv(up ? c->client_fd : c->host_fd, scratch, size, 0);
		n = n < 0 ? -errno : n;
	}
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	flow_of(c, up)->is_ended = n == 0;
	if (!up && c->up_mode == UP_WAIT)
		note_status(c, scratch, (size_t)n);
	flow_count(c, up, (size_t)n);
	return flow_pass_on(c, up, scratch, (size_t)n);
}

/* Through a pipe, without copying. A side that does not read what it gets does so at the cost of
 * its own box. */
int flow_move(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	size_t size = allowance(c, up);
	ssize_t n;
	int r;

	if (size == 0)
		return flow_refuse(c, POLICY_BYTES);
	if (pipes_take(c->net->n_stalled < STALLED_MAX, f->pipe, &f->is_large) < 0)
		return flow_copy(c, up);
	size = MIN(size, (size_t)(f->is_large ? PIPE_LARGE : PIPE_SMALL));
	n = splice(up ? c->client_fd : c->host_fd, NULL, f->pipe[1], NULL, size,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0) {
		r = n == 0 ? 1 : errno == EAGAIN || errno == EINTR ? 0 : -errno;
		f->is_ended = n == 0;
		drop_pipe(c, f);
		return r;
	}
	f->in_pipe = (size_t)n;
	flow_count(c, up, (size_t)n);
	r = empty_pipe(c, up);
	return r == 1 && n < SPLICE_FEW ? 0 : r;
}

/* The body of a request, up to its last byte and no further. */
int flow_body(struct conn *c)
{
	size_t size = MIN(sizeof(scratch), allowance(c, true)), len = 0;
	bool is_done = false;
	ssize_t n;

	if (size == 0)
		return flow_refuse(c, POLICY_BYTES);
	if (c->in.len) { /* at most REQUEST_MAX: came with the head */
		n = (ssize_t)c->in.len;
		memcpy(scratch, c->in.data, c->in.len);
		buf_done(&c->in);
	} else {
		n = recv(c->client_fd, scratch, size, 0);
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPROTO; /* it left in the middle */
	if (http_body_feed(&c->body_parser, c->body, scratch, (size_t)n, framed, &len, &is_done) <
	    0)
		return flow_refuse(c, POLICY_BAD_REQUEST);
	if (is_done)
		c->up_mode = UP_NONE;
	flow_count(c, true, len);
	return flow_pass_on(c, true, framed, len);
}
