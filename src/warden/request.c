/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server may ask for (AP-18). A message has passed warden_check(), so its text is text;
 * here every number is held against our own limits. A request that makes no sense gets an answer
 * that says so; a conversation that makes no sense ends the server.
 */
#include "warden/warden_priv.h"

#include "warden/boxes/boxes.h"
#include "warden/layers/layers.h"
#include "warden/link/link.h"
#include "warden/net/net.h"
#include "warden/zygote/zygote.h"

#define REFUSE(w, p, err, msg) talk_refuse(w, p, err, "request", msg)

static void no_such_box(struct warden *w, struct pending *p)
{
	REFUSE(w, p, ENOENT, "there is no such sandbox");
}

static void wrong_state(struct warden *w, struct pending *p)
{
	REFUSE(w, p, EBUSY, "the sandbox is not in a state for that");
}

static bool in_bounds(uint64_t value, uint64_t most)
{
	return value > 0 && value <= most;
}

/* config_check() has seen to it that what is the default is among it. */
static bool limits_ok(const struct config *c, const struct warden_limits *l)
{
	return in_bounds(l->memory_bytes, c->limits_memory) &&
	       in_bounds(l->disk_bytes, c->limits_disk) && in_bounds(l->files, c->limits_files) &&
	       in_bounds(l->pids, c->limits_pids) && in_bounds(l->cpu_milli, c->limits_cpus);
}

/* Why not? NULL: it may be made. */
static const char *create_refusal(struct warden *w, const struct warden_create *q, int *ret_err)
{
	*ret_err = EINVAL;
	if (q->template != WARDEN_TEMPLATE_BASE && q->template != WARDEN_TEMPLATE_CODE_INTERPRETER)
		return "there is no such template";
	if (q->flags & ~(WARDEN_CREATE_ROOT | WARDEN_CREATE_PAUSE | WARDEN_CREATE_SCRIPT))
		return "an unknown flag";
	/* A root that could stop a fork on its way in would stop the zygote too. */
	if ((q->flags & WARDEN_CREATE_SCRIPT) && (q->flags & WARDEN_CREATE_ROOT))
		return "a script's box has no root";
	if ((q->flags & WARDEN_CREATE_ROOT) && !w->config->sandbox_root)
		return "sandboxes have no root here";
	if (!limits_ok(w->config, &q->limits))
		return "a limit is beyond what is configured";
	if (q->timeout_ms > w->config->limits_timeout + WARDEN_SLACK_MS)
		return "the time-out is beyond what is configured";
	for (uint32_t i = 0; i < q->n_layers; i++)
		if (!layer_exists(w, q->layer[i])) {
			*ret_err = ENOENT;
			return "there is no such snapshot";
		}
	*ret_err = EEXIST;
	if (ward_find(w, q->id))
		return "the name is taken";
	*ret_err = EUSERS;
	if (w->n_boxes >= w->config->limits_sandboxes)
		return "too many sandboxes are running";
	return NULL;
}

/* From here on it is the sandbox of that id. */
static void take_in(struct warden *w, struct ward *d, const struct warden_create *q)
{
	ward_name(w, d, q->id);
	guard_start(w);
	ward_set_deadline(w, d, q->timeout_ms);
}

static void on_create(struct warden *w, const struct warden_create *q, struct pending *p)
{
	const struct ward_wish wish = {
		.limits = &q->limits,
		.flags = q->flags,
		.n_layers = q->n_layers,
		.layer = q->layer,
	};
	struct fail fail = { 0 };
	const char *refusal;
	struct ward *d;
	int err;

	refusal = create_refusal(w, q, &err);
	if (refusal) {
		REFUSE(w, p, err, refusal);
		return;
	}
	d = q->n_layers ? NULL : pool_take(w, &q->limits, q->flags);
	if (d) {
		take_in(w, d, q);
		ward_hand_out(w, d, p);
		return;
	}
	d = ward_begin(w, &wish, &fail);
	if (!d) {
		say("cannot make a box: %s", fail.msg);
		talk_refuse(w, p, fail.err, fail.where, "the box could not be made");
		return;
	}
	take_in(w, d, q);
	d->pending = *p;
	w->n_starting++;
}

static void on_kill(struct warden *w, struct ward *d, struct pending *p)
{
	ward_end(w, d, WARDEN_ENDED_KILLED, true);
	talk_reply(w, p, NULL, -EBADF);
}

static bool is_being_paused(const struct ward *d)
{
	return d->state == WARD_FREEZING && !d->copy;
}

static void on_pause(struct warden *w, struct ward *d, struct pending *p)
{
	int r;

	if (d->state == WARD_PAUSED) {
		talk_reply(w, p, d, -EBADF);
		return;
	}
	/* Its time is over, or it was asked for before: the last request is told how it went. */
	if (is_being_paused(d)) {
		REFUSE(w, &d->pending, ECANCELED, "somebody asked for it once more");
		d->to_pause = false;
		d->pending = *p;
		return;
	}
	if (d->state != WARD_RUNNING) {
		wrong_state(w, p);
		return;
	}
	r = ward_freeze(w, d);
	if (r < 0)
		talk_refuse(w, p, -r, "freeze",
			    r == -EOPNOTSUPP ? "this machine's cgroups cannot freeze" :
					       "the sandbox cannot be frozen");
	else
		d->pending = *p;
}

/* While its files are copied, its time counts if it is to go on afterwards. */
static bool may_get_time(const struct ward *d, bool resume)
{
	if (d->copy)
		return !resume && !d->stay_paused;
	return d->state != WARD_PAUSED || resume;
}

/* Time that is given while it is being paused means that it is to run: it goes on. */
static void give_time(struct warden *w, struct ward *d, uint64_t timeout_ms, struct pending *p)
{
	int r = 0;

	ward_set_deadline(w, d, timeout_ms);
	if (d->state == WARD_PAUSED || is_being_paused(d)) {
		REFUSE(w, &d->pending, ECANCELED, "somebody wants it to go on");
		r = ward_thaw(w, d);
	}
	if (r < 0)
		talk_refuse(w, p, -r, "thaw", "the sandbox cannot go on");
	else
		talk_reply(w, p, d, -EBADF);
}

static void on_time(struct warden *w, const struct warden_deadline *q, bool resume,
		    struct pending *p)
{
	struct ward *d = ward_find(w, q->id);

	if (!d || d->state == WARD_STARTING) {
		no_such_box(w, p);
	} else if (q->timeout_ms > w->config->limits_timeout) {
		REFUSE(w, p, EINVAL, "the time-out is beyond what is configured");
	} else if (!may_get_time(d, resume)) {
		wrong_state(w, p);
	} else {
		give_time(w, d, q->timeout_ms, p);
	}
}

static void on_snapshot(struct warden *w, const struct warden_snapshot *q, struct pending *p)
{
	struct ward *d = ward_find(w, q->id);
	int r;

	if (!d || d->state == WARD_STARTING) {
		no_such_box(w, p);
		return;
	}
	if (d->state != WARD_RUNNING && d->state != WARD_PAUSED) {
		wrong_state(w, p);
		return;
	}
	r = copy_begin(w, d, q->layer, p);
	if (r < 0)
		talk_refuse(w, p, -r, "snapshot",
			    r == -EEXIST     ? "the name is taken" :
			    r == -EOPNOTSUPP ? "snapshots need a service that runs as root and "
					       "cgroups that can freeze" :
			    r == -ENOSPC     ? "there is no room for it" :
			    r == -EMLINK     ? "it stands on too many snapshots" :
			    r == -EAGAIN     ? "too many snapshots are being made" :
					       "it cannot be made");
}

static void on_drop_layer(struct warden *w, const struct warden_layer *q, struct pending *p)
{
	int r = layer_drop(w, q->layer);

	if (r == 0)
		talk_reply(w, p, NULL, -EBADF);
	else
		REFUSE(w, p, -r,
		       r == -ENOENT ? "there is no such snapshot" :
		       r == -EBUSY  ? "a sandbox stands on it" :
				      "it cannot be removed");
}

static void on_next_layer(struct warden *w, const struct warden_layer *q, struct pending *p)
{
	char next[WARDEN_ID_SIZE];
	int r = layer_next(w, q->layer, next);

	if (r == 0)
		talk_reply_layer(w, p, next);
	else
		REFUSE(w, p, -r,
		       r == -ENOENT    ? "there is no other snapshot" :
		       r == -EOVERFLOW ? "there are too many snapshots to look through" :
					 "the snapshots cannot be read");
}

static void on_context(struct warden *w, const struct warden_context *q, struct pending *p)
{
	struct ward *d = ward_find(w, q->id);
	int r;

	if (!d || d->state == WARD_STARTING) {
		no_such_box(w, p);
		return;
	}
	if (d->state != WARD_RUNNING) {
		wrong_state(w, p);
		return;
	}
	if ((q->flags & WARDEN_CONTEXT_BETTER) && d->prepared == q->zygote)
		r = 0;
	else
		r = zygote_context(w, d, &q->context, (enum warden_zygote)q->zygote);
	if (r == 0)
		talk_reply(w, p, d, -EBADF);
	else
		talk_refuse(w, p, r == -EOPNOTSUPP ? EOPNOTSUPP : EAGAIN, "zygote",
			    r == -EOPNOTSUPP ? "no interpreter is kept loaded for it" :
					       "no loaded interpreter can be had now");
}

/* A box that stands still can get doors: nobody in it has to do anything for that. */
static void on_network(struct warden *w, const struct warden_frame *f, struct pending *p)
{
	struct ward *d = ward_find(w, f->as_NET.id);

	if (!d || d->state == WARD_STARTING)
		no_such_box(w, p);
	else if (f->head.type == WARDEN_NET)
		net_begin(w, d, p);
	else if (d->state != WARD_RUNNING)
		wrong_state(w, p);
	else
		net_socket(w, d, f->as_SOCKET.family, p);
}

/* A box that its server was still waiting for when it died will be known to nobody. */
static void end_orphans(struct warden *w)
{
	for (size_t i = 0; i < w->n_used_wards; i++) {
		struct ward *d = &w->wards[i];

		if (d->state == WARD_STARTING && d->id[0] && d->pending.server != w->room.number)
			ward_end(w, d, WARDEN_ENDED_KILLED, true);
	}
}

static void on_hello(struct warden *w, const struct warden_hello *q, struct pending *p)
{
	if (q->version != WARDEN_VERSION) {
		room_refuse_version(w);
		return;
	}
	room_greeted(w);
	warden_served(w);
	end_orphans(w);
	for (size_t i = 0; i < w->n_used_wards; i++) {
		const struct ward *d = &w->wards[i];
		struct warden_frame f = { 0 };

		if (!d->id[0] || d->state == WARD_FREE)
			continue;
		ward_describe(d, &f.as_BOX);
		talk_send(w, WARDEN_BOX, &f, d->box.control_fd);
	}
	for (size_t i = w->n_ended - MIN(w->n_ended, (size_t)ENDED_KEPT); i < w->n_ended; i++) {
		struct warden_frame f = { .as_ENDED = w->ended[i % ENDED_KEPT] };

		/* A box that was made anew under its id lives: what became of the old one is
		 * over. */
		if (!ward_find(w, f.as_ENDED.id))
			talk_send(w, WARDEN_ENDED, &f, -EBADF);
	}
	egress_greet_server(w);
	talk_reply_net(w, p, NULL, w->egress.catches ? WARDEN_NET_CATCHES : 0);
}

static void on_named_box(struct warden *w, const struct warden_frame *f, struct pending *p)
{
	struct ward *d = ward_find(w, f->as_KILL.id);
	bool kill = f->head.type == WARDEN_KILL;

	if (!d || (d->state == WARD_STARTING && !kill))
		no_such_box(w, p);
	else if (kill)
		on_kill(w, d, p);
	else if (f->head.type == WARDEN_PAUSE)
		on_pause(w, d, p);
	else
		talk_reply_usage(w, p, d);
}

void request_handle(struct warden *w, const struct warden_frame *f)
{
	struct pending p = { .request = f->head.request, .server = w->room.number };

	if ((f->head.type == WARDEN_HELLO) == w->room.greeted) {
		room_refuse(w, w->room.greeted ? "it said hello twice" : "it did not say hello");
		return;
	}
	switch ((enum warden_type)f->head.type) {
	case WARDEN_HELLO:
		on_hello(w, &f->as_HELLO, &p);
		break;
	case WARDEN_CREATE:
		on_create(w, &f->as_CREATE, &p);
		break;
	case WARDEN_KILL:
	case WARDEN_PAUSE:
	case WARDEN_USAGE:
		on_named_box(w, f, &p);
		break;
	case WARDEN_DEADLINE:
	case WARDEN_RESUME:
		on_time(w, &f->as_DEADLINE, f->head.type == WARDEN_RESUME, &p);
		break;
	case WARDEN_SNAPSHOT:
		on_snapshot(w, &f->as_SNAPSHOT, &p);
		break;
	case WARDEN_DROP_LAYER:
		on_drop_layer(w, &f->as_DROP_LAYER, &p);
		break;
	case WARDEN_NEXT_LAYER:
		on_next_layer(w, &f->as_NEXT_LAYER, &p);
		break;
	case WARDEN_CONTEXT:
		on_context(w, &f->as_CONTEXT, &p);
		break;
	case WARDEN_NET:
	case WARDEN_SOCKET:
		on_network(w, f, &p);
		break;
	case WARDEN_MEET:
		/* While egress has something to be told, this may be among it: who still has no
		 * socket asks again. */
		if (!w->egress.first)
			egress_greet_server(w);
		talk_reply(w, &p, NULL, -EBADF);
		break;
	case WARDEN_REPLY:
	case WARDEN_EGRESS:
	case WARDEN_BOX:
	case WARDEN_ENDED:
	case WARDEN_PAUSED:
		break; /* warden_check() lets none of these come this way */
	}
}
