/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes made ahead, of the built-in template with the configured limits: whoever asks for one of those gets
 * it at once. The pool is filled a little after the last request, one box at a time, and never while a
 * request waits for a box of its own.
 */
#include "warden/warden_priv.h"

#include "base/clock.h"

#define PAUSE_US 2000            /* after a request: what it asked for comes first */
#define AFTER_FAILURE_US 5000000 /* whatever it is, trying at once will not help */

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
		timer_set(w, &w->pool_timer, clock_boot_us() + in_us);
}

void pool_fill(struct warden *w)
{
	plan(w, PAUSE_US);
}

void pool_failed(struct warden *w)
{
	plan(w, AFTER_FAILURE_US);
}

void pool_add(struct warden *w, struct ward *d)
{
	d->state = WARD_WAITING;
	w->pool[w->n_waiting++] = d;
	zygote_prepare(w, d);
	pool_fill(w);
}

void pool_remove(struct warden *w, struct ward *d)
{
	for (size_t i = 0; i < w->n_waiting; i++)
		if (w->pool[i] == d)
			w->pool[i] = w->pool[--w->n_waiting];
	w->n_pool--;
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
		d = w->pool[w->n_waiting - 1];
		if (d->root != w->root_now) { /* the host has changed since */
			ward_end(w, d, WARDEN_ENDED_KILLED, true);
			d = NULL;
		}
	}
	if (!d)
		return NULL;
	pool_remove(w, d);
	d->state = WARD_RUNNING;
	d->flags = flags;
	pool_fill(w);
	return d;
}

void pool_on_timer(struct warden *w, struct timer *t)
{
	const struct warden_limits limits = usual_limits(w->config);
	const struct ward_wish wish = { .limits = &limits, .flags = usual_flags(w->config) };
	struct fail fail = { 0 };

	(void)t;
	if (w->n_pool >= w->config->pool_size || w->phase != WARDEN_SERVING)
		return;
	if (w->n_starting > 0) {
		pool_fill(w);
	} else if (w->n_pool > w->n_waiting) {
		return; /* one is being made: the next comes after it */
	} else if (ward_begin(w, &wish, &fail)) {
		w->n_pool++;
	} else {
		say("cannot make a box ahead: %s", fail.msg);
		pool_failed(w);
	}
}
