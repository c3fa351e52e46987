/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreters: where they come from and how they are ended. Python's are forked by the warden's
 * zygotes, which have it loaded, and walk into the box; all others, and Python's where there is no
 * zygote, are started by the agent like any command.
 */
#include "server/interp/interp.h"
#include "server/sandbox/link.h"
#include "sys/payload.h"

#include <signal.h>

#define ZYGOTE_MS 10000

int interp_variables(struct sandbox *b, int (*add)(void *arg, const char *name, const char *value),
		     void *arg)
{
	const struct store_sandbox *info = &b->info;
	const char *name;
	json_t *value;
	int r = add(arg, "PATH", WIRE_BOX_PATH);

	if (r == 0)
		r = sandbox_network_variables(b, NULL, add, arg);
	json_object_foreach(info->env, name, value) {
		if (r == 0 && json_is_string(value))
			r = add(arg, name, json_string_value(value));
	}
	if (r == 0)
		r = add(arg, "E2B_SANDBOX", "true");
	if (r == 0)
		r = add(arg, "E2B_SANDBOX_ID", info->id);
	return r < 0 ? r : add(arg, "E2B_TEMPLATE_ID", info->template_id ? info->template_id : "");
}

/* --- from a zygote --------------------------------------------------------------------------- */

static int ask_zygote(struct request *r, const struct interp_target *t, enum warden_zygote zygote,
		      uint32_t flags)
{
	struct warden_frame f = { 0 };
	struct warden_reply reply;
	int n;

	memcpy(f.as_CONTEXT.id, r->sandbox->info.id, sizeof(f.as_CONTEXT.id));
	memcpy(f.as_CONTEXT.context.name, t->name, sizeof(t->name));
	(void)snprintf(f.as_CONTEXT.context.language, sizeof(f.as_CONTEXT.context.language), "%s",
		       t->language->name);
	f.as_CONTEXT.zygote = zygote;
	f.as_CONTEXT.flags = flags;
	n = link_ask(r->server->link, WARDEN_CONTEXT, &f, ZYGOTE_MS, &reply, NULL);
	return n < 0 || reply.err ? -EAGAIN : 0;
}

/* 0: it is on its way; -EAGAIN: start one another way. */
static int fork_kernel(struct request *r, const struct interp_target *t, enum interp_way way)
{
	int n = -EAGAIN;

	if (!r->server->config.interpreter_zygote || strcmp(t->language->name, "python") != 0)
		return n;
	if (way == INTERP_SCIENCE)
		n = ask_zygote(r, t, WARDEN_ZYGOTE_SCIENCE, 0);
	/* One that still has to load the packages is sooner there than one that has to load
	 * everything. */
	if (n < 0 && way != INTERP_EXEC)
		n = ask_zygote(r, t, WARDEN_ZYGOTE_PYTHON, 0);
	return n;
}

void interp_improve(struct request *r, const struct interp_target *t)
{
	if (r->server->config.interpreter_zygote && t->fresh &&
	    strcmp(t->language->name, "python") == 0)
		(void)ask_zygote(r, t, WARDEN_ZYGOTE_SCIENCE, WARDEN_CONTEXT_BETTER);
}

/* --- started by the agent -------------------------------------------------------------------- */

static int make_send_variable(void *arg, const char *name, const char *value)
{
	return talk_env(arg, name, value);
}

static int send_list(struct talk *k, enum wire_type type, char *const *list)
{
	int r = 0;

	for (; r == 0 && *list; list++)
		r = talk_text(k, type, *list);
	return r;
}

static int open_kernel(struct talk *k, const struct interp_target *t)
{
	struct sandbox *b = k->request->sandbox;
	struct wire_kernel q = {
		.exec = {
			.uid = PAYLOAD_USER,
			.gid = PAYLOAD_USER,
			.oom_score_adj = PAYLOAD_OOM_SCORE_KERNEL,
			.fsize_max = b->limits.disk_bytes,
			.nofile_max = PAYLOAD_NOFILE_MAX,
		},
	};

	sandbox_exec_limits(b, &q.exec);
	memcpy(q.context.name, t->name, sizeof(t->name));
	(void)snprintf(q.context.language, sizeof(q.context.language), "%s", t->language->name);
	return talk_open(k, WIRE_KERNEL, &q, sizeof(q));
}

static int send_kernel(struct talk *k, const struct interp_target *t)
{
	struct sandbox *b = k->request->sandbox;
	const struct language_vars vars = {
		.file = "",
		.memory_mb = b->limits.memory_bytes >> 20,
		.cpus = MAX(b->limits.cpu_milli / 1000, 1u),
	};
	_cleanup_(freep) char **argv = NULL;
	_cleanup_(freep) char **env = NULL;
	struct fail fail;
	int r = language_argv(t->language->kernel, &vars, &argv, &fail);

	if (r == 0)
		r = language_env(t->language, &vars, &env, &fail);
	if (r == 0)
		r = talk_text(k, WIRE_USER, "user");
	if (r == 0)
		r = talk_text(k, WIRE_CWD,
			      t->cwd); /* for those that cannot change it later (Java) */
	if (r == 0)
		r = send_list(k, WIRE_ARG, argv);
	if (r == 0)
		r = send_list(k, WIRE_ENV, env);
	if (r == 0)
		r = interp_variables(b, make_send_variable, k);
	return r < 0 ? r : talk_send(k, WIRE_GO, NULL, 0);
}

static int kernel_failed(const struct interp_target *t, const struct wire_failed *failed,
			 struct rpc_error *e)
{
	const char *title = t->language->title;

	if (failed->step == WIRE_STEP_CONTEXT && failed->err == EEXIST)
		return 0; /* somebody else made it at the same moment */
	if (failed->step == WIRE_STEP_CONTEXT && failed->err == EAGAIN)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"this sandbox has as many contexts as it can have");
	if (failed->step == WIRE_STEP_CONTEXT)
		return rpc_fail(e, RPC_INTERNAL,
				"the interpreter of %s ended before it was ready; "
				"is it installed in this template?",
				title);
	if (failed->step == WIRE_STEP_CWD)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "cannot go to the directory %s: %s",
				t->cwd, strerror(failed->err));
	if (failed->step == WIRE_STEP_EXEC)
		return rpc_fail(e, RPC_INTERNAL, "%s is not installed in this template: %s", title,
				strerror(failed->err));
	return rpc_fail(e, RPC_INTERNAL, "the interpreter of %s could not be started (%s): %s",
			title, wire_step_name(failed->step), strerror(failed->err));
}

static int await_kernel(struct talk *k, const struct interp_target *t, struct rpc_error *e)
{
	struct wire_failed failed;
	int r = talk_recv(k);

	if (r > 0 && k->frame.head.type == WIRE_STARTED)
		r = talk_recv(k);
	if (r < 0)
		return r;
	if (k->frame.head.type == WIRE_DONE)
		return 0;
	if (talk_failed(&k->frame, &failed) < 0)
		return envd_broken(k->request->sandbox, "about an interpreter");
	return kernel_failed(t, &failed, e);
}

static int make_start_kernel(struct request *r, const struct interp_target *t, struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *k = talk_new(r);
	int n = k ? open_kernel(k, t) : -ENOMEM;

	if (n == 0)
		n = send_kernel(k, t);
	return n < 0 ? n : await_kernel(k, t, e);
}

int interp_make(struct request *r, const struct interp_target *t, enum interp_way way,
		struct rpc_error *e)
{
	int n = fork_kernel(r, t, way);
	bool forked = n == 0;

	if (n < 0)
		n = make_start_kernel(r, t, e);
	if (n == 0)
		sandbox_log(r->sandbox, "info", "context %s: an interpreter of %s was %s", t->name,
			    t->language->title, forked ? "forked" : "started");
	return n;
}

/* --- what is asked about them ---------------------------------------------------------------- */

int interp_kill(struct request *r, const char *name, struct rpc_error *e)
{
	struct wire_context_tell q = { .signal = SIGKILL };
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	struct wire_failed failed = { 0 };
	int n;

	(void)snprintf(q.context, sizeof(q.context), "%s", name);
	n = t ? talk_open(t, WIRE_CONTEXT_TELL, &q, sizeof(q)) : -ENOMEM;
	if (n == 0)
		n = talk_await_done(t, &failed);
	if (n <= 0 || (failed.step == WIRE_STEP_CONTEXT && failed.err == ENOENT))
		return n < 0 ? n : 0;
	return rpc_fail(e, RPC_INTERNAL, "the interpreter cannot be ended: %s",
			strerror(failed.err));
}

static void note_context(struct request *r, const struct wire_frame *f)
{
	struct wire_context_info info;
	char cwd[WIRE_PATH_MAX + 1];
	size_t len = wire_len(f) - sizeof(info);

	memcpy(&info, f->data, sizeof(info));
	memcpy(cwd, f->data + sizeof(info), len);
	cwd[len] = '\0';
	interp_note(r->sandbox, &info.context, cwd);
}

int interp_sync(struct request *r)
{
	_cleanup_(talk_freep) struct talk *t = NULL;
	int n;

	if (interp_is_complete(r->sandbox))
		return 0;
	t = talk_new(r);
	n = t ? talk_open(t, WIRE_CONTEXTS, NULL, 0) : -ENOMEM;
	for (size_t i = 0; n >= 0 && i <= INTERP_CONTEXTS_MAX; i++) {
		n = talk_recv(t);
		if (n < 0)
			return n;
		if (t->frame.head.type == WIRE_DONE) {
			interp_set_complete(r->sandbox);
			return 0;
		}
		if (t->frame.head.type != WIRE_CONTEXT)
			break;
		note_context(r, &t->frame);
	}
	return n < 0 ? n : envd_broken(r->sandbox, "in a list of contexts");
}
