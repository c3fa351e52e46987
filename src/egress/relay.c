/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes both ways, until both sides have said all they had to say. Each direction reads only when everything it read before
 * has been passed on: a side that does not read costs what its sockets hold and no more, and stops the other one. Where
 * nobody needs to look at the bytes they go through a pipe in the kernel.
 *
 * A request in the clear has one direction that ends with it (NW-13): what the client sends afterwards is never read as a
 * request, and the answer goes on to its end.
 */
#include "egress/conn.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define COPY_BYTES 65536
#define SPLICE_BYTES (1024 * 1024)
#define SPLICE_FEW 65536 /* less than this: there was no more */
#define ROUNDS 16        /* in one go, then it is others' turn */

/* One thread: whoever reads has them for himself until he has passed on what he read. */
static unsigned char scratch[COPY_BYTES], framed[COPY_BYTES + HTTP_BODY_MORE];

/* --- what waits to be sent ---------------------------------------------------------------------------------- */

static struct flow *flow_of(struct conn *c, bool up)
{
	return up ? &c->up : &c->down;
}

static bool waits(const struct flow *f)
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

void flow_done(struct flow *f)
{
	drop_data(f);
	pipes_give(f->pipe, f->in_pipe == 0);
	f->in_pipe = 0;
}

static void count(struct conn *c, bool up, size_t n)
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
	count(c, f == &c->up, len);
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

static int refuse_later(struct conn *c, enum policy_reason reason)
{
	c->verdict = reason;
	return -EPERM;
}

/* --- sending --------------------------------------------------------------------------------------------------- */

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
static int pass_on(struct conn *c, bool up, const unsigned char *data, size_t len)
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

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n == 0)
			return -EPIPE;
		f->in_pipe -= (size_t)n;
	}
	pipes_give(f->pipe, true);
	return 1;
}

/* 1: nothing waits any more. */
static int settle(struct conn *c, bool up)
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

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* The first bytes of the answer to an upgrade: only when the host agrees is the rest of what the client sends no request. */
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
static int copy(struct conn *c, bool up)
{
	size_t size = MIN(sizeof(scratch), allowance(c, up));
	ssize_t n;

	if (size == 0)
		return refuse_later(c, POLICY_BYTES);
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
	count(c, up, (size_t)n);
	return pass_on(c, up, scratch, (size_t)n);
}

/* Through a pipe, without copying. */
static int move(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	size_t size = MIN((size_t)SPLICE_BYTES, allowance(c, up));
	ssize_t n;
	int r;

	if (size == 0)
		return refuse_later(c, POLICY_BYTES);
	if (pipes_take(f->pipe) < 0)
		return copy(c, up);
	n = splice(up ? c->client_fd : c->host_fd, NULL, f->pipe[1], NULL, size,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0) {
		int err = errno;

		pipes_give(f->pipe, true);
		f->is_ended = n == 0;
		return n == 0 ? 1 : err == EAGAIN || err == EINTR ? 0 : -err;
	}
	f->in_pipe = (size_t)n;
	count(c, up, (size_t)n);
	r = empty_pipe(c, up);
	return r == 1 && n < SPLICE_FEW ? 0 : r;
}

/* The body of a request, up to its last byte and no further. */
static int body(struct conn *c)
{
	size_t size = MIN(sizeof(scratch), allowance(c, true)), len = 0;
	bool is_done = false;
	ssize_t n;

	if (size == 0)
		return refuse_later(c, POLICY_BYTES);
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
		return refuse_later(c, POLICY_BAD_REQUEST);
	if (is_done)
		c->up_mode = UP_NONE;
	count(c, true, len);
	return pass_on(c, true, framed, len);
}

/* --- held against the name ------------------------------------------------------------------------------------------ */

static uint64_t deadline(const struct conn *c)
{
	uint64_t idle = c->active_us + CONN_IDLE_US;

	return c->up_mode == UP_PROOF && c->proof_until_us ? MIN(c->proof_until_us, idle) : idle;
}

static int look(struct egress *g, struct conn *c, bool is_ended)
{
	int r = proof_look(g, c, is_ended);

	if (r == 0 && c->proof_until_us == 0) {
		c->proof_until_us = c->active_us + CONN_REQUEST_US;
		timer_set(g, &c->timer, deadline(c));
	}
	if (r != 1)
		return r;
	conn_tell(g, c);
	c->is_proved = true;
	c->up_mode = UP_RAW;
	c->up.is_ended = is_ended && c->in.len == 0;
	return 1;
}

static int prove(struct egress *g, struct conn *c)
{
	int r = conn_read(c);

	if (r == 0)
		return 0;
	if (r == -ENOBUFS)
		return refuse_later(c, POLICY_BAD_REQUEST);
	if (r < 0 && r != -ENODATA)
		return r;
	return look(g, c, r == -ENODATA);
}

/* --- both directions ------------------------------------------------------------------------------------------------ */

static int read_up(struct egress *g, struct conn *c)
{
	switch (c->up_mode) {
	case UP_NONE:
	case UP_WAIT:
		return 0;
	case UP_PROOF:
		return prove(g, c);
	case UP_BODY:
		return body(c);
	case UP_RAW:
		break;
	}
	if (c->in.len) {
		flow_put(c, &c->up, take_ptr(c->in.data), c->in.len);
		c->in = (struct buf)BUF_INIT(REQUEST_MAX);
		return 1;
	}
	return c->tls ? copy(c, true) : move(c, true);
}

static int read_down(struct conn *c)
{
	return c->tls || c->up_mode == UP_WAIT ? copy(c, false) : move(c, false);
}

static void pass_end(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);

	if (!f->is_passed)
		(void)shutdown(up ? c->host_fd : c->client_fd, SHUT_WR);
	f->is_passed = true;
}

/* As far as it gets. What GnuTLS has read already would wake nobody. */
static int run(struct egress *g, struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	int r = 1;

	for (unsigned i = 0; r > 0 && (i < ROUNDS || (!up && tls_has_more(c))); i++) {
		r = settle(c, up);
		if (r > 0 && f->is_ended) {
			pass_end(c, up);
			return 0;
		}
		if (r > 0)
			r = up ? read_up(g, c) : read_down(c);
	}
	return MIN(r, 0);
}

static void want_both(struct egress *g, struct conn *c)
{
	bool reads = c->up_mode == UP_RAW || c->up_mode == UP_BODY || c->up_mode == UP_PROOF;
	bool up_waits = waits(&c->up), down_waits = waits(&c->down);
	uint32_t client = down_waits ? EPOLLOUT : 0, host = up_waits ? EPOLLOUT : 0;

	if (reads && !up_waits && !c->up.is_ended)
		client |= EPOLLIN;
	if (!down_waits && !c->down.is_ended)
		host |= EPOLLIN;
	conn_want_client(g, c, client);
	conn_want_host(g, c, host);
}

/* A host that answers before it has read everything, and then closes, is no failure: its answer counts. */
static bool stop_body(struct conn *c, bool up, int r)
{
	if (!up || !c->is_http || (r != -EPIPE && r != -ECONNRESET))
		return false;
	flow_done(&c->up);
	c->up_mode = UP_NONE;
	c->up_is_cut = true;
	return true;
}

/* One direction as far as it gets, and what follows from it. false: the connection is gone, or elsewhere. */
static bool go(struct egress *g, struct conn *c, bool up)
{
	int r = run(g, c, up);

	if (r == -EINPROGRESS)
		return false;
	if (r == -EPERM) {
		conn_refuse(g, c, c->verdict);
		return false;
	}
	if (r < 0 && !stop_body(c, up, r)) {
		if (!up && c->up_is_cut)
			conn_linger(g, c, NULL, 0);
		else
			conn_end(g, c, c->reason, true);
		return false;
	}
	if (c->down.is_passed && c->is_http) {
		conn_linger(g, c, NULL, 0);
		return false;
	}
	if (c->down.is_passed && c->up.is_passed) {
		conn_end(g, c, c->reason, false);
		return false;
	}
	want_both(g, c);
	return true;
}

void relay_begin(struct egress *g, struct conn *c)
{
	int r = 1;

	c->step = STEP_RELAY;
	c->active_us = clock_boot_us();
	c->proof_until_us =
		c->up_mode == UP_PROOF && c->target.port == 443 ? c->active_us + CONN_HELLO_US : 0;
	timer_set(g, &c->timer, deadline(c));
	if (c->up_mode == UP_PROOF && c->in.len)
		r = look(g, c, false);
	if (r == -EPERM)
		conn_refuse(g, c, c->verdict);
	else if (r >= 0)
		(void)go(g, c, true);
}

/* --- events --------------------------------------------------------------------------------------------------------- */

void relay_client_ready(struct egress *g, struct conn *c, uint32_t events)
{
	c->active_us = clock_boot_us();
	if (events & EPOLLERR) {
		conn_end(g, c, c->reason, true);
		return;
	}
	/* Closed on both sides, and nothing to read at the moment: it would be told again and again. */
	if (events & EPOLLHUP && !(c->client.events & EPOLLIN))
		watch_remove(g, &c->client);
	if (events & EPOLLOUT && !go(g, c, false))
		return;
	if (events & (EPOLLIN | EPOLLHUP))
		(void)go(g, c, true);
}

void relay_host_ready(struct egress *g, struct conn *c, uint32_t events)
{
	c->active_us = clock_boot_us();
	if (events & (EPOLLERR | EPOLLHUP) && !(c->host.events & EPOLLIN))
		watch_remove(g, &c->host);
	if (events & (EPOLLOUT | EPOLLERR) && !go(g, c, true))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !go(g, c, false))
		return;
	if (c->up_mode == UP_RAW && c->in.len)
		(void)go(g, c, true);
}

void relay_due(struct egress *g, struct conn *c)
{
	uint64_t at = deadline(c);

	if (clock_boot_us() < at)
		timer_set(g, &c->timer, at);
	else if (at < c->active_us + CONN_IDLE_US)
		conn_refuse(g, c, POLICY_TOO_SLOW);
	else
		conn_end(g, c, POLICY_TIMEOUT, true);
}
