/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of egress: one thread, one loop, no file, no capability. It resolves and dials what a box's policy
 * allows, and knows a box only by the doors it came through.
 *
 *	main.c     start and settings
 *	seal.c     what it gives up         talk.c      messages of warden and server
 *	rules/nets.c     boxes by id, doors       rules/apply.c     policies, and cutting what they end
 *	report.c   the log of connections   flow/resolve.c   names to checked addresses
 *	flow/lookup.c   asking the resolver      told.c      which addresses a box was told
 *	rules/spec.c     a policy as it comes     rules/rulesets.c  rules that many boxes have
 *	own.c      this machine's addresses settings.c  what the command line says
 *	door/dns.c      DNS questions of boxes   door/dns_udp.c, door/dns_tcp.c  how they come
 *	door/dns_message.c  their bytes
 *
 *	flow/conn.c     a connection of a box from begin to end    flow/steps.c  its way to a host
 *	door/http.c     requests in the clear    door/http_head.c, door/http_build.c  how they are read and written anew
 *	door/socks.c    SOCKS5                   door/catch.c     connections that knew of no proxy
 *	door/first.c    which protocol it is     door/hello.c     the name in a TLS handshake
 *	door/proof.c    what it says against the name it was allowed for    flow/target.c  a host and a port
 *	flow/dial.c     reaching a host          flow/tls.c       TLS towards a host, for headers that we add
 *	flow/relay.c    bytes both ways          flow/flow.c, flow/pipes.c  one direction
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

/* --- a box (D: rules/nets.c, rules/apply.c) ---------------------------------------------------------------------- */

struct net_header {
	char host[POLICY_NAME_SIZE]; /* ".name": everything below it */
	char name[EGRESS_HEADER_NAME_SIZE];
	const char *value; /* locked into memory, wiped before it is freed: rules/spec.c */
	bool tls;
};

struct door;

/* So many in a second, and some more at once after a while without: report.c */
struct share {
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
	size_t n_lookups;            /* under way that it has begun */
	struct answers *answers;     /* which addresses its DNS was told, for which names: told.c */
	const struct ruleset *rules; /* the policy's: rules/rulesets.c */
	struct spec
		*spec; /* what the server asked for, from which the policy is made: rules/apply.c */
	struct spec *draft;     /* the next one, as far as it has come */
	struct asked *asked;    /* its DNS questions that are under way: door/dns.c */
	struct timer pause;     /* until its doors are looked at again: rules/nets.c */
	uint64_t paused_us;     /* when that was last told */
	struct share events;    /* that may be told: report.c */
	uint32_t missed;        /* that could not be told */
	struct share questions; /* that its DNS answers: door/dns.c */
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
	void *talk, *resolver, *tls, *nets, *own; /* each file's own */
};

/* What the handlers of its loop begin with. */
static inline struct egress *egress_of(struct loop *l)
{
	return container_of(l, struct egress, loop);
}

/* policy_address() for this box, and no address of this machine itself unless the operator opens it. Everything that is dialed
 * has passed this. */
enum policy_reason net_check_address(struct egress *g, struct net *n, const struct net_address *a,
				     uint16_t port, bool by_name);

/* The header rules of a host (canonical name); calls f for each. */
void net_headers_for(const struct net *n, const char *host,
		     void (*f)(const struct net_header *h, void *arg), void *arg);

/* --- what D's rules/nets.c calls when something came through a door (E: flow/conn.c) ------------------------------- */

/* A connection was accepted: owns fd. door: EGRESS_DOOR_PROXY or _CATCH. */
void conn_accepted(struct egress *g, struct net *n, enum egress_door door, int fd);
/* The policy has changed: ends those that it no longer allows (POLICY_CUT); how many. */
size_t conn_recheck(struct egress *g, struct net *n);
/* The box is gone: ends all (POLICY_ENDED). */
void conn_end_all(struct egress *g, struct net *n);

/* Before the room is shut: the certificates that hosts are held against, the machine's and those of ca_bundle ("": none).
 * E: flow/tls.c */
_must_check_ int tls_open(struct egress *g, const char *ca_bundle, struct fail *fail);

/* --- flow/resolve.c (D) --------------------------------------------------------------------------------- */

/* One question. The asker owns it; resolve_cancel() before it goes away. */
struct resolve {
	void (*done)(struct egress *g, struct resolve *self);
	/* the result */
	enum policy_reason reason; /* ALLOWED or LEARNING: there are addresses */
	struct net_address addresses[EGRESS_ADDRESSES_MAX];
	size_t n_addresses; /* all of them checked by policy_address(): if one may not be reached, none is given (NW-08) */
	bool by_name;
	bool not_there; /* with NO_ADDRESS: no such name exists */
	uint32_t ttl_s;
	/* flow/resolve.c's own */
	struct net *net;
	char name[POLICY_NAME_SIZE];
	uint16_t port;
	void *query;
	struct resolve *next;
};

/*
 * Policy first, then the box's budget (only what is not in the cache costs), then the lookup, then each address. done() is called later from
 * the loop or, when the answer is known, before this returns. name: canonical. port 0: a DNS question.
 */
void resolve_start(struct egress *g, struct net *n, const char *name, uint16_t port,
		   struct resolve *q, void (*done)(struct egress *g, struct resolve *self));
void resolve_cancel(struct egress *g, struct resolve *q);

/* Was this box's DNS told that address? For a name that its policy still allows at this port: that name. by_rule: one that a rule
 * names, which allows its addresses too; where only everything is allowed, a denied address stays denied. */
bool resolve_told(struct net *n, const struct net_address *a, uint16_t port, bool by_rule,
		  char ret[static POLICY_NAME_SIZE]);
/* Several names can have one address: was it told this address for this very name, which a rule names at this port? */
bool resolve_told_as(struct net *n, const struct net_address *a, uint16_t port, const char *name);

/* --- report.c (D) ---------------------------------------------------------------------------------- */

/* Fills in id and time and tells the server; if it does not listen, counts it as missed. Never waits. number 0: a new one
 * is given. Returns the number under which it was told; 0: it was not. */
uint64_t report(struct egress *g, struct net *n, struct egress_event *e);
/* Takes one of a share, if there is one left. */
bool share_take(struct share *s, uint64_t per_second, uint64_t burst);
