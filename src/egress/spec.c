/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the server sends it, bit by bit. What does not fit is remembered as an error: half a policy is none. */
#include "egress/core.h"

#include <sys/mman.h>

/* --- secrets ------------------------------------------------------------------------------------------- */

/*
 * On pages of its own, so that locking and wiping it touches nothing else. Where no more memory may be locked, it can be
 * swapped out; that is no reason to refuse it.
 */
static char *secret_new(const char *value)
{
	size_t size = strlen(value) + 1;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)mlock(p, size);
	(void)madvise(p, size, MADV_DONTDUMP);
	memcpy(p, value, size);
	return p;
}

static void secret_free(char *value)
{
	size_t size;

	if (!value)
		return;
	size = strlen(value) + 1;
	explicit_bzero(value, size);
	(void)munmap(value, size);
}

/* --- gathering ------------------------------------------------------------------------------------------ */

/* One more at the end of a list, which grows to twice its size when it is full. NULL: E2BIG or ENOMEM is in err. */
static void *add(void *list, size_t *n, size_t max, size_t size, int *err)
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
		add(&s->rules, &s->n_rules, POLICY_RULES_MAX, sizeof(*s->rules), &s->err);

	if (place)
		*place = *r;
}

void spec_add_header(struct spec *s, const struct egress_header *h)
{
	struct net_header *place =
		add(&s->headers, &s->n_headers, EGRESS_HEADERS_MAX, sizeof(*s->headers), &s->err);

	if (!place)
		return;
	*place = (struct net_header){ .value = secret_new(h->value), .tls = h->tls };
	if (!place->value)
		s->err = ENOMEM;
	memcpy(place->host, h->host, sizeof(place->host));
	memcpy(place->name, h->name, sizeof(place->name));
}

struct spec *spec_free(struct spec *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_headers; i++)
		secret_free(s->headers[i].value);
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

/* --- the whole ------------------------------------------------------------------------------------------- */

static void append(struct rule *list, size_t *n, const struct rule *more, size_t n_more)
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

	/* What holds for every box comes first; there is none before the operator's sets have come. */
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
		append(list, &n, used[i]->rules, used[i]->n_rules);
	append(list, &n, s->settled->rules, s->settled->n);
	*ret = ruleset_get(list, n);
	return *ret ? 0 : -ENOMEM;
}
