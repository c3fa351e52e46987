/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS for boxes. No question is ever passed on: for a name that a box's rules allow it gets the
 * addresses that were checked for it, and nothing else is known here.
 *
 *	a name that is not allowed      NXDOMAIN, without a record that would let anybody keep
 *	that. REFUSED would be truer, but
 *					musl takes no notice of it and waits for its time-out,
 *					glibc asks again, and Go and
 *					glibc call it a temporary failure, upon which programs
 *					try again. Who asks with EDNS is
 *					told "blocked" besides
 *	A and AAAA of an allowed name	the addresses, each of them checked (NW-08)
 *	other types of it		nothing, NOERROR: among them HTTPS and SVCB, which would
 *	                   bring the keys to hide a name in TLS from us
 *	localhost			the loopback addresses, as RFC 6761 has it
 *	what could not be found out	SERVFAIL
 */
#include "egress/door/dns.h"

#include "base/clock.h"

#define QUESTIONS_MAX 64          /* of one box at once */
#define TTL_MAX_S 30              /* rules may change */
#define SAME_US UINT64_C(1000000) /* within which a question is the same as the one before */
#define BATCH 8                   /* questions of one door in one go */
#define QUESTIONS_PER_SECOND 250
#define QUESTIONS_BURST 1000

struct asked *dns_of(struct net *n)
{
	if (!n->asked)
		n->asked = calloc(1, sizeof(*n->asked));
	return n->asked;
}

/* --- the answer ----------------------------------------------------------------------------- */

/* Nobody waits for a box that does not take its answer: it will ask again. */
static void dns_udp_send(const struct question *q, const uint8_t *data, size_t len)
{
	(void)!sendto(q->udp_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&q->from, q->from_len);
}

static void dns_send_reply(struct egress *g, const struct question *q, const struct dns_reply *r)
{
	uint8_t data[DNS_ANSWER_MAX];
	size_t size = q->client ? sizeof(data) : q->query.udp_size;
	size_t len = dns_write(&q->query, r, data, size);

	if (q->client)
		dns_tcp_send(g, q->client, data, len);
	else
		dns_udp_send(q, data, len);
}

static void dns_send_code(struct egress *g, const struct question *q, enum dns_rcode rcode)
{
	const struct dns_reply r = { .rcode = rcode };

	dns_send_reply(g, q, &r);
}

/* The box did nothing wrong, and may have more luck later. */
static bool is_failure(enum policy_reason reason)
{
	return reason == POLICY_RESOLVE || reason == POLICY_NO_POLICY || reason == POLICY_LOOKUPS ||
	       reason == POLICY_BUSY;
}

static enum dns_rcode code_of(const struct resolve *r)
{
	if (policy_reason_allows(r->reason) || (r->reason == POLICY_NO_ADDRESS && !r->not_there))
		return DNS_NOERROR;
	return is_failure(r->reason) ? DNS_SERVFAIL : DNS_NXDOMAIN;
}

static bool is_refusal(enum policy_reason reason)
{
	return !policy_reason_allows(reason) && reason != POLICY_NO_ADDRESS &&
	       reason != POLICY_RESOLVE;
}

static void dns_tell(struct egress *g, struct question *q, enum policy_reason reason)
{
	struct asked *a = q->net->asked;
	struct egress_event e = { .how = EGRESS_HOW_DNS, .reason = reason, .port = 53 };
	uint64_t now = clock_boot_us();

	if (a->last_reason == reason && now - a->last_us < SAME_US &&
	    strcmp(a->last_name, q->query.name) == 0)
		return;
	memcpy(a->last_name, q->query.name, sizeof(a->last_name));
	a->last_reason = reason;
	a->last_us = now;
	memcpy(e.name, q->query.name, sizeof(e.name));
	if (q->resolve.n_addresses > 0)
		e.address = q->resolve.addresses[0];
	(void)report(g, q->net, &e);
}

static void dns_answer(struct egress *g, struct question *q)
{
	const struct resolve *found = &q->resolve;
	const struct dns_reply r = {
		.rcode = code_of(found),
		.addresses = found->addresses,
		.n_addresses = found->n_addresses,
		.ttl_s = MIN(found->ttl_s, (uint32_t)TTL_MAX_S),
		.blocked = is_refusal(found->reason),
	};

	dns_tell(g, q, found->reason);
	told_add(q->net, q->query.name, found->addresses, found->n_addresses);
	dns_send_reply(g, q, &r);
}

/* --- questions under way -------------------------------------------------------------------- */

static void remove_question(struct question *q)
{
	struct asked *a = q->net->asked;
	struct question **at = &a->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	a->n_questions--;
}

static void dns_resolved(struct egress *g, struct resolve *self)
{
	struct question *q = container_of(self, struct question, resolve);

	remove_question(q);
	dns_answer(g, q);
	free(q);
}

static void dns_look_up(struct egress *g, struct net *n, const struct question *asked)
{
	struct asked *a = n->asked;
	struct question *q = a->n_questions < QUESTIONS_MAX ? malloc(sizeof(*q)) : NULL;

	if (!q) {
		dns_send_code(g, asked, DNS_SERVFAIL);
		return;
	}
	*q = *asked;
	q->next = a->questions;
	a->questions = q;
	a->n_questions++;
	resolve_start(g, n, q->query.name, 0, &q->resolve, dns_resolved);
}

void dns_forget(struct egress *g, struct net *n, const struct client *c)
{
	struct question **at = &n->asked->questions;

	while (*at) {
		struct question *q = *at;

		if (c && q->client != c) {
			at = &q->next;
			continue;
		}
		resolve_cancel(g, &q->resolve);
		*at = q->next;
		n->asked->n_questions--;
		free(q);
	}
}

void dns_done(struct egress *g, struct net *n)
{
	if (!n->asked)
		return;
	dns_forget(g, n, NULL);
	dns_tcp_close_all(g, n);
	free(n->asked);
	n->asked = NULL;
}

/* --- the question --------------------------------------------------------------------------- */

static void dns_answer_localhost(struct egress *g, const struct question *q)
{
	static const struct net_address here[] = {
		{ { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
		{ { [15] = 1 } },
	};
	const struct dns_reply r = { .addresses = here,
				     .n_addresses = ARRAY_SIZE(here),
				     .ttl_s = TTL_MAX_S };

	dns_send_reply(g, q, &r);
}

/* May there be such a name, for this box? The rest of what is asked about it, nobody needs to look
 * up. */
static void dns_answer_other_type(struct egress *g, struct question *q)
{
	struct net *n = q->net;
	bool by_name;

	q->resolve.reason = n->has_policy ? policy_name(&n->policy, q->query.name, 0, &by_name) :
					    POLICY_NO_POLICY;
	dns_answer(g, q);
}

bool dns_ask(struct egress *g, struct net *n, const struct question *where, const void *data,
	     size_t len)
{
	struct question q = *where;
	int r;

	q.net = n;
	if (!dns_of(n))
		return false;
	/* What is known costs no budget, but our time, which is everybody's: who asks too often
	 * waits and asks again. */
	if (!share_take(&n->questions, QUESTIONS_PER_SECOND, QUESTIONS_BURST)) {
		dns_tell(g, &q, POLICY_LOOKUPS);
		return false;
	}
	r = dns_parse(data, len, &q.query);
	if (r < 0)
		return false;
	if (r != DNS_NOERROR) {
		dns_send_code(g, &q, (enum dns_rcode)r);
	} else if (!q.query.name[0]) {
		q.resolve.reason = POLICY_BAD_NAME;
		dns_answer(g, &q);
	} else if (resolve_is_local(q.query.name)) {
		dns_answer_localhost(g, &q);
	} else if (q.query.type != DNS_A && q.query.type != DNS_AAAA) {
		dns_answer_other_type(g, &q);
	} else {
		dns_look_up(g, n, &q);
	}
	return true;
}

void dns_udp_ready(struct egress *g, struct net *n, int fd)
{
	for (unsigned i = 0; i < BATCH; i++) {
		struct question q = { .udp_fd = fd, .from_len = sizeof(q.from) };
		uint8_t data[DNS_QUERY_MAX + 1]; /* one more, to see what is too long */
		ssize_t len = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT,
				       (struct sockaddr *)&q.from, &q.from_len);

		/* An error is that of an answer which nobody took; asking for it has cleared it. */
		if (len < 0)
			return;
		(void)dns_ask(g, n, &q, data, (size_t)len);
	}
}
