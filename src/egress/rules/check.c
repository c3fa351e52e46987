/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy of a box says. */
#include "egress/rules/rules.h"

enum policy_reason net_check_address(struct egress *g, struct net *n, const struct net_address *a,
				     uint16_t port, bool by_name)
{
	struct net_address carried = address_unwrap(a);
	enum policy_reason reason;

	if (!n->has_policy)
		return POLICY_NO_POLICY;
	reason = policy_address(&n->policy, a, port, by_name);
	if (!policy_reason_allows(reason))
		return reason;
	if ((own_has(g, a) && !policy_opens(&n->policy, a, port)) ||
	    (own_has(g, &carried) && !policy_opens(&n->policy, &carried, port)))
		return POLICY_PRIVATE;
	return reason;
}

/* As E2B has it: the rule of the host itself, else the longest of those that it is below. */
static const char *headers_host(const struct net *n, const char *host)
{
	const char *best = NULL;

	for (size_t i = 0; i < n->n_headers; i++) {
		const char *of = n->headers[i].host;

		if (strcmp(of, host) == 0)
			return of;
		if (of[0] == '.' && name_is_below(host, of + 1) &&
		    (!best || strlen(of) > strlen(best)))
			best = of;
	}
	return best;
}

void net_headers_for(const struct net *n, const char *host,
		     void (*f)(const struct net_header *h, void *arg), void *arg)
{
	const char *of = headers_host(n, host);

	for (size_t i = 0; of && i < n->n_headers; i++)
		if (strcmp(n->headers[i].host, of) == 0)
			f(&n->headers[i], arg);
}
