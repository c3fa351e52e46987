/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks are called from one thread, several at once, with libcurl. A request only puts an event
 * into a bounded queue; finding the webhooks, signing and sending is done here. What fails is tried
 * again three times, later and later. Addresses are checked when the connection is made, so a name
 * that means something else by then does not help (webhooks.private_addresses). What is still to be
 * sent when the server stops is lost; the events are not.
 */
#include "server/control/control_priv.h"

#include <curl/curl.h>

#define EVENTS_MAX 4096     /* waiting to be looked at */
#define DELIVERIES_MAX 1024 /* waiting to be sent */
#define ACTIVE_MAX 16
#define ACTIVE_PER_HOOK_MAX 4
/* So that one key's slow receivers leave something to the others: */
#define ACTIVE_PER_KEY_MAX (ACTIVE_MAX / 2)
#define DELIVERIES_PER_KEY_MAX (DELIVERIES_MAX / 4)
#define ATTEMPTS_MAX 4
#define RETRY_FIRST_MS 10000 /* then twice as long, each time */
#define POLL_MS 1000
#define CONNECT_TIMEOUT_MS 5000L
#define TOTAL_TIMEOUT_MS 10000L
#define ANSWER_MAX 65536 /* bytes of an answer that are read */

/* --- one event on its way to one webhook ------------------------------------------------------ */

struct delivery {
	char hook_id[STORE_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	char *url;
	char *body;
	size_t len;
	char signature[SIGNATURE_SIZE];
	unsigned attempts;
	uint64_t due_ms;
	size_t answer_len;
	CURL *easy; /* NULL: waiting */
	struct curl_slist *headers;
	struct delivery *next;
};

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

static void delivery_free(struct delivery *d)
{
	free(d->url);
	free(d->body);
	free(d);
}

/* NULL: no memory. */
static struct delivery *delivery_new(const struct store_webhook *w, const json_t *event)
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

static void delivery_add_header(struct delivery *d, const char *name, const char *value)
{
	char line[256];
	struct curl_slist *more;

	(void)snprintf(line, sizeof(line), "%s: %s", name, value);
	more = curl_slist_append(d->headers, line);
	if (more)
		d->headers = more;
}

static void delivery_add_headers(struct delivery *d)
{
	char attempt[UUID_SIZE];

	uuid_new(attempt);
	delivery_add_header(d, "Content-Type", "application/json");
	delivery_add_header(d, "e2b-webhook-id", d->hook_id);
	delivery_add_header(d, "e2b-delivery-id", attempt);
	delivery_add_header(d, "e2b-signature-version", "v1");
	delivery_add_header(d, "e2b-signature", d->signature);
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
	/* Its thread that looks up a name cannot be stopped: nobody waits for it, it ends by
	 * itself. */
	(void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
}

/* One more attempt: a request that the multi handle carries out. False: no memory. */
static bool delivery_begin(struct delivery *d, struct server *s, CURLM *multi)
{
	CURL *c = curl_easy_init();

	if (!c)
		return false;
	d->easy = c;
	d->attempts++;
	d->answer_len = 0;
	delivery_add_headers(d);
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

static void delivery_end(struct delivery *d, CURLM *multi)
{
	(void)curl_multi_remove_handle(multi, d->easy);
	curl_easy_cleanup(d->easy);
	d->easy = NULL;
	curl_slist_free_all(d->headers);
	d->headers = NULL;
}

/* --- all of them ------------------------------------------------------------------------------ */

struct event_item {
	char key_id[STORE_ID_SIZE];
	char type[64];
	json_t *event;
	struct event_item *next;
};

static struct {
	pthread_mutex_t lock; /* for the queue of events and stop; the rest is the thread's own */
	struct event_item *first, **last;
	size_t n_events;
	bool stop, runs;
	pthread_t thread;
	struct server *server;
	CURLM *multi;
	struct delivery *deliveries;
	size_t n_deliveries, n_active;
} post = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last = &post.first,
};

static bool enqueue_event(struct event_item *e)
{
	bool fits;

	pthread_mutex_lock(&post.lock);
	fits = !post.stop && post.n_events < EVENTS_MAX;
	if (fits) {
		*post.last = e;
		post.last = &e->next;
		post.n_events++;
		if (post.runs)
			(void)curl_multi_wakeup(post.multi);
	}
	pthread_mutex_unlock(&post.lock);
	return fits;
}

void webhook_deliver(struct server *s, const char *key_id, const char *type, json_t *event)
{
	struct event_item *e = calloc(1, sizeof(*e));

	if (e) {
		(void)snprintf(e->key_id, sizeof(e->key_id), "%s", key_id);
		(void)snprintf(e->type, sizeof(e->type), "%s", type);
		e->event = event;
	}
	if (e && enqueue_event(e))
		return;
	server_log(s, "warn", "webhook_dropped",
		   json_pack("{s:s}", "reason", "too many events are waiting"));
	json_decref(event);
	free(e);
}

static struct event_item *next_event(void)
{
	struct event_item *e;

	pthread_mutex_lock(&post.lock);
	e = post.first;
	if (e) {
		post.first = e->next;
		if (!post.first)
			post.last = &post.first;
		post.n_events--;
	}
	pthread_mutex_unlock(&post.lock);
	return e;
}

static bool deliver_stopped(void)
{
	bool stop;

	pthread_mutex_lock(&post.lock);
	stop = post.stop;
	pthread_mutex_unlock(&post.lock);
	return stop;
}

static bool wants(const struct store_webhook *w, const char *type)
{
	size_t i;
	json_t *t;

	if (!w->enabled)
		return false;
	json_array_foreach(w->types, i, t) {
		if (strcmp(json_string_value(t) ? json_string_value(t) : "", type) == 0)
			return true;
	}
	return json_array_size(w->types) == 0;
}

static void enqueue(const struct store_webhook *w, const json_t *event)
{
	struct delivery *d, **last = &post.deliveries;
	size_t of_key = 0;

	for (; *last; last = &(*last)->next)
		of_key += strcmp((*last)->key_id, w->key_id) == 0;
	if (post.n_deliveries >= DELIVERIES_MAX || of_key >= DELIVERIES_PER_KEY_MAX) {
		server_log(post.server, "warn", "webhook_dropped",
			   json_pack("{s:s, s:s}", "webhook", w->id, "reason",
				     "too many are waiting"));
		return;
	}
	d = delivery_new(w, event);
	if (!d)
		return;
	*last = d;
	post.n_deliveries++;
}

static void fan_out(const struct event_item *e)
{
	struct store_webhook *hooks = NULL;
	size_t n = 0;

	if (store_webhook_list(post.server->store, e->key_id, &hooks, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (wants(&hooks[i], e->type))
			enqueue(&hooks[i], e->event);
		store_webhook_done(&hooks[i]);
	}
	free(hooks);
}

static bool may_start(const struct delivery *d, uint64_t now_ms)
{
	size_t of_hook = 0, of_key = 0;

	if (d->easy || d->due_ms > now_ms || post.n_active >= ACTIVE_MAX)
		return false;
	for (const struct delivery *o = post.deliveries; o; o = o->next) {
		of_hook += o->easy && strcmp(o->hook_id, d->hook_id) == 0;
		of_key += o->easy && strcmp(o->key_id, d->key_id) == 0;
	}
	return of_hook < ACTIVE_PER_HOOK_MAX && of_key < ACTIVE_PER_KEY_MAX;
}

static void delivery_forget(struct delivery *d)
{
	struct delivery **p = &post.deliveries;

	while (*p != d)
		p = &(*p)->next;
	*p = d->next;
	post.n_deliveries--;
	delivery_free(d);
}

/* A webhook that was deleted or switched off is not tried again. */
static bool delivery_is_wanted(const struct delivery *d)
{
	_cleanup_(store_webhook_done) struct store_webhook w = { 0 };

	return d->attempts == 0 ||
	       (store_webhook_get(post.server->store, NULL, d->hook_id, &w) == 0 && w.enabled);
}

static void start_due(void)
{
	uint64_t now_ms = clock_boot_us() / 1000;
	struct delivery *next;

	for (struct delivery *d = post.deliveries; d; d = next) {
		next = d->next;
		if (!may_start(d, now_ms))
			continue;
		if (!delivery_is_wanted(d))
			delivery_forget(d);
		else if (delivery_begin(d, post.server, post.multi))
			post.n_active++;
	}
}

static void stop_one(struct delivery *d)
{
	delivery_end(d, post.multi);
	post.n_active--;
}

static void finished(struct delivery *d, CURLcode code)
{
	long status = 0;
	bool ok;

	(void)curl_easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &status);
	ok = (code == CURLE_OK || code == CURLE_WRITE_ERROR) && status >= 200 && status < 300;
	stop_one(d);
	if (!ok && d->attempts < ATTEMPTS_MAX) {
		d->due_ms =
			clock_boot_us() / 1000 + ((uint64_t)RETRY_FIRST_MS << (d->attempts - 1));
		return;
	}
	if (!ok)
		server_log(post.server, "warn", "webhook_failed",
			   json_pack("{s:s, s:i, s:s}", "webhook", d->hook_id, "status",
				     (int)status, "error",
				     code == CURLE_OK ? "refused by the receiver" :
							curl_easy_strerror(code)));
	delivery_forget(d);
}

static void collect_finished(void)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(post.multi, &left))) {
		struct delivery *d = NULL;
		CURLcode code = m->data.result;

		if (m->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&d) == CURLE_OK &&
		    d)
			finished(d, code);
	}
}

static void *deliver_thread(void *arg)
{
	(void)arg;
	while (!deliver_stopped()) {
		struct event_item *e;
		int active;

		while ((e = next_event())) {
			fan_out(e);
			json_decref(e->event);
			free(e);
		}
		start_due();
		(void)curl_multi_perform(post.multi, &active);
		collect_finished();
		(void)curl_multi_poll(post.multi, NULL, 0, POLL_MS, NULL);
	}
	return NULL;
}

int deliver_start(struct server *s)
{
	int r;

	post.multi = curl_multi_init();
	if (!post.multi)
		return -ENOMEM;
	post.server = s;
	r = pthread_create(&post.thread, NULL, deliver_thread, NULL);
	pthread_mutex_lock(&post.lock);
	post.runs = r == 0;
	pthread_mutex_unlock(&post.lock);
	return -r;
}

void deliver_stop(void)
{
	struct event_item *e;

	if (!post.runs)
		return;
	pthread_mutex_lock(&post.lock);
	post.stop = true;
	(void)curl_multi_wakeup(post.multi);
	pthread_mutex_unlock(&post.lock);
	(void)pthread_join(post.thread, NULL);
	while ((e = next_event())) {
		json_decref(e->event);
		free(e);
	}
	while (post.deliveries) {
		if (post.deliveries->easy)
			stop_one(post.deliveries);
		delivery_forget(post.deliveries);
	}
	post.runs = false;
	(void)curl_multi_cleanup(post.multi);
}
