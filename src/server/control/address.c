/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"
#include "server/control/text.h"

/* An IPv4 address in the form of IPv6 (::ffff:a.b.c.d) is not public: nobody needs to write one so. */
static bool is_public(const struct net_address *a, bool is_v6_form)
{
	return !address_special(a) && !(is_v6_form && address_is_v4(a));
}

bool address_is_public(const struct sockaddr *address)
{
	struct net_address a;
	uint16_t port;

	return address_from_sockaddr(address, &a, &port) == 0 &&
	       is_public(&a, address->sa_family == AF_INET6);
}

bool address_text_is_public(const char *host)
{
	struct net_address a;

	return address_parse(host, strlen(host), &a) < 0 || is_public(&a, strchr(host, ':'));
}
