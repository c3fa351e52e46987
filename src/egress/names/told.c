/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses a box's DNS was given, for which names. A program that knows of no proxy connects
 * to one of them, and of protocols that do not name their host (ssh, databases) this is all there
 * is to know which name was meant.
 */
#include "egress/names/names.h"

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
	struct told *list; /* the newest is the last; has room for the next power of two */
};

static bool is_told(const struct told *t, const struct net_address *a, const char *name)
{
	return address_equal(&t->address, a) && strcmp(t->name, name) == 0;
}

/* From the newest on: what is asked for is mostly asked for again soon. */
static struct told *told_find(struct answers *all, const struct net_address *a, const char *name)
{
	for (size_t i = all->n; i > 0; i--)
		if (is_told(&all->list[i - 1], a, name))
			return &all->list[i - 1];
	return NULL;
}

/* It is the newest now. */
static struct told *move_to_end(struct answers *all, struct told *t)
{
	struct told *last = &all->list[all->n - 1], moved = *t;

	memmove(t, t + 1, (size_t)(last - t) * sizeof(*t));
	*last = moved;
	return last;
}

/* A place at the end, with nothing in it: a new one, or that of the oldest. NULL: there is no
 * memory. */
static struct told *make_place(struct answers *all)
{
	struct told *t = all->list;

	if (all->n == TOLD_MAX) {
		t = move_to_end(all, t);
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
	struct told *t = told_find(all, a, name);
	char *copy;

	if (t) {
		move_to_end(all, t)->at_us = clock_boot_us();
		return;
	}
	copy = strdup(name);
	t = copy ? make_place(all) : NULL;
	if (t)
		*t = (struct told){ .address = *a, .at_us = clock_boot_us(), .name = copy };
	else
		free(copy); /* a connection that could have been is refused */
}

/* The same answer as the one before: it is the newest already. */
static bool tell_again(struct answers *all, const char *name, const struct net_address *a, size_t n)
{
	struct told *t = n <= all->n && n > 0 ? &all->list[all->n - n] : NULL;

	for (size_t i = 0; t && i < n; i++)
		if (!is_told(&t[i], &a[i], name))
			return false;
	for (size_t i = 0; t && i < n; i++)
		t[i].at_us = clock_boot_us();
	return t != NULL;
}

void told_add(struct net *n, const char *name, const struct net_address *a, size_t n_addresses)
{
	if (!n->answers)
		n->answers = calloc(1, sizeof(*n->answers));
	if (n->answers && tell_again(n->answers, name, a, n_addresses))
		return;
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

/* by_rule: a rule must name it; that everything is allowed is not enough. */
static bool is_allowed(const struct net *n, const char *name, uint16_t port, bool by_rule)
{
	bool by_name;

	return policy_reason_allows(policy_name(&n->policy, name, port, &by_name)) &&
	       (by_name || !by_rule);
}

/* Several names can have one address: of those that are allowed at this port, the one that was told
 * last. From the newest on, so that most are never held against the policy. */
bool told_name(struct net *n, const struct net_address *a, uint16_t port, bool by_rule,
	       char ret[static POLICY_NAME_SIZE])
{
	uint64_t now = clock_boot_us();

	memset(ret, 0, POLICY_NAME_SIZE);
	for (size_t i = n->has_policy && n->answers ? n->answers->n : 0; i > 0; i--) {
		const struct told *t = &n->answers->list[i - 1];

		if (now - t->at_us > TOLD_US)
			return false; /* as all before it */
		if (address_equal(&t->address, a) && is_allowed(n, t->name, port, by_rule)) {
			memcpy(ret, t->name, strlen(t->name));
			return true;
		}
	}
	return false;
}

bool told_as(struct net *n, const struct net_address *a, uint16_t port, const char *name)
{
	const struct told *t = n->has_policy && n->answers ? told_find(n->answers, a, name) : NULL;

	return t && clock_boot_us() - t->at_us <= TOLD_US && is_allowed(n, name, port, true);
}
