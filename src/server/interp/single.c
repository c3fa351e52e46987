/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single cell: of a language that keeps no state. The code becomes a file in a directory of its
 * own below /tmp, is compiled where the language does that, and run. The commands are ordinary ones
 * that end with their socket, so a client that goes away ends them.
 */
#include "server/interp/interp.h"

#include "base/clock.h"
#include "server/sandbox/id.h"
#include "sys/payload.h"

#include <poll.h>

#define COMPILER_MAX ((size_t)64 << 10) /* of what a compiler says */
#define REMOVE_MS 2000
#define FILE_SIZE 320

struct single {
	struct request *request; /* gone when the stream is closed */
	struct sandbox *sandbox; /* a reference */
	const struct language *language;
	struct interp_execute what; /* its texts belong to the request's body */
	struct talk *talk;
	char dir[sizeof("/tmp/cell-") + ID_LEN];
	bool compiling;
	bool started;
	bool numbered;
	struct buf compiler; /* what it said */
	struct interp_carry out, err;
	uint64_t out_bytes, err_bytes;
	uint64_t begun_us;
	const char *reason;
	json_t *error;
};

/* --- the file -------------------------------------------------------------------------------- */

static void single_path(const struct single *c, char ret[static FILE_SIZE])
{
	(void)snprintf(ret, FILE_SIZE, "%s/%s", c->dir, c->language->file);
}

static int single_send_code(struct talk *t, const struct interp_execute *x)
{
	int r = talk_send(t, WIRE_GO, NULL, 0);

	for (size_t at = 0; r == 0 && at < x->code_len;) {
		size_t n = MIN(x->code_len - at, (size_t)WIRE_DATA_MAX);

		r = talk_send(t, WIRE_DATA, x->code + at, n);
		at += n;
	}
	return r < 0 ? r : talk_send(t, WIRE_FILE_END, NULL, 0);
}

static int single_write(struct single *c, struct rpc_error *e)
{
	const struct wire_fs q = { .op = WIRE_FS_WRITE };
	_cleanup_(talk_freep) struct talk *t = talk_new(c->request);
	char path[FILE_SIZE];
	const char *paths[] = { path };
	struct wire_failed failed;
	int r;

	single_path(c, path);
	r = t ? envd_fs_open(t, &q, "user", paths, 1) : -ENOMEM;
	if (r == 0)
		r = single_send_code(t, &c->what);
	if (r == 0)
		r = talk_recv(t);
	if (r < 0 || t->frame.head.type == WIRE_ENTRY)
		return r < 0 ? r : 0;
	if (talk_failed(&t->frame, &failed) < 0)
		return envd_broken(c->sandbox, "about a file");
	return rpc_fail(e, RPC_INTERNAL, "the code cannot be written to a file: %s",
			strerror(failed.err));
}

/* The client is gone by now, and with it the request: nobody else is asked, and nobody waits for
 * long. */
static void single_remove(struct single *c)
{
	const struct wire_fs q = { .op = WIRE_FS_REMOVE };
	struct op op = OP_INIT;
	struct pollfd p = { .events = POLLIN };

	if (op_open(c->sandbox, WIRE_FS, &q, sizeof(q), &op) < 0)
		return;
	p.fd = op.sock;
	if (wire_send(op.sock, WIRE_USER, "user", 4) == 0 &&
	    wire_send(op.sock, WIRE_PATH, c->dir, strlen(c->dir)) == 0 &&
	    wire_send(op.sock, WIRE_GO, NULL, 0) == 0)
		(void)poll(&p, 1, REMOVE_MS); /* until it is done: hanging up would stop it */
	op_close(&op);
}

/* --- commands -------------------------------------------------------------------------------- */

static int single_send_variable(void *arg, const char *name, const char *value)
{
	return talk_env(arg, name, value);
}

/* Later ones win: the service's, the language's, the sandbox's, the client's own. */
static int single_send_environment(struct single *c, const struct language_vars *vars)
{
	_cleanup_(freep) char **env = NULL;
	struct fail fail;
	const char *name;
	json_t *value;
	int r = language_env(c->language, vars, &env, &fail);

	for (size_t i = 0; r == 0 && env[i]; i++)
		r = talk_text(c->talk, WIRE_ENV, env[i]);
	if (r == 0)
		r = interp_variables(c->sandbox, single_send_variable, c->talk);
	json_object_foreach((json_t *)(uintptr_t)c->what.env, name, value) {
		if (r == 0)
			r = talk_env(c->talk, name, json_string_value(value));
	}
	return r;
}

/*
 * Programs expect their data in the home, so that is where they run. A command that is found by the
 * directory it runs in ("./main") is named from the root instead; one that has such names elsewhere
 * runs beside its files.
 */
static int single_send_command(struct single *c, const struct language_vars *vars)
{
	const char *command = c->compiling ? c->language->compile : c->language->run;
	_cleanup_(freep) char **argv = NULL;
	char program[2 * FILE_SIZE];
	struct fail fail;
	bool is_built, at_home;
	int r = language_argv(command, vars, &argv, &fail);

	if (r < 0)
		return r;
	is_built = !c->compiling && strncmp(argv[0], "./", 2) == 0;
	at_home = is_built || (!c->compiling && !c->language->compile);
	(void)snprintf(program, sizeof(program), "%s%s", is_built ? c->dir : "",
		       argv[0] + (is_built ? 1 : 0));
	r = talk_text(c->talk, WIRE_USER, "user");
	if (r == 0)
		r = talk_text(c->talk, WIRE_CWD, at_home ? INTERP_HOME : c->dir);
	if (r == 0)
		r = talk_text(c->talk, WIRE_ARG, program);
	for (size_t i = 1; r == 0 && argv[i]; i++)
		r = talk_text(c->talk, WIRE_ARG, argv[i]);
	return r;
}

static int single_start(struct single *c)
{
	struct sandbox *b = c->sandbox;
	char path[FILE_SIZE];
	const struct language_vars vars = {
		.file = path,
		.memory_mb = b->limits.memory_bytes >> 20,
		.cpus = MAX(b->limits.cpu_milli / 1000, 1u),
	};
	const struct interp_limits *limits = &c->what.limits;
	struct wire_exec q = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.oom_score_adj = PAYLOAD_OOM_SCORE,
		.fsize_max = b->limits.disk_bytes,
		.nofile_max = PAYLOAD_NOFILE_MAX,
		.timeout_ms = limits->wall_ms,
		.cpu_max_s = (limits->cpu_ms + 999) / 1000,
		.data_max = limits->memory_bytes,
	};
	int r;

	single_path(c, path);
	sandbox_exec_limits(b, &q);
	op_close(&c->talk->op);
	c->started = false;
	r = talk_open(c->talk, WIRE_EXEC, &q, sizeof(q));
	if (r == 0)
		r = single_send_command(c, &vars);
	if (r == 0)
		r = single_send_environment(c, &vars);
	if (r == 0)
		r = talk_send(c->talk, WIRE_GO, NULL, 0);
	return r < 0 ? r : talk_no_wait(c->talk);
}

/* --- what comes of it ------------------------------------------------------------------------ */

static json_t *single_usage(const struct single *c)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:s}", "type", "usage", "wall_ms",
			 (json_int_t)((clock_boot_us() - c->begun_us) / 1000), "stdout_bytes",
			 (json_int_t)c->out_bytes, "stderr_bytes", (json_int_t)c->err_bytes,
			 "reason", c->reason ? c->reason : "done");
}

static int single_finish(struct interp_stream *s, struct single *c, bool unexpected)
{
	int r = interp_line_rest(&s->out, &c->out, false);

	if (r == 0)
		r = interp_line_rest(&s->out, &c->err, true);
	if (r == 0 && c->error)
		r = interp_line(&s->out, take_ptr(c->error));
	if (r == 0)
		r = interp_line(&s->out, single_usage(c));
	return r < 0 ? r : interp_stream_end(s, unexpected);
}

static int single_fail(struct single *c, const char *name, const char *value, const char *traceback)
{
	json_decref(c->error);
	c->error = interp_error(name, value, traceback);
	return c->error ? 0 : -ENOMEM;
}

static const char *single_compiler_said(struct single *c)
{
	return c->compiler.len ? (const char *)c->compiler.data : "";
}

/* A compiler that says something and goes on has warned. */
static int single_compiled(struct interp_stream *s, struct single *c)
{
	int r = 0;

	if (c->compiler.len)
		r = interp_line_output(&s->out, &c->err, true, c->compiler.data, c->compiler.len);
	c->compiling = false;
	if (r == 0)
		r = single_start(c);
	s->fd = c->talk->op.sock;
	return r;
}

static int single_judge(struct single *c, const struct wire_exit *end)
{
	struct run_limits limits = interp_run_limits(&c->what.limits);
	char how[ENVD_STATUS_SIZE], why[RUN_LIMIT_TEXT_SIZE] = "";
	enum run_limit limit;

	if (envd_exit_text(end, how) < 0)
		return -EPROTO;
	limit = sandbox_judge(c->sandbox, end, &limits);
	/* Its memory is limited for each process by itself; what was used up is the sandbox's. */
	if (limit != RUN_LIMIT_NONE)
		run_limit_text(limit, &limits,
			       limit == RUN_LIMIT_MEMORY ? &run_words_sandbox : &run_words_cell,
			       why);
	if (run_cell_error(limit)) {
		c->reason = limit == RUN_LIMIT_TIME   ? "wall" :
			    limit == RUN_LIMIT_MEMORY ? "memory" :
							"cpu";
		return single_fail(c, run_cell_error(limit), why, "");
	}
	if (end->code == 0)
		return 0;
	if (c->compiling)
		return single_fail(c, "CompilationError",
				   c->compiler.len ? single_compiler_said(c) : how,
				   single_compiler_said(c));
	if (end->code > 0)
		(void)snprintf(how, sizeof(how), "%d", end->code);
	return single_fail(c, "ExitStatus", how, why);
}

static int single_on_exit(struct interp_stream *s, struct single *c)
{
	const struct wire_exit *end = (const struct wire_exit *)c->talk->frame.data;
	int r = c->started ? single_judge(c, end) : -EPROTO;

	if (r < 0)
		return r;
	return c->compiling && !c->error ? single_compiled(s, c) : single_finish(s, c, false);
}

/* Beyond the limit the rest is counted and dropped. */
static int single_on_output(struct interp_stream *s, struct single *c)
{
	const struct wire_frame *f = &c->talk->frame;
	bool is_err = f->head.type == WIRE_ERR;
	uint64_t *count = is_err ? &c->err_bytes : &c->out_bytes;
	uint64_t limit = c->what.limits.output_bytes, before = *count;
	size_t n = wire_len(f), room = (size_t)(limit - MIN(before, limit));
	char text[96];
	int r = 0;

	if (c->compiling) {
		n = MIN(n, COMPILER_MAX - c->compiler.len);
		return n ? buf_add(&c->compiler, f->data, n) : 0;
	}
	*count += n;
	if (room)
		r = interp_line_output(&s->out, is_err ? &c->err : &c->out, is_err, f->data,
				       MIN(n, room));
	if (r < 0 || before > limit || *count <= limit)
		return r;
	(is_err ? &c->err : &c->out)->len = 0; /* a character that was cut here stays so */
	(void)snprintf(text, sizeof(text), "[%s: more than %llu bytes; the rest was dropped]\n",
		       is_err ? "stderr" : "stdout", (unsigned long long)limit);
	return interp_line_output(&s->out, &c->err, true, text, strlen(text));
}

static int single_on_failed(struct interp_stream *s, struct single *c)
{
	struct wire_failed failed;
	char text[256];
	int r = c->started ? -EPROTO : talk_failed(&c->talk->frame, &failed);

	if (r < 0)
		return r;
	if (failed.step == WIRE_STEP_EXEC)
		(void)snprintf(text, sizeof(text), "%s is not installed in this template: %s",
			       c->language->title, strerror(failed.err));
	else
		(void)snprintf(text, sizeof(text), "the command could not be started (%s): %s",
			       wire_step_name(failed.step), strerror(failed.err));
	r = single_fail(c, "ContextFailed", text, "");
	return r < 0 ? r : single_finish(s, c, true);
}

/* Without state, each cell is the first. */
static int single_number(struct interp_stream *s, struct single *c)
{
	c->numbered = true;
	return interp_line(&s->out, json_pack("{s:s, s:i}", "type", "number_of_executions",
					      "execution_count", 1));
}

static int single_on_frame(struct interp_stream *s, struct single *c)
{
	switch (c->talk->frame.head.type) {
	case WIRE_STARTED:
		if (c->started)
			return -EPROTO;
		c->started = true;
		return c->numbered ? 0 : single_number(s, c);
	case WIRE_FAILED:
		return single_on_failed(s, c);
	case WIRE_OUT:
	case WIRE_ERR:
		return c->started ? single_on_output(s, c) : -EPROTO;
	case WIRE_EXIT:
		return single_on_exit(s, c);
	default:
		return -EPROTO;
	}
}

static int single_pump(struct interp_stream *s)
{
	struct single *c = s->arg;

	for (unsigned n = 0; !s->ended && s->out.len < INTERP_BATCH && n < INTERP_FRAMES; n++) {
		int r = talk_recv_now(c->talk);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = single_on_frame(s, c);
		if (r == -EPROTO) {
			(void)envd_broken(c->sandbox, "on a command's socket");
			r = single_fail(c, "SandboxError",
					"the sandbox gave an answer that makes no sense", "");
			if (r == 0)
				r = single_finish(s, c, true);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void single_free(void *arg)
{
	struct single *c = arg;

	if (c->talk)
		op_close(&c->talk->op); /* ends the command */
	if (c->dir[0])
		single_remove(c);
	talk_free(c->talk);
	sandbox_put(c->sandbox);
	buf_done(&c->compiler);
	json_decref(c->error);
	free(c);
}

static struct single *single_new(struct request *r, const struct language *l,
				 const struct interp_execute *x)
{
	struct single *c = calloc(1, sizeof(*c));
	char id[ID_SIZE];

	if (!c)
		return NULL;
	c->talk = talk_new(r);
	if (!c->talk) {
		free(c);
		return NULL;
	}
	c->request = r;
	c->sandbox = r->sandbox;
	sandbox_ref(c->sandbox);
	c->language = l;
	c->what = *x;
	c->compiling = l->compile != NULL;
	c->compiler.max = COMPILER_MAX;
	c->begun_us = clock_boot_us();
	id_new('c', id);
	(void)snprintf(c->dir, sizeof(c->dir), "/tmp/cell-%.*s", ID_LEN, id);
	return c;
}

int interp_single(struct request *r, const struct language *l, const struct interp_execute *x)
{
	static const struct interp_source source = { .pump = single_pump, .free = single_free };
	struct single *c = single_new(r, l, x);
	struct rpc_error e;
	int n = c ? single_write(c, &e) : -ENOMEM;

	if (n == 0)
		n = single_start(c);
	if (n == 0)
		return interp_stream_reply(r, &source, c, c->talk->op.sock);
	if (c)
		single_free(c);
	return interp_reply_error(r, n, &e);
}
