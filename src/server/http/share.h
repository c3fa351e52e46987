/* SPDX-License-Identifier: Apache-2.0 */
/* How much of something each of many has: connections of an address, runs of a key. The caller has
 * a lock, but for held. */
#pragma once

#include "base/util.h"

#define SHARE_NAME_SIZE 64
#define SHARE_BUCKETS 256

struct share {
	char name[SHARE_NAME_SIZE];
	size_t n;
	size_t held;        /* bytes of results of a key's runs: run/hold.c; atomic */
	struct share *next; /* of the same hash */
};

struct shares {
	struct share *bucket[SHARE_BUCKETS];
};

/* One more; -EUSERS when it has max already. */
_must_check_ int share_take(struct shares *s, const char *name, size_t max, struct share **ret);
void share_give(struct shares *s, struct share *one);
