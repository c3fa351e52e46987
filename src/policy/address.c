/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_priv.h"

#include <arpa/inet.h>

#define V4_PREFIX 96 /* bits before the IPv4 address in our form of it */
#define V4_AT 12     /* bytes before it */

static const uint8_t v4_head[V4_AT] = { [10] = 0xff, [11] = 0xff };

static struct net_address from_v4(const uint8_t v4[static 4])
{
	struct net_address a;

	memcpy(a.bytes, v4_head, V4_AT);
	memcpy(a.bytes + V4_AT, v4, 4);
	return a;
}

/* A decimal number without leading zeros, up to 255: what follows it is left to the caller. */
static int parse_octet(const char **at, const char *end, uint8_t *ret)
{
	const char *p = *at;
	unsigned value = 0;

	for (; p < end && p - *at < 3 && *p >= '0' && *p <= '9'; p++)
		value = value * 10 + (unsigned)(*p - '0');
	if (p == *at || value > UINT8_MAX || (**at == '0' && p - *at > 1))
		return -EINVAL;
	*at = p;
	*ret = (uint8_t)value;
	return 0;
}

static int parse_v4(const char *text, size_t len, struct net_address *ret)
{
	const char *end = text + len;
	uint8_t v4[4];

	for (size_t i = 0; i < sizeof(v4); i++) {
		if (i > 0 && (text == end || *text++ != '.'))
			return -EINVAL;
		if (parse_octet(&text, end, &v4[i]) < 0)
			return -EINVAL;
	}
	if (text != end)
		return -EINVAL;
	*ret = from_v4(v4);
	return 0;
}

/* inet_pton() knows the grammar; what libraries disagree about (zones, an IPv4 part with odd
 * numbers) never gets there. */
static int parse_v6(const char *text, size_t len, struct net_address *ret)
{
	char copy[INET6_ADDRSTRLEN];
	struct net_address parsed, v4;
	const char *dotted;

	if (len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strspn(copy, "0123456789abcdefABCDEF:.") != len)
		return -EINVAL;
	dotted = strrchr(copy, ':');
	if (strchr(copy, '.') && (!dotted || parse_v4(dotted + 1, strlen(dotted + 1), &v4) < 0))
		return -EINVAL;
	if (inet_pton(AF_INET6, copy, parsed.bytes) != 1)
		return -EINVAL;
	*ret = parsed;
	return 0;
}

int address_parse(const void *text, size_t len, struct net_address *ret)
{
	return memchr(text, ':', len) ? parse_v6(text, len, ret) : parse_v4(text, len, ret);
}

bool address_is_v4(const struct net_address *a)
{
	return memcmp(a->bytes, v4_head, V4_AT) == 0;
}

bool address_equal(const struct net_address *a, const struct net_address *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void address_text(const struct net_address *a, char ret[static NET_ADDRESS_TEXT_SIZE])
{
	const char *text;

	if (address_is_v4(a))
		text = inet_ntop(AF_INET, a->bytes + V4_AT, ret, NET_ADDRESS_TEXT_SIZE);
	else
		text = inet_ntop(AF_INET6, a->bytes, ret, NET_ADDRESS_TEXT_SIZE);
	if (!text)
		ret[0] = '\0'; /* cannot be: there is room for every address */
}

int address_from_sockaddr(const struct sockaddr *sa, struct net_address *ret, uint16_t *ret_port)
{
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;
		uint8_t v4[4];

		memcpy(&in, sa, sizeof(in));
		memcpy(v4, &in.sin_addr, sizeof(v4));
		*ret = from_v4(v4);
		*ret_port = ntohs(in.sin_port);
		return 0;
	}
	if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		memcpy(ret->bytes, &in6.sin6_addr, sizeof(ret->bytes));
		*ret_port = ntohs(in6.sin6_port);
		return 0;
	}
	return -EAFNOSUPPORT;
}

socklen_t address_to_sockaddr(const struct net_address *a, uint16_t port,
			      struct sockaddr_storage *ret)
{
	*ret = (struct sockaddr_storage){ 0 };
	if (address_is_v4(a)) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

		memcpy(&in.sin_addr, a->bytes + V4_AT, 4);
		memcpy(ret, &in, sizeof(in));
		return sizeof(in);
	}
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&in6.sin6_addr, a->bytes, sizeof(a->bytes));
	memcpy(ret, &in6, sizeof(in6));
	return sizeof(in6);
}

bool range_has(const struct net_address *range, unsigned prefix, const struct net_address *a)
{
	unsigned whole = prefix / 8, rest = prefix % 8;
	unsigned mask = 0xff00u >> rest;

	if (prefix > 0 && prefix < V4_PREFIX && address_is_v4(a))
		return false;
	return memcmp(range->bytes, a->bytes, whole) == 0 &&
	       (rest == 0 || ((range->bytes[whole] ^ a->bytes[whole]) & mask & 0xff) == 0);
}
