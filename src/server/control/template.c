/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: the two that are always there, and snapshots. */
#include "server/control/control_priv.h"

static const struct {
	const char *name;
	enum warden_template template;
} built_in[] = {
	{ "base", WARDEN_TEMPLATE_BASE },
	{ "code-interpreter-v1", WARDEN_TEMPLATE_CODE_INTERPRETER },
};

static int not_found(struct problem *p, const char *text)
{
	return problem_set(p, 404, NULL, "template '%s' not found", text);
}

static bool find_built_in(struct server *s, const struct name *n, struct template_info *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++) {
		if (*n->space || strcmp(n->name, built_in[i].name) != 0 ||
		    !name_tag_is_default(n->tag))
			continue;
		*ret = (struct template_info){ .config.template = built_in[i].template,
					       .config.auto_pause_memory = true };
		(void)snprintf(ret->id, sizeof(ret->id), "%s", built_in[i].name);
		(void)snprintf(ret->alias, sizeof(ret->alias), "%s", built_in[i].name);
		limits_default(&s->config, &ret->config.limits);
		return true;
	}
	return false;
}

int snapshot_find(struct server *s, const char *key_id, const char *text,
		  struct store_snapshot *ret, struct problem *p)
{
	struct name n;
	int r;

	if (template_name_parse(text, &n) < 0)
		return problem_set(p, 400, NULL, "invalid template: '%.128s'", text);
	if ((*n.space && key_id && strcmp(n.space, key_id) != 0) || !name_tag_is_default(n.tag))
		return not_found(p, text);
	/* A namespace is a key's id: where any key's will do, that one's is meant. */
	r = store_snapshot_get(s->store, !key_id && *n.space ? n.space : key_id, n.name, ret);
	if (r == -ENOENT)
		return not_found(p, text);
	return r < 0 ? problem_internal(p, r, "find the template") : 0;
}

int template_find(struct server *s, const char *key_id, const char *text, struct template_info *ret,
		  struct problem *p)
{
	struct store_snapshot snapshot = { 0 };
	struct name n;
	int r;

	if (template_name_parse(text, &n) < 0)
		return problem_set(p, 400, NULL, "invalid template: '%.128s'", text);
	if (find_built_in(s, &n, ret))
		return 0;
	r = snapshot_find(s, key_id, text, &snapshot, p);
	if (r < 0)
		return r;
	*ret = (struct template_info){ 0 };
	sandbox_config_read(snapshot.config, &ret->config);
	ret->config.network = NULL;
	(void)snprintf(ret->id, sizeof(ret->id), "%s", snapshot.id);
	if (snapshot.name)
		(void)snprintf(ret->alias, sizeof(ret->alias), "%s", snapshot.name);
	store_snapshot_done(&snapshot);
	return 0;
}

static json_t *template_json(const char *id, const char *name, const struct warden_limits *l,
			     int64_t created_ms, bool is_public)
{
	char build[UUID_SIZE];
	json_t *names = json_array();

	uuid_of(id, build);
	if (name)
		(void)json_array_append_new(names, json_string(name));
	return json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:b, s:O, s:o, s:o, s:o, s:n, s:n, s:i, s:i, s:s, s:s}",
		"templateID", id, "buildID", build, "cpuCount", (json_int_t)limits_cpus(l),
		"memoryMB", (json_int_t)limits_mb(l->memory_bytes), "diskSizeMB",
		(json_int_t)limits_mb(l->disk_bytes), "public", is_public, "aliases", names,
		"names", names, "createdAt", clock_json(created_ms), "updatedAt",
		clock_json(created_ms), "createdBy", "lastSpawnedAt", "spawnCount", 0, "buildCount",
		1, "envdVersion", ENVD_VERSION, "buildStatus", "ready");
}

static void add_built_in(struct server *s, json_t *list)
{
	struct warden_limits limits;

	limits_default(&s->config, &limits);
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
		(void)json_array_append_new(list, template_json(built_in[i].name, built_in[i].name,
								&limits, s->started_ms, true));
}

static json_t *snapshot_template_json(const struct store_snapshot *n)
{
	struct sandbox_config c;

	sandbox_config_read(n->config, &c);
	return template_json(n->id, n->name, &c.limits, n->created_ms, false);
}

/* The built-in ones are on the first page, before everything else; a token is the id of the last
 * snapshot. */
static int reply_templates(struct request *r, size_t limit, const char *after)
{
	struct store_snapshot *list = NULL;
	json_t *all = json_array();
	size_t n = 0;
	int e;

	if (!after)
		add_built_in(r->server, all);
	e = store_snapshot_list(r->server->store, request_key(r), NULL, NULL, after, limit + 1,
				&list, &n);
	if (e < 0) {
		struct problem p;

		json_decref(all);
		(void)problem_internal(&p, e, "list the templates");
		return problem_reply(r, &p);
	}
	if (n > limit)
		reply_header(r, "X-Next-Token", list[limit - 1].id);
	for (size_t i = 0; i < n; i++) {
		if (i < limit)
			(void)json_array_append_new(all, snapshot_template_json(&list[i]));
		store_snapshot_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

int handle_templates(struct request *r)
{
	return reply_templates(r, TEMPLATES_MAX, NULL);
}

int handle_templates_v2(struct request *r)
{
	return reply_templates(r, request_number(r, "limit", PAGE_DEFAULT),
			       request_query(r, "nextToken"));
}

int handle_template_alias(struct request *r)
{
	struct problem p = { 0 };
	struct template_info t;
	struct name n;

	if (template_find(r->server, r->key.id, r->params[0], &t, &p) < 0)
		return problem_reply(r, &p);
	return reply_json(r, 200,
			  json_pack("{s:s, s:b}", "templateID", t.id, "public",
				    template_name_parse(r->params[0], &n) == 0 &&
					    find_built_in(r->server, &n, &t)));
}

int handle_template_delete(struct request *r)
{
	struct store_snapshot snapshot = { 0 };
	struct sandbox_config c;
	struct problem p = { 0 };
	struct template_info t;
	struct name n;
	int e;

	if (template_name_parse(r->params[0], &n) == 0 && find_built_in(r->server, &n, &t))
		return reply_error(
			r, 403, "template '%s' belongs to the service and cannot be deleted", t.id);
	e = snapshot_find(r->server, r->key.id, r->params[0], &snapshot, &p);
	if (e < 0 && !request_key(r))
		e = snapshot_find(r->server, NULL, r->params[0], &snapshot, &p);
	if (e < 0)
		return problem_reply(r, &p);
	sandbox_config_read(snapshot.config, &c);
	c.network = NULL;
	e = store_snapshot_remove(r->server->store, request_key(r), snapshot.id);
	store_snapshot_done(&snapshot);
	if (e == -ENOENT)
		return reply_error(r, 404, "template '%s' not found", r->params[0]);
	if (e < 0) {
		(void)problem_internal(&p, e, "delete the template");
		return problem_reply(r, &p);
	}
	layers_release(r->server, &c);
	return reply_empty(r, 204);
}

int handle_teams(struct request *r)
{
	return reply_json(r, 200,
			  json_pack("[{s:s, s:s, s:s, s:b}]", "teamID", r->key.id, "name",
				    r->key.name, "apiKey", "", "isDefault", 1));
}
