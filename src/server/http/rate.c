/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: for each caller one number is kept, the time until which what it did so far
 * is paid for. A request adds its price (a second divided by the rate) to the later of that time
 * and now; it is refused when the result lies further ahead than the window. That is a token bucket
 * without a bucket to refill.
 */
#include "server/http/rate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#define NS_PER_S UINT64_C(1000000000)
#define SETS 512
#define WAYS 8

struct rate_entry {
	char name[RATE_NAME_SIZE];
	uint64_t paid_ns; /* until when */
};

struct rate {
	pthread_mutex_t lock;
	struct rate_entry sets[SETS][WAYS];
};

int rate_new(struct rate **ret)
{
	struct rate *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	*ret = t;
	return 0;
}

void rate_free(struct rate *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static size_t rate_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h % SETS;
}

/* With the lock held: the caller's entry, or the one whose debt is the oldest, made the
 * caller's. */
static struct rate_entry *rate_find(struct rate *t, const char *name)
{
	struct rate_entry *set = t->sets[rate_hash(name)], *oldest = set;

	for (size_t i = 0; i < WAYS; i++) {
		if (strncmp(set[i].name, name, sizeof(set[i].name) - 1) == 0)
			return &set[i];
		if (set[i].paid_ns < oldest->paid_ns)
			oldest = &set[i];
	}
	*oldest = (struct rate_entry){ 0 };
	(void)snprintf(oldest->name, sizeof(oldest->name), "%s", name);
	return oldest;
}

bool rate_take(struct rate *t, const char *name, uint64_t per_second, uint64_t now_us,
	       unsigned *ret_retry_s)
{
	uint64_t now = now_us * 1000, limit = now + RATE_WINDOW_S * NS_PER_S, paid;
	struct rate_entry *e;
	bool ok;

	pthread_mutex_lock(&t->lock);
	e = rate_find(t, name);
	paid = MAX(e->paid_ns, now) + NS_PER_S / MAX(per_second, 1);
	ok = paid <= limit;
	if (ok)
		e->paid_ns = paid;
	pthread_mutex_unlock(&t->lock);
	if (!ok)
		*ret_retry_s = (unsigned)((paid - limit + NS_PER_S - 1) / NS_PER_S);
	return ok;
}

unsigned penalty_add(struct rate *t, const char *name, uint64_t now_us)
{
	uint64_t now = now_us * 1000, owed_s;
	struct rate_entry *e;

	pthread_mutex_lock(&t->lock);
	e = rate_find(t, name);
	e->paid_ns = MAX(e->paid_ns, now) + NS_PER_S;
	e->paid_ns = MIN(e->paid_ns, now + (PENALTY_FREE + PENALTY_MAX_S) * NS_PER_S);
	owed_s = (e->paid_ns - now + NS_PER_S - 1) / NS_PER_S;
	pthread_mutex_unlock(&t->lock);
	return owed_s > PENALTY_FREE ? (unsigned)(owed_s - PENALTY_FREE) : 0;
}

int rates_new(struct rates **ret)
{
	struct rates *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	err = rate_new(&r->requests);
	if (err == 0)
		err = rate_new(&r->creates);
	if (err == 0)
		err = rate_new(&r->addresses);
	if (err == 0)
		err = rate_new(&r->failures);
	if (err == 0)
		err = rate_new(&r->searches);
	if (err < 0) {
		rates_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

void rates_free(struct rates *r)
{
	if (!r)
		return;
	rate_free(r->requests);
	rate_free(r->creates);
	rate_free(r->addresses);
	rate_free(r->failures);
	rate_free(r->searches);
	free(r);
}

uint64_t rate_of_searches(size_t n)
{
	return RATE_TOKENS_TRIED / MIN(MAX(n, 1), RATE_TOKENS_TRIED);
}

void rate_address_name(const struct sockaddr *sa, char ret[RATE_NAME_SIZE])
{
	struct in6_addr net;

	(void)snprintf(ret, RATE_NAME_SIZE, "unknown");
	if (sa && sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;

		(void)inet_ntop(AF_INET, &in->sin_addr, ret, RATE_NAME_SIZE);
	} else if (sa && sa->sa_family == AF_INET6) {
		net = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&net))
			memset(&net.s6_addr[8], 0, 8);
		(void)inet_ntop(AF_INET6, &net, ret, RATE_NAME_SIZE);
	}
}
