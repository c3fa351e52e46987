/* SPDX-License-Identifier: Apache-2.0 */
#include "server/changes/delivery.h"

#define CONNECT_TIMEOUT_MS 5000L
#define TOTAL_TIMEOUT_MS 10000L
#define ANSWER_MAX 65536 /* bytes of an answer that are read */

/* E2B's webhooks name fields_like_this and used to name fieldsLikeThis, as its events API still
 * does: both are there. */
static json_t *payload(const json_t *event)
{
	static const char *const names[][2] = {
		{ "event_data", "eventData" },
		{ "sandbox_id", "sandboxId" },
		{ "sandbox_execution_id", "sandboxExecutionId" },
		{ "sandbox_template_id", "sandboxTemplateId" },
		{ "sandbox_build_id", "sandboxBuildId" },
		{ "sandbox_team_id", "sandboxTeamId" },
	};
	json_t *o = json_copy((json_t *)(uintptr_t)event); /* it only reads */

	for (size_t i = 0; o && i < ARRAY_SIZE(names); i++)
		(void)json_object_set(o, names[i][0], json_object_get(event, names[i][1]));
	return o;
}

void delivery_free(struct delivery *d)
{
	free(d->url);
	free(d->body);
	free(d);
}

struct delivery *delivery_new(const struct store_webhook *w, const json_t *event)
{
	struct delivery *d = calloc(1, sizeof(*d));
	json_t *o = payload(event);

	if (d && o) {
		d->body = json_dumps(o, JSON_COMPACT);
		d->url = strdup(w->url);
	}
	json_decref(o);
	if (!d)
		return NULL;
	if (!d->body || !d->url) {
		delivery_free(d);
		return NULL;
	}
	d->len = strlen(d->body);
	memcpy(d->hook_id, w->id, sizeof(d->hook_id));
	memcpy(d->key_id, w->key_id, sizeof(d->key_id));
	signature_text(w->secret ? w->secret : "", d->body, d->len, d->signature);
	return d;
}

/* libcurl's own socket, unless the address is one that webhooks must not reach. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	const struct server *s = arg;

	(void)purpose;
	if (!s->config.webhooks_private_addresses && !address_is_public(&address->addr))
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t drop_answer(char *data, size_t size, size_t n, void *arg)
{
	struct delivery *d = arg;

	(void)data;
	d->answer_len += size * n;
	return d->answer_len > ANSWER_MAX ? 0 : size * n;
}

static void add_header(struct delivery *d, const char *name, const char *value)
{
	char line[256];
	struct curl_slist *more;

	(void)snprintf(line, sizeof(line), "%s: %s", name, value);
	more = curl_slist_append(d->headers, line);
	if (more)
		d->headers = more;
}

static void add_headers(struct delivery *d)
{
	char attempt[UUID_SIZE];

	uuid_new(attempt);
	add_header(d, "Content-Type", "application/json");
	add_header(d, "e2b-webhook-id", d->hook_id);
	add_header(d, "e2b-delivery-id", attempt);
	add_header(d, "e2b-signature-version", "v1");
	add_header(d, "e2b-signature", d->signature);
}

/* What keeps it from going anywhere else than to the URL: no redirects, no proxy, no other
 * protocol, no files. */
static void confine(CURL *c, struct server *s)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(c, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	(void)curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, s);
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TOTAL_TIMEOUT_MS);
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Its thread that looks up a name cannot be stopped: nobody waits for it, it ends by itself. */
	(void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
}

bool delivery_begin(struct delivery *d, struct server *s, CURLM *multi)
{
	CURL *c = curl_easy_init();

	if (!c)
		return false;
	d->easy = c;
	d->attempts++;
	d->answer_len = 0;
	add_headers(d);
	confine(c, s);
	(void)curl_easy_setopt(c, CURLOPT_URL, d->url);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "glovebox");
	(void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, d->headers);
	(void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, d->body);
	(void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)d->len);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop_answer);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, d);
	(void)curl_easy_setopt(c, CURLOPT_PRIVATE, d);
	(void)curl_multi_add_handle(multi, c);
	return true;
}

void delivery_end(struct delivery *d, CURLM *multi)
{
	(void)curl_multi_remove_handle(multi, d->easy);
	curl_easy_cleanup(d->easy);
	d->easy = NULL;
	curl_slist_free_all(d->headers);
	d->headers = NULL;
}
