/* SPDX-License-Identifier: Apache-2.0 */
/* A rule that came from elsewhere, and a rule for people. */
#include "policy/policy_priv.h"

#define V4_PREFIX 96

static bool ports_ok(const struct rule *r)
{
	if (r->n_ports < 1 || r->n_ports > POLICY_PORTS_MAX)
		return false;
	for (size_t i = 0; i < POLICY_PORTS_MAX; i++) {
		bool used = i < r->n_ports;

		if (used && (r->ports[i].from == 0 || r->ports[i].from > r->ports[i].to))
			return false;
		if (!used && (r->ports[i].from != 0 || r->ports[i].to != 0))
			return false;
	}
	return true;
}

static bool is_zero(const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static bool range_ok(const struct rule *r)
{
	if (r->prefix > 128 || !is_zero(r->name, sizeof(r->name)))
		return false;
	for (unsigned bit = r->prefix; bit < 128; bit++)
		if (r->address.bytes[bit / 8] & (0x80u >> (bit % 8)))
			return false;
	return true;
}

static bool flags_ok(const struct rule *r)
{
	if (r->flags & ~RULE_FLAGS)
		return false;
	if (r->flags & RULE_PRIVATE)
		return r->flags == RULE_PRIVATE && r->kind == RULE_RANGE;
	return !(r->flags & RULE_OPERATOR) || (r->flags & RULE_DENY);
}

bool rule_ok(const struct rule *r)
{
	if (!flags_ok(r) || !ports_ok(r))
		return false;
	if (r->kind == RULE_RANGE)
		return range_ok(r);
	return (r->kind == RULE_NAME || r->kind == RULE_BELOW) && r->prefix == 0 &&
	       is_zero(&r->address, sizeof(r->address)) && name_ok(r->name);
}

static bool has_default_ports(const struct rule *r)
{
	if (r->kind == RULE_RANGE)
		return rule_has_all_ports(r);
	return r->n_ports == 2 && r->ports[0].from == 80 && r->ports[0].to == 80 &&
	       r->ports[1].from == 443 && r->ports[1].to == 443;
}

/* "" where the rule has the ports that it has without saying so. */
static void ports_text(const struct rule *r, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	if (has_default_ports(r))
		return;
	if (rule_has_all_ports(r)) {
		(void)snprintf(ret, size, ":*");
		return;
	}
	for (size_t i = 0; i < r->n_ports && i < POLICY_PORTS_MAX && len < size; i++) {
		unsigned from = r->ports[i].from, to = r->ports[i].to;
		char before = i == 0 ? ':' : ',';
		int n = from == to ? snprintf(ret + len, size - len, "%c%u", before, from) :
				     snprintf(ret + len, size - len, "%c%u-%u", before, from, to);

		len += (size_t)MAX(n, 0);
	}
}

static void range_text(const struct rule *r, const char *ports, char *ret)
{
	char address[NET_ADDRESS_TEXT_SIZE], prefix[8] = "";
	bool everything = rule_is_everything(r);
	bool dotted = everything || (address_is_v4(&r->address) && r->prefix > V4_PREFIX);
	unsigned bits = dotted && !everything ? r->prefix - V4_PREFIX : r->prefix;
	bool brackets = !dotted && ports[0];

	if (everything)
		(void)snprintf(address, sizeof(address), "0.0.0.0");
	else if (!dotted && address_is_v4(&r->address)) /* all of IPv4 and nothing else */
		(void)snprintf(address, sizeof(address), "::ffff:0:0");
	else
		address_text(&r->address, address);
	if (r->prefix < 128)
		(void)snprintf(prefix, sizeof(prefix), "/%u", bits);
	(void)snprintf(ret, POLICY_RULE_TEXT_SIZE, "%s%s%s%s%s", brackets ? "[" : "", address,
		       brackets ? "]" : "", prefix, ports);
}

void rule_text(const struct rule *r, char ret[static POLICY_RULE_TEXT_SIZE])
{
	char ports[64];

	ports_text(r, ports, sizeof(ports));
	if (r->kind == RULE_RANGE)
		range_text(r, ports, ret);
	else
		(void)snprintf(ret, POLICY_RULE_TEXT_SIZE, "%s%.*s%s",
			       r->kind == RULE_BELOW ? "*." : "", POLICY_NAME_MAX, r->name, ports);
}
