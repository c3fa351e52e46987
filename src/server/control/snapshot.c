/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a sandbox's files, and forks: sandboxes that begin with a copy of them. */
#include "server/control/control_priv.h"

#define FORK_DEFAULT 1

/* The id that create and lists show: "NAMESPACE/NAME:default", or "ID:default" for one without a
 * name. */
static json_t *snapshot_json(const struct store_snapshot *n)
{
	char text[STORE_ID_SIZE + NAME_PART_MAX + 16], *tag;
	json_t *names = json_array();

	if (n->name)
		(void)snprintf(text, sizeof(text), "%s/%s", n->key_id, n->name);
	else
		(void)snprintf(text, sizeof(text), "%s", n->id);
	if (n->name)
		(void)json_array_append_new(names, json_string(text));
	tag = text + strlen(text);
	(void)snprintf(tag, sizeof(text) - (size_t)(tag - text), ":default");
	return json_pack("{s:s, s:o}", "snapshotID", text, "names", names);
}

static int read_snapshot_name(struct request *r, struct name *ret, struct problem *p)
{
	const char *text = json_string_value(json_object_get(r->body, "name"));

	*ret = (struct name){ 0 };
	if (!text)
		return 0;
	if (template_name_parse(text, ret) < 0 ||
	    (*ret->space && strcmp(ret->space, r->key.id) != 0) || !name_tag_is_default(ret->tag))
		return problem_set(p, 400, NULL,
				   "name: must be made of a to z, 0 to 9, '-' and '_'");
	return 0;
}

/* What a sandbox that is made from it begins with. */
static void config_for_layer(struct sandbox *b, const char layer[static WARDEN_ID_SIZE],
			     struct sandbox_config *ret)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	*ret = (struct sandbox_config){ .template = c.template,
					.n_layers = c.n_layers,
					.limits = c.limits,
					.auto_pause_memory = true };
	memcpy(ret->layer, c.layer, sizeof(ret->layer));
	memcpy(ret->layer[ret->n_layers++], layer, WARDEN_ID_SIZE);
}

static int save_snapshot(struct sandbox *b, const char *name,
			 const char layer[static WARDEN_ID_SIZE], json_t **ret)
{
	struct store_snapshot n = { .created_ms = clock_wall_ms() };
	struct sandbox_config c;
	int r = -ENOMEM;

	config_for_layer(b, layer, &c);
	memcpy(n.id, layer, sizeof(n.id));
	memcpy(n.key_id, b->info.key_id, sizeof(n.key_id));
	memcpy(n.sandbox_id, b->info.id, sizeof(n.sandbox_id));
	n.name = *name ? strdup(name) : NULL;
	n.config = sandbox_config_json(&c);
	if (n.config && (n.name || !*name))
		r = store_snapshot_add(b->server->store, &n,
				       b->server->config.limits_snapshots_per_key);
	if (r == 0)
		*ret = snapshot_json(&n);
	else
		layers_release(b->server, &c);
	store_snapshot_done(&n);
	return r;
}

/* A name means one snapshot: the ones that had it before go. Sandboxes that stand on them keep
 * their layers. The list has the newest first: what comes before this one was made since, and
 * its own request removes this one. */
static void replace_older(struct sandbox *b, const char *name, const char *this)
{
	struct store_snapshot *list = NULL;
	struct sandbox_config c;
	bool older = false;
	size_t n = 0;

	if (store_snapshot_list(b->server->store, b->info.key_id, NULL, name, NULL, SIZE_MAX, &list,
				&n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		sandbox_config_read(list[i].config, &c);
		if (older &&
		    store_snapshot_remove(b->server->store, b->info.key_id, list[i].id) == 0)
			layers_release(b->server, &c);
		older |= strcmp(list[i].id, this) == 0;
		store_snapshot_done(&list[i]);
	}
	free(list);
}

/* Files can be kept of a sandbox that has a box, running or frozen; what was paused cold is a
 * layer already. */
static int snapshot(struct sandbox *b, char ret_layer[static WARDEN_ID_SIZE], struct problem *p)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	if (c.cold)
		return problem_set(p, 409, "paused",
				   "sandbox '%s' is paused without its memory: connect to it first",
				   b->info.id);
	return change_snapshot(b, ret_layer, p);
}

static int cannot_keep(struct server *s, int r, struct problem *p)
{
	if (r == -EDQUOT)
		return problem_set(p, 429, "too_many_snapshots",
				   "a key can have %llu snapshots: delete one first",
				   (unsigned long long)s->config.limits_snapshots_per_key);
	return problem_internal(p, r, "keep the snapshot");
}

/* With the change lock held. */
static int keep_snapshot(struct sandbox *b, const char *name, char ret_layer[static WARDEN_ID_SIZE],
			 json_t **ret, struct problem *p)
{
	struct server *s = b->server;
	/* Said before its files are copied; what counts is said when the snapshot goes on
	 * record. */
	int r = store_snapshot_fits(s->store, b->info.key_id, *name ? name : NULL,
				    s->config.limits_snapshots_per_key);

	if (r < 0)
		return cannot_keep(s, r, p);
	r = snapshot(b, ret_layer, p);
	if (r < 0)
		return r;
	r = save_snapshot(b, name, ret_layer, ret);
	if (r < 0)
		return cannot_keep(s, r, p);
	if (*name)
		replace_older(b, name, ret_layer);
	r = change_snapshot_done(b);
	return r < 0 ? cannot_keep(s, r, p) : 0;
}

int handle_snapshot(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	_cleanup_(json_decrefp) json_t *reply = NULL;
	char layer[WARDEN_ID_SIZE];
	struct problem p = { 0 };
	struct name name;
	int e = read_snapshot_name(r, &name, &p);

	if (e < 0)
		return problem_reply(r, &p);
	b = request_sandbox(r);
	if (!b)
		return 0;
	if (change_begin(b) < 0)
		return reply_error(r, 404, "sandbox '%s' was not found", b->info.id);
	e = keep_snapshot(b, name.name, layer, &reply, &p);
	change_end(b);
	if (e < 0)
		return problem_reply(r, &p);
	sandbox_log(b, "info", "snapshot %s", layer);
	event_add(b, "checkpointed", json_pack("{s:s}", "snapshot_id", layer));
	return reply_json(r, 201, take_ptr(reply));
}

/* The filter may be a name or an id. */
static int list_snapshots(struct request *r, const char *sandbox_id, const char *name,
			  const char *after, size_t limit, struct store_snapshot **ret,
			  size_t *ret_n)
{
	struct store_snapshot one = { 0 };
	int e = store_snapshot_list(r->server->store, request_key(r), sandbox_id, name, after,
				    limit, ret, ret_n);

	if (e < 0 || *ret_n > 0 || !name || after)
		return e;
	free(*ret);
	*ret = NULL;
	e = store_snapshot_get(r->server->store, request_key(r), name, &one);
	if (e == -ENOENT)
		return 0;
	if (e < 0)
		return e;
	if (sandbox_id && strcmp(one.sandbox_id, sandbox_id) != 0) {
		store_snapshot_done(&one);
		return 0;
	}
	*ret = calloc(1, sizeof(one));
	if (!*ret) {
		store_snapshot_done(&one);
		return -ENOMEM;
	}
	(*ret)[0] = one;
	*ret_n = 1;
	return 0;
}

int handle_snapshots(struct request *r)
{
	const char *sandbox_id = request_query(r, "sandboxID"), *text = request_query(r, "name");
	const char *after = request_query(r, "nextToken");
	size_t limit = request_number(r, "limit", PAGE_DEFAULT), n = 0;
	struct store_snapshot *list = NULL;
	struct problem p = { 0 };
	struct name name = { 0 };
	json_t *all;
	int e;

	if (text && *text &&
	    (template_name_parse(text, &name) < 0 || !name_tag_is_default(name.tag)))
		return reply_json(r, 200, json_array());
	e = list_snapshots(r, sandbox_id && *sandbox_id ? sandbox_id : NULL,
			   *name.name ? name.name : NULL, after && *after ? after : NULL, limit + 1,
			   &list, &n);
	if (e < 0) {
		(void)problem_internal(&p, e, "list the snapshots");
		return problem_reply(r, &p);
	}
	all = json_array();
	if (n > limit)
		reply_header(r, "X-Next-Token", list[limit - 1].id);
	for (size_t i = 0; i < n; i++) {
		if (i < limit)
			(void)json_array_append_new(all, snapshot_json(&list[i]));
		store_snapshot_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

/* One of the copies: {"sandbox": …} or {"error": …}. */
static json_t *fork_one(struct server *s, const struct sandbox_plan *plan)
{
	_cleanup_(sandbox_putp) struct sandbox *copy = NULL;
	struct problem p = { 0 };

	if (sandbox_make(s, plan, &copy, &p) < 0)
		return json_pack("{s:o}", "error", problem_json(&p));
	return json_pack("{s:o}", "sandbox", show_sandbox(copy));
}

/* With the change lock held, so that nobody drops the layer before the copies stand on it. */
static int fork_all(struct sandbox *b, size_t count, uint64_t timeout_ms, json_t *results,
		    struct problem *p)
{
	struct sandbox_config from;
	struct sandbox_plan plan = {
		.key_id = b->info.key_id,
		.template_id = b->info.template_id,
		.alias = b->info.alias,
		.metadata = b->info.metadata,
		.env = b->info.env,
		.secure = b->info.envd_token != NULL,
		.private_traffic = b->info.traffic_token != NULL,
	};
	_cleanup_(json_decrefp) json_t *network = network_settings_of(b);
	char layer[WARDEN_ID_SIZE];
	int r = snapshot(b, layer, p);

	if (r < 0)
		return r;
	sandbox_config_of(b, &from);
	config_for_layer(b, layer, &plan.config);
	plan.config.timeout_ms = timeout_ms;
	plan.config.auto_pause = from.auto_pause;
	plan.config.auto_pause_memory = from.auto_pause_memory;
	plan.config.auto_resume = from.auto_resume;
	plan.config.network = network;
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(results, fork_one(b->server, &plan));
	layers_release(b->server, &plan.config); /* if none of them could be made */
	r = change_snapshot_done(b);
	return r < 0 ? problem_internal(p, r, "fork the sandbox") : 0;
}

int handle_fork(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	size_t count = body_number(r, "count", FORK_DEFAULT);
	struct problem p = { 0 };
	uint64_t timeout_ms;
	json_t *results;
	int e;

	if (body_timeout(r, "timeout", TIMEOUT_DEFAULT_V1_S, &timeout_ms, &p) < 0)
		return problem_reply(r, &p);
	b = request_sandbox(r);
	if (!b)
		return 0;
	for (size_t i = 0; i < count; i++) {
		e = request_take_create(r);
		if (e < 0 || r->replied)
			return e;
	}
	if (change_begin(b) < 0)
		return reply_error(r, 404, "sandbox '%s' was not found", b->info.id);
	results = json_array();
	e = fork_all(b, count, timeout_ms, results, &p);
	change_end(b);
	if (e < 0) {
		json_decref(results);
		return problem_reply(r, &p);
	}
	event_add(b, "checkpointed", NULL);
	return reply_json(r, 201, results);
}
