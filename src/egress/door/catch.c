/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of programs that know of no proxy: led to our door by the box's own network namespace, with the
 * address that they were to go to. An address that a rule allows is dialed as it is. For everything else a name is
 * needed: on 443 and 80 the client says it, and what it says is resolved anew; elsewhere it must be one that our
 * DNS gave the address for.
 */
#include "egress/flow/conn.h"

#include <sys/socket.h>

/* The connection was handed to our door as it was: our end of it has the address that was asked for. */
static int original_destination(int fd, struct target *ret)
{
	struct sockaddr_storage there;
	socklen_t len = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&there, &len) < 0)
		return -errno;
	return address_from_sockaddr((struct sockaddr *)&there, &ret->address, &ret->port);
}

/* Who comes to the door itself, or wanted to stay in his own box, was not redirected: dialing that would be us
 * again. */
static bool is_here(const struct target *t)
{
	const char *special = address_special(&t->address);

	return t->port == 0 || (special && strcmp(special, "loopback") == 0);
}

/* Neither the address nor what it says first can name it: was it told the address for a name that a rule names? */
static void catch_other(struct egress *g, struct conn *c, enum policy_reason reason)
{
	if (!resolve_told(c->net, &c->target.address, c->target.port, true, c->target.name)) {
		conn_refuse(g, c, reason);
		return;
	}
	c->by_name = true;
	c->is_told_address = true;
	step_decide(g, c);
}

void catch_begin(struct egress *g, struct conn *c)
{
	enum policy_reason reason;

	if (original_destination(c->client_fd, &c->target) < 0 || is_here(&c->target)) {
		conn_refuse(g, c, POLICY_PRIVATE);
		return;
	}
	if (!c->net->has_policy) {
		conn_refuse(g, c, POLICY_NO_POLICY);
		return;
	}
	reason = net_check_address(g, c->net, &c->target.address, c->target.port, false);
	if (policy_reason_allows(reason)) {
		c->name_is_hint = true;
		(void)resolve_told(c->net, &c->target.address, c->target.port, false,
				   c->target.name);
		c->name_is_optional = c->target.port == 80 && c->net->n_headers > 0;
		if (c->name_is_optional)
			step_naming(g, c);
		else
			step_decide(g, c);
	} else if (c->target.port == 443 || c->target.port == 80) {
		step_naming(g, c);
	} else {
		catch_other(g, c, reason);
	}
}
