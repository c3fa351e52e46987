/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is a cell: from the frames of its commands to the client's lines. */
#include "server/interp/once.h"

#include "base/clock.h"

#include <signal.h>

#define COMPILER_MAX ((size_t)64 << 10) /* of what a compiler says */

static json_t *usage(const struct once *o)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:s}", "type", "usage", "wall_ms",
			 (json_int_t)((clock_boot_us() - o->begun_us) / 1000), "stdout_bytes",
			 (json_int_t)o->out_bytes, "stderr_bytes", (json_int_t)o->err_bytes,
			 "reason", o->reason ? o->reason : "done");
}

static int finish(struct interp_stream *s, struct once *o, bool unexpected)
{
	int r = interp_line_rest(&s->out, &o->out, false);

	if (r == 0)
		r = interp_line_rest(&s->out, &o->err, true);
	if (r == 0 && o->error)
		r = interp_line(&s->out, take_ptr(o->error));
	if (r == 0)
		r = interp_line(&s->out, usage(o));
	return r < 0 ? r : interp_stream_end(s, unexpected);
}

static int fail_with(struct once *o, const char *name, const char *value, const char *traceback)
{
	json_decref(o->error);
	o->error = interp_error(name, value, traceback);
	return o->error ? 0 : -ENOMEM;
}

static const char *compiler_said(struct once *o)
{
	return o->compiler.len ? (const char *)o->compiler.data : "";
}

/* A compiler that says something and goes on has warned. */
static int compiled(struct interp_stream *s, struct once *o)
{
	int r = 0;

	if (o->compiler.len)
		r = interp_line_output(&s->out, &o->err, true, o->compiler.data, o->compiler.len);
	o->compiling = false;
	if (r == 0)
		r = once_start(o);
	s->fd = o->talk->op.sock;
	return r;
}

static int judge(struct once *o, const struct wire_exit *end)
{
	char how[ENVD_STATUS_SIZE];

	if (envd_exit_text(end, how) < 0)
		return -EPROTO;
	if (end->timed_out) {
		o->reason = "wall";
		return fail_with(o, "CellTimeout", "the cell ran longer than it may", "");
	}
	if (end->signal == SIGXCPU) {
		o->reason = "cpu";
		return fail_with(o, "CellCpuLimit", "the cell used more CPU time than it may", "");
	}
	if (end->code == 0)
		return 0;
	if (o->compiling)
		return fail_with(o, "CompilationError", o->compiler.len ? compiler_said(o) : how,
				 compiler_said(o));
	if (end->code > 0)
		(void)snprintf(how, sizeof(how), "%d", end->code);
	return fail_with(o, "ExitStatus", how, "");
}

static int on_exit_frame(struct interp_stream *s, struct once *o)
{
	const struct wire_exit *end = (const struct wire_exit *)o->talk->frame.data;
	int r = o->started ? judge(o, end) : -EPROTO;

	if (r < 0)
		return r;
	return o->compiling && !o->error ? compiled(s, o) : finish(s, o, false);
}

/* Beyond the limit the rest is counted and dropped. */
static int on_output(struct interp_stream *s, struct once *o)
{
	const struct wire_frame *f = &o->talk->frame;
	bool is_err = f->head.type == WIRE_ERR;
	uint64_t *count = is_err ? &o->err_bytes : &o->out_bytes;
	uint64_t limit = o->what.limits.output_bytes, before = *count;
	size_t n = wire_len(f), room = (size_t)(limit - MIN(before, limit));
	char text[96];
	int r = 0;

	if (o->compiling) {
		n = MIN(n, COMPILER_MAX - o->compiler.len);
		return n ? buf_add(&o->compiler, f->data, n) : 0;
	}
	*count += n;
	if (room)
		r = interp_line_output(&s->out, is_err ? &o->err : &o->out, is_err, f->data,
				       MIN(n, room));
	if (r < 0 || before > limit || *count <= limit)
		return r;
	(is_err ? &o->err : &o->out)->len = 0; /* a character that was cut here stays so */
	(void)snprintf(text, sizeof(text), "[%s: more than %llu bytes; the rest was dropped]\n",
		       is_err ? "stderr" : "stdout", (unsigned long long)limit);
	return interp_line_output(&s->out, &o->err, true, text, strlen(text));
}

static int on_failed(struct interp_stream *s, struct once *o)
{
	struct wire_failed failed;
	char text[256];
	int r = o->started ? -EPROTO : talk_failed(&o->talk->frame, &failed);

	if (r < 0)
		return r;
	if (failed.step == WIRE_STEP_EXEC)
		(void)snprintf(text, sizeof(text), "%s is not installed in this template: %s",
			       o->language->title, strerror(failed.err));
	else
		(void)snprintf(text, sizeof(text), "the command could not be started (%s): %s",
			       wire_step_name(failed.step), strerror(failed.err));
	r = fail_with(o, "ContextFailed", text, "");
	return r < 0 ? r : finish(s, o, true);
}

/* Without state, each cell is the first. */
static int number(struct interp_stream *s, struct once *o)
{
	o->numbered = true;
	return interp_line(&s->out, json_pack("{s:s, s:i}", "type", "number_of_executions",
					      "execution_count", 1));
}

static int on_frame(struct interp_stream *s, struct once *o)
{
	switch (o->talk->frame.head.type) {
	case WIRE_STARTED:
		if (o->started)
			return -EPROTO;
		o->started = true;
		return o->numbered ? 0 : number(s, o);
	case WIRE_FAILED:
		return on_failed(s, o);
	case WIRE_OUT:
	case WIRE_ERR:
		return o->started ? on_output(s, o) : -EPROTO;
	case WIRE_EXIT:
		return on_exit_frame(s, o);
	default:
		return -EPROTO;
	}
}

static int once_pump(struct interp_stream *s)
{
	struct once *o = s->arg;

	for (unsigned n = 0; !s->ended && s->out.len < INTERP_BATCH && n < INTERP_FRAMES; n++) {
		int r = talk_recv_now(o->talk);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = on_frame(s, o);
		if (r == -EPROTO) {
			(void)envd_broken(o->sandbox, "on a command's socket");
			r = fail_with(o, "SandboxError",
				      "the sandbox gave an answer that makes no sense", "");
			if (r == 0)
				r = finish(s, o, true);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void once_free(void *arg)
{
	struct once *o = arg;

	if (o->talk)
		op_close(&o->talk->op); /* ends the command */
	if (o->dir[0])
		once_remove_directory(o);
	talk_free(o->talk);
	sandbox_put(o->sandbox);
	buf_done(&o->compiler);
	json_decref(o->error);
	free(o);
}

static struct once *once_new(struct request *r, const struct language *l,
			     const struct interp_execute *x)
{
	struct once *o = calloc(1, sizeof(*o));
	char id[ID_SIZE];

	if (!o)
		return NULL;
	o->talk = talk_new(r);
	if (!o->talk) {
		free(o);
		return NULL;
	}
	o->request = r;
	o->sandbox = r->sandbox;
	sandbox_ref(o->sandbox);
	o->language = l;
	o->what = *x;
	o->compiling = l->compile != NULL;
	o->compiler.max = COMPILER_MAX;
	o->begun_us = clock_boot_us();
	id_new('c', id);
	(void)snprintf(o->dir, sizeof(o->dir), "/tmp/cell-%.*s", ID_LEN, id);
	return o;
}

int interp_once(struct request *r, const struct language *l, const struct interp_execute *x)
{
	static const struct interp_source source = { .pump = once_pump, .free = once_free };
	struct once *o = once_new(r, l, x);
	struct rpc_error e;
	int n = o ? once_write_code(o, &e) : -ENOMEM;

	if (n == 0)
		n = once_start(o);
	if (n == 0)
		return interp_stream_reply(r, &source, o, o->talk->op.sock);
	if (o)
		once_free(o);
	return interp_reply_error(r, n, &e);
}
