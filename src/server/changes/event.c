/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to sandboxes, in the form of E2B's events API: kept in the store, sent to
 * webhooks. */
#include "server/control/control_priv.h"

#define EVENTS_DEFAULT 10
#define EVENT_PREFIX "sandbox.lifecycle."
#define EVENT_TYPES_MAX 16
#define EVENT_TYPE_SIZE 64

static json_t *event_json(const struct store_event *e, const struct store_sandbox *info,
			  const char *execution, json_t *data)
{
	char build[UUID_SIZE];

	uuid_of(info->template_id, build);
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "version", "v2",
			 "id", e->id, "type", e->type, "eventData", data, "sandboxBuildId", build,
			 "sandboxExecutionId", execution, "sandboxId", info->id, "sandboxTeamId",
			 info->key_id, "sandboxTemplateId", info->template_id, "timestamp",
			 clock_json(e->at_ms));
}

/* Only what never changes is read from info. */
static void add(struct server *s, const struct store_sandbox *info, const char *execution,
		const char *type, json_t *data)
{
	struct store_event e = { .at_ms = clock_wall_ms() };
	char id[UUID_SIZE];
	int r;

	if (!data)
		data = json_object();
	(void)json_object_set_new(data, "sandbox_metadata", json_deep_copy(info->metadata));
	uuid_new(id);
	(void)snprintf(e.id, sizeof(e.id), "%s", id);
	(void)snprintf(e.key_id, sizeof(e.key_id), "%s", info->key_id);
	(void)snprintf(e.sandbox_id, sizeof(e.sandbox_id), "%s", info->id);
	(void)snprintf(e.type, sizeof(e.type), EVENT_PREFIX "%s", type);
	e.data = event_json(&e, info, execution, data);
	if (!e.data)
		return;
	r = store_event_add(s->store, &e);
	if (r < 0)
		server_log(s, "error", "store",
			   json_pack("{s:s, s:s}", "sandbox", info->id, "error", strerror(-r)));
	worker_prune(); /* nothing else need ever happen to a sandbox */
	deliver(s, info->key_id, e.type, take_ptr(e.data));
	store_event_done(&e);
}

void event_add(struct sandbox *b, const char *type, json_t *data)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	add(b->server, &b->info, c.execution, type, data);
}

static json_t *with_execution(json_t *data, const struct store_sandbox *info,
			      const struct warden_limits *l)
{
	json_t *execution = json_pack(
		"{s:o, s:I, s:I, s:I}", "started_at", clock_json(info->started_ms), "vcpu_count",
		(json_int_t)show_cpus(l), "memory_mb", (json_int_t)show_mb(l->memory_bytes),
		"execution_time", (json_int_t)MAX(clock_wall_ms() - info->started_ms, (int64_t)0));

	if (!data)
		data = json_object();
	(void)json_object_set_new(data, "execution", execution);
	return data;
}

void event_add_execution(struct sandbox *b, const char *type, json_t *data)
{
	event_add(b, type, with_execution(data, &b->info, &b->limits));
}

void event_add_lost(struct server *s, const struct store_sandbox *info, json_t *data)
{
	struct sandbox_config c;

	sandbox_config_read(info->config, &c);
	add(s, info, c.execution, "killed", with_execution(data, info, &c.limits));
}

/* The types that are asked for: parameters may be repeated, and each may be a list. */
struct types {
	json_t *list;
	bool bad;
};

static enum MHD_Result add_types(void *arg, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct types *t = arg;

	(void)kind;
	if (strcmp(name, "types") != 0 || !value)
		return MHD_YES;
	for (;;) {
		size_t n = strcspn(value, ",");

		if (json_array_size(t->list) == EVENT_TYPES_MAX || n == 0 || n >= EVENT_TYPE_SIZE ||
		    json_array_append_new(t->list, json_stringn(value, n)) < 0) {
			t->bad = true;
			return MHD_NO;
		}
		if (!value[n])
			return MHD_YES;
		value += n + 1;
	}
}

static int reply_list(struct request *r, const char *sandbox_id, const json_t *types)
{
	const char *order = request_query(r, "orderAsc");
	struct store_event *list = NULL;
	size_t n = 0;
	json_t *all;
	int e = store_event_list(r->server->store, request_key(r), sandbox_id, types,
				 order && strcmp(order, "true") == 0,
				 request_number(r, "offset", 0),
				 request_number(r, "limit", EVENTS_DEFAULT), &list, &n);

	if (e < 0) {
		struct fail fail;

		(void)fail_set(&fail, -e, "events", "cannot be read");
		return reply_failure(r, &fail);
	}
	all = json_array();
	for (size_t i = 0; i < n; i++) {
		(void)json_array_append(all, list[i].data);
		store_event_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

static int reply_events(struct request *r, const char *sandbox_id)
{
	_cleanup_(json_decrefp) json_t *list = json_array();
	struct types types = { .list = list };

	(void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, add_types, &types);
	if (types.bad)
		return reply_error(r, 400, "types: at most %d event types", EVENT_TYPES_MAX);
	return reply_list(r, sandbox_id, list);
}

int handle_events(struct request *r)
{
	return reply_events(r, NULL);
}

int handle_sandbox_events(struct request *r)
{
	return reply_events(r, r->params[0]);
}
