/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks: URLs that a key's events are sent to. The secret comes in and never goes out. */
#include "server/control/control_priv.h"

#include <curl/curl.h>

#define WEBHOOKS_PER_KEY_MAX 16

static json_t *webhook_json(const struct store_webhook *w)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:b, s:s, s:O}", "id", w->id, "teamId", w->key_id,
			 "name", w->name, "createdAt", clock_json(w->created_ms), "enabled",
			 (int)w->enabled, "url", w->url, "events", w->types);
}

static int url_part(CURLU *u, CURLUPart part, char *ret, size_t size)
{
	char *text = NULL;
	int r = -EINVAL;

	if (curl_url_get(u, part, &text, 0) == CURLUE_OK && text &&
	    (size_t)snprintf(ret, size, "%s", text) < size)
		r = 0;
	curl_free(text);
	return r;
}

/* Absent is what libcurl says is absent: anything else, also a failure, counts as there. */
static bool has_credentials(CURLU *u)
{
	char *user = NULL, *password = NULL;
	bool absent = curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_NO_USER &&
		      curl_url_get(u, CURLUPART_PASSWORD, &password, 0) == CURLUE_NO_PASSWORD;

	curl_free(user);
	curl_free(password);
	return !absent;
}

/* Where it leads is checked again whenever it is called; this is for telling people early. */
static int url_check(const struct server *s, const char *text, struct problem *p)
{
	CURLU *u = curl_url();
	char scheme[16] = "", host[256] = "";
	size_t n;
	int r = 0;

	if (!u)
		return problem_internal(p, -ENOMEM, "read the URL");
	if (curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK ||
	    url_part(u, CURLUPART_SCHEME, scheme, sizeof(scheme)) < 0 ||
	    url_part(u, CURLUPART_HOST, host, sizeof(host)) < 0 || strpbrk(text, " \t\r\n") ||
	    strstr(text, ":///"))
		r = problem_set(p, 400, NULL, "url: not a URL");
	else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		r = problem_set(p, 400, NULL, "url: must begin with http:// or https://");
	else if (has_credentials(u))
		r = problem_set(p, 400, NULL, "url: must not have a user or a password in it");
	curl_url_cleanup(u);
	if (r < 0)
		return r;
	n = strlen(host);
	if (host[0] == '[' && host[n - 1] == ']') {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	if (!s->config.webhooks_private_addresses && !address_text_is_public(host))
		return problem_set(
			p, 400, NULL,
			"url: a webhook must not lead to a private address here (setting "
			"webhooks.private_addresses)");
	return 0;
}

static int set_webhook_text(char **text, const json_t *body, const char *name)
{
	const char *value = json_string_value(json_object_get(body, name));
	char *copy;

	if (!value)
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* What the body has replaces what the webhook had. */
static int fill_webhook(struct store_webhook *w, const struct request *r, struct problem *p)
{
	const char *url = json_string_value(json_object_get(r->body, "url"));
	json_t *events = json_object_get(r->body, "events");

	if (url && url_check(r->server, url, p) < 0)
		return -EBADMSG;
	if (set_webhook_text(&w->name, r->body, "name") < 0 ||
	    set_webhook_text(&w->url, r->body, "url") < 0 ||
	    set_webhook_text(&w->secret, r->body, "signatureSecret") < 0)
		return problem_internal(p, -ENOMEM, "keep the webhook");
	w->enabled = body_bool(r, "enabled", w->enabled);
	if (events) {
		json_decref(w->types);
		w->types = json_deep_copy(events);
	}
	return w->types ? 0 : problem_internal(p, -ENOMEM, "keep the webhook");
}

static int reply_no_webhook(struct request *r, int e, const char *what)
{
	struct problem p = { 0 };

	if (e == -ENOENT)
		return reply_error(r, 404, "webhook '%s' not found", r->params[0]);
	(void)problem_internal(&p, e, what);
	return problem_reply(r, &p);
}

int handle_webhook_create(struct request *r)
{
	_cleanup_(store_webhook_done) struct store_webhook w = { .enabled = true,
								 .created_ms = clock_wall_ms() };
	struct problem p = { 0 };
	int e;

	id_new('w', w.id);
	memcpy(w.key_id, r->key.id, sizeof(w.key_id));
	if (fill_webhook(&w, r, &p) < 0)
		return problem_reply(r, &p);
	e = store_webhook_add(r->server->store, &w, WEBHOOKS_PER_KEY_MAX);
	if (e == -EDQUOT)
		return reply_error(r, 429, "a key can have %d webhooks: delete one first",
				   WEBHOOKS_PER_KEY_MAX);
	return e < 0 ? reply_no_webhook(r, e, "keep the webhook") :
		       reply_json(r, 201, webhook_json(&w));
}

int handle_webhooks(struct request *r)
{
	struct store_webhook *list = NULL;
	json_t *all;
	size_t n = 0;
	int e = store_webhook_list(r->server->store, request_key(r), &list, &n);

	if (e < 0)
		return reply_no_webhook(r, e, "list the webhooks");
	all = json_array();
	for (size_t i = 0; i < n; i++) {
		(void)json_array_append_new(all, webhook_json(&list[i]));
		store_webhook_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

int handle_webhook_get(struct request *r)
{
	_cleanup_(store_webhook_done) struct store_webhook w = { 0 };
	int e = store_webhook_get(r->server->store, request_key(r), r->params[0], &w);

	return e < 0 ? reply_no_webhook(r, e, "read the webhook") :
		       reply_json(r, 200, webhook_json(&w));
}

static int update(struct request *r)
{
	_cleanup_(store_webhook_done) struct store_webhook w = { 0 };
	struct problem p = { 0 };
	int e = store_webhook_get(r->server->store, request_key(r), r->params[0], &w);

	if (e < 0)
		return reply_no_webhook(r, e, "read the webhook");
	if (fill_webhook(&w, r, &p) < 0)
		return problem_reply(r, &p);
	e = store_webhook_update(r->server->store, &w);
	return e < 0 ? reply_no_webhook(r, e, "keep the webhook") :
		       reply_json(r, 200, webhook_json(&w));
}

/* One after the other: what one changes is not written over with what another read before. */
int handle_webhook_update(struct request *r)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int e;

	pthread_mutex_lock(&lock);
	e = update(r);
	pthread_mutex_unlock(&lock);
	return e;
}

int handle_webhook_delete(struct request *r)
{
	int e = store_webhook_remove(r->server->store, request_key(r), r->params[0]);

	return e < 0 ? reply_no_webhook(r, e, "delete the webhook") : reply_empty(r, 200);
}
