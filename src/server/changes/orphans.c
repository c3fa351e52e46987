/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers that nobody knows of. A server that dies before what it made is on record, or while a
 * layer that it wants dropped is still in use, leaves one. So each server goes through all layers
 * once, slowly, and drops those that no sandbox and no snapshot stands on. (One that is on record
 * as pending only goes as well, as in changes/boxes.c.)
 *
 * A layer that this server makes meanwhile is there before anything stands on it. Hence
 * orphans_spare(), before it is asked for: what has been spared is not looked at. When the search
 * is over, all that is forgotten.
 */
#include "server/changes/changes.h"

#define LOOKS_PER_TICK 4 /* each has the warden read a directory and the store its records */

struct spared {
	char layer[WARDEN_ID_SIZE];
	struct spared *next;
};

static struct {
	pthread_mutex_t lock; /* for what follows */
	struct spared *first;
	bool over;
	char last[WARDEN_ID_SIZE]; /* that was looked at; the worker's own */
} search = { .lock = PTHREAD_MUTEX_INITIALIZER };

int orphans_spare(const char layer[static WARDEN_ID_SIZE])
{
	struct spared *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	memcpy(new->layer, layer, sizeof(new->layer));
	pthread_mutex_lock(&search.lock);
	if (!search.over) {
		new->next = search.first;
		search.first = take_ptr(new);
	}
	pthread_mutex_unlock(&search.lock);
	free(new);
	return 0;
}

static bool is_spared(const char *layer)
{
	bool found = false;

	pthread_mutex_lock(&search.lock);
	for (const struct spared *p = search.first; p && !found; p = p->next)
		found = strcmp(p->layer, layer) == 0;
	pthread_mutex_unlock(&search.lock);
	return found;
}

static bool is_over(void)
{
	bool over;

	pthread_mutex_lock(&search.lock);
	over = search.over;
	pthread_mutex_unlock(&search.lock);
	return over;
}

void orphans_stop(void)
{
	struct spared *list;

	pthread_mutex_lock(&search.lock);
	search.over = true;
	list = take_ptr(search.first);
	pthread_mutex_unlock(&search.lock);
	while (list) {
		struct spared *p = list;

		list = p->next;
		free(p);
	}
}

/* The layer after the last one. -ENOENT: that was all. */
static int ask_next_layer(struct server *s)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_NEXT_LAYER.layer, search.last, sizeof(f.as_NEXT_LAYER.layer));
	r = link_ask(s->link, WARDEN_NEXT_LAYER, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r == 0)
		r = -reply.err;
	if (r < 0)
		return r;
	if (strcmp(reply.layer, search.last) <= 0)
		return -EPROTO; /* we would go round in circles */
	memcpy(search.last, reply.layer, sizeof(search.last));
	return 0;
}

static bool is_orphan(struct server *s, const char *layer)
{
	size_t users;

	return !is_spared(layer) && store_layer_users(s->store, layer, &users) == 0 && users == 0;
}

void orphans_tick(struct server *s)
{
	for (int i = 0; i < LOOKS_PER_TICK && !is_over(); i++) {
		int r = ask_next_layer(s);

		if (r < 0) {
			/* What is left of it, the next server does. */
			if (r != -ENOENT)
				server_log(s, "error", "orphaned_layers",
					   json_pack("{s:s}", "error", strerror(-r)));
			orphans_stop();
		} else if (is_orphan(s, search.last)) {
			server_log(s, "warn", "orphaned_layer",
				   json_pack("{s:s}", "layer", search.last));
			layer_release(s, search.last);
		}
	}
}
