/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox as clients see it. */
#include "server/control/control_priv.h"

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

json_t *show_sandbox(struct sandbox *b)
{
	const struct store_sandbox *i = &b->info;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "sandboxID", i->id,
			      "templateID", i->template_id, "clientID", "glovebox", "envdVersion",
			      ENVD_VERSION, "envdAccessToken", text_or_null(i->envd_token),
			      "trafficAccessToken", text_or_null(i->traffic_token), "domain",
			      text_or_null(b->server->config.server_domain));

	if (!i->envd_token)
		(void)json_object_del(o, "envdAccessToken");
	if (i->alias)
		(void)json_object_set_new(o, "alias", json_string(i->alias));
	return o;
}

json_t *show_listed(struct sandbox *b)
{
	const struct store_sandbox *i = &b->info;
	enum store_state state;
	int64_t end_ms;
	json_t *o;

	pthread_mutex_lock(&b->lock);
	state = i->state;
	end_ms = i->end_ms;
	pthread_mutex_unlock(&b->lock);
	o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:o, s:[]}", "sandboxID",
		      i->id, "templateID", i->template_id, "clientID", "glovebox", "envdVersion",
		      ENVD_VERSION, "startedAt", clock_json(i->started_ms), "endAt",
		      clock_json(end_ms), "cpuCount", (json_int_t)limits_cpus(&b->limits),
		      "memoryMB", (json_int_t)limits_mb(b->limits.memory_bytes), "diskSizeMB",
		      (json_int_t)limits_mb(b->limits.disk_bytes), "state",
		      state == STORE_PAUSED ? "paused" : "running", "metadata",
		      json_deep_copy(i->metadata), "volumeMounts");
	if (o && i->alias)
		(void)json_object_set_new(o, "alias", json_string(i->alias));
	return o;
}

json_t *show_detail(struct sandbox *b)
{
	json_t *o = show_listed(b);
	struct sandbox_config c;

	if (!o)
		return NULL;
	sandbox_config_of(b, &c);
	if (b->info.envd_token)
		(void)json_object_set_new(o, "envdAccessToken", json_string(b->info.envd_token));
	network_show(b, o);
	(void)json_object_set_new(o, "domain", text_or_null(b->server->config.server_domain));
	(void)json_object_set_new(o, "lifecycle",
				  json_pack("{s:s, s:b}", "onTimeout",
					    c.auto_pause ? "pause" : "kill", "autoResume",
					    c.auto_resume));
	return o;
}
