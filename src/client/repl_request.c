/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox repl-request: for `glovebox repl`, not for people. Standard input has one JSON object
 * per line: first what kind of sandbox, then {"code": …}, {"restart": true}, and while a cell runs
 * {"interrupt": true}. Standard output has the events of cells as the service sends them, and
 * {"ready": true} behind each request that is done. {"error": …} is the end. At the end of its
 * input, and before it ends for any other reason, it removes the sandbox.
 */
#include "client/repl_request_priv.h"

#include <poll.h>

#define WAKE_MS 60000 /* how often is looked whether its end must be put off */
#define INTERPRETER_PORT 49999u

static int repl_say(json_t *line)
{
	int r = line ? json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;

	json_decref(line);
	return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF ? -EPIPE : 0;
}

/* --- its input -------------------------------------------------------------------------------- */

/* The next line of what has been read; NULL when there is none yet. */
json_t *requests_next(struct requests *q)
{
	unsigned char *end = q->text.len ? memchr(q->text.data, '\n', q->text.len) : NULL;
	json_t *o;
	size_t len;

	if (!end)
		return NULL;
	len = (size_t)(end - q->text.data);
	o = json_loadb((const char *)q->text.data, len, JSON_REJECT_DUPLICATES, NULL);
	memmove(q->text.data, end + 1, q->text.len - len - 1);
	q->text.len -= len + 1;
	return o ? o : json_object();
}

int requests_read(struct requests *q)
{
	char chunk[65536];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0 || buf_add(&q->text, chunk, (size_t)n) < 0)
		q->ended = true;
	return 0;
}

/* --- the sandbox ------------------------------------------------------------------------------ */

static int make_sandbox(struct repl_talk *t, const json_t *wanted, struct fail *fail)
{
	json_t *env = json_object_get(wanted, "env");

	(void)snprintf(t->language, sizeof(t->language), "%s", client_text(wanted, "language"));
	t->limits = json_incref(json_object_get(wanted, "limits"));
	t->sandbox.port = INTERPRETER_PORT;
	return own_make(&t->own,
			json_pack("{ss sO}", "templateID", client_text(wanted, "template"),
				  "envVars", env),
			fail);
}

static int repl_restart(struct repl_talk *t, struct fail *fail)
{
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "/contexts/%s/restart", t->language);
	r = api_sandbox_call(t->api, &t->sandbox, "POST", path, json_object(), NULL, fail);
	/* One that was never used is as new. */
	return r == -ENOENT ? 0 : r;
}

/* --- requests --------------------------------------------------------------------------------- */

static int repl_on_request(struct repl_talk *t, const json_t *o, struct fail *fail)
{
	const json_t *code = json_object_get(o, "code");
	int r = 0;

	if (json_is_string(code))
		r = talk_cell(t, code, fail);
	else if (json_is_true(json_object_get(o, "restart")))
		r = repl_restart(t, fail);
	else
		return 0; /* an interrupt that came too late */
	return r < 0 ? r : repl_say(json_pack("{sb}", "ready", 1));
}

static int repl_serve(struct repl_talk *t, struct fail *fail)
{
	int r = 0;

	while (r == 0) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
		json_t *o = requests_next(&t->requests);

		own_keep(&t->own);
		if (o) {
			r = repl_on_request(t, o, fail);
			json_decref(o);
			continue;
		}
		if (t->requests.ended)
			break;
		if (poll(&p, 1, WAKE_MS) > 0)
			r = requests_read(&t->requests);
	}
	return r;
}

static int open_talk(struct repl_talk *t, struct fail *fail)
{
	json_t *wanted = NULL;
	int r = api_open(t->api, fail);

	while (r == 0 && !(wanted = requests_next(&t->requests))) {
		if (t->requests.ended)
			return fail_set(fail, EINVAL, "repl", "this is for 'glovebox repl'");
		r = requests_read(&t->requests);
	}
	if (r < 0)
		return r;
	r = make_sandbox(t, wanted, fail);
	json_decref(wanted);
	return r;
}

int client_repl_request(int argc, char **argv)
{
	_cleanup_(api_closep) struct api a = { 0 };
	struct repl_talk t = { .api = &a, .requests = { .text = BUF_INIT(REQUESTS_MAX) } };
	struct fail fail = { 0 };
	int r;

	t.own = (struct own_sandbox){ .api = &a, .sandbox = &t.sandbox };
	r = open_talk(&t, &fail);
	(void)argc;
	(void)argv;
	(void)signal(SIGPIPE, SIG_IGN);
	if (r == 0)
		r = repl_say(json_pack("{sb}", "ready", 1));
	if (r == 0)
		r = repl_serve(&t, &fail);
	if (r < 0 && fail.msg[0])
		(void)!repl_say(json_pack("{ss}", "error", fail.msg));
	own_remove(&t.own);
	json_decref(t.limits);
	buf_done(&t.requests.text);
	return r < 0 ? CLIENT_FAILURE : CLIENT_OK;
}
