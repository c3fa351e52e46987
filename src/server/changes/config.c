/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox was made with, as the store keeps it: written and read by the same build or a
 * later one. */
#include "server/changes/changes.h"

static uint64_t config_number(const json_t *o, const char *name, uint64_t def)
{
	const json_t *v = json_object_get(o, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) :
								  def;
}

static bool config_flag(const json_t *o, const char *name, bool def)
{
	const json_t *v = json_object_get(o, name);

	return json_is_boolean(v) ? json_is_true(v) : def;
}

static void read_layers(const json_t *list, struct sandbox_config *ret)
{
	size_t i;
	json_t *layer;

	json_array_foreach(list, i, layer) {
		const char *text = json_string_value(layer);

		if (!text || strlen(text) >= WARDEN_ID_SIZE || ret->n_layers == WARDEN_LAYERS_MAX)
			continue;
		memcpy(ret->layer[ret->n_layers++], text, strlen(text) + 1);
	}
}

void sandbox_config_read(const json_t *json, struct sandbox_config *ret)
{
	const json_t *limits = json_object_get(json, "limits");
	const char *execution = json_string_value(json_object_get(json, "execution"));
	const char *pending = json_string_value(json_object_get(json, "pending"));

	*ret = (struct sandbox_config){
		.template = config_number(json, "template", WARDEN_TEMPLATE_BASE) ==
					    WARDEN_TEMPLATE_CODE_INTERPRETER ?
				    WARDEN_TEMPLATE_CODE_INTERPRETER :
				    WARDEN_TEMPLATE_BASE,
		.limits = { .memory_bytes = config_number(limits, "memory", 0),
			    .disk_bytes = config_number(limits, "disk", 0),
			    .files = config_number(limits, "files", 0),
			    .pids = (uint32_t)MIN(config_number(limits, "pids", 0),
						  (uint64_t)UINT32_MAX),
			    .cpu_milli = (uint32_t)MIN(config_number(limits, "cpuMilli", 0),
						       (uint64_t)UINT32_MAX) },
		.timeout_ms = config_number(json, "timeoutMs", 0),
		.cold = config_flag(json, "cold", false),
		.auto_pause = config_flag(json, "autoPause", false),
		.auto_pause_memory = config_flag(json, "autoPauseMemory", true),
		.auto_resume = config_flag(json, "autoResume", false),
		.network = json_object_get(json, "network"),
	};
	read_layers(json_object_get(json, "layers"), ret);
	if (pending && strlen(pending) < sizeof(ret->pending))
		memcpy(ret->pending, pending, strlen(pending) + 1);
	if (execution)
		(void)snprintf(ret->execution, sizeof(ret->execution), "%s", execution);
}

static json_t *layers_json(const struct sandbox_config *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_layers; i++)
		(void)json_array_append_new(list, json_string(c->layer[i]));
	return list;
}

static json_t *config_integer(uint64_t value)
{
	return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

json_t *sandbox_config_json(const struct sandbox_config *c)
{
	json_t *o = json_pack(
		"{s:i, s:o, s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:b, s:b, s:b, s:b, s:s}", "template",
		(int)c->template, "layers", layers_json(c), "limits", "memory",
		config_integer(c->limits.memory_bytes), "disk",
		config_integer(c->limits.disk_bytes), "files", config_integer(c->limits.files),
		"pids", config_integer(c->limits.pids), "cpuMilli",
		config_integer(c->limits.cpu_milli), "timeoutMs", config_integer(c->timeout_ms),
		"cold", c->cold, "autoPause", c->auto_pause, "autoPauseMemory",
		c->auto_pause_memory, "autoResume", c->auto_resume, "execution", c->execution);

	if (o && *c->pending)
		(void)json_object_set_new(o, "pending", json_string(c->pending));
	if (o && c->network)
		(void)json_object_set_new(o, "network", json_deep_copy(c->network));
	return o;
}

void sandbox_config_of(struct sandbox *b, struct sandbox_config *ret)
{
	pthread_mutex_lock(&b->lock);
	sandbox_config_read(b->info.config, ret);
	pthread_mutex_unlock(&b->lock);
	ret->network = NULL;
}

/* Puts another config in the place of the old one; takes it over. What is shared between threads
 * is copied, never referenced: jansson counts references without telling when the last one is
 * gone from every thread's view. */
static void config_swap_locked(struct sandbox *b, json_t *config)
{
	json_decref(b->info.config);
	b->info.config = config;
}

int sandbox_config_replace(struct sandbox *b, const struct sandbox_config *c)
{
	json_t *config = sandbox_config_json(c);

	if (!config)
		return -ENOMEM;
	pthread_mutex_lock(&b->lock);
	(void)json_object_set_new(config, "network",
				  json_deep_copy(json_object_get(b->info.config, "network")));
	config_swap_locked(b, config);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

int sandbox_config_replace_network(struct sandbox *b, json_t *network)
{
	json_t *config;

	pthread_mutex_lock(&b->lock);
	config = json_deep_copy(b->info.config);
	if (config) {
		(void)json_object_del(config, "network");
		(void)json_object_set_new(config, "network", network);
		config_swap_locked(b, config);
	}
	pthread_mutex_unlock(&b->lock);
	if (!config)
		json_decref(network);
	return config ? 0 : -ENOMEM;
}

void limits_default(const struct config *c, struct warden_limits *ret)
{
	*ret = (struct warden_limits){
		.memory_bytes = c->sandbox_memory,
		.disk_bytes = c->sandbox_disk,
		.files = c->sandbox_files,
		.pids = (uint32_t)c->sandbox_pids,
		.cpu_milli = (uint32_t)c->sandbox_cpus,
	};
}

/* E2B counts whole CPUs. */
int64_t limits_cpus(const struct warden_limits *l)
{
	return MAX((int64_t)(l->cpu_milli + 999) / 1000, 1);
}

int64_t limits_mb(uint64_t bytes)
{
	return (int64_t)(bytes >> 20);
}
