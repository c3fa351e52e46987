/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_priv.h"

#define V4_PREFIX 96
#define SHOWN_MAX 64 /* of a text that is refused */

static const struct rule_ports all_ports = { 1, UINT16_MAX };
static const struct rule_ports web_ports[] = { { 80, 80 }, { 443, 443 } };

/* A piece of the text, which has no NUL behind. */
struct piece {
	const char *at;
	size_t len;
};

static int rule_refuse(struct fail *fail, struct piece text, const char *why)
{
	char shown[SHOWN_MAX + 1];
	size_t n = MIN(text.len, (size_t)SHOWN_MAX);

	for (size_t i = 0; i < n; i++)
		shown[i] = (char)(text.at[i] >= ' ' && text.at[i] < 0x7f ? text.at[i] : '?');
	shown[n] = '\0';
	return fail_set(fail, EINVAL, "rule", "\"%s%s\" is not a rule: %s", shown,
			text.len > n ? "…" : "", why);
}

static bool same_ports(const struct rule *r, const struct rule_ports *ports, size_t n)
{
	return r->n_ports == n && memcmp(r->ports, ports, n * sizeof(*ports)) == 0;
}

static void set_ports(struct rule *r, const struct rule_ports *ports, size_t n)
{
	memcpy(r->ports, ports, n * sizeof(*ports));
	r->n_ports = (uint8_t)n;
}

/* --- ports ---------------------------------------------------------------------------------- */

/* Digits without leading zeros, up to max. */
static int parse_number(struct piece text, unsigned max, unsigned *ret)
{
	unsigned value = 0;

	if (text.len == 0 || text.len > 5 || (text.at[0] == '0' && text.len > 1))
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(text.at[i] - '0');
	}
	if (value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* "443" or "8000-8010" */
static int parse_port_range(struct piece text, struct rule_ports *ret)
{
	const char *dash = memchr(text.at, '-', text.len);
	struct piece first = { text.at, dash ? (size_t)(dash - text.at) : text.len };
	unsigned from, to;

	if (parse_number(first, UINT16_MAX, &from) < 0)
		return -EINVAL;
	to = from;
	if (dash) {
		struct piece last = { dash + 1, text.len - first.len - 1 };

		if (parse_number(last, UINT16_MAX, &to) < 0)
			return -EINVAL;
	}
	if (from == 0 || from > to)
		return -EINVAL;
	*ret = (struct rule_ports){ (uint16_t)from, (uint16_t)to };
	return 0;
}

static int parse_ports(struct piece text, struct rule *r)
{
	if (text.len == 1 && text.at[0] == '*') {
		set_ports(r, &all_ports, 1);
		return 0;
	}
	for (r->n_ports = 0; r->n_ports < POLICY_PORTS_MAX;) {
		const char *comma = memchr(text.at, ',', text.len);
		struct piece one = { text.at, comma ? (size_t)(comma - text.at) : text.len };

		if (parse_port_range(one, &r->ports[r->n_ports++]) < 0)
			return -EINVAL;
		if (!comma)
			return 0;
		text = (struct piece){ comma + 1, text.len - one.len - 1 };
	}
	return -EINVAL;
}

/* --- what it is about ----------------------------------------------------------------------- */

static void clear_behind(struct net_address *a, unsigned prefix)
{
	for (unsigned bit = prefix; bit < 128; bit++)
		a->bytes[bit / 8] &= (uint8_t) ~(0x80u >> (bit % 8));
}

/* address, and the text behind the slash if there is one. An IPv4 address has 32 bits, unless it
 * was written as IPv6. */
static int set_range(struct rule *r, struct piece address, const struct piece *prefix)
{
	bool dotted = !memchr(address.at, ':', address.len);
	unsigned bits = dotted ? 32 : 128;

	if (address_parse(address.at, address.len, &r->address) < 0 ||
	    (prefix && parse_number(*prefix, bits, &bits) < 0))
		return -EINVAL;
	/* Every IPv4 address: that is how people write "everything", of either family. */
	if (dotted && bits > 0)
		bits += V4_PREFIX;
	clear_behind(&r->address, bits);
	r->kind = RULE_RANGE;
	r->prefix = (uint8_t)bits;
	return 0;
}

static int set_name(struct rule *r, struct piece text)
{
	bool below = text.len > 2 && text.at[0] == '*' && text.at[1] == '.';

	if (below)
		text = (struct piece){ text.at + 2, text.len - 2 };
	r->kind = below ? RULE_BELOW : RULE_NAME;
	return name_parse(text.at, text.len, r->name);
}

/* Name, address or ADDRESS/PREFIX, without brackets and ports. */
static int set_target(struct rule *r, struct piece text)
{
	const char *slash = memchr(text.at, '/', text.len);

	if (slash) {
		struct piece address = { text.at, (size_t)(slash - text.at) };
		struct piece prefix = { slash + 1, text.len - address.len - 1 };

		return set_range(r, address, &prefix);
	}
	if (set_range(r, text, NULL) == 0)
		return 0;
	return set_name(r, text);
}

/* "[ADDRESS]" or "[ADDRESS]/PREFIX": gives back where that ends, or NULL. */
static const char *set_bracketed(struct rule *r, struct piece text)
{
	const char *end = text.at + text.len, *close = memchr(text.at, ']', text.len);
	struct piece address = { text.at + 1, close ? (size_t)(close - text.at) - 1 : 0 };
	const char *colon;
	struct piece prefix;

	if (!close || !memchr(address.at, ':', address.len))
		return NULL;
	if (++close == end || *close != '/')
		return set_range(r, address, NULL) == 0 ? close : NULL;
	colon = memchr(close, ':', (size_t)(end - close));
	prefix = (struct piece){ close + 1, (size_t)((colon ? colon : end) - close) - 1 };
	return set_range(r, address, &prefix) == 0 ? prefix.at + prefix.len : NULL;
}

/* --- a rule --------------------------------------------------------------------------------- */

static const char *find_twice(struct piece text, char c)
{
	const char *first = memchr(text.at, c, text.len);

	return first ? memchr(first + 1, c, text.len - (size_t)(first - text.at) - 1) : NULL;
}

/* Sets what the rule is about and gives back what is behind it (ports with their colon, or
 * nothing), or NULL. */
static const char *rule_split(struct rule *r, struct piece text)
{
	struct piece target = text;
	const char *colon;

	if (text.at[0] == '[')
		return set_bracketed(r, text);
	if (!find_twice(text, ':')) { /* two colons: an IPv6 address without ports */
		colon = memchr(text.at, ':', text.len);
		target.len = colon ? (size_t)(colon - text.at) : text.len;
	}
	return set_target(r, target) == 0 ? target.at + target.len : NULL;
}

static int rule_explain(struct fail *fail, struct piece text)
{
	if (text.len == 1 && text.at[0] == '*')
		return rule_refuse(fail, text, "write 0.0.0.0/0 for everything");
	if (memchr(text.at, '/', text.len) && find_twice(text, '/'))
		return rule_refuse(fail, text, "write the host without https:// and path");
	if (text.at[0] != '[' && find_twice(text, ':'))
		return rule_refuse(fail, text,
				   "an IPv6 address with ports is written [ADDRESS]:PORT");
	return rule_refuse(fail, text, "write a host name, *.name, an address or a range");
}

static int rule_parse_as(const char *text, size_t len, bool denial, struct rule *ret,
			 struct fail *fail)
{
	struct rule r = { 0 };
	struct piece whole = { text, len };
	const char *behind;
	size_t left;

	if (len == 0)
		return fail_set(fail, EINVAL, "rule", "a rule cannot be empty");
	if (len >= POLICY_RULE_TEXT_SIZE)
		return rule_refuse(fail, whole, "it is too long");
	behind = rule_split(&r, whole);
	if (!behind)
		return rule_explain(fail, whole);
	left = len - (size_t)(behind - text);
	if (left == 0 && r.kind != RULE_RANGE && !denial)
		set_ports(&r, web_ports, ARRAY_SIZE(web_ports));
	else if (left == 0)
		set_ports(&r, &all_ports, 1);
	else if (*behind != ':' || parse_ports((struct piece){ behind + 1, left - 1 }, &r) < 0)
		return rule_refuse(
			fail, whole,
			"ports are like :443 or :80,443 or :8000-8010 (at most 4) or :*");
	*ret = r;
	return 0;
}

int rule_parse(const char *text, size_t len, struct rule *ret, struct fail *fail)
{
	return rule_parse_as(text, len, false, ret, fail);
}

int rule_parse_denial(const char *text, size_t len, struct rule *ret, struct fail *fail)
{
	return rule_parse_as(text, len, true, ret, fail);
}

bool rule_has_all_ports(const struct rule *r)
{
	return same_ports(r, &all_ports, 1);
}

bool rule_has_port(const struct rule *r, uint16_t port)
{
	for (size_t i = 0; i < r->n_ports && i < POLICY_PORTS_MAX; i++)
		if (port == 0 || (port >= r->ports[i].from && port <= r->ports[i].to))
			return true;
	return false;
}

bool rule_is_everything(const struct rule *r)
{
	return r->kind == RULE_RANGE && r->prefix == 0;
}

/* --- one that came from elsewhere, and one for people --------------------------------------- */

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

static bool rest_is_zero(const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static bool range_ok(const struct rule *r)
{
	if (r->prefix > 128 || !rest_is_zero(r->name, sizeof(r->name)))
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
	       rest_is_zero(&r->address, sizeof(r->address)) && name_ok(r->name);
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
