/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_priv.h"

/* Two addresses that are one destination: the one that was asked for, and the one it carries if it
 * is a transition form. */
struct destination {
	struct net_address asked, carried;
};

static bool names(const struct rule *r, const char *name)
{
	if (r->kind == RULE_NAME)
		return strcmp(r->name, name) == 0;
	return r->kind == RULE_BELOW && name_is_below(name, r->name);
}

static bool has_address(const struct rule *r, const struct net_address *a)
{
	return r->kind == RULE_RANGE && range_has(&r->address, r->prefix, a);
}

static bool has_destination(const struct rule *r, const struct destination *d)
{
	return has_address(r, &d->asked) || has_address(r, &d->carried);
}

/* While the port is not known (0), a denial of some ports denies nothing yet; a rule that allows
 * some allows to ask. */
static bool denies_port(const struct rule *r, uint16_t port)
{
	return port ? rule_has_port(r, port) : rule_has_all_ports(r);
}

static bool is_allowance(const struct rule *r)
{
	return r->flags == 0;
}

static bool is_denial(const struct rule *r, bool by_operator)
{
	return r->flags == (by_operator ? RULE_DENY | RULE_OPERATOR : RULE_DENY);
}

static bool name_denied(const struct policy *p, bool by_operator, const char *name, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (is_denial(&p->rules[i], by_operator) && names(&p->rules[i], name) &&
		    denies_port(&p->rules[i], port))
			return true;
	return false;
}

bool policy_denies_names(const struct policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (is_denial(&p->rules[i], true) && p->rules[i].kind != RULE_RANGE)
			return true;
	return false;
}

static bool everything_denied(const struct policy *p, bool by_operator, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (is_denial(&p->rules[i], by_operator) && rule_is_everything(&p->rules[i]) &&
		    denies_port(&p->rules[i], port))
			return true;
	return false;
}

/* What is allowed beats what is denied. */
static bool everything_allowed(const struct policy *p, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (is_allowance(&p->rules[i]) && rule_is_everything(&p->rules[i]) &&
		    rule_has_port(&p->rules[i], port))
			return true;
	return p->base_allow && !everything_denied(p, false, port);
}

enum policy_reason policy_name(const struct policy *p, const char *name, uint16_t port,
			       bool *ret_by_name)
{
	bool named = false;

	*ret_by_name = false;
	if (name_denied(p, true, name, port) || everything_denied(p, true, port))
		return POLICY_OPERATOR;
	if (p->learn)
		return POLICY_LEARNING;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!is_allowance(&p->rules[i]) || !names(&p->rules[i], name))
			continue;
		if (rule_has_port(&p->rules[i], port)) {
			*ret_by_name = true;
			return POLICY_ALLOWED;
		}
		named = true;
	}
	if (name_denied(p, false, name, port))
		return POLICY_DENIED;
	if (everything_allowed(p, port))
		return POLICY_ALLOWED;
	return named ? POLICY_PORT_NOT_ALLOWED : POLICY_NOT_ALLOWED;
}

static bool address_denied(const struct policy *p, bool by_operator, const struct destination *d,
			   uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (is_denial(&p->rules[i], by_operator) && has_destination(&p->rules[i], d) &&
		    denies_port(&p->rules[i], port))
			return true;
	return false;
}

bool policy_opens(const struct policy *p, const struct net_address *a, uint16_t port)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].flags == RULE_PRIVATE && has_address(&p->rules[i], a) &&
		    rule_has_port(&p->rules[i], port))
			return true;
	return false;
}

static bool is_closed(const struct policy *p, const struct net_address *a, uint16_t port)
{
	const struct special *s = special_find(a);

	return s && (s->always || !p->learn) && !policy_opens(p, a, port);
}

enum policy_reason policy_address(const struct policy *p, const struct net_address *a,
				  uint16_t port, bool by_name)
{
	struct destination d = { *a, address_unwrap(a) };
	bool in_range = false;

	if (address_denied(p, true, &d, port))
		return POLICY_OPERATOR;
	/* NW-06: who opens the form has not opened what it carries, nor the other way round. */
	if (is_closed(p, &d.asked, port) || is_closed(p, &d.carried, port))
		return POLICY_PRIVATE;
	if (p->learn)
		return POLICY_LEARNING;
	if (by_name)
		return POLICY_ALLOWED;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (!is_allowance(&p->rules[i]) || !has_destination(&p->rules[i], &d))
			continue;
		if (rule_has_port(&p->rules[i], port))
			return POLICY_ALLOWED;
		in_range = true;
	}
	if (address_denied(p, false, &d, port))
		return POLICY_DENIED;
	if (p->base_allow)
		return POLICY_ALLOWED;
	return in_range ? POLICY_PORT_NOT_ALLOWED : POLICY_ADDRESS;
}
