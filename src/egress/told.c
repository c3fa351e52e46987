/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses a box's DNS was given, for which names. A program that knows of no proxy connects to one of them, and
 * of protocols that do not name their host (ssh, databases) this is all there is to know which name was meant.
 */
#include "egress/core.h"

#include "base/clock.h"

#define TOLD_MAX 1024                      /* of one box; then the oldest is forgotten */
#define TOLD_US (UINT64_C(3600) * 1000000) /* programs remember addresses, but hosts move */

struct told {
	struct net_address address;
	uint64_t at_us;
	char *name;
};

struct answers {
	size_t n;
	struct told *list; /* has room for the next power of two */
};

static struct told *find(struct answers *all, const struct net_address *a, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (address_equal(&all->list[i].address, a) && strcmp(all->list[i].name, name) == 0)
			return &all->list[i];
	return NULL;
}

static struct told *oldest(struct answers *all)
{
	struct told *t = &all->list[0];

	for (size_t i = 1; i < all->n; i++)
		if (all->list[i].at_us < t->at_us)
			t = &all->list[i];
	return t;
}

/* A place for one more, with nothing in it: a new one, or that of the oldest. NULL: there is no memory. */
static struct told *make_place(struct answers *all)
{
	struct told *t = all->list;

	if (all->n == TOLD_MAX) {
		t = oldest(all);
		free(t->name);
		t->name = NULL;
		return t;
	}
	if ((all->n & (all->n - 1)) == 0)
		t = reallocarray(t, all->n ? 2 * all->n : 1, sizeof(*t));
	if (!t)
		return NULL;
	all->list = t;
	return &t[all->n++];
}

static void add_one(struct answers *all, const char *name, const struct net_address *a)
{
	struct told *t = find(all, a, name);
	char *copy;

	if (t) {
		t->at_us = clock_boot_us();
		return;
	}
	copy = strdup(name);
	t = copy ? make_place(all) : NULL;
	if (t)
		*t = (struct told){ .address = *a, .at_us = clock_boot_us(), .name = copy };
	else
		free(copy); /* a connection that could have been is refused */
}

void told_add(struct net *n, const char *name, const struct net_address *a, size_t n_addresses)
{
	if (!n->answers)
		n->answers = calloc(1, sizeof(*n->answers));
	for (size_t i = 0; n->answers && i < n_addresses; i++)
		add_one(n->answers, name, &a[i]);
}

void told_done(struct net *n)
{
	for (size_t i = 0; n->answers && i < n->answers->n; i++)
		free(n->answers->list[i].name);
	if (n->answers)
		free(n->answers->list);
	free(n->answers);
	n->answers = NULL;
}

/* Several names can have one address: of those that are allowed at this port, the one that was told last. */
bool resolve_told(struct egress *g, struct net *n, const struct net_address *a, uint16_t port,
		  char ret[static POLICY_NAME_SIZE])
{
	uint64_t now = clock_boot_us();
	const struct told *best = NULL;

	(void)g;
	for (size_t i = 0; n->has_policy && n->answers && i < n->answers->n; i++) {
		const struct told *t = &n->answers->list[i];
		bool by_name;

		if (!address_equal(&t->address, a) || now - t->at_us > TOLD_US ||
		    (best && best->at_us >= t->at_us))
			continue;
		if (policy_reason_allows(policy_name(&n->policy, t->name, port, &by_name)))
			best = t;
	}
	memset(ret, 0, POLICY_NAME_SIZE);
	if (best)
		memcpy(ret, best->name, strlen(best->name));
	return best != NULL;
}

/* Was it told this address for this very name, which is allowed at this port? */
bool resolve_told_as(struct net *n, const struct net_address *a, uint16_t port, const char *name)
{
	const struct told *t = n->has_policy && n->answers ? find(n->answers, a, name) : NULL;
	bool by_name;

	return t && clock_boot_us() - t->at_us <= TOLD_US &&
	       policy_reason_allows(policy_name(&n->policy, name, port, &by_name));
}
