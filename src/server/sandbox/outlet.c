/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/outlet_priv.h"

#include "base/clock.h"
#include "run/result.h"

#include <sys/eventfd.h>
#include <time.h>

#define APPLY_MS 10000 /* time for egress to come back, should it just have died */
#define LAST_WORDS_MS 1000

/* --- the table --------------------------------------------------------------------------------------------- */

static size_t bucket_of(const char *id)
{
	uint32_t hash = 2166136261u; /* FNV-1a: ids are random already */

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return hash % OUTLET_BUCKETS;
}

struct outlet *outlet_find(struct outlets *all, const char *id)
{
	for (struct outlet *o = all->bucket[bucket_of(id)]; o; o = o->next)
		if (strcmp(o->id, id) == 0)
			return o;
	return NULL;
}

static struct held *held_new(void)
{
	struct held *h = calloc(1, sizeof(*h));

	if (h)
		h->refs = 1;
	return h;
}

void held_unref(struct held *h)
{
	if (!h || --h->refs > 0)
		return;
	network_done(&h->network);
	free(h);
}

static void wake(const struct outlets *all)
{
	(void)eventfd_write(all->wake_fd, 1);
}

void outlet_set_stale(struct outlet *o)
{
	struct stale_list *list = o->urgent ? &o->all->urgent : &o->all->refresh[o->turn];

	if (o->stale == list || !o->held)
		return;
	outlet_clear_stale(o);
	o->stale = list;
	o->stale_next = NULL;
	o->stale_link = list->last;
	*o->stale_link = o;
	list->last = &o->stale_next;
}

void outlet_clear_stale(struct outlet *o)
{
	if (!o->stale)
		return;
	*o->stale_link = o->stale_next;
	if (o->stale_next)
		o->stale_next->stale_link = o->stale_link;
	else
		o->stale->last = o->stale_link;
	o->stale = NULL;
}

static void init_condition(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	/* A deadline that does not move when somebody sets the clock. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

struct outlet *outlet_open(struct outlets *all, const char *id, const char *key_id, bool catches)
{
	struct outlet *o = calloc(1, sizeof(*o));
	struct outlet **bucket;

	if (!o)
		return NULL;
	*o = (struct outlet){
		.all = all,
		.catches = catches,
		.log = NET_LOG_INIT(OUTLET_LOG_MAX),
	};
	(void)snprintf(o->id, sizeof(o->id), "%s", id);
	(void)snprintf(o->key_id, sizeof(o->key_id), "%s", key_id);
	o->turn = bucket_of(o->key_id) % OUTLET_TURNS;
	init_condition(&o->changed);
	pthread_mutex_lock(&all->lock);
	bucket = &all->bucket[bucket_of(o->id)];
	o->next = *bucket;
	*bucket = o;
	pthread_mutex_unlock(&all->lock);
	return o;
}

void outlet_close(struct outlet *o)
{
	struct outlets *all;

	if (!o)
		return;
	all = o->all;
	pthread_mutex_lock(&all->lock);
	for (struct outlet **p = &all->bucket[bucket_of(o->id)]; *p; p = &(*p)->next)
		if (*p == o) {
			*p = o->next;
			break;
		}
	outlet_clear_stale(o);
	held_unref(o->held);
	pthread_mutex_unlock(&all->lock);
	net_log_done(&o->log);
	pthread_cond_destroy(&o->changed);
	free(o);
}

void outlet_reopened(struct outlet *o, bool catches)
{
	pthread_mutex_lock(&o->all->lock);
	o->catches = catches;
	pthread_mutex_unlock(&o->all->lock);
}

/* --- rules ------------------------------------------------------------------------------------------------- */

static struct timespec in_ms(unsigned ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* With the lock held: egress is told, and answers. */
static void begin_waiting(struct outlet *o)
{
	o->settled = false;
	o->urgent = true;
	outlet_set_stale(o);
	wake(o->all);
}

/* With the lock held. */
static int await_settled(struct outlet *o)
{
	struct timespec until = in_ms(APPLY_MS);
	int r = 0;

	begin_waiting(o);
	while (!o->settled && !o->all->stop && r == 0)
		r = -pthread_cond_timedwait(&o->changed, &o->all->lock, &until);
	if (o->settled)
		return -o->err;
	return r < 0 ? r : -ENOTCONN;
}

int outlet_apply(struct outlet *o, struct network *n, bool insist)
{
	struct held *wanted = held_new(), *before;
	bool stays;
	int r;

	if (!wanted)
		return -ENOMEM;
	pthread_mutex_lock(&o->all->lock);
	/* Before anything was said nothing was allowed, and that can be told. */
	before = o->held ? o->held : held_new();
	if (!before) {
		pthread_mutex_unlock(&o->all->lock);
		free(wanted);
		return -ENOMEM;
	}
	wanted->network = *n;
	*n = (struct network){ 0 };
	o->held = wanted;
	r = await_settled(o);
	/* A box that was made again without doors reaches nothing anyway. */
	if (r == -ENOENT && !network_allows(&wanted->network))
		r = 0;
	stays = r == 0 || (insist && !o->settled);
	if (!stays) {
		o->held = before;
		outlet_clear_stale(o);
		/* Whatever egress did of it, the old ones hold from now on: it is told them again, as soon as can be. */
		o->urgent = true;
		outlet_set_stale(o);
		wake(o->all);
	}
	held_unref(stays ? before : wanted);
	pthread_mutex_unlock(&o->all->lock);
	return r;
}

void outlets_secret_changed(struct outlets *all, const char *key_id, const char *name)
{
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < OUTLET_BUCKETS; i++)
		for (struct outlet *o = all->bucket[i]; o; o = o->next)
			if (strcmp(o->key_id, key_id) == 0 && o->held &&
			    network_uses_secret(&o->held->network, name))
				outlet_set_stale(o);
	pthread_mutex_unlock(&all->lock);
	wake(all);
}

/* --- what it did -------------------------------------------------------------------------------------------- */

json_t *outlet_json(struct outlet *o, size_t limit)
{
	json_t *all;

	pthread_mutex_lock(&o->all->lock);
	all = json_pack("{s:b, s:o, s:o}", "catches", o->catches, "totals",
			net_totals_json(&o->log.totals), "connections",
			net_connections_json(&o->log, limit));
	pthread_mutex_unlock(&o->all->lock);
	return all;
}

static bool has_open(const struct net_log *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->ring[(l->first + i) % l->room].is_over)
			return true;
	return false;
}

json_t *outlet_result(struct outlet *o)
{
	struct timespec until = in_ms(LAST_WORDS_MS);
	json_t *all;
	int r = 0;

	pthread_mutex_lock(&o->all->lock);
	/* Egress speaks of one thing after the other: with its answer to this, all that it said before is here. */
	begin_waiting(o);
	while ((!o->settled || has_open(&o->log)) && r == 0)
		r = -pthread_cond_timedwait(&o->changed, &o->all->lock, &until);
	all = run_network_json(&o->log, o->catches);
	pthread_mutex_unlock(&o->all->lock);
	return all;
}

/* --- start and end ------------------------------------------------------------------------------------------ */

int outlets_new(struct server *s, struct outlets **ret)
{
	struct outlets *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	*all = (struct outlets){ .server = s, .sock = -EBADF, .next_sock = -EBADF };
	all->urgent.last = &all->urgent.first;
	for (size_t i = 0; i < OUTLET_TURNS; i++)
		all->refresh[i].last = &all->refresh[i].first;
	all->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (all->wake_fd < 0) {
		int r = -errno;

		free(all);
		return r;
	}
	pthread_mutex_init(&all->lock, NULL);
	*ret = all;
	return 0;
}

int outlets_start(struct outlets *all)
{
	int r = pthread_create(&all->thread, NULL, outlets_talk, all);

	all->has_thread = r == 0;
	return -r;
}

void outlets_connect(struct outlets *all, int sock)
{
	int old = -EBADF;

	pthread_mutex_lock(&all->lock);
	if (sock >= 0) {
		old = all->next_sock;
		all->next_sock = sock;
	} else { /* a message without one: we have as many descriptors as we may */
		all->meet_us = clock_boot_us() + OUTLET_MEET_US;
	}
	pthread_mutex_unlock(&all->lock);
	fd_close(old);
	wake(all);
}

/* After the last request: outlets of sandboxes that are still in the table may be left. */
void outlets_stop(struct outlets *all)
{
	if (!all || !all->has_thread)
		return;
	pthread_mutex_lock(&all->lock);
	all->stop = true;
	pthread_mutex_unlock(&all->lock);
	wake(all);
	(void)pthread_join(all->thread, NULL);
	all->has_thread = false;
}

void outlets_free(struct outlets *all)
{
	if (!all)
		return;
	fd_close(all->next_sock);
	fd_close(all->wake_fd);
	pthread_mutex_destroy(&all->lock);
	free(all);
}
