/* SPDX-License-Identifier: Apache-2.0 */
/* One cell: POST /execute, its answer passed on line by line. Hanging up interrupts it. */
#include "client/repl_request_priv.h"

#define REASON_MAX 65536

struct repl_cell {
	CURL *curl;
	struct buf reason; /* of an answer that is not the stream */
	char last;         /* byte that was passed on */
	bool lost;         /* nobody reads it */
};

static size_t on_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct repl_cell *c = arg;
	size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return buf_add(&c->reason, data, len) < 0 ? 0 : len;
	c->lost = len && (fwrite(data, 1, len, stdout) != len || fflush(stdout) == EOF);
	c->last = len ? data[len - 1] : c->last;
	return c->lost ? 0 : len;
}

static int say_error(struct repl_cell *c, const char *name, const char *value)
{
	json_t *error = json_pack("{ss ss ss ss}", "type", "error", "name", name, "value", value,
				  "traceback", "");
	_cleanup_(freep) char *text = error ? json_dumps(error, JSON_COMPACT | JSON_ENSURE_ASCII) :
					      NULL;

	json_decref(error);
	/* What was broken off in the middle of a line is not the beginning of this one. */
	if (!text ||
	    printf("%s%s\n{\"type\":\"end_of_execution\"}\n", c->last == '\n' ? "" : "\n", text) <
		    0 ||
	    fflush(stdout) == EOF)
		return -EPIPE;
	return 0;
}

/* 1 when the cell is to be interrupted: somebody says so, or nobody is there any more. */
static int interrupted(struct repl_talk *t)
{
	json_t *o;
	int found = t->requests.ended;

	while (!found && (o = requests_next(&t->requests))) {
		found = json_is_true(json_object_get(o, "interrupt"));
		json_decref(o);
	}
	return found;
}

/* Until the answer ends; 1 when it was interrupted. */
static int cell_follow(struct repl_talk *t, CURLM *multi)
{
	int running = 1;

	while (curl_multi_perform(multi, &running) == CURLM_OK && running) {
		struct curl_waitfd wait = { .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN };

		own_keep(&t->own);
		if (curl_multi_poll(multi, &wait, 1, 1000, NULL) != CURLM_OK)
			break;
		if (wait.revents && requests_read(&t->requests) == 0 && interrupted(t))
			return 1;
	}
	return 0;
}

static CURLcode result_of(CURLM *multi)
{
	int left;
	CURLMsg *msg = curl_multi_info_read(multi, &left);

	return msg && msg->msg == CURLMSG_DONE ? msg->data.result : CURLE_OK;
}

/* A cell that was refused is told of like one that failed; a service that is gone is the end. */
static int cell_finish(struct repl_talk *t, struct repl_cell *c, CURLcode code, struct fail *fail)
{
	long status = 0;
	int r;

	(void)t;
	(void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->lost)
		return -EPIPE;
	if (code == CURLE_OK && status == 200)
		return 0;
	if (code != CURLE_OK || status == 502)
		return api_failed(code, status, (char *)c->reason.data, c->reason.len, fail);
	r = buf_add(&c->reason, "", 1);
	return r < 0 ? r : say_error(c, "Refused", (const char *)c->reason.data);
}

static int cell_perform(struct repl_talk *t, struct repl_cell *c, struct fail *fail)
{
	CURLM *multi = curl_multi_init();
	int r, stopped;

	if (!multi)
		return fail_set(fail, ENOMEM, "repl", "out of memory");
	(void)curl_multi_add_handle(multi, c->curl);
	stopped = cell_follow(t, multi);
	r = stopped ? say_error(c, "KeyboardInterrupt", "") :
		      cell_finish(t, c, result_of(multi), fail);
	(void)curl_multi_remove_handle(multi, c->curl);
	(void)curl_multi_cleanup(multi);
	return r;
}

int talk_cell(struct repl_talk *t, const json_t *code, struct fail *fail)
{
	json_t *body = json_pack("{sO ss}", "code", code, "language", t->language);
	_cleanup_(freep) char *text = NULL;
	struct repl_cell c = { .reason = BUF_INIT(REASON_MAX), .last = '\n' };
	struct curl_slist *headers = NULL, *more;
	int r;

	if (json_object_size(t->limits))
		(void)json_object_set(body, "limits", t->limits);
	text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	c.curl = text ? api_handle(t->api, &t->sandbox, "/execute", &headers) : NULL;
	if (!c.curl)
		return fail_set(fail, ENOMEM, "repl", "out of memory");
	more = curl_slist_append(headers, "Content-Type: application/json");
	headers = more ? more : headers;
	curl_easy_setopt(c.curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c.curl, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(c.curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(c.curl, CURLOPT_WRITEDATA, &c);
	r = more ? cell_perform(t, &c, fail) : fail_set(fail, ENOMEM, "repl", "out of memory");
	curl_easy_cleanup(c.curl);
	curl_slist_free_all(headers);
	buf_done(&c.reason);
	return r;
}
