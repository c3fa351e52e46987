/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that are not public, from IANA's registries of special addresses: a name that a
 * stranger controls can lead to any of them (NW-02, NW-04, NW-05, NW-06). No box gets there unless
 * the operator names their range, and no webhook unless the setting allows private addresses.
 */
#include "policy/policy_priv.h"

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		{                                                                                  \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (a), (b), (c), (d)               \
		}                                                                                  \
	}
#define V6(...)                                                                                    \
	{                                                                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define BITS(n) (96 + (n))

/* The first that fits. */
static const struct special ranges[] = {
	{ V4(0, 0, 0, 0), BITS(8), true, "unspecified" },
	{ V4(10, 0, 0, 0), BITS(8), false, "private" },
	{ V4(100, 64, 0, 0), BITS(10), false, "shared" },
	{ V4(127, 0, 0, 0), BITS(8), true, "loopback" },
	{ V4(169, 254, 0, 0), BITS(16), true, "link-local" },
	{ V4(172, 16, 0, 0), BITS(12), false, "private" },
	{ V4(192, 0, 0, 0), BITS(24), false, "reserved" },
	{ V4(192, 0, 2, 0), BITS(24), false, "documentation" },
	{ V4(192, 88, 99, 0), BITS(24), false, "transition" },
	{ V4(192, 168, 0, 0), BITS(16), false, "private" },
	{ V4(198, 18, 0, 0), BITS(15), false, "benchmark" },
	{ V4(198, 51, 100, 0), BITS(24), false, "documentation" },
	{ V4(203, 0, 113, 0), BITS(24), false, "documentation" },
	{ V4(224, 0, 0, 0), BITS(4), true, "multicast" },
	{ V4(255, 255, 255, 255), BITS(32), true, "broadcast" },
	{ V4(240, 0, 0, 0), BITS(4), false, "reserved" },

	{ V6(0), 128, true, "unspecified" },
	{ V6([15] = 1), 128, true, "loopback" },
	{ V6(0), 96, false, "transition" },
	/*
	 * NAT64. Where it leads is decided by a gateway of the network that this machine stands in.
	 * It should translate public addresses only (RFC 6052), but not every one does, and it
	 * comes to them with an address of its own, which firewalls may trust more than ours.
	 * Looking at the address that it carries cannot tell; so the form is closed, even with a
	 * public address in it. A network with nothing but IPv6 needs it: the operator who opens it
	 * to boxes opens the form alone, and what it carries is judged as well.
	 */
	{ V6(0x00, 0x64, 0xff, 0x9b), 96, false, "transition" },
	{ V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48, false, "transition" },
	{ V6(0x01, 0x00), 64, false, "discard" },
	{ V6(0x20, 0x01), 32, false, "transition" },
	{ V6(0x20, 0x01), 23, false, "reserved" },
	{ V6(0x20, 0x01, 0x0d, 0xb8), 32, false, "documentation" },
	{ V6(0x20, 0x02), 16, false, "transition" },
	{ V6(0x3f, 0xff), 20, false, "documentation" },
	{ V6(0xfc), 7, false, "private" },
	{ V6(0xfe, 0x80), 10, true, "link-local" },
	{ V6(0xfe, 0xc0), 10, false, "private" },
	{ V6(0xff), 8, true, "multicast" },
};

/* All that has been given out for use is in 2000::/3: whatever else there will be is not reached by
 * surprise. */
static const struct special unassigned = { V6(0), 0, false, "reserved" };
static const struct net_address global_unicast = V6(0x20);

const struct special *special_find(const struct net_address *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (range_has(&ranges[i].address, ranges[i].prefix, a))
			return &ranges[i];
	if (!address_is_v4(a) && !range_has(&global_unicast, 3, a))
		return &unassigned;
	return NULL;
}

const char *address_special(const struct net_address *a)
{
	const struct special *s = special_find(a);
	struct net_address carried = address_unwrap(a);

	if (!s)
		s = special_find(&carried);
	return s ? s->word : NULL;
}

/* Where a form that leads to an IPv4 address has it. */
static const struct {
	struct net_address address;
	uint8_t prefix;
	uint8_t at; /* byte */
	uint8_t flipped;
} carriers[] = {
	{ V6(0), 96, 12, 0 },
	{ V6(0x00, 0x64, 0xff, 0x9b), 96, 12, 0 },
	/* a network may have it elsewhere too; then the operator opens no more of the form than is
	 * meant */
	{ V6(0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), 48, 12, 0 },
	{ V6(0x20, 0x02), 16, 2, 0 },
	{ V6(0x20, 0x01), 32, 12, 0xff },
};

static bool is_unspecified_or_loopback(const struct net_address *a)
{
	static const uint8_t zero[15];

	return memcmp(a->bytes, zero, sizeof(zero)) == 0 && a->bytes[15] <= 1;
}

struct net_address address_unwrap(const struct net_address *a)
{
	struct net_address carried = V4(0, 0, 0, 0);

	if (is_unspecified_or_loopback(a)) /* ::1 carries no 0.0.0.1 */
		return *a;
	for (size_t i = 0; i < ARRAY_SIZE(carriers); i++) {
		if (!range_has(&carriers[i].address, carriers[i].prefix, a))
			continue;
		for (size_t k = 0; k < 4; k++)
			carried.bytes[12 + k] = a->bytes[carriers[i].at + k] ^ carriers[i].flipped;
		return carried;
	}
	return *a;
}
