/* SPDX-License-Identifier: Apache-2.0 */
/* What a box may reach. */
#pragma once

#include "egress/egress.h"

/* --- check.c -------------------------------------------------------------------------------- */

/* policy_address() for this box, and no address of this machine itself unless the operator opens
 * it. Everything that is dialed has passed this. */
enum policy_reason net_check_address(struct egress *g, struct net *n, const struct net_address *a,
				     uint16_t port, bool by_name);

/* The header rules of a host (canonical name); calls f for each. */
void net_headers_for(const struct net *n, const char *host,
		     void (*f)(const struct net_header *h, void *arg), void *arg);

/* --- spec.c --------------------------------------------------------------------------------- */

/* A list of rules that is the same for all who have it. */
struct ruleset {
	struct ruleset *next;
	uint32_t hash;
	size_t users;
	size_t n;
	struct rule rules[];
};

/* One more who uses this list; NULL: there is no memory. */
const struct ruleset *ruleset_get(const struct rule *rules, size_t n);
/* One less; NULL is nobody. Returns NULL. */
const struct ruleset *ruleset_put(const struct ruleset *s);

/* What a server asks for. */
struct spec {
	int err; /* errno value: it cannot be used */
	bool base_allow;
	struct egress_limits limits;
	char use[POLICY_USES_MAX][POLICY_SET_NAME_SIZE];
	size_t n_uses;
	struct rule *rules; /* while they come */
	size_t n_rules;
	const struct ruleset *settled; /* when all have come */
	struct net_header *headers;
	size_t n_headers;
	char *secrets; /* the headers' values, each with its NUL; NULL: none yet */
	size_t n_secret_bytes;
};

void spec_add_use(struct spec *s, const char set[static POLICY_SET_NAME_SIZE]);
void spec_add_rule(struct spec *s, const struct rule *r);
void spec_add_header(struct spec *s, const struct egress_header *h);
/* No more will come. -ENOMEM, or what was wrong with what came. */
_must_check_ int spec_settle(struct spec *s);
struct spec *spec_free(struct spec *s);

/* Its rules, those of the sets it uses and the operator's, as one. -ESRCH: there is no such set;
 * -ENOMEM. */
_must_check_ int spec_expand(const struct spec *s, const struct policy_sets *sets,
			     const struct ruleset **ret);

/* --- own.c ---------------------------------------------------------------------------------- */

_must_check_ int own_open(struct egress *g);
/* Is it an address of this machine? Looks again at most every ten seconds, and sets has_ipv6. */
bool own_has(struct egress *g, const struct net_address *a);
