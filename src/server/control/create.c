/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /sandboxes and /v2/sandboxes. An option that we do not have is refused by its name, never
 * ignored. allow_internet_access: true is what Python's client always sends, whether or not its caller
 * said anything: it means what the service gives by itself.
 */
#include "server/control/control_priv.h"

#include "server/http/exchange.h"
#include "server/http/host.h"

#define ENV_NAME_MAX 256
#define METADATA_KEY_MAX 256

static bool is_empty(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static int refuse(const json_t *o, const char *prefix, const char *const *names, struct problem *p)
{
	for (; *names; names++)
		if (!is_empty(json_object_get(o, *names)))
			return problem_set(p, 400, "not_supported", "not supported yet: %s%s",
					   prefix, *names);
	return 0;
}

/* What concerns the way in: port/port.h. */
static int check_way_in(const json_t *network, struct problem *p)
{
	const char *mask = json_string_value(json_object_get(network, "maskRequestHost"));
	const json_t *ports = json_object_get(network, "httpsPorts"), *port;
	size_t i;

	if (mask && !host_mask_ok(mask))
		return problem_set(p, 400, NULL,
				   "network.maskRequestHost: must be a host, perhaps with a port; "
				   "${PORT} stands for the port that is asked for");
	json_array_foreach(ports, i, port) {
		json_int_t number = json_integer_value(port);

		if (number == HTTP_ENVD_PORT || number == HTTP_INTERPRETER_PORT)
			return problem_set(
				p, 400, NULL,
				"network.httpsPorts: %d is not a port of the sandbox's own "
				"programs",
				(int)number);
	}
	return 0;
}

int network_check(const json_t *network, struct problem *p)
{
	static const char *const names[] = { "egressProxy", NULL };
	int r = refuse(network, "network.", names, p);

	return r < 0 ? r : check_way_in(network, p);
}

static int check_options(const json_t *body, struct problem *p)
{
	static const char *const names[] = { "mcp", "iam", "volumeMounts", NULL };
	int r = refuse(body, "", names, p);

	return r < 0 ? r : network_check(json_object_get(body, "network"), p);
}

/* AP-09: the names become environment variables of every command. */
static int check_names(const json_t *body, struct problem *p)
{
	json_t *env = json_object_get(body, "envVars"),
	       *metadata = json_object_get(body, "metadata"), *value;
	const char *name;

	json_object_foreach(env, name, value) {
		if (!*name || strlen(name) > ENV_NAME_MAX || strchr(name, '='))
			return problem_set(
				p, 400, NULL,
				"envVars: a name must have 1 to %d bytes and no '=': '%.64s'",
				ENV_NAME_MAX, name);
	}
	json_object_foreach(metadata, name, value) {
		if (strlen(name) > METADATA_KEY_MAX)
			return problem_set(p, 400, NULL,
					   "metadata: a key has at most %d bytes: '%.64s…'",
					   METADATA_KEY_MAX, name);
	}
	return 0;
}

static bool auto_resume(const json_t *body)
{
	return json_is_true(json_object_get(json_object_get(body, "autoResume"), "enabled"));
}

static int check_lifecycle(const struct sandbox_config *c, struct problem *p)
{
	if (!c->auto_pause_memory && !c->auto_pause)
		return problem_set(p, 400, NULL, "autoPauseMemory: false needs autoPause: true");
	if (!c->auto_pause_memory && c->auto_resume)
		return problem_set(
			p, 400, NULL,
			"autoResume: a sandbox that is paused without its memory cannot be resumed by "
			"traffic (autoPauseMemory: false)");
	return 0;
}

static int read_plan(struct request *r, uint64_t default_s, bool secure, const json_t *settings,
		     struct template_info *t, struct sandbox_plan *ret, struct problem *p)
{
	const json_t *network = json_object_get(r->body, "network");
	struct sandbox_config *c = &ret->config;
	int e = check_options(r->body, p);

	if (e == 0)
		e = check_names(r->body, p);
	if (e == 0)
		e = network_settings_check(r->server, r->key.id, settings, p);
	if (e == 0)
		e = template_find(r->server, r->key.id,
				  json_string_value(json_object_get(r->body, "templateID")), t, p);
	if (e < 0)
		return e;
	*ret = (struct sandbox_plan){
		.key_id = r->key.id,
		.template_id = t->id,
		.alias = *t->alias ? t->alias : NULL,
		.metadata = json_object_get(r->body, "metadata"),
		.env = json_object_get(r->body, "envVars"),
		.config = t->config,
		.secure = secure,
		.private_traffic = json_is_false(json_object_get(network, "allowPublicTraffic")),
	};
	c->cold = false;
	c->auto_pause = body_bool(r, "autoPause", false);
	c->auto_pause_memory = body_bool(r, "autoPauseMemory", true);
	c->auto_resume = auto_resume(r->body);
	c->network = settings;
	e = body_timeout(r, "timeout", default_s, &c->timeout_ms, p);
	return e < 0 ? e : check_lifecycle(c, p);
}

/* The reply's body, or NULL with the problem. */
static json_t *create(struct request *r, uint64_t default_s, bool secure, struct problem *p)
{
	_cleanup_(json_decrefp) json_t *settings =
		network_settings(json_object_get(r->body, "network"),
				 json_object_get(r->body, "allow_internet_access"));
	_cleanup_(sandbox_putp) struct sandbox *b = NULL;
	struct sandbox_plan plan;
	struct template_info t = { 0 };

	if (read_plan(r, default_s, secure, settings, &t, &plan, p) < 0 ||
	    sandbox_make(r->server, &plan, &b, p) < 0)
		return NULL;
	return show_sandbox(b);
}

static int create_once(struct request *r, const char *text, uint64_t default_s, bool secure)
{
	struct problem p = { .status = 500 };
	json_t *reply = NULL;
	int e = once_begin(r->key.id, text, r->body, &reply);

	if (e == -EBADMSG)
		return reply_error(r, 422, "Idempotency-Key: it was used for another request");
	if (e == -EBUSY)
		return reply_error(r, 409,
				   "Idempotency-Key: the first request with it is not done yet");
	if (e < 0)
		return e;
	if (e == 0) {
		e = request_take_create(r);
		if (e == 0 && !r->replied)
			reply = create(r, default_s, secure, &p);
		once_done(r->key.id, text, reply);
		if (e < 0 || r->replied)
			return e;
	}
	return reply ? reply_json(r, 201, reply) : problem_reply(r, &p);
}

static int reply_create(struct request *r, uint64_t default_s, bool secure)
{
	const char *text = request_header(r, "Idempotency-Key");
	struct problem p = { .status = 500 };
	json_t *reply;
	int e;

	if (text) {
		if (!*text || strlen(text) > ONCE_TEXT_MAX)
			return reply_error(r, 400, "Idempotency-Key: must have 1 to %d bytes",
					   ONCE_TEXT_MAX);
		return create_once(r, text, default_s, secure);
	}
	e = request_take_create(r);
	if (e < 0 || r->replied)
		return e;
	reply = create(r, default_s, secure, &p);
	return reply ? reply_json(r, 201, reply) : problem_reply(r, &p);
}

int handle_create_v1(struct request *r)
{
	return reply_create(r, TIMEOUT_DEFAULT_V1_S, body_bool(r, "secure", false));
}

int handle_create_v2(struct request *r)
{
	return reply_create(r, TIMEOUT_DEFAULT_V2_S, true);
}
