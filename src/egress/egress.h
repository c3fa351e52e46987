/* SPDX-License-Identifier: Apache-2.0 */
/*
 * egress: one thread, one loop, no file, no capability. It resolves and dials what a box's policy
 * allows, and knows a box only by the doors it came through. From what others stand on to what
 * stands on them:
 *
 *	report/   what it says of boxes, and of itself
 *	parse/    bytes of boxes that say where to: read, never believed
 *	rules/    what a box may reach
 *	names/    names to addresses that were checked
 *	flow/     a connection of a box, from its first byte to its last
 *	door/     boxes by id, their policies, and what comes through their doors
 *	talk.c    messages of the warden and the server        main.c, settings.c, seal.c   start
 */
#pragma once

#include "base/buf.h"
#include "base/fail.h"
#include "policy/policy.h"
#include "sys/loop.h"
#include "wire/egress.h"

#define EGRESS_ADDRESSES_MAX 16 /* of one name; the rest is not used */

struct egress;
struct net;
struct conn;

/* --- a box ---------------------------------------------------------------------------------- */

struct net_header {
	char host[POLICY_NAME_SIZE]; /* ".name": everything below it */
	char name[EGRESS_HEADER_NAME_SIZE];
	const char *value; /* locked into memory, wiped before it is freed: rules/spec.c */
	bool tls;
};

struct door;

/* So many in a second, and some more at once after a while without: report/report.c */
struct egress_share {
	uint64_t left;
	uint64_t since_us;
};

struct net {
	char id[WARDEN_ID_SIZE];
	struct net *next; /* in its bucket */
	struct door *doors;
	bool has_policy; /* without one everything is refused: POLICY_NO_POLICY */
	struct policy
		policy;    /* its own rules, those of its sets and the operator's, in one array */
	bool denies_names; /* the policy has a name that the operator denies */
	struct net_header *headers;
	size_t n_headers;
	struct egress_limits limits;
	struct conn *conns; /* open ones, newest first; kept by flow/conn.c */
	size_t n_conns;
	uint64_t last_number; /* of a connection, request or lookup */
	uint64_t bytes_up, bytes_down;
	size_t n_stalled;      /* directions that wait with a large pipe: flow/relay.c */
	uint64_t lookups_left; /* in this minute */
	uint64_t minute_us;
	size_t n_lookups; /* under way that it has begun */
	struct answers
		*answers; /* which addresses its DNS was told, for which names: names/told.c */
	const struct ruleset *rules; /* the policy's: rules/spec.c */
	struct spec
		*spec; /* what the server asked for, from which the policy is made: door/apply.c */
	struct spec *draft;            /* the next one, as far as it has come */
	struct asked *asked;           /* its DNS questions that are under way: door/dns.c */
	struct timer pause;            /* until its doors are looked at again: door/nets.c */
	uint64_t paused_us;            /* when that was last told */
	struct egress_share events;    /* that may be told: report/report.c */
	uint32_t missed;               /* that could not be told */
	struct egress_share questions; /* that its DNS answers: door/dns.c */
};

struct egress {
	struct loop loop;
	bool is_over; /* it ends, with this status */
	int status;
	bool learn;              /* the local operator's: everything is let through */
	struct policy_sets sets; /* the operator's */
	struct sockaddr_storage
		proxy; /* the way out of this machine, if there is one: ss_family 0 otherwise */
	char proxy_authorization[512]; /* "Basic …" or "" */
	bool proxy_resolves; /* it is asked for names instead of the addresses that were checked */
	bool has_ipv6;       /* this machine reaches IPv6 addresses beyond itself */
	size_t n_conns;      /* of all boxes */
	size_t conns_max;
	int server_fd;                            /* where events go; -EBADF: there is no server */
	void *talk, *resolver, *tls, *nets, *own; /* each file's own */
};

/* What the handlers of its loop begin with. */
static inline struct egress *egress_of(struct loop *l)
{
	return container_of(l, struct egress, loop);
}
