/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: boxes outlive this program. On HELLO the warden tells of all it has, before
 * the store has been read; they wait in a list until boxes_take_up(). From then on events go
 * straight to the sandboxes.
 *
 * After the death of a server or of the whole service the next one takes up what it was at. The
 * record holds. A sandbox that is on record as paused without memory but still has a box was being
 * paused, or resumed: the box goes. A layer that is on record as pending was being made: it goes
 * unless somebody stands on it by now.
 */
#include "server/changes/boxes.h"

#include "server/changes/changes.h"
#include "server/sandbox/outlet.h"
#include "server/sandbox/reason.h"

#include <sys/eventfd.h>

#define KILL_TIMEOUT_MS 10000
#define END_SLACK_MS                                                                               \
	10000 /* a deadline on record may be so far from the same one as the warden has it */

struct told_box {
	char id[WARDEN_ID_SIZE];
	bool ended; /* there is no box any more, for this reason */
	uint32_t reason;
	struct warden_box box;
	int control_fd;
	struct told_box *next;
};

/* Only used by main's thread, before there are others. */
static struct told_box *told;

static struct told_box *add_told(const char *id)
{
	struct told_box *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	memcpy(t->id, id, sizeof(t->id));
	t->control_fd = -EBADF;
	t->next = told;
	told = t;
	return t;
}

static struct told_box *find_told(const char *id)
{
	for (struct told_box *t = told; t; t = t->next)
		if (strcmp(t->id, id) == 0)
			return t;
	return NULL;
}

static void drop_told(struct told_box *gone)
{
	for (struct told_box **p = &told; *p; p = &(*p)->next) {
		if (*p != gone)
			continue;
		*p = gone->next;
		fd_close(gone->control_fd);
		free(gone);
		return;
	}
}

/* --- events ----------------------------------------------------------------------------------- */

static void on_box(void *arg, const struct warden_box *box, int control_fd)
{
	struct told_box *t = add_told(box->id);

	(void)arg;
	if (!t) {
		fd_close(control_fd);
		return;
	}
	t->box = *box;
	t->control_fd = control_fd;
}

static void on_ended(void *arg, const struct warden_ended *ended)
{
	struct server *s = arg;
	struct sandbox *b = sandbox_get(s, ended->id);
	struct told_box *t;

	if (b) {
		if (!sandbox_is_boxless(b) && sandbox_end(b, ended->reason, NULL))
			box_ended(b);
		sandbox_put(b);
		return;
	}
	/* Before the store has been read: the reason is for boxes_take_up(). */
	t = s->link ? NULL : add_told(ended->id);
	if (t) {
		t->ended = true;
		t->reason = ended->reason;
	}
}

static void on_paused(void *arg, const char *id)
{
	_cleanup_(sandbox_putp) struct sandbox *b = sandbox_get(arg, id);
	bool ended;

	if (!b)
		return;
	if (sandbox_is_boxless(b)) {
		kill_box_later(b); /* it was to be gone by now */
		return;
	}
	pthread_mutex_lock(&b->lock);
	ended = b->info.state == STORE_ENDED; /* somebody killed it meanwhile */
	if (!ended) {
		b->info.state = STORE_PAUSED;
		b->deadline_pause_us = clock_boot_us();
	}
	pthread_mutex_unlock(&b->lock);
	if (ended)
		return;
	sandbox_hang_up(b, false);
	if (sandbox_save(b) < 0)
		server_log(arg, "error", "store", json_pack("{s:s}", "sandbox", id));
	box_paused(b);
}

static void on_egress(void *arg, int sock)
{
	const struct server *s = arg;

	outlets_connect(s->outlets, sock);
}

static void on_lost(void *arg)
{
	const struct server *s = arg;

	(void)eventfd_write(s->stop_fd, 1);
}

const struct link_events boxes_events = {
	.box = on_box,
	.ended = on_ended,
	.paused = on_paused,
	.egress = on_egress,
	.lost = on_lost,
};

/* --- at start --------------------------------------------------------------------------------- */

static void recorded_limits(struct server *s, const struct store_sandbox *info,
			    struct warden_limits *ret)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	if (c.limits.memory_bytes)
		*ret = c.limits;
	else
		limits_default(&s->config, ret);
}

static void note_lost(struct server *s, const struct store_sandbox *info)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	event_add_lost(s, info, json_pack("{s:s}", "kill_reason", reason_word(info->reason)));
	if (c.n_layers || *c.pending)
		worker_add_layers(&c);
}

/* What the store remembers as living but nobody has any more. */
static int end_row(struct server *s, struct store_sandbox *info, const struct told_box *t)
{
	int r;

	info->state = STORE_ENDED;
	info->end_ms = clock_wall_ms();
	info->reason = t ? t->reason : WARDEN_ENDED_STOPPED;
	r = store_sandbox_update(s->store, info);
	if (r == 0)
		note_lost(s, info);
	return r;
}

/* The warden's word counts: it may have been paused or resumed, or got another deadline, while
 * nobody looked. */
static void believe(struct store_sandbox *info, const struct warden_box *box)
{
	int64_t end_ms = clock_wall_ms() + (int64_t)box->left_ms;

	info->state = box->state == WARDEN_STATE_PAUSED ? STORE_PAUSED : STORE_RUNNING;
	if (info->state == STORE_RUNNING && llabs(end_ms - info->end_ms) > END_SLACK_MS)
		info->end_ms = end_ms;
}

static int add_row(struct server *s, struct store_sandbox *info, struct told_box *t)
{
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	struct warden_limits limits;
	int r;

	believe(info, &t->box);
	recorded_limits(s, info, &limits);
	r = sandbox_add(s, info, &limits, 0, &b);
	if (r < 0)
		return r;
	b->deadline_us = clock_boot_us() + t->box.left_ms * 1000;
	b->had_doors = t->box.flags & WARDEN_BOX_DOORS;
	r = sandbox_set_box(b, take_fd(&t->control_fd), &t->box.isolation);
	return r < 0 ? r : sandbox_save(b);
}

/* Its files are all there is of it, before anybody can be told of the end of a box that it was to
 * have. */
static int add_boxless_row(struct server *s, struct store_sandbox *info)
{
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	struct warden_limits limits;
	int r;

	info->state = STORE_PAUSED;
	recorded_limits(s, info, &limits);
	r = sandbox_add(s, info, &limits, 0, &b);
	return r < 0 ? r : sandbox_set_boxless(b, true);
}

/* The row stays the store's: what is kept of it is moved out, and what is left is empty. */
static int take_up_row(struct store_sandbox *info, void *arg)
{
	struct server *s = arg;
	struct told_box *t = find_told(info->id);
	bool has_box = t && !t->ended;
	struct sandbox_config c;
	int r;

	sandbox_config_read(info->config, &c);
	/* If it has a box, it was being paused or resumed: the record holds, and the box is
	 * nobody's. */
	if (c.cold)
		return add_boxless_row(s, info);
	r = has_box ? add_row(s, info, t) : end_row(s, info, t);
	if (t)
		drop_told(t);
	return r;
}

int boxes_take_up(struct server *s, struct fail *fail)
{
	int r = store_sandbox_each_live(s->store, take_up_row, s);

	if (r < 0)
		return fail_set(fail, -r, "sandboxes",
				"cannot take up the sandboxes of the last run: %s", strerror(-r));
	return 0;
}

void boxes_kill_unknown(struct server *s)
{
	while (told) {
		struct warden_frame f = { 0 };
		struct warden_reply reply;
		struct told_box *t = told;

		memcpy(f.as_KILL.id, t->id, sizeof(f.as_KILL.id));
		if (!t->ended &&
		    link_ask(s->link, WARDEN_KILL, &f, KILL_TIMEOUT_MS, &reply, NULL) < 0)
			server_log(s, "warn", "unknown_box", json_pack("{s:s}", "box", t->id));
		drop_told(t);
	}
}

/* In the worker's thread. */
static void finish_pending(struct sandbox *b)
{
	struct sandbox_config c;

	if (change_begin(b) < 0)
		return;
	sandbox_config_of(b, &c);
	c.n_layers = 0;
	layers_release(b->server, &c);
	if (change_snapshot_done(b) < 0)
		sandbox_log(b, "error", "a snapshot that was not finished could not be forgotten");
	change_end(b);
}

static void finish_change(struct sandbox *b)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	if (*c.pending)
		worker_add(b, finish_pending);
	if (!c.cold)
		worker_add(b, network_take_up);
}

int boxes_finish_changes(struct server *s)
{
	struct sandbox **list;
	size_t n;
	int r = sandbox_list(s, NULL, &list, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		finish_change(list[i]);
	sandbox_list_free(list, n);
	return 0;
}
