/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One visit by way of the HTTP library: the request's head and body go in, the answer comes out. No
 * body is ever kept: each piece goes on as it comes, so events arrive when they happen. Where the
 * answer breaks off the client's connection is reset, so that nobody takes a part for the whole.
 */
#include "server/port/port.h"

#include "server/port/head.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/uio.h>

#define INTERIM_MAX 16 /* answers of 1xx before the real one */
#define BLOCK ((size_t)64 << 10)
#define SMALL ((size_t)4 << 10)

/* --- the head that is sent -------------------------------------------------------------------- */

static bool wants_upgrade(const struct request *r)
{
	const char *upgrade = request_header(r, "Upgrade");

	/* Others (h2c) would turn the connection into something whose requests we do not see. */
	return upgrade && strcasecmp(upgrade, "websocket") == 0 && strcmp(r->method, "GET") == 0 &&
	       port_list_has(request_header(r, "Connection"), "upgrade");
}

struct head_adding {
	const struct port_ask *ask;
	struct buf *to;
	int r;
};

static enum MHD_Result head_add_field(void *cls, enum MHD_ValueKind kind, const char *name,
				      const char *value)
{
	struct head_adding *a = cls;

	(void)kind;
	if (a->r == 0)
		a->r = port_ask_field(a->ask, name, value ? value : "", a->to);
	return a->r == 0 ? MHD_YES : MHD_NO;
}

const char *port_host_to_tell(struct sandbox *b, uint32_t port, const char *host,
			      char memory[static HOST_MASKED_SIZE])
{
	const char *mask;
	bool ok;

	pthread_mutex_lock(&b->lock);
	mask = json_string_value(
		json_object_get(json_object_get(b->info.config, "network"), "maskRequestHost"));
	ok = mask && host_mask(mask, port, memory, HOST_MASKED_SIZE) == 0;
	pthread_mutex_unlock(&b->lock);
	return ok ? memory : host;
}

void port_client_text(const struct sockaddr *sa, char ret[static INET6_ADDRSTRLEN])
{
	ret[0] = '\0';
	if (sa && sa->sa_family == AF_INET)
		(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
				ret, INET6_ADDRSTRLEN);
	else if (sa && sa->sa_family == AF_INET6)
		(void)inet_ntop(AF_INET6,
				&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, ret,
				INET6_ADDRSTRLEN);
}

static int visit_write_head(struct request *r, bool upgrade, struct buf *ret)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char client[INET6_ADDRSTRLEN], told[HOST_MASKED_SIZE];
	const char *host = request_header(r, "Host");
	struct port_ask q = {
		.method = r->method,
		.target = r->path,
		.host = host,
		.host_to_tell = port_host_to_tell(r->sandbox, r->port, host, told),
		.client = client,
		.connection = request_header(r, "Connection"),
		.tls = r->server->config.server_tls_cert[0] != '\0',
		.upgrade = upgrade,
		.has_length = request_header(r, "Content-Length"),
		.length = exchange_of(r)->length,
	};
	struct head_adding a = { .ask = &q, .to = ret };

	port_client_text(info ? info->client_addr : NULL, client);
	ret->max = PORT_ASK_MAX;
	a.r = port_ask_begin(&q, ret);
	if (a.r == 0)
		(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, head_add_field, &a);
	return a.r == 0 ? port_ask_end(ret) : a.r;
}

bool port_is_running(struct sandbox *b)
{
	bool running;

	pthread_mutex_lock(&b->lock);
	running = b->info.state == STORE_RUNNING;
	pthread_mutex_unlock(&b->lock);
	return running;
}

/* --- when it cannot be done ------------------------------------------------------------------- */

static int visit_say_failed(struct request *r, int err)
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
static bool may_have_answered(int r)
{
	return r == -EALREADY || r == -EPIPE || r == -ECONNRESET;
}

static int visit_say_broken(struct port_visit *v)
{
	const char *what = v->answer.broken ? v->answer.broken : "it broke off";

	return reply_sandbox(v->r, 502, v->r->sandbox->info.id, PORT_BROKEN, what, true);
}

/* --- the connection --------------------------------------------------------------------------- */

/* May be sent twice without harm, should the connection turn out to be dead. */
static bool visit_can_repeat(const struct request *r)
{
	return exchange_of((struct request *)(uintptr_t)r)->length == 0 &&
	       (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
		strcmp(r->method, "OPTIONS") == 0);
}

static int visit_send_head(struct port_visit *v)
{
	struct iovec iov = { .iov_base = v->head.data, .iov_len = v->head.len };
	int r = port_link_send(v->r, v->link, &iov, 1);

	v->unsent = r < 0;
	return r;
}

/* On a new connection; -EALREADY and broken pipes are found out by reading. */
static int visit_send_anew(struct port_visit *v)
{
	int r;

	port_link_closep(&v->link);
	r = port_link_open(v->r, &v->link);
	if (r == 0)
		return visit_send_head(v);
	/* A program that hangs up before it is connected has said nothing that could be read: there
	 * is no connection. */
	return may_have_answered(r) ? -ECONNABORTED : r;
}

static int visit_send(struct port_visit *v)
{
	if (visit_can_repeat(v->r) && !v->upgrade)
		v->link = port_pool_take(v->r->server->ports, v->r->sandbox, v->r->port);
	if (!v->link)
		return visit_send_anew(v);
	return visit_send_head(v);
}

static void visit_release(struct port_visit *v, bool keep)
{
	struct port_link *l = take_ptr(v->link);

	/* Bytes behind the answer: a program that sends those is not trusted with another request.
	 * TLS has always some. And a program that did not read a body would take it for the next
	 * request. */
	if (l && keep && v->answer.keeps && !v->unsent && !exchange_of(v->r)->has_body &&
	    l->start == l->end && !l->tls) {
		l->start = l->end = 0;
		port_pool_put(v->r->server->ports, l);
	} else {
		port_link_close(l);
	}
}

/* --- fields ----------------------------------------------------------------------------------- */

/* The library takes no tabs, which mean the same as a blank. */
static void untab(char *value)
{
	for (; *value; value++)
		if (*value == '\t')
			*value = ' ';
}

int port_reply_fields(const struct port_visit *v, struct MHD_Response *reply)
{
	const struct port_answer *a = &v->answer;

	for (size_t i = 0; i < a->n_fields; i++) {
		if (!port_field_goes_out(a, &a->field[i], v->own_address))
			continue;
		untab(a->field[i].value);
		if (MHD_add_response_header(reply, a->field[i].name, a->field[i].value) != MHD_YES)
			return -EPROTO;
	}
	if (!v->own_address)
		return 0;
	/* Shown in a browser at our own address, it is nobody: no scripts, no cookies, no storage
	 * of ours, and no cache keeps it for an answer of ours. */
	if (MHD_add_response_header(reply, "Content-Security-Policy", "sandbox") != MHD_YES ||
	    MHD_add_response_header(reply, "X-Content-Type-Options", "nosniff") != MHD_YES ||
	    MHD_add_response_header(reply, "Cache-Control", "no-store") != MHD_YES)
		return -ENOMEM;
	return 0;
}

/* --- the body --------------------------------------------------------------------------------- */

/* What came together with the head, or else what comes next. */
static ssize_t answer_bytes(struct port_visit *v, char *data, size_t max)
{
	struct port_link *l = v->link;
	size_t n = MIN(max, l->end - l->start);

	if (n == 0)
		return port_link_recv(v->r, l, data, max);
	memcpy(data, l->data + l->start, n);
	l->start += n;
	return (ssize_t)n;
}

/* An end that is the end of the body only if the sandbox is still there: one that was hung up ends
 * like that, too. */
static ssize_t answer_to_end(struct port_visit *v, ssize_t n)
{
	bool running;

	if (n != 0)
		return n;
	running = port_is_running(v->r->sandbox);
	v->ended = running;
	return running ? 0 : -ENOTCONN;
}

static ssize_t answer_read_length(struct port_visit *v, char *data, size_t max)
{
	ssize_t n = answer_bytes(v, data, MIN(max, v->left));

	if (n <= 0)
		return n < 0 ? n : -ENODATA;
	v->left -= (uint64_t)n;
	v->ended = v->left == 0;
	return n;
}

static ssize_t answer_read_chunks(struct port_visit *v, char *data, size_t max)
{
	size_t rest = 0;
	ssize_t n = 0;

	while (n == 0 && !v->ended) {
		n = answer_bytes(v, data, max);
		if (n == 0)
			return -ENODATA;
		if (n > 0)
			n = port_answer_unchunk(&v->answer, data, (size_t)n, &v->ended, &rest);
		if (rest > 0)
			v->answer.keeps = false;
	}
	return n;
}

static ssize_t answer_read_body(void *cls, uint64_t pos, char *data, size_t max)
{
	struct port_visit *v = cls;
	ssize_t n;

	(void)pos;
	if (v->answer.body == PORT_BODY_LENGTH)
		n = answer_read_length(v, data, max);
	else if (v->answer.body == PORT_BODY_CHUNKED)
		n = answer_read_chunks(v, data, max);
	else
		n = answer_to_end(v, answer_bytes(v, data, max));
	if (n > 0)
		return n;
	if (n == 0 && v->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	connection_reset(v->r->socket);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Never asked: the library sends no body with what this is for. */
static ssize_t answer_read_nothing(void *cls, uint64_t pos, char *data, size_t max)
{
	(void)cls;
	(void)pos;
	(void)data;
	(void)max;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* --- the reply -------------------------------------------------------------------------------- */

static struct MHD_Response *answer_make_empty(struct port_visit *v)
{
	static char nothing[1];
	bool to_head = strcmp(v->r->method, "HEAD") == 0;
	bool no_length = v->answer.length == UINT64_MAX;

	v->ended = true;
	if (!to_head || v->answer.length == 0)
		return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
	return MHD_create_response_from_callback(no_length ? MHD_SIZE_UNKNOWN : v->answer.length,
						 BLOCK, answer_read_nothing, NULL, NULL);
}

/* A body that has arrived whole goes out together with its head. A small one is copied, so that the
 * connection can serve others meanwhile. */
static struct MHD_Response *answer_make_whole(struct port_visit *v)
{
	struct port_link *l = v->link;
	size_t len = (size_t)v->answer.length;
	char *body = l->data + l->start;

	l->start += len;
	v->ended = true;
	v->lent = len > SMALL;
	return MHD_create_response_from_buffer(
		len, body, v->lent ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
}

static struct MHD_Response *answer_make(struct port_visit *v)
{
	const struct port_answer *a = &v->answer;

	assert(v->link); /* there is an answer on it */
	v->left = a->length;
	if (a->body == PORT_BODY_NONE)
		return answer_make_empty(v);
	if (a->body == PORT_BODY_LENGTH && a->length <= v->link->end - v->link->start)
		return answer_make_whole(v);
	return MHD_create_response_from_callback(a->body == PORT_BODY_LENGTH ? a->length :
									       MHD_SIZE_UNKNOWN,
						 BLOCK, answer_read_body, v, NULL);
}

static int visit_reply(struct port_visit *v)
{
	struct MHD_Response *reply = answer_make(v);
	int r = reply ? port_reply_fields(v, reply) : -ENOMEM;

	if (r < 0) {
		if (reply)
			MHD_destroy_response(reply);
		return r;
	}
	r = reply_made(v->r, v->answer.status, reply);
	/* Nothing more is wanted of the program: the next one can have it at once. */
	if (r == 0 && v->ended && !v->lent)
		visit_release(v, true);
	return r;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The head of the answer itself: those of 1xx before it are passed over, but for the one that was
 * asked for. */
static int visit_read_answer(struct port_visit *v)
{
	bool to_head = strcmp(v->r->method, "HEAD") == 0;

	assert(v->link); /* the request was sent on it */
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

/* What was kept open may have been closed at the very moment that it was used: once more, with a
 * new one. */
static int visit_read_answer_or_repeat(struct port_visit *v)
{
	int r = visit_read_answer(v);

	if (r != -ENODATA || !v->link || !v->link->used)
		return r;
	r = visit_send_anew(v);
	return r < 0 ? r : visit_read_answer(v);
}

static int visit_answer(struct port_visit *v)
{
	int r = visit_read_answer_or_repeat(v);

	if (r == -EPROTO || r == -ENODATA || may_have_answered(r))
		return visit_say_broken(v);
	if (r < 0)
		return visit_say_failed(v->r, r);
	if (v->answer.status != 101)
		return visit_reply(v);
	if (v->upgrade)
		return port_reply_upgrade(v);
	v->answer.broken = "it changes the protocol, which nobody asked for";
	return visit_say_broken(v);
}

/* --- the route -------------------------------------------------------------------------------- */

static bool visit_count_in(struct port_visit *v)
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
	v->upgrade = wants_upgrade(r) && exchange_of(r)->length == 0;
	v->own_address = !exchange_of(r)->by_name;
	if (!visit_count_in(v)) {
		reply_header(r, "Retry-After", "1");
		return reply_sandbox(r, 429, r->sandbox->info.id,
				     "The sandbox has too many connections at once", NULL, false);
	}
	n = visit_write_head(r, v->upgrade, &v->head);
	if (n < 0)
		return n;
	n = visit_send(v);
	if (may_have_answered(n))
		return exchange_of(r)->has_body ? visit_answer(v) : 0;
	return n < 0 ? visit_say_failed(r, n) : 0;
}

/* Once the program has answered, the rest of the body is for nobody. */
static int visit_send_body(struct port_visit *v, struct iovec *iov, size_t n)
{
	int r = port_link_send(v->r, v->link, iov, n);

	v->unsent = r < 0;
	if (may_have_answered(r))
		return visit_answer(v);
	return r < 0 ? visit_say_failed(v->r, r) : 0;
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
		return visit_send_body(v, &iov[1], 1);
	iov[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", len);
	return visit_send_body(v, iov, ARRAY_SIZE(iov));
}

static int port_handle(struct request *r)
{
	struct port_visit *v = r->state;
	struct iovec last = { .iov_base = (char *)(uintptr_t) "0\r\n\r\n", .iov_len = 5 };
	int n = v->chunked ? visit_send_body(v, &last, 1) : 0;

	return n < 0 || r->replied ? n : visit_answer(v);
}

static void port_done(struct request *r)
{
	struct port_visit *v = r->state;

	if (!v)
		return;
	visit_release(v, v->ended);
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
