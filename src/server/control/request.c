/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers have in common: whose sandbox it is, numbers, and the words for one that is
 * gone. */
#include "server/control/control_priv.h"

#include "base/parse.h"
#include "server/sandbox/reason.h"

bool request_owns(const struct request *r, const char *key_id)
{
	return (r->key.scopes & STORE_SCOPE_ADMIN) || strcmp(r->key.id, key_id) == 0;
}

const char *request_key(const struct request *r)
{
	return r->key.scopes & STORE_SCOPE_ADMIN ? NULL : r->key.id;
}

/* 404, and for one that ended lately (and was this key's) when and why. */
static int reply_gone(struct request *r, const char *id)
{
	struct store_sandbox info = { 0 };
	char ago[32], why[160], message[256];
	int e;

	if (store_sandbox_get(r->server->store, id, &info) < 0)
		return reply_error(r, 404, "sandbox '%s' was not found", id);
	if (info.state != STORE_ENDED || !request_owns(r, info.key_id)) {
		e = reply_error(r, 404, "sandbox '%s' was not found", id);
	} else {
		time_span(clock_wall_ms() - info.end_ms, ago, sizeof(ago));
		reason_text(&info, why, sizeof(why));
		(void)snprintf(message, sizeof(message), "sandbox '%s' ended %s ago: %s", id, ago,
			       why);
		e = reply_json(r, 404,
			       json_pack("{s:i, s:s, s:s, s:o}", "code", 404, "message", message,
					 "reason", reason_word(info.reason), "endedAt",
					 clock_json(info.end_ms)));
	}
	store_sandbox_done(&info);
	return e;
}

struct sandbox *request_sandbox(struct request *r)
{
	const char *id = r->params[0];
	struct sandbox *b;

	if (strlen(id) >= STORE_ID_SIZE) {
		(void)reply_error(r, 404, "sandbox was not found");
		return NULL;
	}
	b = sandbox_get(r->server, id);
	if (b && request_owns(r, b->info.key_id))
		return b;
	sandbox_put(b);
	(void)reply_gone(r, id);
	return NULL;
}

struct sandbox *request_begin_change(struct request *r)
{
	struct sandbox *b = request_sandbox(r);

	if (!b)
		return NULL;
	if (change_begin(b) == 0)
		return b;
	sandbox_put(b);
	/* It ended while we waited for our turn: now the store says why. */
	b = request_sandbox(r);
	if (b)
		(void)reply_error(r, 503, "the service is too busy: try again in a moment");
	sandbox_put(b);
	return NULL;
}

void request_end_change(struct sandbox **b)
{
	if (!*b)
		return;
	change_end(*b);
	sandbox_putp(b);
}

uint64_t request_number(const struct request *r, const char *name, uint64_t def)
{
	const char *text = request_query(r, name);
	uint64_t value;

	return text && parse_u64(text, &value) == 0 ? value : def;
}

bool body_bool(const struct request *r, const char *name, bool def)
{
	const json_t *v = json_object_get(r->body, name);

	return json_is_boolean(v) ? json_is_true(v) : def;
}

uint64_t body_number(const struct request *r, const char *name, uint64_t def)
{
	const json_t *v = json_object_get(r->body, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) :
								  def;
}

int body_timeout(const struct request *r, const char *name, uint64_t default_s, uint64_t *ret_ms,
		 struct problem *p)
{
	const json_t *v = json_object_get(r->body, name);
	uint64_t max_ms = r->server->config.limits_timeout;
	uint64_t seconds = body_number(r, name, MIN(default_s, max_ms / 1000));

	if (v && seconds > max_ms / 1000) {
		if (max_ms % 3600000 == 0)
			return problem_set(p, 400, NULL,
					   "Timeout cannot be greater than %llu hours",
					   (unsigned long long)(max_ms / 3600000));
		return problem_set(p, 400, NULL, "Timeout cannot be greater than %llu seconds",
				   (unsigned long long)(max_ms / 1000));
	}
	*ret_ms = seconds * 1000;
	return 0;
}
