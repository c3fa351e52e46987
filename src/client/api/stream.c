/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/stream.h"

#include "base/buf.h"
#include "base/clock.h"

#include <sodium.h>

#define ENVELOPE_HEAD 5
#define ENVELOPE_MAX ((size_t)4 << 20)
#define ANSWER_MAX ((size_t)64 << 10)
#define FLAG_END 2
#define WAITS_MAX 4
#define TICK_US UINT64_C(1000000)
#define RETRY_MAX_S 3600

/* A call beside the stream. */
struct post {
	CURL *curl; /* NULL: there is none */
	struct curl_slist *headers;
	char *text;
	struct buf answer;
	uint64_t again_us; /* it came too often, and is sent again then; 0: it is under way */
};

struct stream_state {
	struct stream_events *events;
	struct stream_end end;
	struct buf pending;
	CURLM *multi;
	CURL *curl;
	CURLcode code;
	bool done;    /* the request is */
	bool has_end; /* the command's end was told */
	bool over;    /* and the stream's */
	int stopped;  /* negative: a callback wanted to stop */
	struct post post;
	struct fail *fail;
};

static int on_data(struct stream_state *st, const json_t *data)
{
	static const char *const kinds[] = { "stdout", "stderr", "pty" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const json_t *text = json_object_get(data, kinds[i]);
		_cleanup_(freep) unsigned char *bytes = NULL;
		size_t len;

		if (!json_is_string(text))
			continue;
		bytes = malloc(json_string_length(text) + 1);
		if (!bytes)
			return fail_set(st->fail, ENOMEM, "exec", "out of memory");
		if (sodium_base642bin(bytes, json_string_length(text) + 1, json_string_value(text),
				      json_string_length(text), NULL, &len, NULL,
				      sodium_base64_VARIANT_ORIGINAL) < 0)
			return fail_set(st->fail, EBADMSG, "exec",
					"the service sent output that is not base64");
		return st->events->output(st->events->arg, i == 1, bytes, len);
	}
	return 0;
}

static int stream_on_message(struct stream_state *st, const json_t *message)
{
	const json_t *event = json_object_get(message, "event"), *part;
	const char *text;

	if ((part = json_object_get(event, "start"))) {
		if (st->events->started)
			st->events->started(st->events->arg, (uint32_t)json_integer_value(
								     json_object_get(part, "pid")));
	} else if ((part = json_object_get(event, "data"))) {
		return on_data(st, part);
	} else if ((part = json_object_get(event, "end"))) {
		st->has_end = true;
		st->end.exited = json_is_true(json_object_get(part, "exited"));
		st->end.exit_code = (int)json_integer_value(json_object_get(part, "exitCode"));
		text = json_string_value(json_object_get(part, "status"));
		(void)snprintf(st->end.status, sizeof(st->end.status), "%s", text ? text : "");
	}
	return 0;
}

static int stream_on_end(struct stream_state *st, const json_t *message)
{
	const json_t *error = json_object_get(message, "error");
	const char *text = json_string_value(json_object_get(error, "message"));

	st->over = true;
	if (!error)
		return 0;
	return fail_set(st->fail, EPROTO, "exec", "%.200s", text ? text : "the command failed");
}

/* All whole envelopes that have arrived. */
static int take_envelopes(struct stream_state *st)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && !st->over && st->pending.len - at >= ENVELOPE_HEAD) {
		const unsigned char *p = st->pending.data + at;
		size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
		json_t *message;

		if (len > ENVELOPE_MAX)
			return fail_set(st->fail, EBADMSG, "exec",
					"the service sent something oversized");
		if (st->pending.len - at - ENVELOPE_HEAD < len)
			break;
		message = json_loadb((const char *)p + ENVELOPE_HEAD, len, 0, NULL);
		if (!message)
			return fail_set(st->fail, EBADMSG, "exec",
					"the service's answer is not JSON");
		r = p[0] & FLAG_END ? stream_on_end(st, message) : stream_on_message(st, message);
		json_decref(message);
		at += ENVELOPE_HEAD + len;
	}
	memmove(st->pending.data, st->pending.data + at, st->pending.len - at);
	st->pending.len -= at;
	return r;
}

static size_t on_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct stream_state *st = arg;
	long status = 0;

	(void)curl_easy_getinfo(st->curl, CURLINFO_RESPONSE_CODE, &status);
	if (buf_add(&st->pending, data, size * n) < 0) {
		st->stopped = fail_set(st->fail, ENOMEM, "exec", "out of memory");
		return 0;
	}
	if (status != 200)
		return size * n; /* an error: read whole, told at the end */
	if (st->pending.len)
		st->stopped = take_envelopes(st);
	return st->stopped < 0 ? 0 : size * n;
}

static bool envelope(const char *text, struct buf *ret)
{
	size_t len = strlen(text);
	const unsigned char head[ENVELOPE_HEAD] = { 0, (unsigned char)(len >> 24),
						    (unsigned char)(len >> 16),
						    (unsigned char)(len >> 8), (unsigned char)len };

	return buf_add(ret, head, sizeof(head)) == 0 && buf_add(ret, text, len) == 0;
}

static size_t on_answer(char *data, size_t size, size_t n, void *arg)
{
	return buf_add(arg, data, size * n) < 0 ? 0 : size * n;
}

static void post_drop(struct stream_state *st)
{
	struct post *p = &st->post;

	if (p->curl) {
		(void)curl_multi_remove_handle(st->multi, p->curl);
		curl_easy_cleanup(p->curl);
	}
	curl_slist_free_all(p->headers);
	free(p->text);
	buf_done(&p->answer);
	*p = (struct post){ .answer = BUF_INIT(ANSWER_MAX) };
}

int stream_post(struct stream_events *events, struct api *a, const struct api_sandbox *b,
		const char *method, json_t *body)
{
	struct stream_state *st = events->state;
	struct post *p = &st->post;
	struct curl_slist *more;
	char path[256];

	(void)snprintf(path, sizeof(path), "/%s", method);
	p->text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	p->curl = p->text ? api_handle(a, b, path, &p->headers) : NULL;
	more = p->curl ? curl_slist_append(p->headers, "Content-Type: application/json") : NULL;
	if (!more)
		return fail_set(st->fail, ENOMEM, "exec", "out of memory");
	p->headers = more;
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, p->text);
	curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, &p->answer);
	(void)curl_multi_add_handle(st->multi, p->curl);
	return 0;
}

/* What was refused for coming too often was not looked at: it is kept until the service wants to
 * hear it. */
static bool post_later(struct stream_state *st, CURLcode code, long status)
{
	struct post *p = &st->post;
	curl_off_t wait_s = 0;

	(void)curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &wait_s);
	if (code != CURLE_OK || status != 429 || wait_s <= 0)
		return false;
	(void)curl_multi_remove_handle(st->multi, p->curl);
	p->answer.len = 0;
	p->again_us = clock_boot_us() + MIN((uint64_t)wait_s, RETRY_MAX_S) * 1000000;
	return true;
}

/* How long nothing needs to be done, in milliseconds; sends again what is due. */
static int post_again(struct stream_state *st)
{
	uint64_t now = clock_boot_us(), until = st->post.again_us;

	if (until > now)
		return (int)((MIN(until - now, TICK_US) + 999) / 1000);
	if (until)
		(void)curl_multi_add_handle(st->multi, st->post.curl);
	st->post.again_us = 0;
	return TICK_US / 1000;
}

static int post_done(struct stream_state *st, CURLcode code)
{
	struct post *p = &st->post;
	struct fail fail = { 0 };
	long status = 0;
	int r = 0;

	(void)curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	if (post_later(st, code, status))
		return 0;
	if (code != CURLE_OK || status != 200)
		r = api_failed(code, status, (char *)p->answer.data, p->answer.len, &fail);
	post_drop(st);
	r = st->events->posted(st->events->arg, r, &fail);
	if (r < 0)
		*st->fail = fail;
	return r;
}

/* Of which request the end has come. */
static void take_ends(struct stream_state *st)
{
	CURLMsg *msg;
	int left;

	while (st->stopped == 0 && (msg = curl_multi_info_read(st->multi, &left))) {
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		if (msg->easy_handle == st->post.curl) {
			st->stopped = post_done(st, code);
		} else {
			st->done = true;
			st->code = code;
		}
	}
}

/* Until the stream ends, lets input through too. */
static int stream_follow(struct stream_state *st)
{
	CURLM *multi = st->multi;
	int running = 1;

	while (!st->done && !st->over && st->stopped == 0) {
		struct curl_waitfd waits[WAITS_MAX];
		size_t n;
		int wait_ms = post_again(st);

		if (curl_multi_perform(multi, &running) != CURLM_OK)
			return fail_set(st->fail, EIO, "exec", "the connection broke");
		if (st->stopped == 0 &&
		    !st->over) /* behind the command's end nothing else matters */
			take_ends(st);
		if (st->done || st->over || st->stopped < 0)
			break;
		if (st->events->tick)
			st->events->tick(st->events->arg);
		n = MIN(st->events->n_fds, st->post.curl ? (size_t)1 : (size_t)WAITS_MAX);
		for (size_t i = 0; i < n; i++)
			waits[i] = (struct curl_waitfd){ .fd = st->events->fds[i],
							 .events = CURL_WAIT_POLLIN };
		if (curl_multi_poll(multi, waits, (unsigned)n, wait_ms, NULL) != CURLM_OK)
			return fail_set(st->fail, EIO, "exec", "the connection broke");
		for (size_t i = 0; i < n && st->stopped == 0; i++)
			if (waits[i].revents)
				st->stopped = st->events->readable(st->events->arg, i);
	}
	return 0;
}

static int run_stream(struct stream_state *st, struct curl_slist *headers,
		      const struct buf *request)
{
	long status = 0;
	int r;

	st->multi = curl_multi_init();
	if (!st->multi)
		return fail_set(st->fail, ENOMEM, "exec", "out of memory");
	curl_easy_setopt(st->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(st->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(st->curl, CURLOPT_POSTFIELDS, (const char *)request->data);
	curl_easy_setopt(st->curl, CURLOPT_POSTFIELDSIZE, (long)request->len);
	curl_easy_setopt(st->curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(st->curl, CURLOPT_WRITEDATA, st);
	(void)curl_multi_add_handle(st->multi, st->curl);
	r = stream_follow(st);
	(void)curl_easy_getinfo(st->curl, CURLINFO_RESPONSE_CODE, &status);
	post_drop(st);
	(void)curl_multi_remove_handle(st->multi, st->curl);
	(void)curl_multi_cleanup(st->multi);
	if (r < 0 || st->stopped < 0)
		return r < 0 ? r : st->stopped;
	if (st->over && st->has_end)
		return 0;
	if (status != 200 || st->code == CURLE_COULDNT_CONNECT)
		return api_failed(st->code, status, (char *)st->pending.data, st->pending.len,
				  st->fail);
	return fail_set(st->fail, ECONNRESET, "exec",
			"the sandbox was killed, paused or reached its end");
}

int stream_start(struct api *a, const struct api_sandbox *b, json_t *body, const char *user,
		 struct stream_events *events, struct stream_end *ret, struct fail *fail)
{
	_cleanup_(freep) char *text = json_dumps(body, JSON_COMPACT);
	_cleanup_(buf_done) struct buf request = BUF_INIT(ENVELOPE_MAX);
	struct stream_state st = {
		.events = events,
		.pending = BUF_INIT(ENVELOPE_MAX * 2),
		.post = { .answer = BUF_INIT(ANSWER_MAX) },
		.fail = fail,
	};
	struct curl_slist *headers = NULL, *more;
	int r;

	json_decref(body);
	if (!text || !envelope(text, &request))
		return fail_set(fail, E2BIG, "exec", "the command is too long");
	st.curl = api_handle(a, b, "/process.Process/Start", &headers);
	more = curl_slist_append(headers, "Content-Type: application/connect+json");
	if (!st.curl || !more) {
		curl_slist_free_all(headers);
		if (st.curl)
			curl_easy_cleanup(st.curl);
		return fail_set(fail, ENOMEM, "exec", "out of memory");
	}
	if (user) { /* any user of the sandbox; there is no password */
		curl_easy_setopt(st.curl, CURLOPT_USERNAME, user);
		curl_easy_setopt(st.curl, CURLOPT_PASSWORD, "");
		curl_easy_setopt(st.curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	}
	events->state = &st;
	r = run_stream(&st, more, &request);
	events->state = NULL;
	curl_easy_cleanup(st.curl);
	curl_slist_free_all(more);
	buf_done(&st.pending);
	*ret = st.end;
	return r;
}

int stream_exit_status(const struct stream_end *end)
{
	static const struct {
		const char *status;
		int number;
	} signals[] = {
		{ "signal: killed", 9 },    { "signal: terminated", 15 },
		{ "signal: interrupt", 2 }, { "signal: segmentation fault", 11 },
		{ "signal: aborted", 6 },   { "signal: hangup", 1 },
	};

	if (end->exited)
		return end->exit_code & 0xff;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!strncmp(end->status, signals[i].status, strlen(signals[i].status)))
			return 128 + signals[i].number;
	return 128;
}
