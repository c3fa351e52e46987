/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to sandboxes, in the form of E2B's events API: kept in the store, sent to
 * webhooks. */
#include "server/changes/changes.h"

#define EVENT_PREFIX "sandbox.lifecycle."

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
static void record_event(struct server *s, const struct store_sandbox *info, const char *execution,
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
	s->deliver(s, info->key_id, e.type, take_ptr(e.data));
	store_event_done(&e);
}

void event_add(struct sandbox *b, const char *type, json_t *data)
{
	struct sandbox_config c;

	sandbox_config_of(b, &c);
	record_event(b->server, &b->info, c.execution, type, data);
}

static json_t *with_execution(json_t *data, const struct store_sandbox *info,
			      const struct warden_limits *l)
{
	json_t *execution = json_pack(
		"{s:o, s:I, s:I, s:I}", "started_at", clock_json(info->started_ms), "vcpu_count",
		(json_int_t)limits_cpus(l), "memory_mb", (json_int_t)limits_mb(l->memory_bytes),
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
	record_event(s, info, c.execution, "killed", with_execution(data, info, &c.limits));
}
