/* SPDX-License-Identifier: Apache-2.0 */
/* From the first byte of a connection to a host that answers. */
#include "egress/flow/conn.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <sys/socket.h>

static const char tunnel_is_open[] = "HTTP/1.1 200 Connection established\r\n\r\n";

/* Takes n bytes off the front of what was read. */
static void used(struct conn *c, size_t n)
{
	memmove(c->in.data, c->in.data + n, c->in.len - n);
	c->in.len -= n;
}

/* --- a name must come first ----------------------------------------------------------------- */

static void naming_tls(struct egress *g, struct conn *c)
{
	enum policy_reason reason = proof_hello(c, c->target.name);

	if (reason == 0)
		return;
	if (reason != POLICY_ALLOWED) {
		conn_refuse(g, c, reason);
		return;
	}
	c->is_proved = true;
	step_decide(g, c);
}

/* It need not say a name, and no rule adds anything to what it says: it goes as it came. */
static void naming_is_over(struct egress *g, struct conn *c)
{
	free(take_ptr(c->head));
	c->saw = FIRST_RAW;
	step_decide(g, c);
}

static void naming_http(struct egress *g, struct conn *c)
{
	enum policy_reason reason = http_read_origin(c);

	if (reason == 0)
		return;
	if (c->name_is_optional &&
	    (reason != POLICY_ALLOWED || !http_has_headers(c->net, c->head->target.name))) {
		naming_is_over(g, c);
		return;
	}
	c->name_is_hint = false;
	if (reason == POLICY_ALLOWED && c->how == EGRESS_HOW_CATCH)
		memcpy(c->target.name, c->head->target.name, sizeof(c->target.name));
	if (reason == POLICY_ALLOWED && !target_equal(&c->head->target, &c->target))
		reason = POLICY_HOST_MISMATCH;
	if (reason == POLICY_ALLOWED)
		http_begin(g, c);
	else
		conn_refuse(g, c, reason);
}

static void naming_more(struct egress *g, struct conn *c)
{
	if (c->target.port == 80)
		naming_http(g, c);
	else
		naming_tls(g, c);
}

/* What came with the request for a tunnel may be all that comes: it is looked at before more is
 * read. */
static void step_naming(struct egress *g, struct conn *c)
{
	c->step = STEP_NAMING;
	timer_set(&g->loop, &c->timer, clock_boot_us() + CONN_REQUEST_US);
	conn_want_client(g, c, EPOLLIN);
	if (c->in.len)
		naming_more(g, c);
}

/* --- the answer to who asked for a tunnel --------------------------------------------------- */

/* -EPIPE: it is gone, or does not read so few bytes. */
static int answer_tunnel(struct conn *c)
{
	unsigned char reply[SOCKS_REPLY_SIZE];
	const void *text = tunnel_is_open;
	size_t len = sizeof(tunnel_is_open) - 1;

	if (c->is_answered || c->how == EGRESS_HOW_CATCH)
		return 0;
	if (c->how == EGRESS_HOW_SOCKS) {
		socks_reply(SOCKS_OK, reply);
		text = reply;
		len = sizeof(reply);
	}
	if (send(c->client_fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		return -EPIPE;
	c->is_answered = true;
	return 0;
}

/* --- the request ---------------------------------------------------------------------------- */

/* CONNECT and SOCKS. To port 80 the request itself says what is wanted, and with which headers: it
 * is read before anybody is dialed. What needs no name is not looked into. */
static void tunnel_begin(struct egress *g, struct conn *c)
{
	enum policy_reason reason;
	bool by_name = false;

	if (!c->net->has_policy) {
		conn_refuse(g, c, POLICY_NO_POLICY);
		return;
	}
	if (!c->target.name[0]) {
		step_decide(g, c);
		return;
	}
	reason = policy_name(&c->net->policy, c->target.name, c->target.port, &by_name);
	if (!policy_reason_allows(reason)) {
		conn_refuse(g, c, reason);
	} else if (c->target.port != 80 || (!by_name && c->net->n_headers == 0)) {
		step_decide(g, c);
	} else if (answer_tunnel(c) < 0) {
		conn_end(g, c, reason, true);
	} else {
		c->name_is_optional = !by_name;
		step_naming(g, c);
	}
}

static void http_more(struct egress *g, struct conn *c)
{
	ssize_t len = http_head_length(c->in.data, c->in.len);
	enum policy_reason reason = POLICY_BAD_REQUEST;

	if (len == 0)
		return;
	if (len > 0 && !c->head)
		c->head = malloc(sizeof(*c->head));
	if (len > 0 && c->head)
		reason = http_head_read(c->in.data, (size_t)len, true, 80, c->head);
	if (len > 0 && c->head && c->head->is_connect)
		c->how = EGRESS_HOW_CONNECT;
	if (reason == POLICY_ALLOWED || reason == POLICY_HOST_MISMATCH)
		c->target = c->head->target;
	if (reason != POLICY_ALLOWED) {
		conn_refuse(g, c, reason);
		return;
	}
	if (!c->head->is_connect) {
		http_begin(g, c);
		return;
	}
	free(take_ptr(c->head));
	used(c, (size_t)len);
	tunnel_begin(g, c);
}

/* Version and methods, then the request. */
static void socks_more(struct egress *g, struct conn *c)
{
	enum socks_code code = SOCKS_FAILED;
	bool is_free = false;
	ssize_t n, greeting = socks_greeting(c->in.data, c->in.len, &is_free);
	unsigned char choice[2] = { 5, 0 };

	if (greeting == 0)
		return;
	if (greeting < 0 || !is_free) {
		choice[1] = 0xff; /* none of them */
		c->is_answered = true;
		conn_linger(g, c, choice, sizeof(choice));
		return;
	}
	if (c->step == STEP_FIRST) {
		if (send(c->client_fd, choice, sizeof(choice), MSG_NOSIGNAL) != sizeof(choice)) {
			conn_end(g, c, POLICY_ALLOWED, true);
			return;
		}
		c->step = STEP_REQUEST;
	}
	n = socks_request(c->in.data + greeting, c->in.len - (size_t)greeting, &c->target, &code);
	if (n == 0)
		return;
	if (n < 0 || code != SOCKS_OK) {
		c->socks_code = code;
		conn_refuse(g, c, code == SOCKS_FAILED ? POLICY_BAD_NAME : POLICY_PROTOCOL);
		return;
	}
	used(c, (size_t)(greeting + n));
	tunnel_begin(g, c);
}

static void first_more(struct egress *g, struct conn *c)
{
	unsigned char first = c->in.data[0];

	if (first == 5) {
		c->how = EGRESS_HOW_SOCKS;
		socks_more(g, c);
	} else if ((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z')) {
		c->step = STEP_REQUEST;
		http_more(g, c);
	} else {
		c->is_answered = true; /* it would not understand an answer */
		conn_refuse(g, c, POLICY_PROTOCOL);
	}
}

/* --- events --------------------------------------------------------------------------------- */

static void linger_drain(struct egress *g, struct conn *c)
{
	/* Thrown away in the kernel. */
	ssize_t n = recv(c->client_fd, NULL, 1 << 20, MSG_TRUNC);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_end(g, c, c->reason, false);
}

void step_more(struct egress *g, struct conn *c)
{
	int r;

	if (c->step == STEP_LINGER) {
		linger_drain(g, c);
		return;
	}
	r = conn_read(c);
	if (r == -ENOBUFS) {
		conn_refuse(g, c, POLICY_BAD_REQUEST);
		return;
	}
	if (r < 0) {
		conn_end(g, c, POLICY_ALLOWED, r != -ENODATA);
		return;
	}
	if (c->in.len == 0)
		return;
	if (c->step == STEP_FIRST)
		first_more(g, c);
	else if (c->step == STEP_NAMING)
		naming_more(g, c);
	else if (c->how == EGRESS_HOW_SOCKS)
		socks_more(g, c);
	else
		http_more(g, c);
}

/* --- where to ------------------------------------------------------------------------------- */

/* The proxy of this machine's network may know names that we do not. No address can be checked
 * then, so the operator must have said that it resolves names, and a rule must name this one,
 * unless it is to be learned which rules are needed. */
static bool proxy_may_know(const struct egress *g, const struct resolve *q)
{
	return g->proxy.ss_family != AF_UNSPEC && g->proxy_resolves && (q->by_name || g->learn) &&
	       (q->reason == POLICY_RESOLVE || q->reason == POLICY_NO_ADDRESS);
}

static void step_resolved(struct egress *g, struct resolve *q)
{
	struct conn *c = container_of(q, struct conn, resolve);

	c->step = STEP_REQUEST; /* the question is answered: there is nothing to cancel */
	c->only_by_proxy = proxy_may_know(g, q);
	if (!policy_reason_allows(q->reason) && !c->only_by_proxy) {
		conn_refuse(g, c, q->reason);
		return;
	}
	c->by_name = q->by_name;
	dial_begin(g, c);
}

/* An address that was said is looked at alone, when it is dialed. */
static void decide_address(struct egress *g, struct conn *c)
{
	c->resolve.addresses[0] = c->target.address;
	c->resolve.n_addresses = 1;
	dial_begin(g, c);
}

void step_decide(struct egress *g, struct conn *c)
{
	conn_want_client(g, c, 0);
	if (!c->net->has_policy) {
		conn_refuse(g, c, POLICY_NO_POLICY);
	} else if (c->target.name[0] && !c->name_is_hint && !c->is_told_address) {
		c->step = STEP_RESOLVE;
		timer_set(&g->loop, &c->timer, clock_boot_us() + CONN_RESOLVE_US);
		resolve_start(g, c->net, c->target.name, c->target.port, &c->resolve,
			      step_resolved);
	} else {
		decide_address(g, c);
	}
}

void step_connected(struct egress *g, struct conn *c)
{
	bool needs_proof;

	if (c->head) {
		http_send(g, c);
		return;
	}
	if (answer_tunnel(c) < 0) {
		conn_end(g, c, c->reason, true);
		return;
	}
	needs_proof = !c->is_proved && (c->by_name || c->net->denies_names);
	c->up_mode = needs_proof ? UP_PROOF : UP_RAW;
	/* What is not known before the handshake is told when it has come. */
	if (c->up_mode == UP_RAW || c->target.port != 443)
		conn_tell(g, c);
	relay_begin(g, c);
}

/* --- connections that knew of no proxy ------------------------------------------------------ */

/*
 * Connections of programs that know of no proxy: led to our door by the box's own network
 * namespace, with the address that they were to go to. An address that a rule allows is dialed as
 * it is. For everything else a name is needed: on 443 and 80 the client says it, and what it says
 * is step_resolved anew; elsewhere it must be one that our DNS gave the address for.
 */
/* The connection was handed to our door as it was: our end of it has the address that was asked
 * for. */
static int original_destination(int fd, struct target *ret)
{
	struct sockaddr_storage there;
	socklen_t len = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&there, &len) < 0)
		return -errno;
	return address_from_sockaddr((struct sockaddr *)&there, &ret->address, &ret->port);
}

/* What comes to the door itself, or was to stay in its own box, was not redirected: dialing that
 * would be us again. */
static bool is_here(const struct target *t)
{
	const char *special = address_special(&t->address);

	return t->port == 0 || (special && strcmp(special, "loopback") == 0);
}

/* Neither the address nor what it says first can name it: was it told the address for a name that a
 * rule names? */
static void catch_other(struct egress *g, struct conn *c, enum policy_reason reason)
{
	if (!told_name(c->net, &c->target.address, c->target.port, true, c->target.name)) {
		conn_refuse(g, c, reason);
		return;
	}
	c->by_name = true;
	c->is_told_address = true;
	step_decide(g, c);
}

static void catch_begin(struct egress *g, struct conn *c)
{
	enum policy_reason reason;

	if (original_destination(c->client_fd, &c->target) < 0 || is_here(&c->target)) {
		conn_refuse(g, c, POLICY_PRIVATE);
		return;
	}
	if (!c->net->has_policy) {
		conn_refuse(g, c, POLICY_NO_POLICY);
		return;
	}
	reason = net_check_address(g, c->net, &c->target.address, c->target.port, false);
	if (policy_reason_allows(reason)) {
		c->name_is_hint = true;
		(void)told_name(c->net, &c->target.address, c->target.port, false, c->target.name);
		c->name_is_optional = c->target.port == 80 && c->net->n_headers > 0;
		if (c->name_is_optional)
			step_naming(g, c);
		else
			step_decide(g, c);
	} else if (c->target.port == 443 || c->target.port == 80) {
		step_naming(g, c);
	} else {
		catch_other(g, c, reason);
	}
}

void step_begin(struct egress *g, struct conn *c)
{
	if (c->door == EGRESS_DOOR_CATCH) {
		catch_begin(g, c);
		return;
	}
	c->step = STEP_FIRST;
	conn_want_client(g, c, EPOLLIN);
}
