/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching a host: the addresses that were checked, one after the other, and nothing else. Where
 * this machine's network has a proxy, that is dialed instead, and asked for the same addresses: a
 * name it would look up anew, and could find another address than the one that was checked. Only
 * where the operator has said that the proxy resolves names (egress.proxy_resolves) it is asked for
 * those. Then TLS, if a rule wants it.
 */
#include "egress/flow/conn.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define KEEPALIVE_IDLE_S 60 /* a side that has vanished is noticed */

static void dial_next(struct egress *g, struct conn *c);

static bool has_proxy(const struct egress *g)
{
	return g->proxy.ss_family != AF_UNSPEC;
}

/* To a proxy that resolves names a request in the clear is given as it is; everything else goes
 * through a tunnel. */
static bool needs_tunnel(const struct egress *g, const struct conn *c)
{
	return has_proxy(g) && (!c->head || c->use_tls || !g->proxy_resolves);
}

/* --- one address ---------------------------------------------------------------------------- */

/* 1: there at once; 0: on its way. */
static int connect_to(struct egress *g, struct conn *c, const struct net_address *a)
{
	struct sockaddr_storage to = g->proxy;
	socklen_t len = to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						   sizeof(struct sockaddr_in);
	const int on = 1, idle = KEEPALIVE_IDLE_S;

	if (!has_proxy(g))
		len = address_to_sockaddr(a, c->target.port, &to);
	c->host_fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (c->host_fd < 0)
		return -errno;
	(void)setsockopt(c->host_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(c->host_fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(c->host_fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	if (connect(c->host_fd, (struct sockaddr *)&to, len) == 0)
		return 1;
	return errno == EINPROGRESS ? 0 : -errno;
}

static void set_deadline(struct egress *g, struct conn *c, bool is_last)
{
	uint64_t now = clock_boot_us();

	timer_set(&g->loop, &c->timer,
		  is_last ? c->dial_until_us : MIN(c->dial_until_us, now + CONN_DIAL_ONE_US));
}

/* Where the name is left to the proxy, no address of the host's is needed. */
static size_t n_tries(const struct egress *g, const struct conn *c)
{
	return has_proxy(g) && g->proxy_resolves ? 1 : c->resolve.n_addresses;
}

void dial_begin(struct egress *g, struct conn *c)
{
	c->next_address = 0;
	c->dial_until_us = clock_boot_us() + CONN_DIAL_US;
	conn_want_client(g, c, 0);
	dial_next(g, c);
}

static void connected(struct egress *g, struct conn *c);

static void dial_next(struct egress *g, struct conn *c)
{
	c->step = STEP_DIAL;
	while (c->next_address < n_tries(g, c) && clock_boot_us() < c->dial_until_us) {
		const struct net_address *a = &c->resolve.addresses[c->next_address++];
		enum policy_reason reason = conn_check(g, c, a);
		int r;

		/* The rules may have changed since all of them were checked. As then, one that is
		 * refused refuses all (NW-08). */
		if (!policy_reason_allows(reason)) {
			conn_refuse(g, c, reason);
			return;
		}
		conn_drop_host(g, c);
		c->reason = reason;
		c->address = *a;
		r = connect_to(g, c, a);
		if (r < 0)
			continue;
		set_deadline(g, c, c->next_address == n_tries(g, c));
		if (r == 1)
			connected(g, c);
		else
			conn_want_host(g, c, EPOLLOUT);
		return;
	}
	conn_refuse(g, c, POLICY_CONNECT);
}

/* --- the proxy of this machine's network ---------------------------------------------------- */

#define UPSTREAM_HEAD_MAX 8192

/* It may not reach one address of a host, but another. */
static void upstream_failed(struct egress *g, struct conn *c)
{
	if (c->next_address < n_tries(g, c))
		dial_next(g, c);
	else
		conn_refuse(g, c, POLICY_UPSTREAM);
}

static void upstream_begin(struct egress *g, struct conn *c)
{
	struct target checked = { .address = c->address, .port = c->target.port };
	char host[TARGET_TEXT_SIZE],
		text[2 * TARGET_TEXT_SIZE + sizeof(g->proxy_authorization) + 128];
	int len;

	target_text(g->proxy_resolves ? &c->target : &checked, 0, host);
	len = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", host,
		       host, g->proxy_authorization[0] ? "Proxy-Authorization: " : "",
		       g->proxy_authorization, g->proxy_authorization[0] ? "\r\n" : "");
	c->step = STEP_UPSTREAM;
	c->is_tunneled = true;
	if (send(c->host_fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		upstream_failed(g, c);
	else
		conn_want_host(g, c, EPOLLIN);
	explicit_bzero(text, sizeof(text));
}

/* What follows the head of its answer is the host's: it is looked at first, and only the head is
 * taken. */
static int upstream_answer(struct conn *c)
{
	char head[UPSTREAM_HEAD_MAX];
	ssize_t n = recv(c->host_fd, head, sizeof(head), MSG_PEEK);
	const char *end;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	end = memmem(head, (size_t)n, "\r\n\r\n", 4);
	if (!end)
		return n == 0 || n == sizeof(head) ? -EPROTO : 0;
	n = end + 4 - head;
	if (recv(c->host_fd, head, (size_t)n, 0) != n)
		return -EPROTO;
	return n > 12 && memcmp(head, "HTTP/1.", 7) == 0 && memcmp(head + 8, " 2", 2) == 0 ?
		       1 :
		       -EPROTO;
}

/* --- and then ------------------------------------------------------------------------------- */

static void tls_more(struct egress *g, struct conn *c)
{
	uint32_t events = 0;
	int r = tls_step(c, &events);

	if (r < 0)
		conn_refuse(g, c, POLICY_TLS);
	else if (r == 0)
		conn_want_host(g, c, events);
	else
		step_connected(g, c);
}

static void reached(struct egress *g, struct conn *c)
{
	if (!c->use_tls) {
		step_connected(g, c);
		return;
	}
	c->step = STEP_TLS;
	timer_set(&g->loop, &c->timer, clock_boot_us() + CONN_DIAL_US);
	if (tls_begin(g, c) < 0)
		conn_refuse(g, c, POLICY_TLS);
	else
		tls_more(g, c);
}

static void connected(struct egress *g, struct conn *c)
{
	if (needs_tunnel(g, c))
		upstream_begin(g, c);
	else
		reached(g, c);
}

void dial_ready(struct egress *g, struct conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0, r;

	if (c->step == STEP_TLS) {
		tls_more(g, c);
		return;
	}
	if (c->step == STEP_UPSTREAM) {
		r = upstream_answer(c);
		if (r < 0)
			upstream_failed(g, c);
		else if (r > 0)
			reached(g, c);
		return;
	}
	if (getsockopt(c->host_fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err)
		dial_next(g, c);
	else
		connected(g, c);
}

void dial_due(struct egress *g, struct conn *c)
{
	if (c->step != STEP_TLS && c->next_address < n_tries(g, c))
		dial_next(g, c);
	else
		conn_refuse(g, c, c->step == STEP_UPSTREAM ? POLICY_UPSTREAM : POLICY_TIMEOUT);
}
