/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: make one, list them, look at one, move its deadline, pause, resume and end it. */
#include "server/control/control_priv.h"

#include "server/http/exchange.h"
#include "server/http/host.h"

#define REFRESH_DEFAULT_S 15
#define ENV_NAME_MAX 256
#define METADATA_KEY_MAX 256

/* --- as clients see them ---------------------------------------------------------------------- */

static json_t *json_text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

json_t *show_sandbox(struct sandbox *b)
{
	const struct store_sandbox *i = &b->info;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "sandboxID", i->id,
			      "templateID", i->template_id, "clientID", "glovebox", "envdVersion",
			      ENVD_VERSION, "envdAccessToken", json_text_or_null(i->envd_token),
			      "trafficAccessToken", json_text_or_null(i->traffic_token), "domain",
			      json_text_or_null(b->server->config.server_domain));

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
	(void)json_object_set_new(o, "domain", json_text_or_null(b->server->config.server_domain));
	(void)json_object_set_new(o, "lifecycle",
				  json_pack("{s:s, s:b}", "onTimeout",
					    c.auto_pause ? "pause" : "kill", "autoResume",
					    c.auto_resume));
	return o;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Lists of sandboxes. A key's own are looked at, never other people's. */
struct list_filter {
	unsigned states;
	json_t *metadata;     /* or NULL */
	const char *template; /* or NULL */
	int64_t started_after;
	bool ascending;
	bool has_cursor;
	struct cursor cursor; /* the page begins behind it */
	size_t limit;
};

static void filter_done(struct list_filter *f)
{
	json_decref(f->metadata);
}

static int read_sandbox_filter(struct request *r, struct list_filter *f, struct problem *p)
{
	const char *metadata = request_query(r, "metadata"), *states = request_query(r, "state");
	const char *after = request_query(r, "startedAfter"), *order = request_query(r, "order");
	const char *token = request_query(r, "nextToken");

	f->template = request_query(r, "template");
	f->ascending = order && strcmp(order, "asc") == 0;
	f->limit = request_number(r, "limit", PAGE_DEFAULT);
	if (metadata && filter_metadata(metadata, &f->metadata) < 0)
		return problem_set(p, 400, NULL, "metadata: not a list of encoded pairs");
	if (states && *states && filter_states(states, &f->states) < 0)
		return problem_set(p, 400, NULL,
				   "state: must be running, paused or both, with a comma between");
	if (after && time_parse(after, &f->started_after) < 0)
		return problem_set(p, 400, NULL, "startedAfter: must be a time as in RFC 3339");
	f->has_cursor = token && *token;
	if (f->has_cursor && cursor_parse(token, &f->cursor) < 0)
		return problem_set(p, 400, NULL, "nextToken: not one that X-Next-Token said");
	return 0;
}

/* A template's id or name, without a tag. */
static bool is_of_template(const struct sandbox *b, const char *template)
{
	return strcmp(b->info.template_id, template) == 0 ||
	       (b->info.alias && strcmp(b->info.alias, template) == 0);
}

static bool sandbox_passes(struct sandbox *b, const struct list_filter *f,
			   enum store_state *ret_state)
{
	*ret_state = sandbox_state(b);
	if (*ret_state == STORE_ENDED)
		return false;
	if (!(f->states & (*ret_state == STORE_PAUSED ? FILTER_PAUSED : FILTER_RUNNING)))
		return false;
	if (b->info.started_ms < f->started_after)
		return false;
	if (f->template && !is_of_template(b, f->template))
		return false;
	return !f->metadata || filter_matches(b->info.metadata, f->metadata);
}

static struct cursor cursor_of(const struct sandbox *b)
{
	struct cursor c = { .started_ms = b->info.started_ms };

	(void)snprintf(c.id, sizeof(c.id), "%s", b->info.id);
	return c;
}

static bool is_behind(const struct sandbox *b, const struct list_filter *f)
{
	struct cursor c = cursor_of(b);
	int order = cursor_compare(&c, &f->cursor);

	return !f->has_cursor || (f->ascending ? order > 0 : order < 0);
}

/* list is sorted, newest first. */
static json_t *page(struct request *r, struct sandbox **list, size_t n, const struct list_filter *f)
{
	json_t *page = json_array();
	char token[CURSOR_TEXT_SIZE] = "", total[24];
	size_t running = 0;
	bool more = false;

	for (size_t i = 0; i < n; i++) {
		struct sandbox *b = list[f->ascending ? n - 1 - i : i];
		enum store_state state;
		struct cursor c;

		if (!sandbox_passes(b, f, &state))
			continue;
		running += state == STORE_RUNNING;
		if (!is_behind(b, f))
			continue;
		if (json_array_size(page) >= f->limit) {
			more = true;
			continue;
		}
		(void)json_array_append_new(page, show_listed(b));
		c = cursor_of(b);
		cursor_text(&c, token);
	}
	if (more)
		reply_header(r, "X-Next-Token", token);
	(void)snprintf(total, sizeof(total), "%zu", running);
	reply_header(r, "X-Total-Running", total);
	return page;
}

static int reply_sandbox_list(struct request *r, struct list_filter *f)
{
	struct sandbox **list;
	size_t n;
	json_t *all;

	if (sandbox_list(r->server, request_key(r), &list, &n) < 0)
		return -ENOMEM;
	all = page(r, list, n, f);
	sandbox_list_free(list, n);
	return reply_json(r, 200, all);
}

int handle_list_v2(struct request *r)
{
	_cleanup_(filter_done) struct list_filter f = { .states = FILTER_RUNNING | FILTER_PAUSED };
	struct problem p = { 0 };

	return read_sandbox_filter(r, &f, &p) < 0 ? problem_reply(r, &p) :
						    reply_sandbox_list(r, &f);
}

int handle_list_v1(struct request *r)
{
	_cleanup_(filter_done) struct list_filter f = { .states = FILTER_RUNNING,
							.limit = SIZE_MAX };
	const char *metadata = request_query(r, "metadata");

	if (metadata && filter_metadata(metadata, &f.metadata) < 0)
		return reply_error(r, 400, "metadata: not a list of encoded pairs");
	return reply_sandbox_list(r, &f);
}

/* --- making one ------------------------------------------------------------------------------- */

/*
 * POST /sandboxes and /v2/sandboxes. An option that we do not have is refused by its name, never
 * ignored. allow_internet_access: true is what Python's client always sends, whether or not its
 * caller said anything: it means what the service gives by itself.
 */
static bool is_empty_option(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static int refuse_options(const json_t *o, const char *prefix, const char *const *names,
			  struct problem *p)
{
	for (; *names; names++)
		if (!is_empty_option(json_object_get(o, *names)))
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
	int r = refuse_options(network, "network.", names, p);

	return r < 0 ? r : check_way_in(network, p);
}

static int check_options(const json_t *body, struct problem *p)
{
	static const char *const names[] = { "mcp", "iam", "volumeMounts", NULL };
	int r = refuse_options(body, "", names, p);

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
			"autoResume: a sandbox that is paused without its memory cannot be "
			"resumed by traffic (autoPauseMemory: false)");
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
static json_t *create_sandbox(struct request *r, uint64_t default_s, bool secure, struct problem *p)
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
			reply = create_sandbox(r, default_s, secure, &p);
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
	reply = create_sandbox(r, default_s, secure, &p);
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

/* --- one that is there ------------------------------------------------------------------------ */

int handle_get(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);

	return b ? reply_json(r, 200, show_detail(b)) : 0;
}

int handle_kill(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = request_begin_change(r);
	struct problem p = { 0 };
	char by[96];

	if (!b)
		return 0;
	(void)snprintf(by, sizeof(by), "key %s asked for it",
		       *r->key.name ? r->key.name : r->key.id);
	return change_kill(b, by, &p) < 0 ? problem_reply(r, &p) : reply_empty(r, 204);
}

static int move_deadline(struct request *r, const char *name, uint64_t default_s, bool only_later)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	struct problem p = { 0 };
	uint64_t timeout_ms;
	bool paused;
	int e = 0;

	if (body_timeout(r, name, default_s, &timeout_ms, &p) < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	paused = sandbox_state(b) == STORE_PAUSED;
	if (!paused) {
		e = change_deadline(b, timeout_ms, only_later, &p);
		/* Its time was over a moment ago, which we have heard of by now. */
		paused = e < 0 && sandbox_state(b) == STORE_PAUSED;
	}
	if (paused)
		return reply_error(r, 404, "sandbox '%s' is not running: it is paused", b->info.id);
	return e < 0 ? problem_reply(r, &p) : reply_empty(r, 204);
}

int handle_timeout(struct request *r)
{
	return move_deadline(r, "timeout", 0, false);
}

int handle_refresh(struct request *r)
{
	return move_deadline(r, "duration", REFRESH_DEFAULT_S, true);
}

int handle_pause(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = request_begin_change(r);
	struct problem p = { 0 };

	if (!b)
		return 0;
	return change_pause(b, body_bool(r, "memory", true), &p) < 0 ? problem_reply(r, &p) :
								       reply_empty(r, 204);
}

/* 200 and a deadline that is not nearer than before, or 201 and a sandbox that runs again. */
static int reply_connect(struct request *r, uint64_t default_s)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	struct problem p = { 0 };
	uint64_t timeout_ms;
	bool paused;
	int e = body_timeout(r, "timeout", default_s, &timeout_ms, &p);

	if (e < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	paused = sandbox_state(b) == STORE_PAUSED;
	if (!paused) {
		e = change_deadline(b, timeout_ms, true, &p);
		/* Its time was over a moment ago: it is paused. */
		paused = e < 0 && p.status == 409;
	}
	if (paused)
		e = change_resume(b, timeout_ms, body_bool(r, "memory", true), &p);
	return e < 0 ? problem_reply(r, &p) : reply_json(r, paused ? 201 : 200, show_sandbox(b));
}

int handle_connect_v1(struct request *r)
{
	return reply_connect(r, TIMEOUT_DEFAULT_V1_S);
}

int handle_connect_v2(struct request *r)
{
	return reply_connect(r, TIMEOUT_DEFAULT_V2_S);
}

/* A frozen box does at its deadline what it was made to do; only one that is made anew can
 * change its mind. */
static int set_auto_pause(struct request *r, struct sandbox *b, bool memory, struct problem *p)
{
	struct sandbox_config c;
	bool wanted;

	sandbox_config_of(b, &c);
	wanted = body_bool(r, "autoPause", c.auto_pause);
	if (wanted == c.auto_pause)
		return 0;
	if (!c.cold && memory)
		return problem_set(
			p, 400, "not_supported",
			"not supported: another autoPause for a sandbox that was paused with its "
			"memory");
	c.auto_pause = wanted;
	return sandbox_config_replace(b, &c) < 0 ?
		       problem_internal(p, -ENOMEM, "resume the sandbox") :
		       0;
}

int handle_resume(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	bool memory = body_bool(r, "memory", true);
	struct problem p = { 0 };
	uint64_t timeout_ms;

	if (body_timeout(r, "timeout", TIMEOUT_DEFAULT_V1_S, &timeout_ms, &p) < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	if (sandbox_state(b) != STORE_PAUSED)
		return reply_error(r, 409, "sandbox '%s' is already running", b->info.id);
	if (set_auto_pause(r, b, memory, &p) < 0 || change_resume(b, timeout_ms, memory, &p) < 0)
		return problem_reply(r, &p);
	return reply_json(r, 201, show_sandbox(b));
}
