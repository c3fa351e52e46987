/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of port 49999: contexts (list, make, restart, remove), the languages they can
 * have, POST /execute. */
#include "server/interp/interp.h"

#include "base/clock.h"
#include "server/run/run.h"

#define NAMES_SIZE 400

static int interp_health(struct request *r)
{
	return reply_json(
		r, 200,
		json_string("OK")); /* a sandbox that is gone has been answered for before */
}

/* --- languages ------------------------------------------------------------------------------- */

static void list_names(const struct language *list, size_t n, char ret[static NAMES_SIZE])
{
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < n && at < NAMES_SIZE; i++)
		at += (size_t)snprintf(ret + at, NAMES_SIZE - at, "%s%s", i ? ", " : "",
				       list[i].name);
}

int interp_language(const char *name, const struct language **ret, struct rpc_error *e)
{
	char plain[LANGUAGE_NAME_MAX + 1] = "", names[NAMES_SIZE];
	const struct language *l = NULL, *list;
	struct fail fail;
	size_t n;

	list = run_languages(&n);
	if (interp_language_name(name ? name : "python", plain) == 0)
		l = language_find(plain, list, n, &fail);
	if (!l) {
		list_names(list, n, names);
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"there is no language '%.64s'; there are: %s",
				name ? name : "python", names);
	}
	*ret = l;
	return 0;
}

/* --- contexts -------------------------------------------------------------------------------- */

int interp_contexts_list(struct request *r)
{
	int n = interp_sync(r);

	return n < 0 ? rpc_reply_gone(r, n) : reply_json(r, 200, interp_list(r->sandbox));
}

/* What the interpreter could not do before its first cell: go to the directory. */
static int read_error(const struct buf *event, struct rpc_error *e)
{
	json_t *error = NULL;
	const char *value;
	int r = interp_event_error(event->data ? (const void *)event->data : "", event->len,
				   &error);

	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	value = json_string_value(json_object_get(error, "value"));
	r = rpc_fail(e, RPC_INVALID_ARGUMENT, "the context cannot be prepared: %.300s", value);
	json_decref(error);
	return r;
}

static int again(struct interp_cell *c, struct rpc_error *e)
{
	struct wire_failed failed;
	int r = talk_failed(&c->talk->frame, &failed);

	return r < 0 ? r : interp_cell_again(c, &failed, e);
}

/* What is there already comes without waiting, so an agent that always has something to say
 * needs its own end. */
static int context_await(struct interp_cell *c)
{
	int r = clock_boot_us() < c->talk->until_us ? interp_cell_await(c, c->talk->until_us) : 0;

	return r ? r : -ETIMEDOUT;
}

static int on_prepare_frame(struct interp_cell *c, struct buf *event, bool *ret_ended,
			    struct rpc_error *e)
{
	const struct wire_frame *f = &c->talk->frame;
	const struct wire_cell_end *end = (const struct wire_cell_end *)f->data;
	const struct wire_event *kind = (const struct wire_event *)f->data;

	switch (f->head.type) {
	case WIRE_EVENT:
		return buf_add(event, f->data, wire_len(f)) < 0 ? -EPROTO : 0;
	case WIRE_EVENT_END:
		return kind->kind == WIRE_EVENT_ERROR ? read_error(event, e) : -EPROTO;
	case WIRE_FAILED:
		return again(c, e);
	case WIRE_STARTED:
	case WIRE_OUT:
	case WIRE_ERR:
	case WIRE_SPILLED:
		return 0; /* nobody asked for what a start-up file of the user's may print */
	case WIRE_CELL_END:
		*ret_ended = true;
		return end->died ? rpc_fail(e, RPC_INTERNAL,
					    "the interpreter ended while it was prepared") :
				   0;
	default:
		return -EPROTO;
	}
}

/* Runs a cell without code: variables and directory. */
static int context_prepare(struct request *r, const struct interp_target *t, struct rpc_error *e)
{
	_cleanup_(buf_done) struct buf event = BUF_INIT(WIRE_MAX);
	struct interp_cell c;
	bool ended = false;
	int n = interp_cell_init(&c, r, t, NULL);

	c.way = INTERP_SCIENCE; /* a client that makes a context means to use it */
	if (n == 0)
		n = interp_cell_begin(&c, e);
	while (n >= 0 && !ended) {
		if (n == 0)
			n = context_await(&c);
		if (n > 0)
			n = on_prepare_frame(&c, &event, &ended, e);
	}
	if (n == -EPROTO)
		n = envd_broken(r->sandbox, "on a cell's socket");
	interp_cell_done(&c);
	return n;
}

/* Undoes what POST /contexts has done so far. */
static void discard(struct request *r, const char *name)
{
	struct rpc_error e;

	(void)interp_end(r->sandbox, name, true);
	(void)!interp_kill(r, name, &e);
}

static int check_cwd(const char *cwd, struct rpc_error *e)
{
	if (cwd[0] != '/' || strlen(cwd) > WIRE_PATH_MAX)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "cwd: must be an absolute path");
	return 0;
}

static int context_create(struct request *r, json_t **ret, struct rpc_error *e)
{
	const char *name = json_string_value(json_object_get(r->body, "language"));
	const char *cwd = json_string_value(json_object_get(r->body, "cwd"));
	const struct language *l = NULL;
	struct interp_target t;
	int n = interp_language(name, &l, e);

	if (n == 0 && !l->kernel)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"%s keeps no state from cell to cell, so it has no contexts; "
				"POST /execute with this language runs it",
				l->title);
	cwd = cwd && *cwd ? cwd : INTERP_HOME;
	if (n == 0)
		n = check_cwd(cwd, e);
	if (n == 0)
		n = interp_sync(r);
	if (n == 0)
		n = interp_add(r->sandbox, l, cwd, &t, e);
	if (n < 0)
		return n;
	n = context_prepare(r, &t, e);
	if (n < 0) {
		discard(r, t.name);
		return n;
	}
	*ret = json_pack("{s:s, s:s, s:s}", "id", t.name, "language", l->name, "cwd", cwd);
	return *ret ? 0 : -ENOMEM;
}

int interp_contexts_create(struct request *r)
{
	struct rpc_error e = { 0 };
	json_t *made;
	int n = context_create(r, &made, &e);

	return n < 0 ? interp_reply_error(r, n, &e) : reply_json(r, 200, made);
}

/* The next cell makes the interpreter anew, if there is a next one. */
static int end_context(struct request *r, bool forever)
{
	const char *name = r->params[0];
	struct rpc_error e = { 0 };
	int n = interp_sync(r);

	if (n < 0)
		return rpc_reply_gone(r, n);
	if (!interp_end(r->sandbox, name, forever))
		return reply_error(r, 404, "Context %.200s not found", name);
	n = interp_kill(r, name, &e);
	if (n < 0)
		return interp_reply_error(r, n, &e);
	sandbox_log(r->sandbox, "info", "context %s: %s", name, forever ? "removed" : "restarted");
	return reply_json(r, 200, json_null());
}

static int interp_contexts_remove(struct request *r)
{
	return end_context(r, true);
}

static int interp_contexts_restart(struct request *r)
{
	return end_context(r, false);
}

/* --- POST /execute --------------------------------------------------------------------------- */

int interp_reply_error(struct request *r, int err, const struct rpc_error *e)
{
	if (err == -EREMOTEIO)
		return reply_error(r, rpc_code_status(e->code), "%s", e->message);
	return rpc_reply_gone(r, err);
}

/* The packages that a zygote has loaded are worth having when the code is going to use them. */
static enum interp_way way_for(const struct request *r, const struct interp_execute *x)
{
	const char *preload = r->server->config.interpreter_preload;

	return interp_mentions(x->code, x->code_len, preload) ? INTERP_SCIENCE : INTERP_PYTHON;
}

static int run_cell(struct request *r, const struct interp_target *t,
		    const struct interp_execute *x)
{
	struct interp_cell c;
	struct rpc_error e = { 0 };
	int n = interp_cell_init(&c, r, t, x);

	if (n == 0) {
		c.way = way_for(r, x);
		if (c.way == INTERP_SCIENCE)
			interp_improve(r, t);
		n = interp_cell_begin(&c, &e);
	}
	if (n >= 0)
		return interp_follow(&c, n > 0);
	/* A default context whose interpreter cannot be had has never been. */
	if (n == -EREMOTEIO && e.code == RPC_INTERNAL && !x->context)
		(void)interp_end(r->sandbox, t->name, true);
	interp_cell_done(&c);
	return interp_reply_error(r, n, &e);
}

/* A context that this server has not heard of may be one of an earlier server's. */
static int find_context(struct request *r, const char *id, struct interp_target *ret,
			struct rpc_error *e)
{
	int n = interp_find(r->sandbox, id, ret, e);

	if (n != -EREMOTEIO || e->code != RPC_NOT_FOUND)
		return n;
	n = interp_sync(r);
	return n < 0 ? n : interp_find(r->sandbox, id, ret, e);
}

int interp_execute_handle(struct request *r)
{
	const struct interp_limits most = interp_config_limits(&r->server->config);
	const struct language *l = NULL;
	struct interp_execute x;
	struct interp_target t;
	struct rpc_error e;
	int n = interp_read_execute(r->body, &most, &x, &e);

	if (n == 0 && x.code_len > INTERP_CODE_MAX)
		return reply_error(r, 413, "the code must not be larger than %zu bytes",
				   INTERP_CODE_MAX);
	if (n == 0 && !x.context) {
		n = interp_language(x.language, &l, &e);
		if (n == 0 && !l->kernel)
			return interp_single(r, l, &x);
	}
	if (n == 0)
		n = x.context ? find_context(r, x.context, &t, &e) :
				interp_default(r->sandbox, l, &t, &e);
	return n < 0 ? interp_reply_error(r, n, &e) : run_cell(r, &t, &x);
}

/* --- the routes ------------------------------------------------------------------------------ */

/* Clients show the sandbox's token for cells only; a client that knows the sandbox's id may list
 * and make contexts. */
const struct route interp_routes[] = {
	{
		.operation = "interpreterHealth",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_health,
	},
	{
		.operation = "interpreterExecute",
		.auth = HTTP_AUTH_TOKEN,
		.body = HTTP_BODY_JSON,
		.body_max = INTERP_BODY_MAX,
		.handle = interp_execute_handle,
	},
	{
		.operation = "interpreterListContexts",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_list,
	},
	{
		.operation = "interpreterCreateContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_JSON,
		.handle = interp_contexts_create,
	},
	{
		.operation = "interpreterRemoveContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_remove,
	},
	{
		.operation = "interpreterRestartContext",
		.auth = HTTP_AUTH_NONE,
		.body = HTTP_BODY_NONE,
		.handle = interp_contexts_restart,
	},
	{ .operation = NULL },
};
