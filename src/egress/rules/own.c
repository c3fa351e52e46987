/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of this machine: what listens on them is not meant for boxes, even where the
 * address is a public one. The kernel is asked over netlink, which works without files.
 */
#include "egress/rules/rules.h"

#include "base/clock.h"

#include <ifaddrs.h>
#include <sys/socket.h>

#define LOOK_AGAIN_US UINT64_C(10000000)

struct own_addresses {
	struct net_address *list;
	size_t n;
	uint64_t looked_us;
};

/* connect() of a UDP socket looks for a route and sends nothing. */
static bool reaches_ipv6(void)
{
	const struct sockaddr_in6 somewhere = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(53),
		.sin6_addr = { .s6_addr = { 0x20, 0x00, [15] = 1 } }, /* 2000::/3 is the internet */
	};
	_cleanup_(fd_closep) int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&somewhere, sizeof(somewhere)) == 0;
}

static int own_look(struct own_addresses *o)
{
	struct net_address *list;
	struct ifaddrs *all;
	size_t n = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	n = 0;
	for (const struct ifaddrs *i = all; list && i; i = i->ifa_next) {
		uint16_t port;

		if (i->ifa_addr && address_from_sockaddr(i->ifa_addr, &list[n], &port) == 0)
			n++;
	}
	freeifaddrs(all);
	if (!list)
		return -ENOMEM;
	free(o->list);
	o->list = list;
	o->n = n;
	return 0;
}

static int own_refresh(struct egress *g)
{
	struct own_addresses *o = g->own;
	int r = own_look(o);

	/* When they cannot be told now, those that were known stay. */
	o->looked_us = clock_boot_us();
	g->has_ipv6 = reaches_ipv6();
	return r;
}

int own_open(struct egress *g)
{
	static struct own_addresses o;

	g->own = &o;
	return own_refresh(g);
}

bool own_has(struct egress *g, const struct net_address *a)
{
	struct own_addresses *o = g->own;

	if (clock_boot_us() - o->looked_us >= LOOK_AGAIN_US)
		(void)own_refresh(g);
	for (size_t i = 0; i < o->n; i++)
		if (address_equal(&o->list[i], a))
			return true;
	return false;
}
