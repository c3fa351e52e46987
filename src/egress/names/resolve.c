/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to checked addresses: policy, cache, lookup, and a check of each address for the box that
 * asked. What is found is kept for all boxes; what a box may do with it is decided for each anew,
 * when the answer is there.
 *
 * One lookup for a name at a time: who asks meanwhile waits with those before. The cache is
 * bounded, and what was used last stays. When all of it is under way each box still gets a few, so
 * that nobody can keep the others from asking.
 */
#include "egress/names/names.h"
#include "egress/rules/rules.h"

#include "base/clock.h"

#include <assert.h>

#define BUCKETS 1024
#define CACHE_MAX 4096   /* names */
#define UNDER_WAY_MAX 64 /* lookups that one box has begun and that have not ended */
#define ALWAYS 2         /* of them, that a box gets whatever the others have */
#define MINUTE_US (UINT64_C(60) * 1000000)
#define FAILURE_S 5 /* that a failure is believed */
#define TTL_MIN_S 5
#define TTL_MAX_S 300

static struct cache {
	struct lookup *bucket[BUCKETS];
	struct lookup *newest, *oldest;
	size_t n;
	uint32_t key; /* so that nobody can choose names for one bucket */
} cache;

/* --- the cache ------------------------------------------------------------------------------ */

static struct lookup **cache_place(const char *name)
{
	uint32_t h = cache.key;
	struct lookup **at;

	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	at = &cache.bucket[(h ^ h >> 16) % BUCKETS];
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void cache_take_out(struct lookup *l)
{
	if (l->newer)
		l->newer->older = l->older;
	else
		cache.newest = l->older;
	if (l->older)
		l->older->newer = l->newer;
	else
		cache.oldest = l->newer;
}

static void put_first(struct lookup *l)
{
	l->newer = NULL;
	l->older = cache.newest;
	if (cache.newest)
		cache.newest->newer = l;
	else
		cache.oldest = l;
	cache.newest = l;
}

/* Nobody waits for it. */
static bool is_idle(const struct lookup *l)
{
	return l->waiting == 0 && l->held == 0 && !l->askers;
}

static void cache_forget(struct lookup *l)
{
	struct lookup **place = cache_place(l->name);
	bool can_go = *place == l && is_idle(l);

	assert(can_go);
	*place = l->next;
	cache_take_out(l);
	cache.n--;
	free(l);
}

/* -ENOBUFS: every place is taken by a lookup that is under way, and the box has its share of
 * them. */
static int make_room(const struct net *n)
{
	struct lookup *l = cache.oldest;

	while (l && cache.n >= CACHE_MAX) {
		struct lookup *newer = l->newer;

		if (is_idle(l))
			cache_forget(l);
		l = newer;
	}
	return cache.n < CACHE_MAX || n->n_lookups < ALWAYS ? 0 : -ENOBUFS;
}

static struct lookup *cache_remember(struct egress *g, const struct net *n,
				     const char name[static POLICY_NAME_SIZE])
{
	struct lookup *l = make_room(n) == 0 ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return NULL;
	l->egress = g;
	memcpy(l->name, name, POLICY_NAME_SIZE);
	*cache_place(name) = l;
	put_first(l);
	cache.n++;
	return l;
}

static bool is_fresh(const struct lookup *l)
{
	return l->ready && clock_boot_us() < l->until_us;
}

/* --- the answer ----------------------------------------------------------------------------- */

static void resolve_answer(struct egress *g, struct resolve *q, enum policy_reason reason)
{
	q->reason = reason;
	if (!policy_reason_allows(reason))
		q->n_addresses = 0;
	q->done(g, q);
}

/* NW-08: one address that must not be reached, and none is given. */
static enum policy_reason check_all(struct egress *g, struct resolve *q, const struct lookup *l)
{
	enum policy_reason reason = POLICY_NO_ADDRESS;

	for (size_t i = 0; i < l->n_addresses; i++) {
		reason = net_check_address(g, q->net, &l->addresses[i], q->port, q->by_name);
		if (!policy_reason_allows(reason))
			return reason;
	}
	return reason;
}

static enum policy_reason may_ask(struct resolve *q)
{
	if (!q->net->has_policy)
		return POLICY_NO_POLICY;
	return policy_name(&q->net->policy, q->name, q->port, &q->by_name);
}

/* The policy is asked again: it may have changed while the answer was on its way. */
static void resolve_finish(struct egress *g, struct resolve *q, const struct lookup *l)
{
	enum policy_reason reason = may_ask(q);

	if (policy_reason_allows(reason) && l->reason != POLICY_ALLOWED) {
		q->not_there = l->not_there;
		reason = l->reason;
	} else if (policy_reason_allows(reason)) {
		uint64_t now = clock_boot_us();

		reason = check_all(g, q, l);
		memcpy(q->addresses, l->addresses, l->n_addresses * sizeof(l->addresses[0]));
		q->n_addresses = l->n_addresses;
		q->ttl_s = now < l->until_us ? (uint32_t)((l->until_us - now) / 1000000) + 1 : 1;
	}
	resolve_answer(g, q, reason);
}

static void disown(struct lookup *l)
{
	if (l->owner)
		l->owner->n_lookups--;
	l->owner = NULL;
}

void resolve_disown(const struct net *n)
{
	for (struct lookup *l = n->n_lookups ? cache.newest : NULL; l; l = l->older)
		if (l->owner == n)
			disown(l);
}

void lookup_ended(struct egress *g, struct lookup *l)
{
	uint32_t ttl = l->reason == POLICY_ALLOWED ? l->ttl_s : FAILURE_S;

	disown(l);
	ttl = MIN(MAX(ttl, (uint32_t)TTL_MIN_S), (uint32_t)TTL_MAX_S);
	l->until_us = clock_boot_us() + (uint64_t)ttl * 1000000;
	l->ready = true;
	l->held++; /* those who get their answer may ask for more, and the cache may be full */
	while (l->askers) {
		struct resolve *q = l->askers;

		l->askers = q->next;
		q->query = NULL;
		resolve_finish(g, q, l);
	}
	l->held--;
}

/* --- the question --------------------------------------------------------------------------- */

/*
 * NW-17: only what is not known yet costs. That few may be under way at once keeps a box whose
 * names are never answered from filling the cache with them, in which no place would be left for
 * others.
 */
static bool has_budget(struct net *n)
{
	uint64_t now = clock_boot_us();

	if (n->n_lookups >= UNDER_WAY_MAX)
		return false;
	if (n->limits.lookups == 0)
		return true;
	if (n->minute_us == 0 || now - n->minute_us >= MINUTE_US) {
		n->minute_us = now;
		n->lookups_left = n->limits.lookups;
	}
	if (n->lookups_left == 0)
		return false;
	n->lookups_left--;
	return true;
}

static void join(struct lookup *l, struct resolve *q)
{
	q->query = l;
	q->next = l->askers;
	l->askers = q;
}

/* NW-04: it never leaves this machine, so it is never looked up. The check of addresses says what
 * becomes of it. */
bool resolve_is_local(const char *name)
{
	return strcmp(name, "localhost") == 0 || name_is_below(name, "localhost");
}

static void resolve_localhost(struct egress *g, struct resolve *q)
{
	static const struct lookup here = {
		.reason = POLICY_ALLOWED,
		.n_addresses = 1,
		.addresses = { { { [10] = 0xff, 0xff, 127, 0, 0, 1 } } },
	};

	resolve_finish(g, q, &here);
}

static void cache_look_up(struct egress *g, struct resolve *q, struct lookup *l)
{
	/* One that failed to start earlier, or is no longer good, is asked for again in its
	 * place. */
	if (!l)
		l = cache_remember(g, q->net, q->name);
	if (!l) {
		resolve_answer(g, q, POLICY_BUSY);
		return;
	}
	join(l, q);
	l->ready = false;
	l->owner = q->net;
	q->net->n_lookups++;
	lookup_start(g, l);
}

void resolve_start(struct egress *g, struct net *n, const char *name, uint16_t port,
		   struct resolve *q, void (*done)(struct egress *g, struct resolve *self))
{
	enum policy_reason reason;
	struct lookup *l;

	*q = (struct resolve){ .done = done, .net = n, .port = port };
	memcpy(q->name, name, strnlen(name, POLICY_NAME_MAX));
	reason = may_ask(q);
	if (!policy_reason_allows(reason)) {
		resolve_answer(g, q, reason);
		return;
	}
	if (resolve_is_local(q->name)) {
		resolve_localhost(g, q);
		return;
	}
	l = *cache_place(q->name);
	if (l) {
		cache_take_out(l);
		put_first(l);
	}
	if (l && l->waiting)
		join(l, q);
	else if (l && is_fresh(l))
		resolve_finish(g, q, l);
	else if (!has_budget(n))
		resolve_answer(g, q, POLICY_LOOKUPS);
	else
		cache_look_up(g, q, l);
}

void resolve_cancel(struct egress *g, struct resolve *q)
{
	struct lookup *l = q->query;
	struct resolve **at;

	(void)g;
	if (!l)
		return;
	for (at = &l->askers; *at != q; at = &(*at)->next)
		assert(*at);
	*at = q->next;
	q->query = NULL;
}

int resolve_open(struct egress *g, const char *servers, struct fail *fail)
{
	if (getentropy(&cache.key, sizeof(cache.key)) < 0)
		return fail_set(fail, errno, "resolver", "there are no random numbers: %s",
				strerror(errno));
	return lookup_open(g, servers, fail);
}
