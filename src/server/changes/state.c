/* SPDX-License-Identifier: Apache-2.0 */
/* How a sandbox changes: one change at a time, its deadline, its end. */
#include "server/changes/changes.h"

#include "server/sandbox/reason.h"

#define DEADLINE_MIN_MS 1 /* zero seconds from now is as soon as can be */

enum store_state sandbox_state(struct sandbox *b)
{
	enum store_state state;

	pthread_mutex_lock(&b->lock);
	state = b->info.state;
	pthread_mutex_unlock(&b->lock);
	return state;
}

int change_begin(struct sandbox *b)
{
	pthread_mutex_lock(&b->change);
	if (sandbox_state(b) != STORE_ENDED)
		return 0;
	pthread_mutex_unlock(&b->change);
	return -ENOENT;
}

void change_end(struct sandbox *b)
{
	pthread_mutex_unlock(&b->change);
}

int change_deadline(struct sandbox *b, uint64_t timeout_ms, bool only_later, struct problem *p)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	uint64_t deadline_us = clock_boot_us() + timeout_ms * 1000;
	int64_t end_ms = clock_wall_ms() + (int64_t)timeout_ms;
	bool later;
	int r;

	pthread_mutex_lock(&b->lock);
	later = deadline_us > b->deadline_us;
	pthread_mutex_unlock(&b->lock);
	if (only_later && !later)
		return 0;
	memcpy(f.as_DEADLINE.id, b->info.id, sizeof(f.as_DEADLINE.id));
	f.as_DEADLINE.timeout_ms = MAX(timeout_ms, (uint64_t)DEADLINE_MIN_MS);
	r = link_ask(b->server->link, WARDEN_DEADLINE, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return problem_internal(p, r, "set the time-out");
	if (reply.err)
		return problem_warden(p, &reply, "get another time-out");
	pthread_mutex_lock(&b->lock);
	b->deadline_us = deadline_us;
	b->info.end_ms = end_ms;
	pthread_mutex_unlock(&b->lock);
	r = sandbox_save(b);
	if (r < 0)
		return problem_internal(p, r, "save the time-out");
	event_add(b, "updated", json_pack("{s:o}", "set_timeout", clock_json(end_ms)));
	return 0;
}

int kill_box(struct sandbox *b)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int r;

	memcpy(f.as_KILL.id, b->info.id, sizeof(f.as_KILL.id));
	r = link_ask(b->server->link, WARDEN_KILL, &f, SHORT_TIMEOUT_MS, &reply, NULL);
	if (r < 0)
		return r;
	return reply.err == ENOENT ? 0 : -reply.err;
}

/* In the worker's thread: once more what could not be done in time. A sandbox that was resumed
 * since has another box of the same name, which is not meant. */
static void kill_again(struct sandbox *b)
{
	bool ended = change_begin(b) < 0;
	int r = ended || sandbox_is_boxless(b) ? kill_box(b) : 0;

	if (!ended)
		change_end(b);
	if (r < 0)
		server_log(b->server, "error", "kill",
			   json_pack("{s:s, s:s}", "sandbox", b->info.id, "error", strerror(-r)));
}

void kill_box_later(struct sandbox *b)
{
	worker_add(b, kill_again);
}

/* The record comes first: a server that dies in between leaves a box without a record, which the
 * next one kills. */
int change_kill(struct sandbox *b, const char *detail, struct problem *p)
{
	struct sandbox_config c;
	int r;

	sandbox_config_of(b, &c);
	if (!sandbox_end(b, WARDEN_ENDED_KILLED, detail))
		return problem_set(p, 404, NULL, "sandbox '%s' was not found", b->info.id);
	/* Also of one that was paused without memory: it may be there yet. */
	r = kill_box(b);
	event_add_execution(b, "killed", json_pack("{s:s}", "kill_reason", "request"));
	layers_release(b->server, &c);
	worker_prune();
	if (r < 0) {
		kill_box_later(b);
		return problem_internal(p, r, "kill the sandbox");
	}
	return 0;
}

/* In the worker's thread: the layers of a box that ended by itself. */
static void release_layers(struct sandbox *b)
{
	struct sandbox_config c;

	/* A snapshot that was made in its last moment goes on record first. */
	pthread_mutex_lock(&b->change);
	sandbox_config_of(b, &c);
	layers_release(b->server, &c);
	pthread_mutex_unlock(&b->change);
}

void box_ended(struct sandbox *b)
{
	struct sandbox_config c;

	event_add_execution(b, "killed",
			    json_pack("{s:s}", "kill_reason", reason_word(b->info.reason)));
	sandbox_config_of(b, &c);
	if (c.n_layers || *c.pending)
		worker_add(b, release_layers);
	worker_prune();
}
