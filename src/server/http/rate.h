/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of something one caller may do. A caller is a name: a key's id or an address. The memory
 * is fixed; when it is full, the caller that has been quiet for longest is forgotten.
 */
#pragma once

#include "base/util.h"

#define RATE_NAME_SIZE 48
#define RATE_WINDOW_S 10 /* rates are averages over this time: a burst of as much is fine */

struct rate;

_must_check_ int rate_new(struct rate **ret);
void rate_free(struct rate *t);

/* Takes one of per_second. False when there is none left: *ret_retry_s is when there will be. */
bool rate_take(struct rate *t, const char *name, uint64_t per_second, uint64_t now_us,
	       unsigned *ret_retry_s);

/*
 * Failures: the first PENALTY_FREE in a row are free, each further one costs a second longer than
 * the last, up to PENALTY_MAX_S; a second of quiet takes one back. Returns for how long the caller
 * is to be turned away, 0: not.
 */
#define PENALTY_FREE 20
#define PENALTY_MAX_S 300
unsigned penalty_add(struct rate *t, const char *name, uint64_t now_us);

/* What the server counts, each in a memory of its own: addresses, which anybody can have many of,
 * cannot push keys out. */
struct rates {
	struct rate *requests;  /* by key */
	struct rate *creates;   /* by key */
	struct rate *addresses; /* requests without a key, by address */
	struct rate *failures;  /* wrong keys and tokens, by address */
	struct rate *searches;  /* for the token that made a signature, by address */
};

_must_check_ int rates_new(struct rates **ret);
void rates_free(struct rates *r);

/* How many searches through n tokens a second: together they are as much work however many tokens
 * there are. */
#define RATE_TOKENS_TRIED 200000 /* a second: a small part of what one processor can do */
uint64_t rate_of_searches(size_t n);

/* The name under which an address is counted: IPv4 as it is, of IPv6 the network (/64). */
struct sockaddr;
void rate_address_name(const struct sockaddr *sa, char ret[RATE_NAME_SIZE]);
