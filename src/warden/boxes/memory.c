/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory without files. The kernel caps both together, because it counts them together
 * (docs/ARCHITECTURE.md, "Memory and disk"); that programs alone stay within their limit is looked
 * after here. Each box is looked at about once a second, one that is beyond its limit, or near it
 * and growing, more often. When it is beyond, the largest process is killed, as the kernel would. A
 * box that always has a next one, or none that is found, is ended: the search costs us as much as
 * it has processes, and all boxes wait meanwhile. They also wait while we look, so we stop after a
 * moment and go on later with the next one.
 *
 * On the same round a box's share of the CPUs is set by how much it runs at once (RX-18).
 */
#include "warden/boxes/boxes.h"

#include "base/clock.h"
#include "box/breakable.h"

#include <poll.h>

#define ROUND_US 1000000      /* from one look at a box to the next */
#define HOT_US 20000          /* the same for a hot one */
#define PAUSE_US 100000       /* until it is seen whose turn it is, when none is hot */
#define AT_ONCE_US 2000       /* then others have their turn */
#define KILLS_MAX 8           /* in a row, without getting within the limit */
#define VICTIM_MAX_US 1000000 /* until the next is killed: one may be deep in the kernel */

static void forget_victim(struct ward *d)
{
	d->victim_us = 0;
	fd_closep(&d->victim_fd);
}

static void is_within_limit(struct ward *d)
{
	d->kills_in_row = 0;
	forget_victim(d);
}

/* Until the last one killed has given back its memory, the next would die for nothing. */
static bool victim_is_dying(struct ward *d)
{
	struct pollfd p = { .fd = d->victim_fd, .events = POLLIN };

	if (!d->victim_us)
		return false;
	if (poll(&p, 1, 0) == 0 && clock_boot_us() - d->victim_us < VICTIM_MAX_US)
		return true;
	forget_victim(d);
	return false;
}

/* One that was gone before we could kill it is a victim too: being quick does not keep a box above
 * its limit. */
static void kill_largest(struct ward *d)
{
	int r = cgroup_exec_kill_largest(&d->box.cgroup, &d->leaf, &d->victim_fd);

	if (r < 0 && r != -ESRCH)
		return;
	d->victim_us = clock_boot_us();
	d->memory_kills += r == 0;
	d->kills_in_row++;
}

/* False: nothing helps. */
static bool hold_memory(struct ward *d, uint64_t charged)
{
	uint64_t limit = d->limits.memory_bytes, memory;
	struct cgroup_usage u = { 0 };
	struct box_disk disk = { 0 };

	if (charged <= limit || !control_on("memory-watch") ||
	    cgroup_exec_sample(&d->box.cgroup, &d->leaf, &u) < 0 ||
	    box_disk_usage(&d->box, &disk) < 0)
		return true;
	memory = u.memory_now - MIN(u.memory_shmem, MIN(disk.used_bytes, u.memory_now));
	/* A disk full of files is not near the limit, however much is charged. */
	d->hot = memory > limit || (d->hot && memory > limit - limit / 4);
	if (memory <= limit)
		is_within_limit(d);
	else if (!victim_is_dying(d)) {
		if (d->kills_in_row == KILLS_MAX)
			return false;
		kill_largest(d);
	}
	return true;
}

/* It is changed only by so much that it matters. */
static bool weight_is_right(const struct ward *d, uint32_t tasks)
{
	uint32_t milli = box_weight(d->limits.cpu_milli, tasks);

	return milli < d->weight * 2 && milli * 2 > d->weight;
}

static void guard_weigh(struct ward *d, uint32_t tasks)
{
	uint32_t milli = box_weight(d->limits.cpu_milli, tasks);

	if (!weight_is_right(d, tasks) && cgroup_exec_weigh(&d->box.cgroup, &d->leaf, milli) == 0)
		d->weight = milli;
}

/* Near its limit, and not just sitting there. */
static bool is_hot(struct ward *d, uint64_t charged, uint64_t now_us)
{
	if (charged > d->charged)
		d->grew_us = now_us;
	d->charged = charged;
	return charged > d->limits.memory_bytes - d->limits.memory_bytes / 4 &&
	       now_us - d->grew_us < ROUND_US;
}

static void guard_look_at(struct warden *w, struct ward *d, uint64_t now_us)
{
	uint64_t charged = 0;
	uint32_t tasks = 0;
	bool held = true;

	if (cgroup_exec_glance(&d->box.cgroup, &d->leaf, &charged, &tasks) < 0)
		return;
	/* Of a thousand idle boxes not one gets beyond this. */
	d->hot = is_hot(d, charged, now_us);
	if (charged <= d->limits.memory_bytes)
		is_within_limit(d);
	if (charged <= d->limits.memory_bytes && weight_is_right(d, tasks))
		return;
	if (cgroup_box_reopen(&d->box.cgroup) == 0 &&
	    cgroup_exec_reopen(&d->box.cgroup, &d->leaf) == 0) {
		held = hold_memory(d, charged);
		guard_weigh(d, tasks);
	}
	ward_settle(d);
	if (!held)
		ward_end(w, d, WARDEN_ENDED_MEMORY, false);
}

/* Whose turn it is. Is any of them hot, or left for the next time? */
static bool look_around(struct warden *w)
{
	const uint64_t begun_us = clock_boot_us();
	const size_t n = w->n_used_wards, first = w->guard_first;
	bool soon = false;

	for (size_t i = 0; i < n; i++) {
		struct ward *d = &w->wards[(first + i) % n];

		if (d->state != WARD_RUNNING)
			continue;
		if (d->look_us <= begun_us) {
			if (clock_boot_us() - begun_us >= AT_ONCE_US) {
				w->guard_first = (first + i) % n;
				return true;
			}
			guard_look_at(w, d, begun_us);
			d->look_us = begun_us + (d->hot ? HOT_US : ROUND_US);
		}
		soon |= d->hot;
	}
	return soon;
}

static void guard_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	bool soon = look_around(w);

	if (w->n_boxes)
		timer_set(&w->loop, t, clock_boot_us() + (soon ? HOT_US : PAUSE_US));
}

void guard_start(struct warden *w)
{
	w->guard_timer.due = guard_on_timer;
	if (!w->guard_timer.place)
		timer_set(&w->loop, &w->guard_timer, clock_boot_us() + PAUSE_US);
}
