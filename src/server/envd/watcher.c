/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers that are asked for their events, for clients that cannot keep a stream open. What has
 * not been asked for yet waits in the operation's socket, which is bounded; behind it in the box's
 * inotify queue, which is too. So a watcher costs a descriptor here and no thread, and one that
 * nobody asks any more is ended after a while.
 */
#include "server/envd/envd.h"

#include "base/clock.h"

#include <poll.h>
#include <sodium.h>

#define WATCHERS_MAX 4096
#define WATCHERS_PER_KEY (WATCHERS_MAX / 2) /* so that nobody keeps all others out */
#define WATCHERS_PER_SANDBOX 64
#define UNUSED_US (UINT64_C(5) * 60 * 1000000)
#define LOOK_EVERY_US (UINT64_C(5) * 1000000)
#define EVENTS_MAX 1000 /* in one answer; the others come with the next */
#define ID_BYTES 12
#define WATCHER_ID_LEN (2 * (size_t)ID_BYTES)

struct watcher {
	struct watcher *next;
	unsigned refs;    /* with the watchers's lock */
	uint64_t used_us; /* with the watchers's lock */
	char id[WATCHER_ID_LEN + 1];
	const struct sandbox *sandbox; /* talk has the reference */
	pthread_mutex_t lock;          /* for what follows */
	struct envd_watch watch;
	bool lost;
};

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watchers;
static size_t n_watchers;

static void watcher_free(struct watcher *w)
{
	talk_free(w->watch.talk);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static void watcher_put(struct watcher *w)
{
	bool last;

	pthread_mutex_lock(&watchers_lock);
	last = --w->refs == 0;
	pthread_mutex_unlock(&watchers_lock);
	if (last)
		watcher_free(w);
}

/* A reference; NULL when this sandbox has no such watcher. With `remove`, the watchers's own
 * instead. */
static struct watcher *watcher_find(const struct sandbox *b, const char *id, bool remove)
{
	struct watcher **at = &watchers, *w;

	pthread_mutex_lock(&watchers_lock);
	while ((w = *at) && (w->sandbox != b || strcmp(w->id, id) != 0))
		at = &w->next;
	if (w && remove) {
		*at = w->next;
		n_watchers--;
	} else if (w) {
		w->refs++;
		w->used_us = clock_boot_us();
	}
	pthread_mutex_unlock(&watchers_lock);
	return w;
}

/* With the lock held. */
static int check_room(const struct sandbox *b, struct rpc_error *e)
{
	size_t of_sandbox = 0, of_key = 0;

	for (const struct watcher *w = watchers; w; w = w->next) {
		of_sandbox += w->sandbox == b;
		of_key += strcmp(w->sandbox->info.key_id, b->info.key_id) == 0;
	}
	if (of_sandbox >= WATCHERS_PER_SANDBOX)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"too many watchers: at most %d in one sandbox",
				WATCHERS_PER_SANDBOX);
	if (of_key >= WATCHERS_PER_KEY)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"too many watchers: at most %d of one API key", WATCHERS_PER_KEY);
	if (n_watchers >= WATCHERS_MAX)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"too many watchers: the service has no room for another");
	return 0;
}

static int watcher_add(struct watcher *w, struct rpc_error *e)
{
	int r;

	pthread_mutex_lock(&watchers_lock);
	r = check_room(w->sandbox, e);
	if (r == 0) {
		w->next = watchers;
		watchers = w;
		n_watchers++;
	}
	pthread_mutex_unlock(&watchers_lock);
	return r;
}

static bool watcher_hung_up(const struct watcher *w)
{
	struct pollfd p = { .fd = w->watch.talk->op.sock, .events = 0 };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* Takes those out that are not in use (which have a reference beside the watchers's) and to be
 * ended. */
static struct watcher *watcher_take_old(uint64_t now)
{
	struct watcher *old = NULL, **at = &watchers;

	while (*at) {
		struct watcher *w = *at;

		if (w->refs > 1 || (now - w->used_us < UNUSED_US && !watcher_hung_up(w))) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		n_watchers--;
		w->next = old;
		old = w;
	}
	return old;
}

static void watchers_free(struct watcher *w)
{
	while (w) {
		struct watcher *next = w->next;

		watcher_free(w);
		w = next;
	}
}

void envd_watchers_tick(struct server *s)
{
	static uint64_t next_us;
	uint64_t now = clock_boot_us();
	struct watcher *old = NULL;

	(void)s;
	pthread_mutex_lock(&watchers_lock);
	if (now >= next_us) {
		next_us = now + LOOK_EVERY_US;
		old = watcher_take_old(now);
	}
	pthread_mutex_unlock(&watchers_lock);
	watchers_free(old);
}

void envd_watchers_stop(void)
{
	struct watcher *all;

	pthread_mutex_lock(&watchers_lock);
	all = watchers;
	watchers = NULL;
	n_watchers = 0;
	pthread_mutex_unlock(&watchers_lock);
	watchers_free(all);
}

static struct watcher *watcher_new(struct talk *t)
{
	struct watcher *w = calloc(1, sizeof(*w));
	unsigned char bytes[ID_BYTES];

	if (!w)
		return NULL;
	randombytes_buf(bytes, sizeof(bytes));
	(void)sodium_bin2hex(w->id, sizeof(w->id), bytes, sizeof(bytes));
	(void)pthread_mutex_init(&w->lock, NULL);
	w->refs = 1;
	w->used_us = clock_boot_us();
	w->sandbox = t->op.sandbox;
	t->request = NULL;
	w->watch.talk = t;
	return w;
}

static int call_create_watcher(struct request *r, const json_t *message, json_t **ret,
			       struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	struct watcher *w;
	int n = t ? envd_watch_open(t, message, e) : -ENOMEM;

	if (n == 0)
		n = talk_no_wait(t);
	if (n < 0)
		return n;
	w = watcher_new(t);
	if (!w)
		return -ENOMEM;
	take_ptr(t);
	*ret = json_pack("{s:s}", "watcherId", w->id);
	n = *ret ? watcher_add(w, e) : -ENOMEM;
	if (n == 0)
		return 0;
	watcher_free(w);
	json_decref(*ret);
	*ret = NULL;
	return n;
}

/* With the watcher's lock held. */
static int watcher_take_events(struct watcher *w, json_t *events, struct rpc_error *e)
{
	while (!w->lost && json_array_size(events) < EVENTS_MAX) {
		json_t *event = NULL;
		int r = envd_watch_next(&w->watch, &event);

		if (r == -EAGAIN)
			return 0;
		if (r == -EOVERFLOW)
			w->lost = true;
		else if (r < 0)
			return r;
		else if (json_array_append_new(events, event) < 0)
			return -ENOMEM;
	}
	/* First what was not lost. */
	if (w->lost && json_array_size(events) == 0)
		return rpc_fail(e, RPC_INTERNAL, "watcher error: %s", ENVD_WATCH_LOST);
	return 0;
}

/* The watcher that the message names: a reference, or with `remove` the watchers's own. */
static int watcher_of(struct request *r, const json_t *message, bool remove, struct watcher **ret,
		      struct rpc_error *e)
{
	const char *id = NULL;
	int n = rpc_string(message, "watcherId", WATCHER_ID_LEN, &id, e);

	if (n < 0)
		return n;
	*ret = watcher_find(r->sandbox, id ? id : "", remove);
	if (*ret)
		return 0;
	(void)rpc_fail(e, RPC_NOT_FOUND, "watcher with id %s not found", id ? id : "");
	return -EREMOTEIO;
}

static int call_events(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	json_t *events;
	struct watcher *w;
	int n = watcher_of(r, message, false, &w, e);

	if (n < 0)
		return n;
	events = json_array();
	pthread_mutex_lock(&w->lock);
	n = events ? watcher_take_events(w, events, e) : -ENOMEM;
	pthread_mutex_unlock(&w->lock);
	watcher_put(w);
	if (n < 0) {
		json_decref(events);
		return n;
	}
	*ret = json_pack("{s:o}", "events", events);
	return *ret ? 0 : -ENOMEM;
}

static int call_remove_watcher(struct request *r, const json_t *message, json_t **ret,
			       struct rpc_error *e)
{
	struct watcher *w;
	int n = watcher_of(r, message, true, &w, e);

	(void)ret;
	if (n == 0)
		watcher_put(w);
	return n;
}

int envd_watcher_create(struct request *r)
{
	return rpc_unary(r, call_create_watcher);
}

int envd_watcher_events(struct request *r)
{
	return rpc_unary(r, call_events);
}

int envd_watcher_remove(struct request *r)
{
	return rpc_unary(r, call_remove_watcher);
}
