/* SPDX-License-Identifier: Apache-2.0 */
/* A request for a port: its head and body go in; port/reply.c sends out what comes back. */
#include "server/port/port.h"

#include "server/http/sign.h"

#include <sys/uio.h>

#define INTERIM_MAX 16 /* answers of 1xx before the real one */

bool port_is_running(struct sandbox *b)
{
	bool running;

	pthread_mutex_lock(&b->lock);
	running = b->info.state == STORE_RUNNING;
	pthread_mutex_unlock(&b->lock);
	return running;
}

/* --- when it cannot be done ---------------------------------------------------------------------------------- */

static int say_failed(struct request *r, int err)
{
	const char *id = r->sandbox->info.id;

	switch (err) {
	case -ECONNREFUSED:
		return reply_sandbox(r, 502, id, "The sandbox is running but port is not open",
				     NULL, true);
	case -ETIMEDOUT:
		return reply_sandbox(r, 502, id, "The sandbox is running but port does not answer",
				     NULL, true);
	case -EPROTO:
		return reply_sandbox(r, 502, id, PORT_BROKEN, "it does not speak TLS", true);
	case -ECONNABORTED:
		return reply_sandbox(r, 502, id, PORT_BROKEN, "it broke off", true);
	case -EBUSY:
		return reply_sandbox(r, 409, id, "The sandbox is changing its state; try again",
				     NULL, true);
	case -ENOTCONN:
		return reply_gone(r, id);
	case -ECANCELED:
	case -ESHUTDOWN:
		return err;
	default: {
		struct fail fail = { .err = -err, .where = "port", .msg = "no connection" };

		return reply_failure(r, &fail);
	}
	}
}

/* Not sent, because the program said something or hung up: what it said is still to be read. */
static bool is_answer(int r)
{
	return r == -EALREADY || r == -EPIPE || r == -ECONNRESET;
}

static int say_broken(struct port_visit *v)
{
	const char *what = v->answer.broken ? v->answer.broken : "it broke off";

	return reply_sandbox(v->r, 502, v->r->sandbox->info.id, PORT_BROKEN, what, true);
}

/* --- the connection --------------------------------------------------------------------------------------- */

/* May be sent twice without harm, should the connection turn out to be dead. */
static bool can_repeat(const struct request *r)
{
	return exchange_of((struct request *)(uintptr_t)r)->length == 0 &&
	       (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
		strcmp(r->method, "OPTIONS") == 0);
}

static int send_head(struct port_visit *v)
{
	struct iovec iov = { .iov_base = v->head.data, .iov_len = v->head.len };
	int r = port_link_send(v->r, v->link, &iov, 1);

	v->unsent = r < 0;
	return r;
}

/* On a new connection; -EALREADY and broken pipes are found out by reading. */
static int send_anew(struct port_visit *v)
{
	int r;

	port_link_closep(&v->link);
	r = port_link_open(v->r, &v->link);
	if (r == 0)
		return send_head(v);
	/* A program that hangs up before it is connected has said nothing that could be read: there is no connection. */
	return is_answer(r) ? -ECONNABORTED : r;
}

static int send_request(struct port_visit *v)
{
	if (can_repeat(v->r) && !v->upgrade)
		v->link = port_pool_take(v->r->server->ports, v->r->sandbox, v->r->port);
	if (!v->link)
		return send_anew(v);
	return send_head(v);
}

void port_visit_release(struct port_visit *v, bool keep)
{
	struct port_link *l = take_ptr(v->link);

	/* Bytes behind the answer: whoever sends those is not trusted with another request. TLS has always some. And a
	 * program that did not read a body would take it for the next request. */
	if (l && keep && v->answer.keeps && !v->unsent && !exchange_of(v->r)->has_body &&
	    l->start == l->end && !l->tls) {
		l->start = l->end = 0;
		port_pool_put(v->r->server->ports, l);
	} else {
		port_link_close(l);
	}
}

/* --- the answer ---------------------------------------------------------------------------------------------- */

/* The head of the answer itself: those of 1xx before it are passed over, but for the one that was asked for. */
static int read_answer(struct port_visit *v)
{
	bool to_head = strcmp(v->r->method, "HEAD") == 0;

	for (int i = 0; i < INTERIM_MAX; i++) {
		ssize_t n = port_link_recv_head(v->r, v->link);
		int r;

		if (n < 0)
			return (int)n;
		r = port_answer_read(&v->answer, v->link->data, (size_t)n, to_head);
		if (r < 0)
			return r;
		v->link->start = (size_t)n;
		if (v->answer.status >= 200 || v->answer.status == 101)
			return 0;
	}
	v->answer.broken = "it said 1xx too often";
	return -EPROTO;
}

/* What was kept open may have been closed at the very moment that it was used: once more, with a new one. */
static int read_answer_or_repeat(struct port_visit *v)
{
	int r = read_answer(v);

	if (r != -ENODATA || !v->link->used)
		return r;
	r = send_anew(v);
	return r < 0 ? r : read_answer(v);
}

static int answer(struct port_visit *v)
{
	int r = read_answer_or_repeat(v);

	if (r == -EPROTO || r == -ENODATA || is_answer(r))
		return say_broken(v);
	if (r < 0)
		return say_failed(v->r, r);
	if (v->answer.status != 101)
		return port_reply(v);
	if (v->upgrade)
		return port_reply_upgrade(v);
	v->answer.broken = "it changes the protocol, which nobody asked for";
	return say_broken(v);
}

/* --- the route ------------------------------------------------------------------------------------------------ */

static bool count_in(struct port_visit *v)
{
	struct sandbox *b = v->r->sandbox;

	v->counted = true;
	return __atomic_add_fetch(&b->port_visits, 1, __ATOMIC_RELAXED) <=
	       v->r->server->config.limits_connections_per_sandbox;
}

static int port_begin(struct request *r)
{
	struct port_visit *v = calloc(1, sizeof(*v));
	int n;

	if (!v)
		return -ENOMEM;
	r->state = v;
	v->r = r;
	v->chunked = exchange_of(r)->length == UINT64_MAX;
	v->upgrade = port_wants_upgrade(r) && exchange_of(r)->length == 0;
	v->own_address = !exchange_of(r)->by_name;
	if (!count_in(v)) {
		reply_header(r, "Retry-After", "1");
		return reply_sandbox(r, 429, r->sandbox->info.id,
				     "The sandbox has too many connections at once", NULL, false);
	}
	n = port_request_head(r, v->upgrade, &v->head);
	if (n < 0)
		return n;
	n = send_request(v);
	if (is_answer(n))
		return exchange_of(r)->has_body ? answer(v) : 0;
	return n < 0 ? say_failed(r, n) : 0;
}

/* Once the program has answered, the rest of the body is for nobody. */
static int send_body(struct port_visit *v, struct iovec *iov, size_t n)
{
	int r = port_link_send(v->r, v->link, iov, n);

	v->unsent = r < 0;
	if (is_answer(r))
		return answer(v);
	return r < 0 ? say_failed(v->r, r) : 0;
}

static int port_data(struct request *r, const char *data, size_t len)
{
	struct port_visit *v = r->state;
	char size[24];
	struct iovec iov[] = {
		{ .iov_base = size },
		{ .iov_base = (char *)(uintptr_t)data, .iov_len = len },
		{ .iov_base = (char *)(uintptr_t) "\r\n", .iov_len = 2 },
	};

	if (!v->chunked)
		return send_body(v, &iov[1], 1);
	iov[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", len);
	return send_body(v, iov, ARRAY_SIZE(iov));
}

static int port_handle(struct request *r)
{
	struct port_visit *v = r->state;
	struct iovec last = { .iov_base = (char *)(uintptr_t) "0\r\n\r\n", .iov_len = 5 };
	int n = v->chunked ? send_body(v, &last, 1) : 0;

	return n < 0 || r->replied ? n : answer(v);
}

static void port_done(struct request *r)
{
	struct port_visit *v = r->state;

	if (!v)
		return;
	port_visit_release(v, v->ended);
	if (v->counted)
		(void)__atomic_sub_fetch(&r->sandbox->port_visits, 1, __ATOMIC_RELAXED);
	buf_done(&v->head);
	free(v);
}

const struct route port_route = {
	.operation = "port",
	.auth = HTTP_AUTH_NONE,
	.body = HTTP_BODY_STREAM,
	.begin = port_begin,
	.data = port_data,
	.handle = port_handle,
	.done = port_done,
};
