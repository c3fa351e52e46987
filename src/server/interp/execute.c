/* SPDX-License-Identifier: Apache-2.0 */
#include "server/interp/interp.h"

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
