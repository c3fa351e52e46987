/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of policy. */
#pragma once

#include "policy/policy.h"

/* A range that is nobody's, everybody's or not for the public. */
struct special {
	struct net_address address;
	uint8_t prefix;
	bool always;      /* no box gets there even while it is learnt what is needed */
	const char *word; /* what people call it */
};

/* The range that this address itself is in, whatever it carries, or NULL. */
const struct special *special_find(const struct net_address *a);

/*
 * Are the first prefix bits the same? A range of IPv6 addresses has no IPv4 address in it, although
 * our form of those lies inside it: only what is IPv4 itself (96 bits and more) and the range of
 * everything (0) have.
 */
bool range_has(const struct net_address *range, unsigned prefix, const struct net_address *a);

/* As rule_parse(), but a name without ports has all of them: what a denial means. */
_must_check_ int rule_parse_denial(const char *text, size_t len, struct rule *ret,
				   struct fail *fail);
