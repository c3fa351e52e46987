/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the server sends it, bit by bit. What does not fit is remembered as an error: half a
 * policy is none. */
#include "egress/rules/rules.h"

#include <assert.h>
#include <sys/mman.h>

#define BUCKETS 256

/* --- lists of rules ------------------------------------------------------------------------- */

/*
 * Lists of rules that do not change any more. Most boxes of a machine have the same ones: each list
 * is in memory once, however many use it.
 */
static struct ruleset *table[BUCKETS];

/* FNV-1a. A server that chose rules to fall into one bucket would make only its own policies slow
 * to be put in force. */
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

/* --- secrets -------------------------------------------------------------------------------- */

/*
 * On pages of their own, so that locking and wiping them touches nothing else; those of one box
 * together, since each page of a value alone would be one that a box costs. Where no more memory
 * may be locked, they can be swapped out; that is no reason to refuse them.
 */
static int open_secrets(struct spec *s)
{
	char *p = mmap(NULL, EGRESS_HEADER_VALUES_MAX, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(p, EGRESS_HEADER_VALUES_MAX, MADV_DONTDUMP);
	s->secrets = p;
	return 0;
}

static void close_secrets(struct spec *s)
{
	if (!s->secrets)
		return;
	explicit_bzero(s->secrets, s->n_secret_bytes);
	(void)munmap(s->secrets, EGRESS_HEADER_VALUES_MAX);
	s->secrets = NULL;
}

/* One secret is often in many headers: it is there once. */
static const char *find_secret(const struct spec *s, const char *value)
{
	for (const char *at = s->secrets; at && at < s->secrets + s->n_secret_bytes;
	     at += strlen(at) + 1)
		if (strcmp(at, value) == 0)
			return at;
	return NULL;
}

/* NULL: E2BIG or ENOMEM is in err. */
static const char *spec_add_secret(struct spec *s, const char *value)
{
	size_t size = strlen(value) + 1;
	const char *known = find_secret(s, value);
	char *place;

	if (known)
		return known;
	if (!s->secrets && open_secrets(s) < 0)
		s->err = ENOMEM;
	else if (size > EGRESS_HEADER_VALUES_MAX - s->n_secret_bytes)
		s->err = E2BIG;
	if (s->err)
		return NULL;
	place = s->secrets + s->n_secret_bytes;
	(void)mlock(place, size);
	memcpy(place, value, size);
	s->n_secret_bytes += size;
	return place;
}

/* --- gathering ------------------------------------------------------------------------------ */

/* One more at the end of a list, which grows to twice its size when it is full. NULL: E2BIG or
 * ENOMEM is in err. */
static void *list_add(void *list, size_t *n, size_t max, size_t size, int *err)
{
	void **at = list, *more = *at;

	if (*n >= max) {
		*err = E2BIG;
		return NULL;
	}
	if ((*n & (*n - 1)) == 0) {
		more = reallocarray(*at, *n ? 2 * *n : 1, size);
		if (!more) {
			*err = ENOMEM;
			return NULL;
		}
		*at = more;
	}
	return (char *)more + size * (*n)++;
}

void spec_add_use(struct spec *s, const char set[static POLICY_SET_NAME_SIZE])
{
	if (s->n_uses == POLICY_USES_MAX)
		s->err = E2BIG;
	else
		memcpy(s->use[s->n_uses++], set, POLICY_SET_NAME_SIZE);
}

void spec_add_rule(struct spec *s, const struct rule *r)
{
	struct rule *place =
		list_add(&s->rules, &s->n_rules, POLICY_RULES_MAX, sizeof(*s->rules), &s->err);

	if (place)
		*place = *r;
}

void spec_add_header(struct spec *s, const struct egress_header *h)
{
	struct net_header *place = list_add(&s->headers, &s->n_headers, EGRESS_HEADERS_MAX,
					    sizeof(*s->headers), &s->err);

	if (!place)
		return;
	*place = (struct net_header){ .value = spec_add_secret(s, h->value), .tls = h->tls };
	memcpy(place->host, h->host, sizeof(place->host));
	memcpy(place->name, h->name, sizeof(place->name));
}

struct spec *spec_free(struct spec *s)
{
	if (!s)
		return NULL;
	close_secrets(s);
	free(s->headers);
	free(s->rules);
	(void)ruleset_put(s->settled);
	free(s);
	return NULL;
}

int spec_settle(struct spec *s)
{
	if (s->err)
		return -s->err;
	s->settled = ruleset_get(s->rules, s->n_rules);
	if (!s->settled)
		return -ENOMEM;
	free(s->rules);
	s->rules = NULL;
	return 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static void rules_append(struct rule *list, size_t *n, const struct rule *more, size_t n_more)
{
	if (n_more)
		memcpy(list + *n, more, n_more * sizeof(*more));
	*n += n_more;
}

/* The sets that hold for it. -ESRCH: one is not there. */
static int find_sets(const struct spec *s, const struct policy_sets *sets,
		     const struct policy_set *ret[static POLICY_USES_MAX + 1])
{
	int n = 0;

	/* What holds for every box comes first; there is none before the operator's sets have
	 * come. */
	if (sets->n > 0)
		ret[n++] = &sets->set[0];
	for (size_t i = 0; i < s->n_uses; i++) {
		const struct policy_set *set = sets_find(sets, s->use[i]);

		if (!set)
			return -ESRCH;
		ret[n++] = set;
	}
	return n;
}

int spec_expand(const struct spec *s, const struct policy_sets *sets, const struct ruleset **ret)
{
	const struct policy_set *used[POLICY_USES_MAX + 1];
	int n_used = find_sets(s, sets, used);
	_cleanup_(freep) struct rule *list = NULL;
	size_t total = s->settled->n, n = 0;

	if (n_used < 0)
		return n_used;
	for (int i = 0; i < n_used; i++)
		total += used[i]->n_rules;
	list = calloc(MAX(total, (size_t)1), sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (int i = 0; i < n_used; i++)
		rules_append(list, &n, used[i]->rules, used[i]->n_rules);
	rules_append(list, &n, s->settled->rules, s->settled->n);
	*ret = ruleset_get(list, n);
	return *ret ? 0 : -ENOMEM;
}
