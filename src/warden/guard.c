/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory without files. The kernel caps both together, because it counts them together (docs/ARCHITECTURE.md,
 * "Memory and disk"); that programs alone stay within their limit is looked after here. Each box is looked at
 * about once a second, one that is near its limit or beyond more often. When it is beyond, the largest
 * process is killed, as the kernel would.
 *
 * On the same round a box's share of the CPUs is set by how much it runs at once (RX-18).
 */
#include "warden/warden_priv.h"

#include "base/clock.h"
#include "box/breakable.h"

#define ROUND_US 1000000 /* for all boxes */
#define PARTS 10         /* of a round, so that it is never much at once */
#define HOT_US 20000     /* near the limit */

static void hold_memory(struct ward *d, uint64_t charged)
{
	uint64_t limit = d->limits.memory_bytes, memory;
	struct cgroup_usage u = { 0 };
	struct box_disk disk = { 0 };

	if (charged <= limit || !control_on("memory-watch") ||
	    cgroup_exec_sample(&d->box.cgroup, &d->leaf, &u) < 0 ||
	    box_disk_usage(&d->box, &disk) < 0)
		return;
	memory = u.memory_now - MIN(u.memory_shmem, MIN(disk.used_bytes, u.memory_now));
	if (memory > limit && cgroup_exec_kill_largest(&d->box.cgroup, &d->leaf) == 0)
		d->memory_kills++;
	/* A disk full of files is not near the limit, however much is charged. */
	d->hot = memory > limit - limit / 4;
}

/* It is changed only by so much that it matters. */
static bool weight_is_right(const struct ward *d, uint32_t tasks)
{
	uint32_t milli = box_weight(d->limits.cpu_milli, tasks);

	return milli < d->weight * 2 && milli * 2 > d->weight;
}

static void weigh(struct ward *d, uint32_t tasks)
{
	uint32_t milli = box_weight(d->limits.cpu_milli, tasks);

	if (!weight_is_right(d, tasks) && cgroup_exec_weigh(&d->box.cgroup, &d->leaf, milli) == 0)
		d->weight = milli;
}

static void look_at(struct ward *d)
{
	uint64_t charged = 0;
	uint32_t tasks = 0;

	if (cgroup_exec_glance(&d->box.cgroup, &d->leaf, &charged, &tasks) < 0)
		return;
	/* Of a thousand idle boxes not one gets beyond this. */
	d->hot = charged > d->limits.memory_bytes - d->limits.memory_bytes / 4;
	if (charged <= d->limits.memory_bytes && weight_is_right(d, tasks))
		return;
	if (cgroup_box_reopen(&d->box.cgroup) == 0 &&
	    cgroup_exec_reopen(&d->box.cgroup, &d->leaf) == 0) {
		hold_memory(d, charged);
		weigh(d, tasks);
	}
	ward_settle(d);
}

static void on_timer(struct warden *w, struct timer *t)
{
	uint64_t now_us = clock_boot_us();
	bool round = now_us >= w->guard_next_us, hot = false;

	if (round) {
		w->guard_part = (w->guard_part + 1) % PARTS;
		w->guard_next_us = now_us + ROUND_US / PARTS;
	}
	for (size_t i = 0; i < w->n_used_wards; i++) {
		struct ward *d = &w->wards[i];

		if (d->state != WARD_RUNNING)
			continue;
		if (d->hot || (round && i % PARTS == w->guard_part))
			look_at(d);
		hot |= d->hot;
	}
	if (w->n_boxes)
		timer_set(w, t, hot ? now_us + HOT_US : w->guard_next_us);
}

void guard_start(struct warden *w)
{
	w->guard_timer.due = on_timer;
	if (!w->guard_timer.place)
		timer_set(w, &w->guard_timer, clock_boot_us() + ROUND_US / PARTS);
}
