/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a sandbox: a place in the table, a record in the store, then the box. A server that dies
 * after the record leaves one without a box, which the next server ends; one that fails takes
 * everything back.
 */
#include "server/changes/changes.h"

static int ask_for_box(struct sandbox *b, const struct sandbox_config *c, uint64_t timeout_ms,
		       struct warden_reply *ret, int *ret_fd)
{
	struct warden_frame f = { 0 };
	struct warden_create *create = &f.as_CREATE;

	memcpy(create->id, b->info.id, sizeof(create->id));
	create->template = (uint32_t)c->template;
	create->flags = (b->server->config.sandbox_root ? WARDEN_CREATE_ROOT : 0) |
			(c->auto_pause ? WARDEN_CREATE_PAUSE : 0);
	create->limits = c->limits;
	create->timeout_ms = MAX(timeout_ms, UINT64_C(1));
	create->n_layers = (uint32_t)c->n_layers;
	memcpy(create->layer, c->layer, sizeof(create->layer));
	return link_ask(b->server->link, WARDEN_CREATE, &f, CREATE_TIMEOUT_MS, ret, ret_fd);
}

int sandbox_make_box(struct sandbox *b, const struct sandbox_config *c, uint64_t timeout_ms,
		     struct problem *p)
{
	uint64_t deadline_us = clock_boot_us() + timeout_ms * 1000;
	struct warden_reply reply;
	int control_fd = -EBADF;
	int r = ask_for_box(b, c, timeout_ms, &reply, &control_fd);

	if (r < 0)
		return problem_internal(p, r, "make a sandbox");
	if (reply.err == ENOENT)
		return problem_set(p, 404, NULL, "the snapshot that the sandbox stands on is gone");
	if (reply.err)
		return problem_warden(p, &reply, "be made");
	if (control_fd < 0)
		return problem_internal(p, -EPROTO, "make a sandbox");
	pthread_mutex_lock(&b->lock);
	b->deadline_us = deadline_us;
	pthread_mutex_unlock(&b->lock);
	/* NW-01: nobody gets a box whose rules do not hold. */
	r = network_attach(b, p);
	if (r < 0)
		fd_close(control_fd);
	else if (sandbox_set_box(b, control_fd, &reply.box.isolation) < 0)
		r = problem_set(p, 404, NULL, "sandbox '%s' ended as soon as it was there",
				b->info.id);
	if (r < 0 && kill_box(b) < 0)
		kill_box_later(b);
	return r;
}

static char *copy_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

static json_t *copy_object(const json_t *o)
{
	return o ? json_deep_copy(o) : json_object();
}

static int fill_record(const struct sandbox_plan *plan, struct store_sandbox *ret)
{
	struct sandbox_config c = plan->config;
	char token[TOKEN_LEN + 1];

	uuid_new(c.execution);
	id_new('i', ret->id);
	(void)snprintf(ret->key_id, sizeof(ret->key_id), "%s", plan->key_id);
	ret->template_id = strdup(plan->template_id);
	ret->alias = copy_or_null(plan->alias);
	ret->metadata = copy_object(plan->metadata);
	ret->env = copy_object(plan->env);
	ret->config = sandbox_config_json(&c);
	if (plan->secure) {
		token_new(token);
		ret->envd_token = strdup(token);
	}
	if (plan->private_traffic) {
		token_new(token);
		ret->traffic_token = strdup(token);
	}
	explicit_bzero(token, sizeof(token));
	ret->state = STORE_RUNNING;
	ret->started_ms = clock_wall_ms();
	ret->end_ms = ret->started_ms + (int64_t)c.timeout_ms;
	if (!ret->template_id || (plan->alias && !ret->alias) || !ret->metadata || !ret->env ||
	    !ret->config || (plan->secure && !ret->envd_token) ||
	    (plan->private_traffic && !ret->traffic_token))
		return -ENOMEM;
	return 0;
}

static int add_to_table(struct server *s, const struct sandbox_plan *plan, struct sandbox **ret,
			struct problem *p)
{
	struct store_sandbox info = { 0 };
	int r = fill_record(plan, &info);

	if (r < 0) {
		store_sandbox_done(&info);
		return problem_internal(p, r, "make a sandbox");
	}
	r = sandbox_add(s, &info, &plan->config.limits, s->config.limits_sandboxes_per_key, ret);
	if (r == -EUSERS)
		return problem_set(
			p, 429, "too_many_sandboxes",
			"there are as many sandboxes as there may be (%llu of one key, %llu in "
			"all): kill some, or let their time run out",
			(unsigned long long)s->config.limits_sandboxes_per_key,
			(unsigned long long)s->config.limits_sandboxes);
	return r < 0 ? problem_internal(p, r, "make a sandbox") : 0;
}

/* With the change lock held. */
static int record_and_box(struct sandbox *b, const struct sandbox_plan *plan, struct problem *p)
{
	int r = store_sandbox_add(b->server->store, &b->info);

	if (r < 0) {
		sandbox_remove(b);
		return problem_internal(p, r, "make a sandbox");
	}
	r = sandbox_make_box(b, &plan->config, plan->config.timeout_ms, p);
	if (r < 0) {
		(void)sandbox_end(b, WARDEN_ENDED_STOPPED, "it could not be made");
		kill_box_later(b); /* it may have been made after we stopped waiting */
		worker_prune();
	}
	return r;
}

int sandbox_make(struct server *s, const struct sandbox_plan *plan, struct sandbox **ret,
		 struct problem *p)
{
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	int r = add_to_table(s, plan, &b, p);

	if (r < 0)
		return r;
	r = change_begin(b);
	if (r < 0) {
		sandbox_remove(b);
		return problem_internal(p, r, "make a sandbox");
	}
	r = record_and_box(b, plan, p);
	change_end(b);
	if (r < 0)
		return r;
	sandbox_log(b, "info", "sandbox started from template %s", plan->template_id);
	event_add(b, "created", NULL);
	*ret = take_ptr(b);
	return 0;
}
