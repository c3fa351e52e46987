/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of rules that do not change any more. Most boxes of a machine have the same ones: each list is in memory once, however many
 * use it.
 */
#include "egress/core.h"

#include <assert.h>

#define BUCKETS 256

static struct ruleset *table[BUCKETS];

/* FNV-1a. Who could choose rules to fall into one bucket makes only his own policies slow to be put in force. */
static uint32_t hash_of(const struct rule *rules, size_t n)
{
	const unsigned char *p = (const unsigned char *)rules;
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n * sizeof(*rules); i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

const struct ruleset *ruleset_get(const struct rule *rules, size_t n)
{
	uint32_t hash = hash_of(rules, n);
	struct ruleset **bucket = &table[hash % BUCKETS], *s;

	for (s = *bucket; s; s = s->next)
		if (s->hash == hash && s->n == n &&
		    (n == 0 || memcmp(s->rules, rules, n * sizeof(*rules)) == 0)) {
			s->users++;
			return s;
		}
	s = calloc(1, sizeof(*s) + n * sizeof(*rules));
	if (!s)
		return NULL;
	s->hash = hash;
	s->users = 1;
	s->n = n;
	if (n)
		memcpy(s->rules, rules, n * sizeof(*rules));
	s->next = *bucket;
	*bucket = s;
	return s;
}

const struct ruleset *ruleset_put(const struct ruleset *s)
{
	struct ruleset **at, *mine;

	if (!s)
		return NULL;
	for (at = &table[s->hash % BUCKETS]; *at != s; at = &(*at)->next)
		assert(*at);
	mine = *at;
	if (--mine->users == 0) {
		*at = mine->next;
		free(mine);
	}
	return NULL;
}
