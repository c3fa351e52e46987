/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox's own API for a single run: POST /v1/run, GET /v1/languages. */
#include "server/control/control_priv.h"
#include "server/run/run.h"

#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>

static struct server_run_bounds bounds(const struct config *c)
{
	return (struct server_run_bounds){
		.memory_bytes = c->limits_memory,
		.disk_bytes = c->limits_disk,
		.files = c->limits_files,
		.pids = (uint32_t)c->limits_pids,
		.cpu_milli = (uint32_t)MIN(c->limits_cpus, (uint64_t)get_nprocs() * 1000),
		.timeout_us = MIN(c->limits_timeout * 1000, RUN_TIME_MAX_US),
	};
}

static struct server_run *server_run_new(struct server *s)
{
	struct server_run *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct server_run)SERVER_RUN_INIT;
	o->server = s;
	o->result.out = (struct buf)BUF_INIT(SERVER_RUN_OUTPUT_BYTES_MAX + WIRE_MAX);
	o->result.err = (struct buf)BUF_INIT(SERVER_RUN_OUTPUT_BYTES_MAX + WIRE_MAX);
	return o;
}

static void server_run_freep(struct server_run **o)
{
	if (*o)
		server_run_done(*o);
	free(*o);
	*o = NULL;
}

/* --- while it runs: one JSON object per line -------------------------------------------------- */

struct live {
	struct request *request;
	struct server_run *run;
	pthread_t thread;
	int ours;        /* what read() reads */
	int theirs;      /* what the thread writes */
	struct buf rest; /* of a line that nobody took before the run was over */
};

/* False when the run ended meanwhile. */
static bool live_wait(struct live *l)
{
	struct pollfd p = { .fd = l->theirs, .events = POLLOUT };
	const struct server_run *o = l->run;

	while (poll(&p, 1, o->goes_on ? SERVER_RUN_TICK_MS : -1) == 0)
		if (o->goes_on && !o->goes_on(o->goes_on_arg))
			return false;
	return true;
}

/* How much of it: less than all only when the run ended meanwhile. */
static ssize_t live_send(struct live *l, const void *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = send(l->theirs, (const char *)data + at, len - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n >= 0)
			at += (size_t)n;
		else if (!live_wait(l))
			break;
	}
	return (ssize_t)at;
}

static int live_send_line(struct live *l, json_t *line)
{
	_cleanup_(freep) char *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII) :
					     NULL;
	size_t len = text ? strlen(text) : 0;
	ssize_t n;

	json_decref(line);
	if (!text)
		return -ENOMEM;
	text[len++] = '\n'; /* in place of the NUL: from here on it is bytes */
	n = live_send(l, text, len);
	return n < 0 ? (int)n : buf_add(&l->rest, text + n, len - (size_t)n);
}

static int live_output(void *arg, bool is_err, const void *data, size_t len)
{
	return live_send_line(arg, json_pack("{so}", is_err ? "stderr_base64" : "stdout_base64",
					     run_base64_json(data, len)));
}

static void *live_thread(void *arg)
{
	struct live *l = arg;
	struct fail fail = { 0 };

	/* Whether it was done or not: the result says so. */
	(void)!server_run_execute(l->run, &fail);
	if (live_send(l, l->rest.data, l->rest.len) >= 0)
		(void)!live_send_line(l, json_pack("{so}", "result", server_run_json(l->run)));
	(void)shutdown(l->theirs, SHUT_RDWR);
	return NULL;
}

static ssize_t live_read(void *arg, char *data, size_t max)
{
	struct live *l = arg;
	int r = stream_wait(l->request, l->ours, -1);
	ssize_t n;

	if (r < 0)
		return r;
	n = recv(l->ours, data, max, 0);
	return n < 0 ? -errno : n;
}

static void live_close(void *arg)
{
	struct live *l = arg;

	__atomic_store_n(&l->run->cancelled, true, __ATOMIC_RELAXED);
	(void)shutdown(l->ours, SHUT_RDWR);
	(void)pthread_join(l->thread, NULL);
	fd_close(l->ours);
	fd_close(l->theirs);
	server_run_freep(&l->run);
	buf_done(&l->rest);
	free(l);
}

/* Takes over *o. */
static int run_live(struct request *r, struct server_run **o)
{
	static const struct stream stream = { .read = live_read, .close = live_close };
	struct live *l = calloc(1, sizeof(*l));
	int pair[2];

	if (!l || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(l);
		return -ENOMEM;
	}
	*l = (struct live){
		.request = r,
		.run = *o,
		.ours = pair[0],
		.theirs = pair[1],
		.rest = BUF_INIT((size_t)2 * WIRE_MAX),
	};
	l->run->emit = live_output;
	l->run->emit_arg = l;
	if (pthread_create(&l->thread, NULL, live_thread, l) != 0) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		free(l);
		return reply_error(r, 503, "too much is going on: try again in a moment");
	}
	*o = NULL;
	return reply_stream(r, 200, "application/x-ndjson", UINT64_MAX, &stream, l);
}

/* --- in one piece ----------------------------------------------------------------------------- */

#define SMALL (UINT64_C(1) << 20) /* a result that is not worth counting once it is text */

/* The text of a large result, which counts until the client has it. */
struct output_piece {
	char *text;
	size_t len, at;
	struct server_run_claim claim;
};

static ssize_t piece_read(void *arg, char *data, size_t max)
{
	struct output_piece *p = arg;
	size_t n = MIN(max, p->len - p->at);

	memcpy(data, p->text + p->at, n);
	p->at += n;
	return (ssize_t)n;
}

static void piece_close(void *arg)
{
	struct output_piece *p = arg;

	server_run_release(&p->claim);
	free(p->text);
	free(p);
}

static int reply_piece(struct request *r, struct server_run *o)
{
	static const struct stream stream = { .read = piece_read, .close = piece_close };
	json_t *result = server_run_json(o);
	struct output_piece *p = result ? calloc(1, sizeof(*p)) : NULL;

	if (p)
		p->text = json_dumps(result, JSON_COMPACT);
	json_decref(result);
	if (!p || !p->text) {
		free(p);
		return -ENOMEM;
	}
	p->len = strlen(p->text);
	p->claim = o->claim;
	o->claim = (struct server_run_claim){ 0 };
	return reply_stream(r, 200, "application/json", p->len, &stream, p);
}

/* --- the handlers ----------------------------------------------------------------------------- */

int handle_run(struct request *r)
{
	struct server_run_bounds allowed = bounds(&r->server->config);
	_cleanup_(server_run_freep) struct server_run *o = server_run_new(r->server);
	const char *accept = request_header(r, "Accept");
	struct fail fail = { 0 };
	int e;

	if (!o)
		return -ENOMEM;
	e = server_run_read_network(r->server, r->key.id, json_object_get(r->body, "network"), o,
				    &fail);
	if (e == 0)
		e = server_run_read(r->body, &allowed, o, &fail);
	if (e < 0)
		return e == -ENOMEM ? reply_failure(r, &fail) : reply_error(r, 400, "%s", fail.msg);
	e = request_take_create(r);
	if (e < 0 || r->replied)
		return e;
	e = server_run_begin(o, r->key.id, r->server->config.limits_sandboxes_per_key);
	if (e == -EUSERS)
		return reply_error(r, 429,
				   "there are as many runs of this key as there may be (%llu)",
				   (unsigned long long)r->server->config.limits_sandboxes_per_key);
	if (e < 0)
		return e;
	if (accept && strstr(accept, "application/x-ndjson"))
		return run_live(r, &o);
	o->client_fd = r->socket;
	e = server_run_execute(o, &fail);
	/* Once there is a box, what went wrong is the run's, and its result says so. */
	if (!o->result.isolated && (e == -EUSERS || e == -ENOSPC || e == -EAGAIN))
		return reply_error(r, 503, "no room for another box: try again in a moment");
	if (e == -EBADMSG)
		return reply_error(r, 400, "%s", fail.msg);
	if (e < 0 && !o->result.isolated)
		return reply_failure(r, &fail);
	return o->claim.held > SMALL ? reply_piece(r, o) : reply_json(r, 200, server_run_json(o));
}

static json_t *words_json(char *const *list)
{
	json_t *a = json_array();

	for (; *list; list++)
		(void)json_array_append_new(a, json_string(*list));
	return a;
}

int handle_languages(struct request *r)
{
	size_t n;
	const struct language *languages = run_languages(&n);
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct language *l = &languages[i];

		(void)json_array_append_new(
			all, json_pack("{ss ss so so sb sb sb}", "name", l->name, "title", l->title,
				       "aliases", words_json(l->aliases), "extensions",
				       words_json(l->extensions), "compiled", l->compile != NULL,
				       "installed", language_present(l), "stateful",
				       language_stateful(l)));
	}
	return reply_json(r, 200, all);
}
