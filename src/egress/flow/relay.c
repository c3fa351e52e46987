/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes both ways, until both sides have said all they had to say.
 *
 * A request in the clear has one direction that ends with it (NW-13): what the client sends
 * afterwards is never read as a request, and the answer goes on to its end.
 */
#include "egress/flow/conn.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define ROUNDS 16 /* in one go, then it is others' turn */
#define GATHER_BYTES 1048576
#define GATHER_US 1000

/* --- held against the name ------------------------------------------------------------------ */

static uint64_t relay_deadline(const struct conn *c)
{
	uint64_t idle = c->active_us + CONN_IDLE_US;

	return c->up_mode == UP_PROOF && c->proof_until_us ? MIN(c->proof_until_us, idle) : idle;
}

/* When something must be done, whether or not something comes. */
static uint64_t next_due(const struct conn *c)
{
	uint64_t at = relay_deadline(c);

	if (c->up.gather_until_us)
		at = MIN(at, c->up.gather_until_us);
	if (c->down.gather_until_us)
		at = MIN(at, c->down.gather_until_us);
	return at;
}

static int relay_look(struct egress *g, struct conn *c, bool is_ended)
{
	int r = proof_look(g, c, is_ended);

	if (r == 0 && c->proof_until_us == 0) {
		c->proof_until_us = c->active_us + CONN_REQUEST_US;
		timer_set(&g->loop, &c->timer, next_due(c));
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
		return flow_refuse(c, POLICY_BAD_REQUEST);
	if (r < 0 && r != -ENODATA)
		return r;
	return relay_look(g, c, r == -ENODATA);
}

/* --- gathering ------------------------------------------------------------------------------ */

/*
 * Who sends faster than we are woken wakes us for every few packets, and much of our time is spent
 * on that. So while a megabyte comes at a time, the kernel tells us when there is the next one.
 * What it has not told after a millisecond is all there was: then we are told of every byte again,
 * until as much comes again. A side that ends, or whose buffer is full, is always told.
 */
static void tell_from(struct conn *c, bool up, int bytes)
{
	(void)setsockopt(up ? c->client_fd : c->host_fd, SOL_SOCKET, SO_RCVLOWAT, &bytes,
			 sizeof(bytes));
	flow_of(c, up)->is_gathering = bytes > 1;
}

/* Only what is moved as it is: elsewhere somebody may wait for the answer to a few bytes. */
static bool may_gather(const struct conn *c, bool up)
{
	return !c->tls && (!up || c->up_mode == UP_RAW);
}

static void relay_gather(struct egress *g, struct conn *c, bool up, uint64_t moved)
{
	struct flow *f = flow_of(c, up);

	if (!f->is_gathering && moved >= GATHER_BYTES && may_gather(c, up))
		tell_from(c, up, GATHER_BYTES);
	f->gather_until_us = 0;
	if (!f->is_gathering || f->is_ended || flow_waits(f))
		return;
	f->gather_until_us = clock_boot_us() + GATHER_US;
	timer_set(&g->loop, &c->timer, next_due(c));
}

static void stop_gathering(struct conn *c, bool up, uint64_t now)
{
	struct flow *f = flow_of(c, up);

	if (!f->gather_until_us || now < f->gather_until_us)
		return;
	f->gather_until_us = 0;
	tell_from(c, up, 1); /* of what is there already, too */
}

/* --- both directions ------------------------------------------------------------------------ */

static int read_up(struct egress *g, struct conn *c)
{
	switch (c->up_mode) {
	case UP_NONE:
	case UP_WAIT:
		return 0;
	case UP_PROOF:
		return prove(g, c);
	case UP_BODY:
		return flow_body(c);
	case UP_RAW:
		break;
	}
	if (c->in.len) {
		flow_put(c, &c->up, take_ptr(c->in.data), c->in.len);
		c->in = (struct buf)BUF_INIT(REQUEST_MAX);
		return 1;
	}
	return c->tls ? flow_copy(c, true) : flow_move(c, true);
}

static int read_down(struct conn *c)
{
	return c->tls || c->up_mode == UP_WAIT ? flow_copy(c, false) : flow_move(c, false);
}

static void pass_end(struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);

	if (!f->is_passed)
		(void)shutdown(up ? c->host_fd : c->client_fd, SHUT_WR);
	f->is_passed = true;
}

/* As far as it gets. What GnuTLS has read already would wake nobody. */
static int relay_run(struct egress *g, struct conn *c, bool up)
{
	struct flow *f = flow_of(c, up);
	uint64_t before = f->bytes;
	int r = 1;

	for (unsigned i = 0; r > 0 && (i < ROUNDS || (!up && tls_has_more(c))); i++) {
		r = flow_settle(c, up);
		if (r > 0 && f->is_ended) {
			pass_end(c, up);
			return 0;
		}
		if (r > 0)
			r = up ? read_up(g, c) : read_down(c);
	}
	if (r >= 0)
		relay_gather(g, c, up, f->bytes - before);
	return MIN(r, 0);
}

static void want_both(struct egress *g, struct conn *c)
{
	bool reads = c->up_mode == UP_RAW || c->up_mode == UP_BODY || c->up_mode == UP_PROOF;
	bool up_waits = flow_waits(&c->up), down_waits = flow_waits(&c->down);
	uint32_t client = down_waits ? EPOLLOUT : 0, host = up_waits ? EPOLLOUT : 0;

	if (reads && !up_waits && !c->up.is_ended)
		client |= EPOLLIN;
	if (!down_waits && !c->down.is_ended)
		host |= EPOLLIN;
	conn_want_client(g, c, client);
	conn_want_host(g, c, host);
}

/* A host that answers before it has read everything, and then closes, is no failure: its answer
 * counts. */
static bool stop_body(struct conn *c, bool up, int r)
{
	if (!up || !c->is_http || (r != -EPIPE && r != -ECONNRESET))
		return false;
	flow_done(c, &c->up);
	c->up_mode = UP_NONE;
	c->up_is_cut = true;
	return true;
}

/* One direction as far as it gets, and what follows from it. false: the connection is gone, or
 * elsewhere. */
static bool go(struct egress *g, struct conn *c, bool up)
{
	int r = relay_run(g, c, up);

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
		c->up_mode == UP_PROOF && proof_needs_tls(c) ? c->active_us + CONN_HELLO_US : 0;
	timer_set(&g->loop, &c->timer, relay_deadline(c));
	if (c->up_mode == UP_PROOF && c->in.len)
		r = relay_look(g, c, false);
	if (r == -EPERM)
		conn_refuse(g, c, c->verdict);
	else if (r >= 0)
		(void)go(g, c, true);
}

/* --- events --------------------------------------------------------------------------------- */

void relay_client_ready(struct egress *g, struct conn *c, uint32_t events)
{
	c->active_us = clock_boot_us();
	if (events & EPOLLERR) {
		conn_end(g, c, c->reason, true);
		return;
	}
	/* Closed on both sides, and nothing to read at the moment: it would be told again and
	 * again. */
	if (events & EPOLLHUP && !(c->client.events & EPOLLIN))
		source_remove(&g->loop, &c->client);
	if (events & EPOLLOUT && !go(g, c, false))
		return;
	if (events & (EPOLLIN | EPOLLHUP))
		(void)go(g, c, true);
}

void relay_host_ready(struct egress *g, struct conn *c, uint32_t events)
{
	c->active_us = clock_boot_us();
	if (events & (EPOLLERR | EPOLLHUP) && !(c->host.events & EPOLLIN))
		source_remove(&g->loop, &c->host);
	if (events & (EPOLLOUT | EPOLLERR) && !go(g, c, true))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !go(g, c, false))
		return;
	if (c->up_mode == UP_RAW && c->in.len)
		(void)go(g, c, true);
}

void relay_due(struct egress *g, struct conn *c)
{
	uint64_t at = relay_deadline(c), now = clock_boot_us();

	stop_gathering(c, true, now);
	stop_gathering(c, false, now);
	if (now < at)
		timer_set(&g->loop, &c->timer, next_due(c));
	else if (at < c->active_us + CONN_IDLE_US)
		conn_refuse(g, c, POLICY_TOO_SLOW);
	else
		conn_end(g, c, POLICY_TIMEOUT, true);
}
