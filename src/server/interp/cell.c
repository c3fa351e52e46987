/* SPDX-License-Identifier: Apache-2.0 */
/* A cell of a context: its way into the box, and what comes back. */
#include "server/interp/interp.h"

#include "base/clock.h"

#include <signal.h>

/* --- on its way into the box ----------------------------------------------------------------- */

/*
 * A cell on its way into the box. The agent reads it when its turn comes, which may be hours from
 * now, so what does not fit into the socket waits here, and nobody ever blocks. A cell whose
 * context has no interpreter, or whose interpreter died while it waited, is sent again to a new
 * one; once it has begun it is never run twice.
 */

#define FIRST_WORD_US UINT64_C(200000) /* how long the head of the reply may wait for it */
#define TRIES_MAX 6
/* All frames of a cell: what a body can hold, and the sandbox's variables. */
#define FRAMES_MAX ((size_t)16 << 20)

struct frame_head {
	uint32_t type;
	uint32_t len;
};

static int add_frame(struct interp_outgoing *o, enum wire_type type, const void *data, size_t len)
{
	const struct frame_head head = { .type = type, .len = (uint32_t)len };
	int r = len <= WIRE_DATA_MAX ? buf_add(&o->frames, &head, sizeof(head)) : -EMSGSIZE;

	return r < 0 ? r : buf_add(&o->frames, data ? data : "", len);
}

static int add_variable(struct interp_outgoing *o, enum wire_type type, const char *name,
			const char *value)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(WIRE_DATA_MAX);
	int r = buf_add(&text, name, strlen(name));

	if (r == 0)
		r = buf_add(&text, "=", 1);
	if (r == 0)
		r = buf_add(&text, value, strlen(value));
	return r < 0 ? r : add_frame(o, type, text.data, text.len);
}

static int add_base(void *arg, const char *name, const char *value)
{
	return add_variable(arg, WIRE_BASE, name, value);
}

static int cell_add_env(struct interp_outgoing *o, const json_t *env)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach((json_t *)(uintptr_t)env, name, value) {
		if (r == 0)
			r = add_variable(o, WIRE_ENV, name, json_string_value(value));
	}
	return r;
}

static int add_code(struct interp_outgoing *o, const char *code, size_t len)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < len;) {
		size_t n = MIN(len - at, (size_t)WIRE_DATA_MAX);

		r = add_frame(o, WIRE_CODE, code + at, n);
		at += n;
	}
	return r;
}

int interp_cell_init(struct interp_cell *c, struct request *r, const struct interp_target *t,
		     const struct interp_execute *execute)
{
	struct interp_outgoing *o = &c->outgoing;
	int n;

	*c = (struct interp_cell){ .request = r, .target = *t, .talk = talk_new(r) };
	if (!c->talk)
		return -ENOMEM;
	o->frames.max = FRAMES_MAX;
	memcpy(c->what.context, t->name, sizeof(c->what.context));
	n = interp_variables(r->sandbox, add_base, o);
	if (n == 0 && execute)
		n = cell_add_env(o, execute->env);
	if (n == 0)
		n = add_frame(o, WIRE_CWD, t->cwd, strlen(t->cwd));
	if (n == 0 && execute) {
		c->what.wall_ms = execute->limits.wall_ms;
		c->what.cpu_ms = execute->limits.cpu_ms;
		c->what.memory_bytes = execute->limits.memory_bytes;
		c->what.output_bytes = execute->limits.output_bytes;
		n = add_code(o, execute->code, execute->code_len);
	}
	return n < 0 ? n : add_frame(o, WIRE_GO, NULL, 0);
}

void interp_cell_done(struct interp_cell *c)
{
	talk_freep(&c->talk);
	buf_done(&c->outgoing.frames);
}

/* Sends what is left of it without waiting: -EAGAIN when not all has gone. */
static int cell_push(struct interp_cell *c)
{
	struct interp_outgoing *o = &c->outgoing;

	while (o->at < o->frames.len) {
		struct frame_head head;
		int r;

		memcpy(&head, o->frames.data + o->at, sizeof(head));
		r = wire_send(c->talk->op.sock, (enum wire_type)head.type,
			      o->frames.data + o->at + sizeof(head), head.len);
		/* An agent that hung up may have said why before: that is for the reader to find
		 * out. */
		if (r < 0 && r != -EPIPE)
			return r;
		o->at = r < 0 ? o->frames.len : o->at + sizeof(head) + head.len;
	}
	return 0;
}

static int send_cell(struct interp_cell *c)
{
	int r;

	op_close(&c->talk->op);
	c->outgoing.at = 0;
	r = op_make(&c->talk->op);
	if (r == 0)
		r = talk_no_wait(c->talk);
	if (r == 0)
		r = cell_push(c);
	if (r < 0 && r != -EAGAIN)
		return r;
	return op_give(&c->talk->op, c->request->sandbox, WIRE_CELL, &c->what, sizeof(c->what));
}

int interp_cell_await(struct interp_cell *c, uint64_t until_us)
{
	for (;;) {
		uint64_t now = clock_boot_us();
		int left_ms = until_us > now ? (int)((until_us - now + 999) / 1000) : 0;
		int sock = c->talk->op.sock, r = cell_push(c);

		if (r == 0)
			r = stream_wait(c->request, sock, left_ms);
		else if (r == -EAGAIN)
			r = stream_wait_both_ways(c->request, sock, left_ms);
		if (r <= 0)
			return r;
		r = talk_recv_now(c->talk);
		if (r != -EAGAIN)
			return r;
	}
}

/* May another try help, with a new interpreter? */
static bool context_is_missing(const struct wire_failed *failed)
{
	return failed->step == WIRE_STEP_CONTEXT && (failed->err == ENOENT || failed->err == EPIPE);
}

static int cell_refused(const struct wire_failed *failed, struct rpc_error *e)
{
	if (failed->step == WIRE_STEP_CONTEXT && failed->err == EBUSY)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"too many cells wait for this context; try again later");
	if (failed->step == WIRE_STEP_CONTEXT)
		return rpc_fail(e, RPC_INTERNAL, "the interpreter ended each time it was started");
	if (failed->err == E2BIG)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"the code and the variables are too large together");
	return rpc_fail(e, RPC_INTERNAL, "the sandbox cell_refused the cell (%s): %s",
			wire_step_name(failed->step), strerror(failed->err));
}

int interp_cell_again(struct interp_cell *c, const struct wire_failed *failed, struct rpc_error *e)
{
	int r;

	if (!context_is_missing(failed) || ++c->tries >= TRIES_MAX)
		return cell_refused(failed, e);
	/* The context may have been removed while the cell waited. If it was restarted, the cell
	 * is for the new one. */
	r = interp_find(c->request->sandbox, c->target.name, &c->target, e);
	if (r == 0 && failed->err == ENOENT) {
		r = interp_make(c->request, &c->target, c->way, e);
		/* One that was ended by a restart before it was ready says nothing about the
		 * next. */
		if (r == -EREMOTEIO &&
		    interp_fate(c->request->sandbox, &c->target) == INTERP_RESTARTED)
			r = 0;
		c->way = INTERP_EXEC; /* should this one not come up */
	}
	return r < 0 ? r : send_cell(c);
}

int interp_cell_begin(struct interp_cell *c, struct rpc_error *e)
{
	struct wire_failed failed;
	int r = send_cell(c);

	while (r >= 0) {
		r = interp_cell_await(c, clock_boot_us() + FIRST_WORD_US);
		if (r <= 0 || c->talk->frame.head.type != WIRE_FAILED)
			return r;
		r = talk_failed(&c->talk->frame, &failed);
		if (r < 0)
			return envd_broken(c->request->sandbox, "on a cell's socket");
		r = interp_cell_again(c, &failed, e);
	}
	return r;
}

/* --- what comes back of it ------------------------------------------------------------------- */

/*
 * Following a cell: from the agent's frames to the client's lines. The order is the protocol's and
 * the agent is held to it:
 *
 *	STARTED, then OUT, ERR, SPILLED and events (EVENT…, EVENT_END) in any number, then
 *	CELL_END; or FAILED alone
 *
 * One of the events at most is an error. Of those that show nothing there may be a few: to read
 * them is work, and as nobody has to read what comes of it, nothing else would hold a cell back.
 *
 * When the client goes, the socket is closed and the agent interrupts the cell. An interpreter's
 * error is held back to the end: if a limit was the reason, the client is told of that and not of
 * the interruption it looked like.
 */

#define EARLY_MAX ((size_t)32 << 10)
#define UNSEEN_MAX 100

enum cell_phase { CELL_WAITING, CELL_RUNNING };

struct cell_stream {
	struct interp_cell cell;
	bool has_frame; /* one that nobody has looked at */
	enum cell_phase phase;
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

/* --- output before the number ---------------------------------------------------------------- */

static int release_output(struct interp_stream *s, struct cell_stream *f)
{
	int r = f->early.len ? buf_add(&s->out, f->early.data, f->early.len) : 0;

	f->is_numbered = true;
	buf_done(&f->early);
	return r;
}

/* --- the end --------------------------------------------------------------------------------- */

static int cell_hold_error(struct cell_stream *f, json_t *error)
{
	if (!error)
		return -ENOMEM;
	json_decref(f->error);
	f->error = error;
	return 0;
}

static int result_too_large(struct cell_stream *f)
{
	if (f->error)
		/* One error is all a cell can have, and the interpreter's own says more. */
		return 0;
	return cell_hold_error(f, interp_error("ResultTooLarge",
					       "a result of the cell was larger than can be sent; "
					       "write it to a file instead",
					       ""));
}

/* An error of ours in the place of the interpreter's, whose traceback still says where it was. */
static int cell_replace_error(struct cell_stream *f, const char *name, const char *value)
{
	const char *traceback = json_string_value(json_object_get(f->error, "traceback"));

	return cell_hold_error(f, interp_error(name, value, traceback ? traceback : ""));
}

static int cell_died(struct cell_stream *f, const struct wire_cell_end *end)
{
	struct sandbox *b = f->cell.request->sandbox;
	char how[ENVD_STATUS_SIZE], why[RUN_LIMIT_TEXT_SIZE] = "", text[384];
	struct run_limits limits = { 0 };
	enum run_limit limit;

	switch (interp_fate(b, &f->cell.target)) {
	case INTERP_RESTARTED:
		return cell_replace_error(f, "ContextRestarting", "Context was restarted");
	case INTERP_REMOVED:
		return cell_replace_error(f, "ContextRemoved", "Context was removed");
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
	return cell_replace_error(f, "ContextDied", text);
}

static int cell_limit_reached(struct cell_stream *f, enum run_limit limit, bool cell_died)
{
	const struct wire_cell *what = &f->cell.what;
	const struct interp_limits given = { what->wall_ms, what->cpu_ms, what->memory_bytes, 0 };
	const struct run_limits limits = interp_run_limits(&given);
	char why[RUN_LIMIT_TEXT_SIZE], text[RUN_LIMIT_TEXT_SIZE + 64];

	run_limit_text(limit, &limits, &run_words_cell, why);
	(void)snprintf(text, sizeof(text), "%s%s", why,
		       cell_died ? "; the context was restarted, its variables are gone" : "");
	return cell_replace_error(f, run_cell_error(limit), text);
}

static int cell_on_end(struct interp_stream *s, struct cell_stream *f)
{
	struct wire_cell_end end;
	enum run_limit limit;
	int r = 0;

	memcpy(&end, f->cell.talk->frame.data,
	       sizeof(end)); /* wire_check() has seen to its numbers */
	limit = run_cell_limit(&end);
	if (limit != RUN_LIMIT_NONE)
		r = cell_limit_reached(f, limit, end.died);
	else if (end.died)
		r = cell_died(f, &end);
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

/* --- on the way ------------------------------------------------------------------------------ */

/* An interpreter can say what it likes; one line in the log is enough to find out why something
 * is missing. */
static int drop_event(struct cell_stream *f, const char *what)
{
	if (!f->complained)
		sandbox_log(f->cell.request->sandbox, "warn",
			    "context %s: its interpreter sent %s that makes no sense",
			    f->cell.target.name, what);
	f->complained = true;
	return 0;
}

static int count_unseen(struct cell_stream *f)
{
	return ++f->n_unseen > UNSEEN_MAX ? -EOVERFLOW : 0;
}

static int cell_show(struct interp_stream *s, struct cell_stream *f, enum wire_event_kind kind)
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
		return cell_hold_error(f, event);
	if (r == 0)
		r = interp_line(&s->out, event);
	return r < 0 || kind != WIRE_EVENT_COUNT ? r : release_output(s, f);
}

static int cell_on_event(struct interp_stream *s, struct cell_stream *f)
{
	const struct wire_event *e = (const struct wire_event *)f->cell.talk->frame.data;
	/* One of many values at a time: what it takes while it is read is a multiple of its
	 * size. */
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
		r = cell_show(s, f, (enum wire_event_kind)e->kind);
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
static int cell_on_output(struct interp_stream *s, struct cell_stream *f)
{
	const struct wire_frame *frame = &f->cell.talk->frame;
	bool is_err = frame->head.type == WIRE_ERR;
	int r = interp_line_output(f->is_numbered ? &s->out : &f->early, is_err ? &f->err : &f->out,
				   is_err, frame->data, wire_len(frame));

	return r == 0 && f->early.len > EARLY_MAX ? release_output(s, f) : r;
}

/* For programs an event of its own, for people a line where they look. */
static int cell_on_spilled(struct interp_stream *s, struct cell_stream *f)
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

/* --- frames ---------------------------------------------------------------------------------- */

/* The head of the reply has gone, so what went wrong is told in lines. */
static int cell_end_with(struct interp_stream *s, const char *name, const char *value)
{
	int r = interp_line(&s->out, interp_error(name, value, ""));

	return r < 0 ? r : interp_stream_end(s, true);
}

static int cell_on_failed(struct interp_stream *s, struct cell_stream *f)
{
	struct wire_failed failed;
	struct rpc_error e;
	int r;

	if (f->phase != CELL_WAITING || talk_failed(&f->cell.talk->frame, &failed) < 0)
		return -EPROTO;
	r = interp_cell_again(&f->cell, &failed, &e);
	s->fd = f->cell.talk->op.sock;
	return r == -EREMOTEIO ? cell_end_with(s, "ContextFailed", e.message) : r;
}

static int on_running(struct interp_stream *s, struct cell_stream *f)
{
	switch (f->cell.talk->frame.head.type) {
	case WIRE_OUT:
	case WIRE_ERR:
		return cell_on_output(s, f);
	case WIRE_EVENT:
		return interp_assembly_add(&f->event, f->cell.talk->frame.data,
					   wire_len(&f->cell.talk->frame));
	case WIRE_EVENT_END:
		return cell_on_event(s, f);
	case WIRE_SPILLED:
		return cell_on_spilled(s, f);
	case WIRE_CELL_END:
		return cell_on_end(s, f);
	default:
		return -EPROTO;
	}
}

static int cell_on_frame(struct interp_stream *s, struct cell_stream *f)
{
	uint16_t type = f->cell.talk->frame.head.type;
	int r;

	if (type == WIRE_FAILED) {
		r = cell_on_failed(s, f);
	} else if (type == WIRE_STARTED && f->phase == CELL_WAITING) {
		f->phase = CELL_RUNNING;
		r = 0;
	} else {
		r = f->phase == CELL_RUNNING ? on_running(s, f) : -EPROTO;
	}
	return r == -EPROTO ? envd_broken(f->cell.request->sandbox, "on a cell's socket") : r;
}

/* 1: a frame is there; -EAGAIN. */
static int cell_next_frame(struct interp_stream *s, struct cell_stream *f)
{
	int r;

	if (f->has_frame) {
		f->has_frame = false;
		return 1;
	}
	r = cell_push(&f->cell);
	s->writing = r == -EAGAIN;
	return r < 0 && r != -EAGAIN ? r : talk_recv_now(f->cell.talk);
}

static int cell_pump(struct interp_stream *s)
{
	struct cell_stream *f = s->arg;

	if (f->event.text.len == 0)
		interp_assembly_release(
			&f->event); /* the line that was made of the last one has gone */
	for (unsigned n = 0; !s->ended && s->out.len < INTERP_BATCH && n < INTERP_FRAMES; n++) {
		int r = cell_next_frame(s, f);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = cell_on_frame(s, f);
		/* AG-04: what the agent may not say here ends the stream, and nothing more is
		 * read from it. */
		if (r == -EPROTO)
			r = cell_end_with(s, "SandboxError",
					  "the sandbox gave an answer that makes no sense");
		if (r == -EOVERFLOW)
			r = cell_end_with(
				s, "ContextFailed",
				"too much of what the interpreter said could not be shown");
		/* -ENOTCONN: killed or paused. There is no end that a client could believe. */
		if (r < 0)
			return r;
	}
	return 0;
}

static void cell_free(void *arg)
{
	struct cell_stream *f = arg;

	interp_assembly_reset(&f->event);
	interp_assembly_release(&f->event);
	buf_done(&f->early);
	interp_cell_done(&f->cell);
	json_decref(f->error);
	free(f);
}

int interp_follow(struct interp_cell *c, bool has_frame)
{
	static const struct interp_source source = { .pump = cell_pump, .free = cell_free };
	struct cell_stream *f = calloc(1, sizeof(*f));

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
