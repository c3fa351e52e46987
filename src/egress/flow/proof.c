/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel to a host that a rule names: is it that host which the client means? On 443 a TLS
 * handshake must say so (NW-11). On other ports the client may speak what it likes, but if it
 * speaks TLS or HTTP, that names a host too, and it must be the same one: a server goes by that
 * name and not by the address it was reached at.
 *
 * One that no rule names may say any name, or none. It is only looked at where the operator denies
 * names: one of those it must not say, nor hide which one it says, and a request in the clear is
 * one request here too, so that none can follow.
 */
#include "egress/flow/conn.h"

static enum policy_reason hello_reason(enum hello h)
{
	switch (h) {
	case HELLO_MORE:
		return 0;
	case HELLO_NAME:
		return POLICY_ALLOWED;
	case HELLO_NOT_TLS:
		return POLICY_NOT_TLS;
	case HELLO_NO_NAME:
		return POLICY_NO_SNI;
	case HELLO_HIDDEN:
		return POLICY_ECH;
	case HELLO_BAD:
		break;
	}
	return POLICY_BAD_REQUEST;
}

enum policy_reason proof_hello(struct conn *c, char ret_name[static POLICY_NAME_SIZE])
{
	enum hello h = hello_read(c->in.data, c->in.len, ret_name);

	c->saw = h == HELLO_NOT_TLS ? FIRST_RAW : FIRST_TLS;
	if (h == HELLO_MORE && c->in.len >= REQUEST_MAX)
		h = HELLO_BAD;
	return hello_reason(h);
}

static int fails(struct conn *c, enum policy_reason reason)
{
	c->verdict = reason;
	return -EPERM;
}

/* The box was told the address for several names, and we had to guess which one was meant: this one
 * is as good. */
static bool is_other_name(struct conn *c, const char *name)
{
	if (!c->is_told_address || !name[0] ||
	    !told_as(c->net, &c->target.address, c->target.port, name))
		return false;
	memset(c->target.name, 0, sizeof(c->target.name));
	memcpy(c->target.name, name, strlen(name));
	return true;
}

/* The log says which one it was. */
static bool operator_denies(struct conn *c, const char name[static POLICY_NAME_SIZE])
{
	bool by_name;

	if (!name[0] ||
	    policy_name(&c->net->policy, name, c->target.port, &by_name) != POLICY_OPERATOR)
		return false;
	memcpy(c->target.name, name, sizeof(c->target.name));
	return true;
}

static int look_tls(struct conn *c)
{
	char name[POLICY_NAME_SIZE];
	enum policy_reason reason = proof_hello(c, name);

	if (reason == 0)
		return 0;
	if (reason == POLICY_NO_SNI && !c->by_name)
		return 1;
	if (reason != POLICY_ALLOWED)
		return fails(c, reason);
	if (!c->by_name)
		return operator_denies(c, name) ? fails(c, POLICY_OPERATOR) : 1;
	return strcmp(name, c->target.name) == 0 || is_other_name(c, name) ?
		       1 :
		       fails(c, POLICY_SNI_MISMATCH);
}

static bool is_same_host(struct conn *c)
{
	const struct target *said = &c->head->target;

	return target_equal(said, &c->target) ||
	       (said->port == c->target.port && is_other_name(c, said->name));
}

/* A request in the clear, where no rule says that it is one: from here on it is. */
static int look_http(struct egress *g, struct conn *c)
{
	enum policy_reason reason = http_read_origin(c);

	if (reason == 0)
		return 0;
	if (reason == POLICY_ALLOWED && !c->by_name && operator_denies(c, c->head->target.name))
		reason = POLICY_OPERATOR;
	if (reason == POLICY_ALLOWED && c->by_name && !is_same_host(c))
		reason = POLICY_HOST_MISMATCH;
	if (reason != POLICY_ALLOWED)
		return fails(c, reason);
	if (c->by_name)
		http_begin(g, c);
	else
		http_pass(g, c);
	return -EINPROGRESS;
}

bool proof_needs_tls(const struct conn *c)
{
	return c->by_name && c->target.port == 443;
}

int proof_look(struct egress *g, struct conn *c, bool is_ended)
{
	enum first first = first_bytes(c->in.data, c->in.len);

	if (is_ended && c->in.len == 0)
		return 1; /* it had nothing to say */
	if (proof_needs_tls(c) && first != FIRST_MORE && first != FIRST_TLS)
		return fails(c, POLICY_NOT_TLS);
	/* Text without an end of line is no request yet, and now it will not become one. */
	if (is_ended)
		return first == FIRST_RAW || (first == FIRST_MORE && !proof_needs_tls(c)) ?
			       1 :
			       fails(c, POLICY_BAD_REQUEST);
	c->saw = first;
	switch (first) {
	case FIRST_TLS:
		return look_tls(c);
	case FIRST_HTTP:
		return look_http(g, c);
	case FIRST_RAW:
		return 1;
	case FIRST_MORE:
		break;
	}
	return 0;
}
