/* SPDX-License-Identifier: Apache-2.0 */
/* Names: which addresses they have, and which a box was told. */
#pragma once

#include "egress/egress.h"

/* --- resolve.c ------------------------------------------------------------------------------ */

/* One question. The asker owns it; resolve_cancel() before it goes away. */
struct resolve {
	void (*done)(struct egress *g, struct resolve *self);
	/* the result */
	enum policy_reason reason; /* ALLOWED or LEARNING: there are addresses */
	struct net_address addresses[EGRESS_ADDRESSES_MAX];
	/* all of them checked: if one may not be reached, none is given (NW-08) */
	size_t n_addresses;
	bool by_name;
	bool not_there; /* with NO_ADDRESS: no such name exists */
	uint32_t ttl_s;
	/* resolve.c's own */
	struct net *net;
	char name[POLICY_NAME_SIZE];
	uint16_t port;
	void *query;
	struct resolve *next;
};

/*
 * Policy first, then the box's budget (only what is not in the cache costs), then the lookup, then
 * each address. done() is called later from the loop or, when the answer is known, before this
 * returns. name: canonical. port 0: a DNS question.
 */
void resolve_start(struct egress *g, struct net *n, const char *name, uint16_t port,
		   struct resolve *q, void (*done)(struct egress *g, struct resolve *self));
void resolve_cancel(struct egress *g, struct resolve *q);

/* The box is gone, and asks for nothing any more. */
void resolve_disown(const struct net *n);
_must_check_ int resolve_open(struct egress *g, const char *servers, struct fail *fail);

bool resolve_is_local(const char *name); /* localhost, or below it */

/* --- lookup.c: one of them at the resolver -------------------------------------------------- */

/* What is known of a name, for whichever box. */
struct lookup {
	struct egress *egress;
	char name[POLICY_NAME_SIZE];
	struct lookup *next; /* in its bucket */
	struct lookup *newer, *older;
	struct resolve *askers;
	struct net
		*owner;   /* while it is under way: the box that began it, if that is still there */
	unsigned waiting; /* answers that have not come */
	unsigned held;    /* must not go away */
	bool ready;       /* there is a result, good until then: */
	uint64_t until_us;
	enum policy_reason reason; /* ALLOWED: there are addresses. Else NO_ADDRESS, RESOLVE */
	bool not_there;
	struct net_address addresses[EGRESS_ADDRESSES_MAX];
	size_t n_addresses;
	uint32_t ttl_s;
};

/* Asks the resolver for the addresses; calls lookup_ended() once, perhaps before it returns. */
void lookup_start(struct egress *g, struct lookup *l);
/* resolve.c: the result is in it. */
void lookup_ended(struct egress *g, struct lookup *l);
_must_check_ int lookup_open(struct egress *g, const char *servers, struct fail *fail);

/* --- told.c --------------------------------------------------------------------------------- */

/* Its DNS was given these addresses for the name. */
void told_add(struct net *n, const char *name, const struct net_address *a, size_t n_addresses);
void told_done(struct net *n);
/* Was this box's DNS told that address? For a name that its policy still allows at this port: that
 * name. by_rule: one that a rule names, which allows its addresses too; where only everything is
 * allowed, a denied address stays denied. */
bool told_name(struct net *n, const struct net_address *a, uint16_t port, bool by_rule,
	       char ret[static POLICY_NAME_SIZE]);
/* Several names can have one address: was it told this address for this very name, which a rule
 * names at this port? */
bool told_as(struct net *n, const struct net_address *a, uint16_t port, const char *name);
