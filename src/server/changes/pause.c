/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing and resuming. Warm: the box is frozen, memory and all. Cold: its files are kept as a
 * layer and the box is gone; resuming makes a new one from the layers, with the same id. Either way
 * a paused sandbox looks dead: its operations are hung up, and none is opened.
 */
#include "server/changes/changes.h"

#define AUTO_RESUME_MIN_MS 300000 /* a sandbox that traffic woke lives at least this long */

static void set_state(struct sandbox *b, enum store_state state)
{
	pthread_mutex_lock(&b->lock);
	if (b->info.state != STORE_ENDED)
		b->info.state = state;
	pthread_mutex_unlock(&b->lock);
}

static int ask_pause(struct sandbox *b, struct problem *p)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_PAUSE.id, b->info.id, sizeof(f.as_PAUSE.id));
	r = link_ask(b->server->link, WARDEN_PAUSE, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return problem_internal(p, r, "pause the sandbox");
	if (reply.err)
		return problem_warden(p, &reply, "be paused");
	return 0;
}

/* On record, or as if nobody had asked. */
static int record_cold(struct sandbox *b, const char layer[static WARDEN_ID_SIZE])
{
	struct sandbox_config old, c;
	int r;

	sandbox_config_of(b, &old);
	c = old;
	memcpy(c.layer[c.n_layers++], layer, WARDEN_ID_SIZE);
	c.pending[0] = '\0';
	c.cold = true;
	r = sandbox_config_replace(b, &c);
	if (r < 0)
		return r;
	r = sandbox_save(b);
	if (r < 0 && sandbox_config_replace(b, &old) < 0)
		return -ENOMEM;
	return r;
}

static int resume_warm(struct sandbox *b, uint64_t timeout_ms, struct problem *p)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_RESUME.id, b->info.id, sizeof(f.as_RESUME.id));
	f.as_RESUME.timeout_ms = MAX(timeout_ms, UINT64_C(1));
	r = link_ask(b->server->link, WARDEN_RESUME, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return problem_internal(p, r, "resume the sandbox");
	if (reply.err)
		return problem_warden(p, &reply, "be resumed");
	return 0;
}

/* Its files become a layer, on record before the box goes. */
static int make_cold(struct sandbox *b, struct problem *p)
{
	char layer[WARDEN_ID_SIZE];
	int r = change_snapshot(b, layer, p);

	if (r < 0)
		return r;
	if (sandbox_set_boxless(b, true) < 0)
		return problem_set(p, 404, NULL, "sandbox '%s' was not found", b->info.id);
	r = record_cold(b, layer);
	if (r < 0) {
		(void)!sandbox_set_boxless(b, false);
		return problem_internal(p, r, "save that the sandbox is paused");
	}
	sandbox_hang_up(b, true);
	if (kill_box(b) < 0)
		kill_box_later(b);
	return 0;
}

static uint64_t time_left_ms(struct sandbox *b)
{
	uint64_t now_us = clock_boot_us(), deadline_us;

	pthread_mutex_lock(&b->lock);
	deadline_us = MAX(b->deadline_us, now_us);
	pthread_mutex_unlock(&b->lock);
	return MIN((deadline_us - now_us) / 1000, b->server->config.limits_timeout);
}

static int pause_warm(struct sandbox *b, struct problem *p)
{
	int r = ask_pause(b, p);

	if (r < 0)
		set_state(b, STORE_RUNNING);
	return r;
}

/* A box that stands still has no deadline: it cannot end while its files are kept. */
static int pause_cold(struct sandbox *b, struct problem *p)
{
	struct problem thaw = { 0 };
	int r = pause_warm(b, p);

	if (r < 0)
		return r;
	r = make_cold(b, p);
	if (r < 0 && resume_warm(b, time_left_ms(b), &thaw) == 0)
		set_state(b, STORE_RUNNING);
	else if (r < 0)
		sandbox_log(b, "error", "it stays paused: %s", thaw.message);
	return r;
}

int change_pause(struct sandbox *b, bool memory, struct problem *p)
{
	int r;

	if (sandbox_state(b) == STORE_PAUSED)
		return problem_set(p, 409, "already_paused", "sandbox '%s' is already paused",
				   b->info.id);
	set_state(b, STORE_PAUSED);
	sandbox_hang_up(b, false);
	r = memory ? pause_warm(b, p) : pause_cold(b, p);
	if (r < 0)
		return r;
	r = sandbox_save(b);
	if (r < 0)
		return problem_internal(p, r, "save that the sandbox is paused");
	sandbox_log(b, "info",
		    memory ? "paused" : "paused; its files were kept, its memory was not");
	event_add_execution(b, "paused", NULL);
	return 0;
}

/* Its files are all there is of it again; whatever box it may have goes. */
static void give_up_box(struct sandbox *b)
{
	(void)!sandbox_set_boxless(b, true);
	sandbox_hang_up(b, true);
	kill_box_later(b);
}

/* The end of the box is the sandbox's own, from the moment there can be one. One that was to be
 * killed before may be there yet: it goes first, so that its end is not taken for that of the
 * next. */
static int resume_cold(struct sandbox *b, const struct sandbox_config *c, uint64_t timeout_ms,
		       struct problem *p)
{
	int r = kill_box(b);

	if (r < 0)
		return problem_internal(p, r, "resume the sandbox");
	(void)!sandbox_set_boxless(b, false);
	r = sandbox_make_box(b, c, timeout_ms, p);
	if (r < 0)
		give_up_box(b); /* it may have been made all the same */
	return r;
}

/* Unless its new time is over already: then it has ended, or it was paused once more. */
static void set_running(struct sandbox *b, uint64_t asked_us, uint64_t timeout_ms)
{
	pthread_mutex_lock(&b->lock);
	if (b->info.state != STORE_ENDED && b->deadline_pause_us < asked_us + timeout_ms * 1000) {
		b->info.state = STORE_RUNNING;
		b->deadline_us = asked_us + timeout_ms * 1000;
		b->info.end_ms = clock_wall_ms() + (int64_t)timeout_ms;
	}
	pthread_mutex_unlock(&b->lock);
}

/* What cannot be put on record has not happened: the next server would go by the record, and kill
 * the box with all that was done in it. One that was only frozen goes on all the same, and the next
 * server sees that it does. */
static void undo_resume(struct sandbox *b, const struct sandbox_config *old)
{
	if (!old->cold || sandbox_config_replace(b, old) < 0)
		return;
	set_state(b, STORE_PAUSED);
	give_up_box(b);
}

int change_resume(struct sandbox *b, uint64_t timeout_ms, bool memory, struct problem *p)
{
	struct sandbox_config old, c;
	uint64_t asked_us;
	int r = 0;

	sandbox_config_of(b, &c);
	if (!c.cold && !memory)
		r = make_cold(b, p);
	if (r < 0)
		return r;
	sandbox_config_of(b, &c);
	asked_us = clock_boot_us();
	r = c.cold ? resume_cold(b, &c, timeout_ms, p) : resume_warm(b, timeout_ms, p);
	if (r < 0)
		return r;
	old = c;
	c.cold = false;
	uuid_new(c.execution);
	r = sandbox_config_replace(b, &c);
	set_running(b, asked_us, timeout_ms);
	if (r == 0)
		r = sandbox_save(b);
	if (r < 0) {
		undo_resume(b, &old);
		return problem_internal(p, r, "save that the sandbox was resumed");
	}
	sandbox_log(b, "info", "resumed");
	event_add(b, "resumed", NULL);
	return 0;
}

/* In the worker's thread: a sandbox whose time was over has been frozen, but only its files are
 * to be kept. */
static void cool_down(struct sandbox *b)
{
	struct problem p = { 0 };
	struct sandbox_config c;

	if (change_begin(b) < 0)
		return;
	sandbox_config_of(b, &c);
	if (sandbox_state(b) == STORE_PAUSED && !c.cold && make_cold(b, &p) < 0)
		sandbox_log(b, "error", "its memory could not be given up: %s", p.message);
	change_end(b);
}

void box_paused(struct sandbox *b)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	sandbox_log(b, "info", "paused: its time-out was reached");
	event_add_execution(b, "paused", json_pack("{s:s}", "pause_reason", "timeout"));
	if (!c.auto_pause_memory)
		worker_add(b, cool_down);
}

int change_wake(struct sandbox *b)
{
	struct problem p = { 0 };
	struct sandbox_config c;
	uint64_t timeout_ms;
	int r = change_begin(b);

	if (r < 0)
		return -ENOTCONN;
	sandbox_config_of(b, &c);
	timeout_ms = MIN(MAX(c.timeout_ms, (uint64_t)AUTO_RESUME_MIN_MS),
			 b->server->config.limits_timeout);
	if (sandbox_state(b) == STORE_RUNNING)
		r = 0; /* somebody else was first */
	else if (!c.auto_resume || c.cold || change_resume(b, timeout_ms, true, &p) < 0)
		r = -ENOTCONN;
	change_end(b);
	return r;
}
