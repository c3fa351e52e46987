/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct net4 {
	uint32_t address;
	unsigned bits;
};

#define NET4(a, b, c, d, bits)                                                                     \
	{                                                                                          \
		(uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d), (bits)                           \
	}

/* What IANA keeps for special purposes, multicast and the reserved rest. */
static const struct net4 special4[] = {
	NET4(0, 0, 0, 0, 8),      NET4(10, 0, 0, 0, 8),     NET4(100, 64, 0, 0, 10),
	NET4(127, 0, 0, 0, 8),    NET4(169, 254, 0, 0, 16), NET4(172, 16, 0, 0, 12),
	NET4(192, 0, 0, 0, 24),   NET4(192, 0, 2, 0, 24),   NET4(192, 88, 99, 0, 24),
	NET4(192, 168, 0, 0, 16), NET4(198, 18, 0, 0, 15),  NET4(198, 51, 100, 0, 24),
	NET4(203, 0, 113, 0, 24), NET4(224, 0, 0, 0, 4),    NET4(240, 0, 0, 0, 4),
};

static bool public4(uint32_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(special4); i++) {
		uint32_t mask = ~UINT32_C(0) << (32 - special4[i].bits);

		if ((address & mask) == special4[i].address)
			return false;
	}
	return true;
}

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool has_prefix(const unsigned char *address, const unsigned char *prefix, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(address, prefix, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

/*
 * Only 2000::/3 is in use on the Internet, so loopback, unique local, link-local, multicast and
 * IPv4-mapped addresses are out without being named. NAT64 carries an IPv4 address and lies outside
 * of it; it is let through for those that are public, because a host with nothing but IPv6 reaches
 * the IPv4 Internet that way.
 */
static bool public6(const unsigned char *a)
{
	static const unsigned char nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const struct {
		unsigned char prefix[4];
		unsigned bits;
	} special[] = {
		{ { 0x20, 0x01, 0x00, 0x00 }, 23 }, /* Teredo, ORCHID, benchmarks */
		{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
		{ { 0x20, 0x02, 0x00, 0x00 }, 16 }, /* 6to4: somebody else's relay */
		{ { 0x3f, 0xff, 0x00, 0x00 }, 20 }, /* documentation */
	};

	if (memcmp(a, nat64, sizeof(nat64)) == 0)
		return public4(word(a + 12));
	if (a[0] >> 5 != 1)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (has_prefix(a, special[i].prefix, special[i].bits))
			return false;
	}
	return true;
}

bool address_is_public(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in));
		return public4(ntohl(in.sin_addr.s_addr));
	}
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		return public6(in6.sin6_addr.s6_addr);
	}
	return false;
}

bool address_text_is_public(const char *host)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
		return address_is_public((const struct sockaddr *)&in);
	if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
		return address_is_public((const struct sockaddr *)&in6);
	return true;
}
