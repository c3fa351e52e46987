/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a cell: from the agent's frames to the client's lines. The order is the protocol's and the agent is held to
 * it:
 *
 *	STARTED, then OUT, ERR, SPILLED and events (EVENT…, EVENT_END) in any number, then CELL_END; or FAILED alone
 *
 * One of the events at most is an error. Of those that show nothing there may be a few: to read them is work, and as
 * nobody has to read what comes of it, nothing else would hold a cell back.
 *
 * When the client goes, the socket is closed and the agent interrupts the cell. An interpreter's error is held back to
 * the end: if a limit was the reason, the client is told of that and not of the interruption it looked like.
 */
#include "server/interp/interp.h"

#include <signal.h>

#define EARLY_MAX ((size_t)32 << 10)
#define UNSEEN_MAX 100

enum phase { PHASE_WAITING, PHASE_RUNNING };

struct follow {
	struct interp_cell cell;
	bool has_frame; /* one that nobody has looked at */
	enum phase phase;
	struct interp_assembly event;
	bool complained;
	unsigned n_unseen; /* events that showed nothing */
	bool has_erred;    /* its interpreter has told what went wrong */
	struct interp_carry out, err;
	struct buf early; /* lines of output that wait for the cell's number, which comes first */
	bool is_numbered;
	bool out_spilled, err_spilled;
	json_t *error; /* what the interpreter said went wrong */
};

/* --- output before the number -------------------------------------------------------------------------- */

static int release_output(struct interp_stream *s, struct follow *f)
{
	int r = f->early.len ? buf_add(&s->out, f->early.data, f->early.len) : 0;

	f->is_numbered = true;
	buf_done(&f->early);
	return r;
}

/* --- the end --------------------------------------------------------------------------------------------- */

static int hold_error(struct follow *f, json_t *error)
{
	if (!error)
		return -ENOMEM;
	json_decref(f->error);
	f->error = error;
	return 0;
}

static int result_too_large(struct follow *f)
{
	if (f->error)
		return 0; /* one error is all a cell can have, and the interpreter's own says more */
	return hold_error(f, interp_error("ResultTooLarge",
					  "a result of the cell was larger than can be sent; "
					  "write it to a file instead",
					  ""));
}

/* An error of ours in the place of the interpreter's, whose traceback still says where it was. */
static int replace_error(struct follow *f, const char *name, const char *value)
{
	const char *traceback = json_string_value(json_object_get(f->error, "traceback"));

	return hold_error(f, interp_error(name, value, traceback ? traceback : ""));
}

static int died(struct follow *f, const struct wire_cell_end *end)
{
	struct sandbox *b = f->cell.request->sandbox;
	char how[ENVD_STATUS_SIZE], why[RUN_LIMIT_TEXT_SIZE] = "", text[384];
	struct run_limits limits = { 0 };
	enum run_limit limit;

	switch (interp_fate(b, &f->cell.target)) {
	case INTERP_RESTARTED:
		return replace_error(f, "ContextRestarting", "Context was restarted");
	case INTERP_REMOVED:
		return replace_error(f, "ContextRemoved", "Context was removed");
	case INTERP_SAME:
	default:
		break;
	}
	interp_exit_text(&end->exit, how);
	sandbox_log(b, "warn", "context %s: its interpreter ended in a cell: %s",
		    f->cell.target.name, how);
	limit = sandbox_judge(b, &end->exit, &limits);
	if (limit != RUN_LIMIT_NONE)
		run_limit_text(limit, &limits, &run_words_sandbox, why);
	(void)snprintf(
		text, sizeof(text),
		"the interpreter ended (%s)%s%s; the context was restarted, its variables are gone",
		how, *why ? ": " : "", why);
	return replace_error(f, "ContextDied", text);
}

/* The agent has judged, by what it sees of the interpreter: the cell's limits are its own. */
static enum run_limit limit_of_cell(const struct wire_cell_end *end)
{
	switch (end->reason) {
	case WIRE_CELL_WALL:
		return RUN_LIMIT_TIME;
	case WIRE_CELL_CPU:
		return RUN_LIMIT_CPU_TIME;
	case WIRE_CELL_MEMORY:
		return RUN_LIMIT_MEMORY;
	default:
		return RUN_LIMIT_NONE;
	}
}

static int limit_reached(struct follow *f, enum run_limit limit, bool died)
{
	const struct wire_cell *what = &f->cell.what;
	const struct interp_limits given = { what->wall_ms, what->cpu_ms, what->memory_bytes, 0 };
	const struct run_limits limits = interp_run_limits(&given);
	char why[RUN_LIMIT_TEXT_SIZE], text[RUN_LIMIT_TEXT_SIZE + 64];

	run_limit_text(limit, &limits, &run_words_cell, why);
	(void)snprintf(text, sizeof(text), "%s%s", why,
		       died ? "; the context was restarted, its variables are gone" : "");
	return replace_error(f, interp_limit[limit].error, text);
}

static int on_end(struct interp_stream *s, struct follow *f)
{
	struct wire_cell_end end;
	enum run_limit limit;
	int r = 0;

	memcpy(&end, f->cell.talk->frame.data,
	       sizeof(end)); /* wire_check() has seen to its numbers */
	limit = limit_of_cell(&end);
	if (limit != RUN_LIMIT_NONE)
		r = limit_reached(f, limit, end.died);
	else if (end.died)
		r = died(f, &end);
	if (r == 0)
		r = release_output(s, f);
	if (r == 0)
		r = interp_line_rest(&s->out, &f->out, false);
	if (r == 0)
		r = interp_line_rest(&s->out, &f->err, true);
	if (r == 0 && f->error)
		r = interp_line(&s->out, take_ptr(f->error));
	if (r == 0)
		r = interp_line(&s->out, interp_usage(&end));
	return r < 0 ? r : interp_stream_end(s, end.died);
}

/* --- on the way ------------------------------------------------------------------------------------------ */

/* An interpreter can say what it likes; one line in the log is enough to find out why something is missing. */
static int drop_event(struct follow *f, const char *what)
{
	if (!f->complained)
		sandbox_log(f->cell.request->sandbox, "warn",
			    "context %s: its interpreter sent %s that makes no sense",
			    f->cell.target.name, what);
	f->complained = true;
	return 0;
}

static int count_unseen(struct follow *f)
{
	return ++f->n_unseen > UNSEEN_MAX ? -EOVERFLOW : 0;
}

static int show(struct interp_stream *s, struct follow *f, enum wire_event_kind kind)
{
	const void *text = f->event.text.len ? (const void *)f->event.text.data : "";
	size_t len = f->event.text.len;
	json_t *event = NULL;
	int r;

	if (kind == WIRE_EVENT_ERROR)
		r = interp_event_error(text, len, &event);
	else if (kind == WIRE_EVENT_COUNT)
		r = interp_event_count(text, len, &event);
	else
		r = interp_event_result(text, len, &event);
	if (r == 0 && kind == WIRE_EVENT_ERROR)
		return hold_error(f, event);
	if (r == 0)
		r = interp_line(&s->out, event);
	return r < 0 || kind != WIRE_EVENT_COUNT ? r : release_output(s, f);
}

static int on_event(struct interp_stream *s, struct follow *f)
{
	const struct wire_event *e = (const struct wire_event *)f->cell.talk->frame.data;
	/* One of many values at a time: what it takes while it is read is a multiple of its size. */
	static pthread_mutex_t heavy = PTHREAD_MUTEX_INITIALIZER;
	bool is_heavy = interp_event_is_heavy(f->event.text.data, f->event.text.len),
	     is_error = e->kind == WIRE_EVENT_ERROR;
	int r = -E2BIG;

	if (is_error && f->has_erred)
		return -EPROTO;
	f->has_erred = f->has_erred || is_error;
	if (is_heavy)
		pthread_mutex_lock(&heavy);
	if (!f->event.too_large)
		r = show(s, f, (enum wire_event_kind)e->kind);
	if (is_heavy)
		pthread_mutex_unlock(&heavy);
	interp_assembly_reset(&f->event);
	if (r == -E2BIG || r == -ENOBUFS)
		r = result_too_large(f);
	else if (r == -EINVAL)
		r = drop_event(f, "an event");
	else
		return r;
	return r < 0 ? r : count_unseen(f);
}

/* The number is an event and comes through another pipe than the output, so it may be overtaken. */
static int on_output(struct interp_stream *s, struct follow *f)
{
	const struct wire_frame *frame = &f->cell.talk->frame;
	bool is_err = frame->head.type == WIRE_ERR;
	int r = interp_line_output(f->is_numbered ? &s->out : &f->early, is_err ? &f->err : &f->out,
				   is_err, frame->data, wire_len(frame));

	return r == 0 && f->early.len > EARLY_MAX ? release_output(s, f) : r;
}

/* For programs an event of its own, for people a line where they look. */
static int on_spilled(struct interp_stream *s, struct follow *f)
{
	const struct wire_frame *frame = &f->cell.talk->frame;
	struct wire_spilled spilled;
	const char *path = (const char *)frame->data + sizeof(spilled), *stream;
	int len = (int)(wire_len(frame) - sizeof(spilled));
	char text[WIRE_PATH_MAX + 128];
	bool *seen;

	memcpy(&spilled, frame->data, sizeof(spilled));
	seen = spilled.stream == 1 ? &f->out_spilled : &f->err_spilled;
	stream = spilled.stream == 1 ? "stdout" : "stderr";
	if (*seen)
		return -EPROTO;
	*seen = true;
	(void)snprintf(text, sizeof(text), "[%s: more than %llu bytes; the rest is in %.*s]\n",
		       stream, (unsigned long long)f->cell.what.output_bytes, len, path);
	if (interp_line(&s->out, json_pack("{s:s, s:s, s:o}", "type", "output_spilled", "stream",
					   stream, "path", rpc_text(path, (size_t)len))) < 0)
		return -ENOMEM;
	return interp_line_output(&s->out, &f->err, true, text, strlen(text));
}

/* --- frames ---------------------------------------------------------------------------------------------- */

/* The head of the reply has gone, so what went wrong is told in lines. */
static int end_with(struct interp_stream *s, const char *name, const char *value)
{
	int r = interp_line(&s->out, interp_error(name, value, ""));

	return r < 0 ? r : interp_stream_end(s, true);
}

static int on_failed(struct interp_stream *s, struct follow *f)
{
	struct wire_failed failed;
	struct rpc_error e;
	int r;

	if (f->phase != PHASE_WAITING || talk_failed(&f->cell.talk->frame, &failed) < 0)
		return -EPROTO;
	r = interp_cell_again(&f->cell, &failed, &e);
	s->fd = f->cell.talk->op.sock;
	return r == -EREMOTEIO ? end_with(s, "ContextFailed", e.message) : r;
}

static int on_running(struct interp_stream *s, struct follow *f)
{
	switch (f->cell.talk->frame.head.type) {
	case WIRE_OUT:
	case WIRE_ERR:
		return on_output(s, f);
	case WIRE_EVENT:
		return interp_assembly_add(&f->event, f->cell.talk->frame.data,
					   wire_len(&f->cell.talk->frame));
	case WIRE_EVENT_END:
		return on_event(s, f);
	case WIRE_SPILLED:
		return on_spilled(s, f);
	case WIRE_CELL_END:
		return on_end(s, f);
	default:
		return -EPROTO;
	}
}

static int on_frame(struct interp_stream *s, struct follow *f)
{
	uint16_t type = f->cell.talk->frame.head.type;
	int r;

	if (type == WIRE_FAILED) {
		r = on_failed(s, f);
	} else if (type == WIRE_STARTED && f->phase == PHASE_WAITING) {
		f->phase = PHASE_RUNNING;
		r = 0;
	} else {
		r = f->phase == PHASE_RUNNING ? on_running(s, f) : -EPROTO;
	}
	return r == -EPROTO ? envd_broken(f->cell.request->sandbox, "on a cell's socket") : r;
}

/* 1: a frame is there; -EAGAIN. */
static int next_frame(struct interp_stream *s, struct follow *f)
{
	int r;

	if (f->has_frame) {
		f->has_frame = false;
		return 1;
	}
	r = interp_cell_push(&f->cell);
	s->writing = r == -EAGAIN;
	return r < 0 && r != -EAGAIN ? r : talk_recv_now(f->cell.talk);
}

static int follow_pump(struct interp_stream *s)
{
	struct follow *f = s->arg;

	if (f->event.text.len == 0)
		interp_assembly_release(
			&f->event); /* the line that was made of the last one has gone */
	for (unsigned n = 0; !s->ended && s->out.len < INTERP_BATCH && n < INTERP_FRAMES; n++) {
		int r = next_frame(s, f);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = on_frame(s, f);
		/* AG-04: what the agent may not say here ends the stream, and nothing more is read from it. */
		if (r == -EPROTO)
			r = end_with(s, "SandboxError",
				     "the sandbox gave an answer that makes no sense");
		if (r == -EOVERFLOW)
			r = end_with(s, "ContextFailed",
				     "too much of what the interpreter said could not be shown");
		/* -ENOTCONN: killed or paused. There is no end that a client could believe. */
		if (r < 0)
			return r;
	}
	return 0;
}

static void follow_free(void *arg)
{
	struct follow *f = arg;

	interp_assembly_reset(&f->event);
	interp_assembly_release(&f->event);
	buf_done(&f->early);
	interp_cell_done(&f->cell);
	json_decref(f->error);
	free(f);
}

int interp_follow(struct interp_cell *c, bool has_frame)
{
	static const struct interp_source source = { .pump = follow_pump, .free = follow_free };
	struct follow *f = calloc(1, sizeof(*f));

	if (!f) {
		interp_cell_done(c);
		return -ENOMEM;
	}
	f->cell = *c;
	f->has_frame = has_frame;
	interp_assembly_init(&f->event, c->request->sandbox->key_results);
	f->early.max = INTERP_LINE_MAX;
	return interp_stream_reply(c->request, &source, f, f->cell.talk->op.sock);
}
