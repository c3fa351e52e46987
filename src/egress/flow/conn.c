/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of a box: its beginning, its end, and what is said about it. */
#include "egress/flow/conn.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* --- the log -------------------------------------------------------------------------------- */

static struct egress_event event_of(const struct conn *c, enum policy_reason reason)
{
	struct egress_event e = { .number = c->number,
				  .how = c->how,
				  .reason = reason,
				  .port = c->target.port,
				  .address = c->address };

	memcpy(e.name, c->target.name, sizeof(e.name));
	if (!c->target.name[0])
		e.address = c->target.address;
	return e;
}

void conn_tell(struct egress *g, struct conn *c)
{
	struct egress_event e = event_of(c, c->reason);

	if (c->is_told)
		return;
	c->number = report(g, c->net, &e);
	c->is_told = true;
}

static void conn_tell_end(struct egress *g, struct conn *c, enum policy_reason reason)
{
	struct egress_event e = event_of(c, reason);

	e.flags = EGRESS_EVENT_END;
	e.bytes_up = c->up.bytes;
	e.bytes_down = c->down.bytes;
	e.duration_us = clock_boot_us() - c->since_us;
	(void)report(g, c->net, &e);
	c->is_told = false;
}

/* --- its descriptors ------------------------------------------------------------------------ */

static void conn_client_ready(struct loop *l, struct source *s)
{
	struct egress *g = egress_of(l);
	struct conn *c = container_of(s, struct conn, client);

	if (c->step == STEP_RELAY)
		relay_client_ready(g, c, s->came);
	else if (s->came & EPOLLERR || (s->came & EPOLLHUP && !(s->events & EPOLLIN)))
		conn_end(g, c, POLICY_ALLOWED, true);
	else
		step_more(g, c);
}

static void conn_host_ready(struct loop *l, struct source *s)
{
	struct egress *g = egress_of(l);
	struct conn *c = container_of(s, struct conn, host);

	if (c->step == STEP_RELAY)
		relay_host_ready(g, c, s->came);
	else
		dial_ready(g, c);
}

static void want(struct egress *g, struct source *s, int fd, uint32_t events,
		 void (*ready)(struct loop *l, struct source *self))
{
	if (s->fd >= 0)
		source_change(&g->loop, s, events);
	else if (events && source_add(&g->loop, s, fd, events, ready) < 0)
		s->fd = -EBADF; /* no memory: its timer ends it */
}

void conn_want_client(struct egress *g, struct conn *c, uint32_t events)
{
	want(g, &c->client, c->client_fd, events, conn_client_ready);
}

void conn_want_host(struct egress *g, struct conn *c, uint32_t events)
{
	want(g, &c->host, c->host_fd, events, conn_host_ready);
}

void conn_drop_host(struct egress *g, struct conn *c)
{
	tls_done(c);
	source_remove(&g->loop, &c->host);
	c->host_fd = fd_close(c->host_fd);
}

int conn_read(struct conn *c)
{
	unsigned char data[REQUEST_MAX];
	size_t room = REQUEST_MAX - MIN(c->in.len, (size_t)REQUEST_MAX);
	ssize_t n = recv(c->client_fd, data, room, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return room ? -ENODATA : -ENOBUFS;
	return buf_add(&c->in, data, (size_t)n) < 0 ? -ENOMEM : 1;
}

/* --- its end -------------------------------------------------------------------------------- */

/* With nothing lingering the kernel sends RST instead of FIN. */
static void set_reset(int fd)
{
	const struct linger none = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static void conn_free(struct egress *g, struct conn *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->net->n_conns--;
	g->n_conns--;
	if (c->step == STEP_RESOLVE)
		resolve_cancel(g, &c->resolve);
	timer_clear(&g->loop, &c->timer);
	source_remove(&g->loop, &c->client);
	conn_drop_host(g, c);
	(void)fd_close(c->client_fd);
	flow_done(c, &c->up);
	flow_done(c, &c->down);
	buf_done(&c->in);
	free(c->head);
	free(c);
}

void conn_end(struct egress *g, struct conn *c, enum policy_reason reason, bool reset)
{
	/* Somebody was dialed and nobody was told: it was let out all the same. */
	if (!c->is_told && c->step >= STEP_DIAL && c->step <= STEP_RELAY)
		conn_tell(g, c);
	if (c->is_told)
		conn_tell_end(g, c, reason);
	if (reset) {
		set_reset(c->client_fd);
		set_reset(c->host_fd);
	}
	conn_free(g, c);
}

void conn_linger(struct egress *g, struct conn *c, const void *text, size_t len)
{
	if (c->is_told)
		conn_tell_end(g, c, c->reason);
	conn_drop_host(g, c);
	flow_done(c, &c->up);
	flow_done(c, &c->down);
	buf_done(&c->in);
	if (len && send(c->client_fd, text, len, MSG_NOSIGNAL) != (ssize_t)len) {
		conn_end(g, c, c->reason, true);
		return;
	}
	c->step = STEP_LINGER;
	(void)shutdown(c->client_fd, SHUT_WR);
	timer_set(&g->loop, &c->timer, clock_boot_us() + CONN_LINGER_US);
	conn_want_client(g, c, EPOLLIN);
}

/* A TLS client says why when it is told so in TLS: fatal, access_denied. */
static const unsigned char tls_refusal[] = { 21, 3, 3, 0, 2, 2, 49 };

static void say_refusal(struct egress *g, struct conn *c, enum policy_reason reason)
{
	bool in_tunnel = c->is_answered || c->how == EGRESS_HOW_CATCH;
	unsigned char reply[SOCKS_REPLY_SIZE];
	char page[2048];

	/* In the middle of something, or in a protocol that we do not speak. */
	if (c->down.bytes || (in_tunnel && c->saw != FIRST_HTTP && c->saw != FIRST_TLS)) {
		conn_end(g, c, reason, true);
	} else if (in_tunnel ? c->saw == FIRST_HTTP : c->how != EGRESS_HOW_SOCKS) {
		http_refusal(c, reason, page, sizeof(page));
		conn_linger(g, c, page, strlen(page));
	} else if (in_tunnel) {
		conn_linger(g, c, tls_refusal, sizeof(tls_refusal));
	} else {
		socks_reply(c->socks_code ? c->socks_code : socks_code_of(reason), reply);
		conn_linger(g, c, reply, sizeof(reply));
	}
}

void conn_refuse(struct egress *g, struct conn *c, enum policy_reason reason)
{
	struct egress_event e = event_of(c, reason);

	if (c->step == STEP_RESOLVE)
		resolve_cancel(g, &c->resolve);
	if (c->is_told)
		conn_tell_end(g, c, reason);
	else
		(void)report(g, c->net, &e);
	c->step = STEP_LINGER; /* nothing more is told about it */
	say_refusal(g, c, reason);
}

/* --- its beginning -------------------------------------------------------------------------- */

static void conn_due(struct loop *l, struct timer *t)
{
	struct egress *g = egress_of(l);
	struct conn *c = container_of(t, struct conn, timer);

	switch (c->step) {
	case STEP_FIRST:
	case STEP_REQUEST:
	case STEP_NAMING:
		conn_refuse(g, c, POLICY_TOO_SLOW);
		return;
	case STEP_RESOLVE:
		conn_refuse(g, c, POLICY_RESOLVE);
		return;
	case STEP_DIAL:
	case STEP_UPSTREAM:
	case STEP_TLS:
		dial_due(g, c);
		return;
	case STEP_RELAY:
		relay_due(g, c);
		return;
	case STEP_LINGER:
		conn_end(g, c, c->reason, true);
		return;
	}
}

void conn_accepted(struct egress *g, struct net *n, enum egress_door door, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	const int on = 1;

	if (!c) {
		(void)fd_close(fd);
		return;
	}
	*c = (struct conn){ .net = n,
			    .next = n->conns,
			    .link = &n->conns,
			    .door = door,
			    .how = door == EGRESS_DOOR_CATCH ? EGRESS_HOW_CATCH : EGRESS_HOW_HTTP,
			    .client = SOURCE_INIT,
			    .host = SOURCE_INIT,
			    .client_fd = fd,
			    .host_fd = -EBADF,
			    .timer = { .due = conn_due },
			    .since_us = clock_boot_us(),
			    .reason = POLICY_ALLOWED,
			    .in = BUF_INIT(REQUEST_MAX),
			    .up = { .pipe = { -EBADF, -EBADF } },
			    .down = { .pipe = { -EBADF, -EBADF } } };
	if (n->conns)
		n->conns->link = &c->next;
	n->conns = c;
	n->n_conns++;
	g->n_conns++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	timer_set(&g->loop, &c->timer, c->since_us + CONN_REQUEST_US);
	step_begin(g, c);
}

/* --- when the rules change ------------------------------------------------------------------ */

enum policy_reason conn_check(struct egress *g, struct conn *c, const struct net_address *a)
{
	enum policy_reason reason = POLICY_ALLOWED;
	bool by_name = false;

	if (!c->net->has_policy)
		return POLICY_NO_POLICY;
	if (c->target.name[0] && !c->name_is_hint)
		reason = policy_name(&c->net->policy, c->target.name, c->target.port, &by_name);
	if (!policy_reason_allows(reason))
		return reason;
	if (c->only_by_proxy)
		return by_name || reason == POLICY_LEARNING ? reason : POLICY_RESOLVE;
	/* What was let out for its address was never asked for its name: a rule about names does
	 * not help it now. */
	return net_check_address(g, c->net, a, c->target.port, by_name && c->by_name);
}

size_t conn_recheck(struct egress *g, struct net *n)
{
	struct conn *next;
	size_t cut = 0;

	for (struct conn *c = n->conns; c; c = next) {
		next = c->next;
		if (c->step < STEP_DIAL || c->step == STEP_LINGER ||
		    policy_reason_allows(conn_check(g, c, &c->address)))
			continue;
		conn_end(g, c, POLICY_CUT, true);
		cut++;
	}
	return cut;
}

void conn_end_all(struct egress *g, struct net *n)
{
	while (n->conns)
		conn_end(g, n->conns, POLICY_ENDED, true);
}
