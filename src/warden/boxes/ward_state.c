/* SPDX-License-Identifier: Apache-2.0 */
/* A box that lives: its deadline, freezing and thawing, what it uses. */
#include "warden/warden_priv.h"

#include "base/clock.h"

#define FREEZE_FIRST_US 500
#define FREEZE_SLOWEST_US 20000
#define FREEZE_MAX_US                                                                              \
	(UINT64_C(5) * 1000000) /* a process may be deep in the kernel, but not for ever */

static void look_again(struct warden *w, struct ward *d)
{
	d->wait_us = MIN(MAX(d->wait_us * 2, FREEZE_FIRST_US), FREEZE_SLOWEST_US);
	timer_set(&w->loop, &d->timer, clock_boot_us() + d->wait_us);
}

static int set_frozen(struct ward *d, bool frozen)
{
	int r = cgroup_box_reopen(&d->box.cgroup);

	if (r == 0)
		r = cgroup_box_freeze(&d->box.cgroup, frozen);
	ward_settle(d);
	if (r == 0)
		d->box.frozen = frozen;
	return r;
}

static int is_still(struct ward *d)
{
	int r = cgroup_box_reopen(&d->box.cgroup);

	if (r == 0)
		r = cgroup_box_is_frozen(&d->box.cgroup);
	ward_settle(d);
	return r;
}

int ward_freeze(struct warden *w, struct ward *d)
{
	int r = set_frozen(d, true);

	if (r < 0)
		return r;
	d->state = WARD_FREEZING;
	d->since_us = clock_boot_us();
	d->wait_us = 0;
	look_again(w, d);
	return 0;
}

int ward_thaw(struct warden *w, struct ward *d)
{
	int r = set_frozen(d, false);

	if (r < 0)
		return r;
	d->state = WARD_RUNNING;
	d->to_pause = false;
	timer_set(&w->loop, &d->timer, d->deadline_us);
	return 0;
}

/* All of it stands still. */
static void is_frozen(struct warden *w, struct ward *d)
{
	struct warden_frame f = { 0 };

	if (d->copy) {
		d->state = WARD_COPYING;
		copy_frozen(w, d);
		return;
	}
	d->state = WARD_PAUSED;
	if (!d->to_pause && d->pending.server == w->room.number) {
		talk_reply(w, &d->pending, d, -EBADF);
		return;
	}
	/* Nobody asked, or whoever did is gone and his successor does not know. */
	d->to_pause = false;
	d->pending = (struct pending){ 0 };
	memcpy(f.as_PAUSED.id, d->id, sizeof(f.as_PAUSED.id));
	talk_send(w, WARDEN_PAUSED, &f, -EBADF);
}

static void cannot_freeze(struct warden *w, struct ward *d)
{
	if (d->copy)
		copy_cancel(w, d, EBUSY);
	talk_refuse(w, &d->pending, EBUSY, "freeze", "the sandbox does not stand still");
	if (d->to_pause || ward_thaw(w, d) < 0)
		ward_end(w, d, d->to_pause ? WARDEN_ENDED_TIMEOUT : WARDEN_ENDED_CRASHED, false);
}

static void on_freezing(struct warden *w, struct ward *d)
{
	int r = is_still(d);

	if (r > 0)
		is_frozen(w, d);
	else if (r < 0 || clock_boot_us() - d->since_us >= FREEZE_MAX_US)
		cannot_freeze(w, d);
	else
		look_again(w, d);
}

static void on_deadline(struct warden *w, struct ward *d)
{
	d->to_pause = d->flags & WARDEN_CREATE_PAUSE;
	/* Where nothing can be frozen, the end of its time is the end. */
	if (!d->to_pause || ward_freeze(w, d) < 0)
		ward_end(w, d, WARDEN_ENDED_TIMEOUT, false);
}

void ward_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	struct ward *d = container_of(t, struct ward, timer);

	switch (d->state) {
	case WARD_STARTING:
		say("a box was not set up in time");
		talk_refuse(w, &d->pending, ETIMEDOUT, "set-up", "the box was not set up in time");
		ward_end(w, d, WARDEN_ENDED_CRASHED, true);
		break;
	case WARD_RUNNING:
		on_deadline(w, d);
		break;
	case WARD_FREEZING:
		on_freezing(w, d);
		break;
	case WARD_COPYING:
		copy_timed_out(w, d);
		break;
	case WARD_DYING:
		ward_reap(w, d);
		break;
	case WARD_FREE:
	case WARD_WAITING:
	case WARD_PAUSED:
		break;
	}
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
