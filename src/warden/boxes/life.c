/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box in our care, from the request to the last trace of it. Nothing here waits: setting up,
 * dying and the removal of cgroups are each begun here and finished when a descriptor or the timer
 * says so.
 *
 *	STARTING ─▶ RUNNING ◀─▶ FREEZING ─▶ PAUSED           any of them ─▶ DYING ─▶ FREE
 *	        └─▶ WAITING ─▶ RUNNING  └─▶ COPYING ─▶ RUNNING or PAUSED
 */
#include "warden/boxes/boxes.h"

#include "base/clock.h"
#include "sys/proc.h"
#include "warden/layers/layers.h"
#include "warden/link/link.h"
#include "warden/net/net.h"
#include "warden/zygote/zygote.h"

#define SETUP_MAX_US (UINT64_C(30) * 1000000)
#define REAP_FIRST_US 500
#define REAP_SLOWEST_US 50000
#define REAP_MAX_US (UINT64_C(5) * 1000000)
#define FREEZE_FIRST_US 500
#define FREEZE_SLOWEST_US 20000
/* A process may be deep in the kernel, but not for ever. */
#define FREEZE_MAX_US (UINT64_C(5) * 1000000)

/* It is dead: removes what is left of it, now or a little later. */
static void ward_reap(struct warden *w, struct ward *d)
{
	int r = box_reap(&d->box);

	if (r < 0 && clock_boot_us() - d->since_us < REAP_MAX_US) {
		d->wait_us = MIN(MAX(d->wait_us * 2, REAP_FIRST_US), REAP_SLOWEST_US);
		timer_set(&w->loop, &d->timer, clock_boot_us() + d->wait_us);
		return;
	}
	if (r < 0) {
		say("a box's cgroup cannot be removed (%s); the next start will try again",
		    strerror(-r));
		box_give_up(&d->box);
	}
	w->n_dying--;
	ward_give_back(w, d);
}

void ward_end(struct warden *w, struct ward *d, enum warden_reason reason, bool told)
{
	struct warden_ended ended = { .reason = reason };

	if (d->state == WARD_DYING || d->state == WARD_FREE)
		return;
	if (d->copy)
		copy_cancel(w, d, ECANCELED);
	net_end(w, d);
	talk_refuse(w, &d->pending, ECANCELED, "box", "the sandbox ended meanwhile");
	if (d->id[0]) {
		memcpy(ended.id, d->id, sizeof(ended.id));
		if (d->state == WARD_STARTING)
			w->n_starting--;
		else if (!told)
			ward_usage(d, &ended.usage);
		ward_unname(w, d);
	} else {
		pool_remove(w, d);
	}
	source_remove(&w->loop, &d->setup_source);
	timer_clear(&w->loop, &d->timer);
	/* If its cgroups cannot be opened, killing its pid 1 does it too. */
	(void)!cgroup_box_reopen(&d->box.cgroup);
	box_kill(&d->box);
	cgroup_exec_close(&d->leaf);
	fd_closep(&d->victim_fd);
	d->state = WARD_DYING;
	d->since_us = clock_boot_us();
	d->wait_us = 0;
	w->n_dying++;
	if (ended.id[0])
		talk_ended(w, &ended, told);
}

/* Why did its agent end, if nobody killed it? */
static enum warden_reason ward_why_ended(struct ward *d)
{
	siginfo_t info = { 0 };
	uint64_t oom_kills = 0;

	if (cgroup_box_reopen(&d->box.cgroup) == 0 &&
	    waitid(P_PIDFD, (id_t)d->box.pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_code == CLD_KILLED && info.si_status == SIGKILL &&
	    cgroup_box_oom_kills(&d->box.cgroup, &oom_kills) == 0 && oom_kills > 0)
		return WARDEN_ENDED_MEMORY;
	return WARDEN_ENDED_CRASHED;
}

static void ward_on_pid(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct ward *d = container_of(source, struct ward, pid_source);

	if (d->state != WARD_DYING)
		ward_end(w, d, ward_why_ended(d), false);
	source_remove(&w->loop, &d->pid_source);
	ward_reap(w, d);
}

void ward_set_deadline(struct warden *w, struct ward *d, uint64_t timeout_ms)
{
	d->deadline_us = clock_boot_us() + timeout_ms * 1000;
	if (d->state == WARD_RUNNING)
		timer_set(&w->loop, &d->timer, d->deadline_us);
}

static void ward_look_again(struct warden *w, struct ward *d)
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
	ward_look_again(w, d);
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
	/* Nobody asked, or the server that did is gone and the next one does not know. */
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
		ward_look_again(w, d);
}

static void ward_on_deadline(struct warden *w, struct ward *d)
{
	d->to_pause = d->flags & WARDEN_CREATE_PAUSE;
	/* Where nothing can be frozen, the end of its time is the end. */
	if (!d->to_pause || ward_freeze(w, d) < 0)
		ward_end(w, d, WARDEN_ENDED_TIMEOUT, false);
}

static void ward_on_timer(struct loop *l, struct timer *t)
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
		ward_on_deadline(w, d);
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

static int ward_create(struct warden *w, struct ward *d, struct fail *fail)
{
	const struct box_limits limits = {
		.memory_bytes = d->limits.memory_bytes,
		.disk_bytes = d->limits.disk_bytes,
		.files = d->limits.files,
		.pids = d->limits.pids,
		.cpu_milli = d->limits.cpu_milli,
	};
	struct box_template t = { .root_user = d->flags & WARDEN_CREATE_ROOT };
	struct layer_paths paths[WARDEN_LAYERS_MAX];
	int r = root_find(w, fail);

	if (r < 0)
		return r;
	zygote_check_root(w);
	t.root = w->template.root;
	t.usr = w->template.usr;
	for (uint32_t i = 0; i < d->n_layers; i++) {
		r = layer_paths(w, d->layer[i], &paths[i]);
		if (r < 0)
			return fail_set(fail, -r, "layers", "cannot name a snapshot: %s",
					strerror(-r));
		t.layer[i].root = paths[i].root;
		t.layer[i].usr = paths[i].usr;
		t.n_layers++;
	}
	r = box_create(&w->host, &t, &limits, &d->box, fail);
	if (r < 0)
		return r;
	d->root = w->root_now;
	d->root->users++;
	return 0;
}

/* What it opens stays open for the fork that walks into the box next. */
static int make_leaf(struct ward *d, struct fail *fail)
{
	const struct box_limits limits = {
		.memory_bytes = d->limits.memory_bytes,
		.pids = d->limits.pids,
		.cpu_milli = d->limits.cpu_milli,
	};
	int r = box_leaf(&d->box, &limits, &d->leaf, fail);

	if (r == 0) /* a counter that cannot be read now counts from the box's beginning */
		(void)!cgroup_exec_mark(&d->box.cgroup, &d->leaf);
	return r;
}

static void starting_failed(struct warden *w, struct ward *d, const struct fail *fail)
{
	say("cannot make a box: %s", fail->msg);
	talk_refuse(w, &d->pending, fail->err, fail->where, "the box could not be set up");
	ward_end(w, d, WARDEN_ENDED_CRASHED, true);
}

void ward_hand_out(struct warden *w, struct ward *d, struct pending *p)
{
	if (d->flags & WARDEN_CREATE_SCRIPT)
		(void)!zygote_command(w, d); /* then the script is executed */
	ward_settle(d);
	talk_reply(w, p, d, d->box.control_fd);
}

static void ward_on_setup(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct ward *d = container_of(source, struct ward, setup_source);
	struct fail fail = { 0 };
	int r;

	source_remove(&w->loop, &d->setup_source);
	r = box_await(&d->box, &fail);
	if (r == 0)
		r = make_leaf(d, &fail);
	if (r < 0) {
		starting_failed(w, d, &fail);
		return;
	}
	timer_clear(&w->loop, &d->timer);
	if (!d->id[0]) {
		pool_add(w, d);
		return;
	}
	w->n_starting--;
	d->state = WARD_RUNNING;
	timer_set(&w->loop, &d->timer, d->deadline_us);
	/* The server that wanted it is gone and will not know of it. */
	if (d->pending.server != w->room.number)
		ward_end(w, d, WARDEN_ENDED_KILLED, true);
	else
		ward_hand_out(w, d, &d->pending);
}

static int watch_box(struct warden *w, struct ward *d)
{
	int r = source_add(&w->loop, &d->setup_source, d->box.setup_fd, EPOLLIN, ward_on_setup);

	return r < 0 ? r : source_add(&w->loop, &d->pid_source, d->box.pidfd, EPOLLIN, ward_on_pid);
}

struct ward *ward_begin(struct warden *w, const struct ward_wish *wish, struct fail *fail)
{
	struct ward *d = ward_take(w);
	int r;

	if (!d) {
		(void)fail_set(fail, EUSERS, "boxes", "too many boxes are running");
		return NULL;
	}
	d->limits = *wish->limits;
	d->flags = wish->flags;
	d->n_layers = wish->n_layers;
	for (uint32_t i = 0; i < wish->n_layers; i++)
		memcpy(d->layer[i], wish->layer[i], WARDEN_ID_SIZE);
	d->timer.due = ward_on_timer;
	r = ward_create(w, d, fail);
	if (r < 0) {
		ward_give_back(w, d);
		return NULL;
	}
	r = watch_box(w, d);
	if (r < 0) {
		source_remove(&w->loop, &d->setup_source);
		box_destroy(&d->box);
		ward_give_back(w, d);
		(void)fail_set(fail, -r, "epoll", "cannot watch a box: %s", strerror(-r));
		return NULL;
	}
	d->state = WARD_STARTING;
	timer_set(&w->loop, &d->timer, clock_boot_us() + SETUP_MAX_US);
	return d;
}
