/* SPDX-License-Identifier: Apache-2.0 */
/* What a run reached while everything was let through, as the rules that would have allowed just
 * that. */
#pragma once

#include "run/net_log.h"

#define LEARN_PLACES_MAX 2048 /* pairs of host and port */

/* A host at a port. */
struct learned_place {
	char name[POLICY_NAME_SIZE]; /* "": it was an address */
	struct net_address address;  /* zero where there is a name */
	uint16_t port;
};

struct learned {
	struct learned_place *places; /* sorted, each once */
	size_t n_places;
	struct net_address *special; /* addresses that need "private" lines; sorted, each once */
	size_t n_special;
	bool is_partial; /* there was more than there is room for */
};

/* Takes what is known of a connection so far; the same one may be told again when more is known. */
void learn(struct learned *l, const struct net_connection *c);
void learned_done(struct learned *l);

/* {"rules": […], "private": […], "complete": …}; NULL: no memory. */
json_t *learned_json(const struct learned *l);
