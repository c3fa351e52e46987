/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes made ahead, of the built-in template with the configured limits: a request for one of those
 * gets it at once. The pool is filled a little after the last request, one box at a time, and never
 * while a request waits for a box of its own.
 *
 * Each gets a Python context, first a small one, which costs little. When nobody has asked for a
 * while, it is replaced by one that has the packages loaded.
 */
#include "warden/boxes/boxes.h"

#include "base/clock.h"
#include "warden/zygote/zygote.h"

#define PAUSE_US 2000            /* after a request: what it asked for comes first */
#define AFTER_FAILURE_US 5000000 /* whatever it is, trying at once will not help */
#define QUIET_US 15000  /* without a request: there is time for what is not needed at once */
#define IMPROVE_US 5000 /* between two of them */

static struct warden_limits usual_limits(const struct config *c)
{
	return (struct warden_limits){
		.memory_bytes = c->sandbox_memory,
		.disk_bytes = c->sandbox_disk,
		.files = c->sandbox_files,
		.pids = (uint32_t)c->sandbox_pids,
		.cpu_milli = (uint32_t)c->sandbox_cpus,
	};
}

static uint32_t usual_flags(const struct config *c)
{
	return c->sandbox_root ? WARDEN_CREATE_ROOT : 0;
}

static void plan(struct warden *w, uint64_t in_us)
{
	if (w->phase == WARDEN_SERVING && w->n_pool < w->config->pool_size)
		timer_set(&w->loop, &w->pool_timer, clock_boot_us() + in_us);
}

void pool_fill(struct warden *w)
{
	plan(w, PAUSE_US);
}

/* When it is quiet: interpreters with more loaded, for those that wait. */
static void pool_improve(struct warden *w)
{
	if (w->phase == WARDEN_SERVING && w->n_waiting >= w->config->pool_size)
		timer_set(&w->loop, &w->pool_timer,
			  MAX(clock_boot_us() + IMPROVE_US, w->pool_taken_us + QUIET_US));
}

static void improve_one(struct warden *w)
{
	for (size_t i = 0; i < w->n_waiting; i++) {
		if (w->pool[i]->prepared == WARDEN_ZYGOTE_SCIENCE)
			continue;
		if (zygote_prepare(w, w->pool[i], WARDEN_ZYGOTE_SCIENCE) == 0)
			pool_improve(w);
		return;
	}
}

void pool_add(struct warden *w, struct ward *d)
{
	d->state = WARD_WAITING;
	w->pool[w->n_waiting++] = d;
	(void)zygote_prepare(w, d, WARDEN_ZYGOTE_PYTHON);
	ward_settle(d);
	pool_improve(w);
	pool_fill(w);
}

/* The rest stays in the order in which they were made: the oldest has had most time. A caller that
 * removes one for a good reason calls pool_fill(): else it is taken for a failure. */
void pool_remove(struct warden *w, struct ward *d)
{
	size_t i = 0;

	while (i < w->n_waiting && w->pool[i] != d)
		i++;
	if (i < w->n_waiting)
		memmove(w->pool + i, w->pool + i + 1, (--w->n_waiting - i) * sizeof(struct ward *));
	w->n_pool--;
	plan(w, AFTER_FAILURE_US);
}

struct ward *pool_take(struct warden *w, const struct warden_limits *limits, uint32_t flags)
{
	struct warden_limits usual = usual_limits(w->config);
	struct ward *d = NULL;

	pool_fill(w); /* later: whatever is taken or made now, this request comes first */
	if (memcmp(&usual, limits, sizeof(usual)) != 0 ||
	    (flags & WARDEN_CREATE_ROOT) != usual_flags(w->config))
		return NULL;
	while (w->n_waiting && !d) {
		d = w->pool[0];
		if (d->root != w->root_now) { /* the host has changed since */
			ward_end(w, d, WARDEN_ENDED_KILLED, true);
			d = NULL;
		}
	}
	if (!d) {
		pool_fill(w);
		return NULL;
	}
	pool_remove(w, d);
	w->pool_taken_us = clock_boot_us();
	d->state = WARD_RUNNING;
	d->flags = flags;
	pool_fill(w);
	return d;
}

static void pool_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	const struct warden_limits limits = usual_limits(w->config);
	const struct ward_wish wish = { .limits = &limits, .flags = usual_flags(w->config) };
	struct fail fail = { 0 };

	(void)t;
	if (w->phase != WARDEN_SERVING)
		return;
	if (w->n_pool >= w->config->pool_size) {
		if (clock_boot_us() < w->pool_taken_us + QUIET_US)
			pool_improve(w);
		else
			improve_one(w);
	} else if (w->n_starting > 0) {
		pool_fill(w);
	} else if (w->n_pool > w->n_waiting) {
		return; /* one is being made: the next comes after it */
	} else if (ward_begin(w, &wish, &fail)) {
		w->n_pool++;
	} else {
		say("cannot make a box ahead: %s", fail.msg);
		plan(w, AFTER_FAILURE_US);
	}
}

void pool_prepare(struct warden *w, enum warden_zygote kind)
{
	for (size_t i = 0; i < w->n_waiting; i++)
		if (!w->pool[i]->prepared)
			(void)zygote_prepare(w, w->pool[i], kind);
	pool_improve(w);
}

void pool_open(struct warden *w)
{
	w->pool_timer.due = pool_on_timer;
}
