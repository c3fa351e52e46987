/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to sandboxes, in the form of E2B's events API: kept in the store, sent to
 * webhooks. */
#include "server/control_priv.h"

#define EVENTS_DEFAULT 10
#define EVENTS_PAGE 100
#define EVENT_PREFIX "sandbox.lifecycle."
#define EVENT_TYPES_MAX 16

static json_t *event_json(const struct store_event *e, const struct store_sandbox *info,
			  const char *execution, json_t *data)
{
	char build[UUID_SIZE];

	uuid_of(info->template_id, build);
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:o}", "version", "v2",
			 "id", e->id, "type", e->type, "eventData", data, "sandboxBuildId", build,
			 "sandboxExecutionId", execution, "sandboxId", info->id, "sandboxTeamId",
			 info->key_id, "sandboxTemplateId", info->template_id, "timestamp",
			 time_json(e->at_ms));
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
		"{s:o, s:I, s:I, s:I}", "started_at", time_json(info->started_ms), "vcpu_count",
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
	const char *list[EVENT_TYPES_MAX];
	size_t n;
	char text[EVENT_TYPES_MAX][64];
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

		if (t->n == EVENT_TYPES_MAX || n == 0 || n >= sizeof(t->text[0])) {
			t->bad = true;
			return MHD_NO;
		}
		memcpy(t->text[t->n], value, n);
		t->text[t->n][n] = '\0';
		t->list[t->n] = t->text[t->n];
		t->n++;
		if (!value[n])
			return MHD_YES;
		value += n + 1;
	}
}

static bool wanted(const struct types *t, const char *type)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->list[i], type) == 0)
			return true;
	return t->n == 0;
}

/* Several types: the store filters by one, so all are read page by page and the others are left
 * out here. */
static int collect(struct request *r, const char *sandbox_id, const struct types *t, json_t *list)
{
	const char *order = request_query(r, "orderAsc");
	size_t skip = request_number(r, "offset", 0),
	       limit = request_number(r, "limit", EVENTS_DEFAULT);
	bool ascending = order && strcmp(order, "true") == 0;
	const char *one = t->n == 1 ? t->list[0] : NULL;
	size_t offset = t->n > 1 ? 0 : skip;

	skip -= offset;
	for (;;) {
		struct store_event *page = NULL;
		size_t n = 0, asked = t->n > 1 ? EVENTS_PAGE : limit;
		int e = store_event_list(r->server->store, request_key(r), sandbox_id, one,
					 ascending, offset, asked, &page, &n);

		if (e < 0)
			return e;
		for (size_t i = 0; i < n; i++) {
			if (wanted(t, page[i].type) && json_array_size(list) < limit) {
				if (skip > 0)
					skip--;
				else
					(void)json_array_append(list, page[i].data);
			}
			store_event_done(&page[i]);
		}
		free(page);
		if (n < asked || json_array_size(list) >= limit)
			return 0;
		offset += n;
	}
}

static int reply_events(struct request *r, const char *sandbox_id)
{
	struct types types = { 0 };
	json_t *list;
	int e;

	(void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, add_types, &types);
	if (types.bad)
		return reply_error(r, 400, "types: at most %d event types", EVENT_TYPES_MAX);
	list = json_array();
	e = collect(r, sandbox_id, &types, list);
	if (e < 0) {
		struct fail fail;

		json_decref(list);
		(void)fail_set(&fail, -e, "events", "cannot be read");
		return reply_failure(r, &fail);
	}
	return reply_json(r, 200, list);
}

int handle_events(struct request *r)
{
	return reply_events(r, NULL);
}

int handle_sandbox_events(struct request *r)
{
	return reply_events(r, r->params[0]);
}
