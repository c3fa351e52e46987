/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes by id. Their number is fixed at the start, so nothing here can grow or fail later. */
#include "warden/warden_priv.h"

static size_t bucket_of(const char *id)
{
	uint32_t hash =
		2166136261u; /* FNV-1a: ids are random, and who chooses them could as well ask less */

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return hash % BUCKETS;
}

int table_open(struct warden *w)
{
	w->n_wards = (size_t)(w->config->limits_sandboxes + w->config->pool_size);
	/* A dead box keeps its place until the kernel is done with it: that must not keep others out. */
	w->n_wards += w->n_wards / 4 + 64;
	w->wards = calloc(w->n_wards, sizeof(*w->wards));
	if (!w->wards)
		return -ENOMEM;
	for (size_t i = w->n_wards; i-- > 0;) {
		w->wards[i].next = w->free_wards;
		w->free_wards = &w->wards[i];
	}
	return 0;
}

void table_close(struct warden *w)
{
	freep(&w->wards);
}

struct ward *table_find(struct warden *w, const char *id)
{
	struct ward *d = w->bucket[bucket_of(id)];

	while (d && strcmp(d->id, id) != 0)
		d = d->next;
	return d;
}

struct ward *table_take(struct warden *w)
{
	struct ward *d = w->free_wards;

	if (!d)
		return NULL;
	w->free_wards = d->next;
	w->n_used_wards = MAX(w->n_used_wards, (size_t)(d - w->wards) + 1);
	*d = (struct ward){
		.box = BOX_INIT,
		.leaf = CGROUP_EXEC_INIT,
		.setup_source = SOURCE_INIT,
		.pid_source = SOURCE_INIT,
		.victim_fd = -EBADF,
		.weight = 1000,
	};
	return d;
}

void table_name(struct warden *w, struct ward *d, const char *id)
{
	size_t bucket = bucket_of(id);

	(void)snprintf(d->id, sizeof(d->id), "%s", id);
	d->next = w->bucket[bucket];
	w->bucket[bucket] = d;
	w->n_boxes++;
	guard_start(w);
}

void table_unname(struct warden *w, struct ward *d)
{
	struct ward **at = &w->bucket[bucket_of(d->id)];

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->id[0] = '\0';
	w->n_boxes--;
}

void table_give_back(struct warden *w, struct ward *d)
{
	if (d->root)
		d->root->users--;
	d->root = NULL;
	d->state = WARD_FREE;
	d->next = w->free_wards;
	w->free_wards = d;
}
