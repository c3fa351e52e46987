/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: the files of snapshots and of sandboxes that were paused without memory. */
#include "server/changes/changes.h"
#include "server/http/share.h"

#define RETRY_EVERY_MS 500
#define RETRIES_MAX 120 /* a minute */
#define SNAPSHOT_RETRY_MS 50
#define SNAPSHOT_WAIT_MS 20000
#define SNAPSHOTS_OF_KEY_MAX 2 /* being made: half of those that the warden makes at once */

/* Layers that could not be dropped because a box stands on them that has ended but is not gone
 * yet. */
struct waiting_layer {
	char layer[WARDEN_ID_SIZE];
	unsigned left;
	struct waiting_layer *next;
};

static struct {
	pthread_mutex_t lock;
	struct waiting_layer *first;
	uint64_t next_ms;
} waiting = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int drop_layer(struct server *s, const char *layer)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_DROP_LAYER.layer, layer, strnlen(layer, WARDEN_ID_SIZE - 1));
	r = link_ask(s->link, WARDEN_DROP_LAYER, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r == 0)
		r = -reply.err;
	if (r < 0 && r != -ENOENT && r != -EBUSY)
		server_log(s, "error", "drop_layer",
			   json_pack("{s:s, s:s}", "layer", layer, "error", strerror(-r)));
	return r;
}

static void release_later(const char *layer, unsigned left)
{
	struct waiting_layer *w = calloc(1, sizeof(*w));

	if (!w)
		return;
	(void)snprintf(w->layer, sizeof(w->layer), "%s", layer);
	w->left = left;
	pthread_mutex_lock(&waiting.lock);
	w->next = waiting.first;
	waiting.first = w;
	pthread_mutex_unlock(&waiting.lock);
}

static void release_layer(struct server *s, const char *layer, unsigned retries)
{
	size_t users;

	if (!*layer || store_layer_users(s->store, layer, &users) < 0 || users > 0)
		return;
	if (drop_layer(s, layer) == -EBUSY) {
		if (retries > 0)
			release_later(layer, retries - 1);
		else
			server_log(s, "error", "drop_layer",
				   json_pack("{s:s, s:s}", "layer", layer, "error", "in use"));
	}
}

void layer_release(struct server *s, const char *layer)
{
	release_layer(s, layer, RETRIES_MAX);
}

void layers_tick(struct server *s)
{
	uint64_t now_ms = clock_boot_us() / 1000;
	struct waiting_layer *list;

	if (now_ms < waiting.next_ms)
		return;
	waiting.next_ms = now_ms + RETRY_EVERY_MS;
	pthread_mutex_lock(&waiting.lock);
	list = take_ptr(waiting.first);
	pthread_mutex_unlock(&waiting.lock);
	while (list) {
		struct waiting_layer *w = list;

		list = w->next;
		release_layer(s, w->layer, w->left);
		free(w);
	}
}

void layers_stop(void)
{
	while (waiting.first) {
		struct waiting_layer *w = waiting.first;

		waiting.first = w->next;
		free(w);
	}
}

void layers_release(struct server *s, const struct sandbox_config *c)
{
	layer_release(s, c->pending);
	/* From the top: a layer is only of use with those below it. */
	for (size_t i = c->n_layers; i-- > 0;)
		layer_release(s, c->layer[i]);
}

static int set_pending(struct sandbox *b, const char *layer)
{
	struct sandbox_config c;
	int r;

	sandbox_config_of(b, &c);
	(void)snprintf(c.pending, sizeof(c.pending), "%s", layer);
	r = sandbox_config_replace(b, &c);
	return r < 0 ? r : sandbox_save(b);
}

int change_snapshot_done(struct sandbox *b)
{
	return set_pending(b, "");
}

/* The snapshots that are being made, by key. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct shares keys;
} making = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

/* Waits until the key has a place. -EUSERS: not within the time. */
static int place_take(const char *key_id, struct share **ret)
{
	struct timespec until;
	int r;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SNAPSHOT_WAIT_MS / 1000;
	pthread_mutex_lock(&making.lock);
	while ((r = share_take(&making.keys, key_id, SNAPSHOTS_OF_KEY_MAX, ret)) == -EUSERS)
		if (pthread_cond_clockwait(&making.given, &making.lock, CLOCK_MONOTONIC, &until) ==
		    ETIMEDOUT)
			break;
	pthread_mutex_unlock(&making.lock);
	return r;
}

static void place_give(struct share *place)
{
	pthread_mutex_lock(&making.lock);
	share_give(&making.keys, place);
	pthread_cond_broadcast(&making.given);
	pthread_mutex_unlock(&making.lock);
}

static int busy(struct problem *p)
{
	return problem_set(p, 503, "busy", "too many snapshots are being made: try again later");
}

/* The warden makes a few at a time; a request that comes too early asks again. */
static int ask_in_place(struct sandbox *b, const char layer[static WARDEN_ID_SIZE],
			struct problem *p)
{
	struct warden_reply reply;

	for (unsigned waited_ms = 0;; waited_ms += SNAPSHOT_RETRY_MS) {
		struct warden_frame f = { 0 };
		int r;

		memcpy(f.as_SNAPSHOT.id, b->info.id, sizeof(f.as_SNAPSHOT.id));
		memcpy(f.as_SNAPSHOT.layer, layer, sizeof(f.as_SNAPSHOT.layer));
		r = link_ask(b->server->link, WARDEN_SNAPSHOT, &f, SNAPSHOT_TIMEOUT_MS, &reply,
			     NULL);
		if (r < 0)
			return problem_internal(p, r, "keep its files");
		if (reply.err != EAGAIN)
			break;
		if (waited_ms >= SNAPSHOT_WAIT_MS)
			return busy(p);
		(void)usleep(SNAPSHOT_RETRY_MS * 1000);
	}
	if (reply.err == ENOSPC)
		return problem_set(p, 507, "no_space", "there is no room to keep its files");
	return reply.err ? problem_warden(p, &reply, "have its files kept") : 0;
}

static int ask_snapshot(struct sandbox *b, const char layer[static WARDEN_ID_SIZE],
			struct problem *p)
{
	struct share *place;
	int r = place_take(b->info.key_id, &place);

	if (r == -EUSERS)
		return busy(p);
	if (r < 0)
		return problem_internal(p, r, "keep its files");
	r = ask_in_place(b, layer, p);
	place_give(place);
	return r;
}

int change_snapshot(struct sandbox *b, char ret_layer[static WARDEN_ID_SIZE], struct problem *p)
{
	struct sandbox_config c;
	char layer[ID_SIZE];
	int r;

	sandbox_config_of(b, &c);
	if (c.n_layers >= WARDEN_LAYERS_MAX)
		return problem_set(
			p, 409, "too_many_layers",
			"this sandbox stands on %d snapshots already, which is the most there can "
			"be",
			WARDEN_LAYERS_MAX);
	layer_release(b->server, c.pending); /* of an attempt that was given up */
	id_new('l', layer);
	r = orphans_spare(layer);
	if (r == 0)
		r = set_pending(b, layer);
	if (r < 0)
		return problem_internal(p, r, "keep its files");
	r = ask_snapshot(b, layer, p);
	if (r < 0)
		return r;
	memcpy(ret_layer, layer, WARDEN_ID_SIZE);
	return 0;
}
