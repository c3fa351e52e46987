/* SPDX-License-Identifier: Apache-2.0 */
/* The records of boxes, by id. Their number is fixed at the start, so nothing here can grow or fail
 * later. */
#include "warden/warden_priv.h"

#include "base/clock.h"

static size_t ward_bucket(const char *id)
{
	/* FNV-1a: ids are random, and a server that chose bad ones would harm only itself. */
	uint32_t hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return hash % BUCKETS;
}

int wards_open(struct warden *w)
{
	w->n_wards = (size_t)(w->config->limits_sandboxes + w->config->pool_size);
	/* A dead box keeps its place until the kernel is done with it: that must not keep others
	 * out. */
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

void wards_close(struct warden *w)
{
	freep(&w->wards);
}

struct ward *ward_find(struct warden *w, const char *id)
{
	struct ward *d = w->bucket[ward_bucket(id)];

	while (d && strcmp(d->id, id) != 0)
		d = d->next;
	return d;
}

struct ward *ward_take(struct warden *w)
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

void ward_name(struct warden *w, struct ward *d, const char *id)
{
	size_t bucket = ward_bucket(id);

	(void)snprintf(d->id, sizeof(d->id), "%s", id);
	d->next = w->bucket[bucket];
	w->bucket[bucket] = d;
	w->n_boxes++;
}

void ward_unname(struct warden *w, struct ward *d)
{
	struct ward **at = &w->bucket[ward_bucket(d->id)];

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->id[0] = '\0';
	w->n_boxes--;
}

void ward_give_back(struct warden *w, struct ward *d)
{
	if (d->root)
		d->root->users--;
	d->root = NULL;
	d->state = WARD_FREE;
	d->next = w->free_wards;
	w->free_wards = d;
}

bool wards_use_layer(const struct warden *w, const char *layer)
{
	for (size_t i = 0; i < w->n_used_wards; i++) {
		const struct ward *d = &w->wards[i];

		for (uint32_t j = 0; d->state != WARD_FREE && j < d->n_layers; j++)
			if (strcmp(d->layer[j], layer) == 0)
				return true;
	}
	return false;
}

void ward_settle(struct ward *d)
{
	cgroup_exec_settle(&d->leaf);
	cgroup_box_settle(&d->box.cgroup);
}

void ward_usage(struct ward *d, struct warden_usage *ret)
{
	struct box_disk disk = { 0 };
	struct cgroup_usage u = { 0 };

	*ret = (struct warden_usage){ 0 };
	if (cgroup_box_reopen(&d->box.cgroup) == 0 &&
	    cgroup_exec_reopen(&d->box.cgroup, &d->leaf) == 0 &&
	    cgroup_exec_sample(&d->box.cgroup, &d->leaf, &u) == 0) {
		ret->cpu_us = u.cpu_us;
		ret->cpu_user_us = u.cpu_user_us;
		ret->cpu_system_us = u.cpu_system_us;
		ret->memory_now = u.memory_now;
		ret->memory_shmem = u.memory_shmem;
		ret->memory_cache = u.memory_cache;
		ret->memory_peak = u.memory_peak;
		ret->oom_kills = u.oom_kills + d->memory_kills;
		ret->pids_denied = u.pids_denied;
		ret->pids_now = u.pids_now;
		ret->pids_peak = u.pids_peak;
	}
	ward_settle(d);
	if (box_disk_usage(&d->box, &disk) == 0) {
		ret->disk_used = disk.used_bytes;
		ret->disk_free = disk.free_bytes;
		ret->disk_size = disk.used_bytes + disk.free_bytes;
		ret->files_free = disk.free_files;
	}
	(void)!box_io_bytes(&d->box, &ret->read_bytes, &ret->written_bytes);
}

void ward_describe(const struct ward *d, struct warden_box *ret)
{
	const struct cgroup_host *cgroups = d->box.cgroup.host;
	uint64_t now_us = clock_boot_us();
	bool paused = d->state == WARD_PAUSED || (d->state == WARD_COPYING && d->stay_paused);

	*ret = (struct warden_box){
		.state = paused ? WARDEN_STATE_PAUSED : WARDEN_STATE_RUNNING,
		.flags = d->doors.n ? WARDEN_BOX_DOORS : 0,
		.isolation = {
			.features = d->box.report.features,
			.landlock_abi = d->box.report.landlock_abi,
			.masks = d->box.report.masks,
			.ids_kind = d->box.ids.kind,
			.cgroup_mode = cgroups ? cgroups->mode : CGROUP_NONE,
			.cgroup_features = cgroups ? cgroups->features : 0,
		},
	};
	if (!paused && d->deadline_us > now_us)
		ret->left_ms = (d->deadline_us - now_us) / 1000;
	memcpy(ret->id, d->id, sizeof(ret->id));
}
