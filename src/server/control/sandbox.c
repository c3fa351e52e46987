/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox: look at it, move its deadline, pause, resume, end. */
#include "server/control/control_priv.h"

#define REFRESH_DEFAULT_S 15

int handle_get(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);

	return b ? reply_json(r, 200, show_detail(b)) : 0;
}

int handle_kill(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = request_begin_change(r);
	struct problem p = { 0 };
	char by[96];

	if (!b)
		return 0;
	(void)snprintf(by, sizeof(by), "key %s asked for it",
		       *r->key.name ? r->key.name : r->key.id);
	return change_kill(b, by, &p) < 0 ? problem_reply(r, &p) : reply_empty(r, 204);
}

static int move_deadline(struct request *r, const char *name, uint64_t default_s, bool only_later)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	struct problem p = { 0 };
	uint64_t timeout_ms;
	bool paused;
	int e = 0;

	if (body_timeout(r, name, default_s, &timeout_ms, &p) < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	paused = sandbox_state(b) == STORE_PAUSED;
	if (!paused) {
		e = change_deadline(b, timeout_ms, only_later, &p);
		/* Its time was over a moment ago, which we have heard of by now. */
		paused = e < 0 && sandbox_state(b) == STORE_PAUSED;
	}
	if (paused)
		return reply_error(r, 404, "sandbox '%s' is not running: it is paused", b->info.id);
	return e < 0 ? problem_reply(r, &p) : reply_empty(r, 204);
}

int handle_timeout(struct request *r)
{
	return move_deadline(r, "timeout", 0, false);
}

int handle_refresh(struct request *r)
{
	return move_deadline(r, "duration", REFRESH_DEFAULT_S, true);
}

int handle_pause(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = request_begin_change(r);
	struct problem p = { 0 };

	if (!b)
		return 0;
	return change_pause(b, body_bool(r, "memory", true), &p) < 0 ? problem_reply(r, &p) :
								       reply_empty(r, 204);
}

/* 200 and a deadline that is not nearer than before, or 201 and a sandbox that runs again. */
static int reply_connect(struct request *r, uint64_t default_s)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	struct problem p = { 0 };
	uint64_t timeout_ms;
	bool paused;
	int e = body_timeout(r, "timeout", default_s, &timeout_ms, &p);

	if (e < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	paused = sandbox_state(b) == STORE_PAUSED;
	if (!paused) {
		e = change_deadline(b, timeout_ms, true, &p);
		/* Its time was over a moment ago: it is paused. */
		paused = e < 0 && p.status == 409;
	}
	if (paused)
		e = change_resume(b, timeout_ms, body_bool(r, "memory", true), &p);
	return e < 0 ? problem_reply(r, &p) : reply_json(r, paused ? 201 : 200, show_sandbox(b));
}

int handle_connect_v1(struct request *r)
{
	return reply_connect(r, TIMEOUT_DEFAULT_V1_S);
}

int handle_connect_v2(struct request *r)
{
	return reply_connect(r, TIMEOUT_DEFAULT_V2_S);
}

/* A frozen box does at its deadline what it was made to do; only one that is made anew can
 * change its mind. */
static int set_auto_pause(struct request *r, struct sandbox *b, bool memory, struct problem *p)
{
	struct sandbox_config c;
	bool wanted;

	sandbox_config_of(b, &c);
	wanted = body_bool(r, "autoPause", c.auto_pause);
	if (wanted == c.auto_pause)
		return 0;
	if (!c.cold && memory)
		return problem_set(
			p, 400, "not_supported",
			"not supported: another autoPause for a sandbox that was paused with its memory");
	c.auto_pause = wanted;
	return sandbox_config_replace(b, &c) < 0 ?
		       problem_internal(p, -ENOMEM, "resume the sandbox") :
		       0;
}

int handle_resume(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	bool memory = body_bool(r, "memory", true);
	struct problem p = { 0 };
	uint64_t timeout_ms;

	if (body_timeout(r, "timeout", TIMEOUT_DEFAULT_V1_S, &timeout_ms, &p) < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	if (sandbox_state(b) != STORE_PAUSED)
		return reply_error(r, 409, "sandbox '%s' is already running", b->info.id);
	if (set_auto_pause(r, b, memory, &p) < 0 || change_resume(b, timeout_ms, memory, &p) < 0)
		return problem_reply(r, &p);
	return reply_json(r, 201, show_sandbox(b));
}
