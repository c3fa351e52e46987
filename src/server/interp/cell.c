/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell on its way into the box. The agent reads it when its turn comes, which may be hours from now, so what does not
 * fit into the socket waits here, and nobody ever blocks. A cell whose context has no interpreter, or whose interpreter
 * died while it waited, is sent again to a new one; once it has begun it is never run twice.
 */
#include "server/interp/interp.h"

#include "base/clock.h"

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

static int add_env(struct interp_outgoing *o, const json_t *env)
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
		n = add_env(o, execute->env);
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

int interp_cell_push(struct interp_cell *c)
{
	struct interp_outgoing *o = &c->outgoing;

	while (o->at < o->frames.len) {
		struct frame_head head;
		int r;

		memcpy(&head, o->frames.data + o->at, sizeof(head));
		r = wire_send(c->talk->op.sock, (enum wire_type)head.type,
			      o->frames.data + o->at + sizeof(head), head.len);
		/* An agent that hung up may have said why before: that is for the reader to find out. */
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
		r = interp_cell_push(c);
	if (r < 0 && r != -EAGAIN)
		return r;
	return op_give(&c->talk->op, c->request->sandbox, WIRE_CELL, &c->what, sizeof(c->what));
}

int interp_cell_await(struct interp_cell *c, uint64_t until_us)
{
	for (;;) {
		uint64_t now = clock_boot_us();
		int left_ms = until_us > now ? (int)((until_us - now + 999) / 1000) : 0;
		int sock = c->talk->op.sock, r = interp_cell_push(c);

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
static bool is_missing(const struct wire_failed *failed)
{
	return failed->step == WIRE_STEP_CONTEXT && (failed->err == ENOENT || failed->err == EPIPE);
}

static int refused(const struct wire_failed *failed, struct rpc_error *e)
{
	if (failed->step == WIRE_STEP_CONTEXT && failed->err == EBUSY)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"too many cells wait for this context; try again later");
	if (failed->step == WIRE_STEP_CONTEXT)
		return rpc_fail(e, RPC_INTERNAL, "the interpreter ended each time it was started");
	if (failed->err == E2BIG)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"the code and the variables are too large together");
	return rpc_fail(e, RPC_INTERNAL, "the sandbox refused the cell (%s): %s",
			wire_step_name(failed->step), strerror(failed->err));
}

int interp_cell_again(struct interp_cell *c, const struct wire_failed *failed, struct rpc_error *e)
{
	int r;

	if (!is_missing(failed) || ++c->tries >= TRIES_MAX)
		return refused(failed, e);
	/* The context may have been removed while the cell waited. If it was restarted, the cell is for the new one. */
	r = interp_find(c->request->sandbox, c->target.name, &c->target, e);
	if (r == 0 && failed->err == ENOENT) {
		r = interp_make(c->request, &c->target, c->way, e);
		/* One that was ended by a restart before it was ready says nothing about the next. */
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
