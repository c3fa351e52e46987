/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's connection on the express way: from one request to the next, and the answers on their
 * way.
 *
 * Nothing more is read from the program while the client has not taken what there is, so a slow
 * client slows the program, and what is kept for it is bounded. Where the answer breaks off the
 * client's connection is reset, so that nobody takes a part for the whole.
 */
#include "server/port/express_priv.h"

#include "server/http/connection.h"
#include "server/http/head_field.h"
#include "server/http/host.h"
#include "server/sandbox/clock.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/uio.h>

#define OUT_MAX (2 * EXPRESS_PIECE) /* a piece, and a head before it */
#define LOG_US UINT64_C(1000000)    /* visits within that time are one line of the log */
/* A client that has said all may still hear the answer, if it comes soon. Most that end their side
 * of the connection are gone. */
#define LEAVING_US UINT64_C(20000)
#define INTERIM_MAX 16 /* answers of 1xx before the real one */

/* --- it comes and goes ------------------------------------------------------------------------ */

struct visitor *visitors_first(struct express_thread *t)
{
	struct visitor *v;

	pthread_mutex_lock(&t->lock);
	v = t->visitors;
	pthread_mutex_unlock(&t->lock);
	return v;
}

/* With the lock held. */
static void visitors_add(struct visitor *v)
{
	struct express_thread *t = v->thread;

	v->next = t->visitors;
	if (v->next)
		v->next->prev = v;
	t->visitors = v;
}

static void visitors_remove(struct visitor *v)
{
	struct express_thread *t = v->thread;

	pthread_mutex_lock(&t->lock);
	if (v->prev)
		v->prev->next = v->next;
	else
		t->visitors = v->next;
	if (v->next)
		v->next->prev = v->prev;
	pthread_mutex_unlock(&t->lock);
}

int visitor_new(struct express_thread *t, struct connection *c, const struct sockaddr_storage *peer)
{
	struct visitor *v = calloc(1, sizeof(*v));
	int on = 1, r;

	if (!v)
		return -ENOMEM;
	v->kind = EXPRESS_VISITOR;
	v->thread = t;
	v->connection = c;
	v->fd = connection_fd(c);
	v->peer = *peer;
	v->out.max = OUT_MAX;
	port_client_text((const struct sockaddr *)peer, v->client);
	(void)setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* From here on it is the thread's: it may know of it before it is in the list, but takes it
	 * out only under the lock. Nobody else may take one out, so what cannot be watched is never
	 * in. */
	pthread_mutex_lock(&t->lock);
	r = express_watch(t, v->fd, v);
	if (r == 0)
		visitors_add(v);
	pthread_mutex_unlock(&t->lock);
	if (r < 0)
		free(v);
	return r;
}

static void visitor_write_log(struct visitor *v)
{
	if (v->log.count > 0)
		visit_log_write(&v->log, connection_peer(v->connection), NULL);
	v->log.count = 0;
}

static void visitor_note_visit(struct visitor *v, bool broken_off)
{
	uint64_t ms = (v->thread->now_us - v->since_us) / 1000;
	const char *id = v->sandbox->info.id;

	if (v->log.count > 0 && (v->log.port != v->port || strcmp(v->log.id, id) != 0))
		visitor_write_log(v);
	if (v->log.count++ == 0) {
		v->log = (struct visit_log){ .count = 1,
					     .port = v->port,
					     .since_us = v->thread->now_us };
		(void)snprintf(v->log.id, sizeof(v->log.id), "%s", id);
		(void)snprintf(v->log.method, sizeof(v->log.method), "%s", v->method);
	}
	v->log.status = MAX(v->log.status, v->answer.status);
	v->log.ms = MAX(v->log.ms, ms);
	v->log.broken_off = v->log.broken_off || broken_off;
}

/* The request is over, or it was none of ours. */
static void visitor_leave_sandbox(struct visitor *v)
{
	if (!v->sandbox)
		return;
	(void)__atomic_sub_fetch(&v->sandbox->port_visits, 1, __ATOMIC_RELAXED);
	sandbox_putp(&v->sandbox);
}

/* What is left of it is freed when no event of this round can be about it any more. */
static void visitor_retire(struct visitor *v)
{
	struct call *l = take_ptr(v->call);

	if (l)
		call_release(l, false);
	visitor_leave_sandbox(v);
	visitors_remove(v);
	v->fd = -EBADF;
	v->next = v->thread->dead_visitors;
	v->thread->dead_visitors = v;
}

static void visitor_drop(struct visitor *v)
{
	int fd = v->fd;

	if (v->sandbox && v->state == VISITOR_HEARING)
		visitor_note_visit(v, true);
	visitor_write_log(v);
	express_unwatch(v->thread, fd);
	connection_remove(v->thread->server->connections, take_ptr(v->connection));
	visitor_retire(v);
	fd_close(fd);
}

void visitor_break_off(struct visitor *v)
{
	if (v->state != VISITOR_WAITING)
		connection_reset(v->fd);
	visitor_drop(v);
}

static void visitor_hand_over(struct visitor *v)
{
	visitor_write_log(v);
	express_unwatch(v->thread, v->fd);
	connection_set(v->connection, CONNECTION_WAITING);
	visitor_retire(v);
	(void)http_take(v->thread->server, v->connection, &v->peer);
}

void visitor_look_after(struct visitor *v)
{
	if (v->log.count > 0 && v->thread->now_us - v->log.since_us >= LOG_US)
		visitor_write_log(v);
	/* The library tries for longer, and says what is the matter. */
	if (v->state == VISITOR_DIALING && call_is_stuck(v->call))
		visitor_hand_over(v);
	else if (v->state != VISITOR_WAITING && v->leaving &&
		 v->thread->now_us - v->leaving_us >= LEAVING_US)
		visitor_break_off(v);
}

/* --- to the client ---------------------------------------------------------------------------- */

/* A piece for the client: the head, perhaps, and a chunk or the end. */
struct parcel {
	struct iovec iov[5];
	size_t n;
	char size[24]; /* of the chunk */
};

static void parcel_add(struct parcel *p, const void *data, size_t len)
{
	p->iov[p->n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = len };
}

static ssize_t visitor_send_some(const struct visitor *v, struct iovec *iov, size_t n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent = sendmsg(v->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return sent;
}

/* What does not go now is kept. */
static int visitor_deliver(struct visitor *v, struct parcel *p)
{
	ssize_t sent = p->n > 0 ? visitor_send_some(v, p->iov, p->n) : 0;
	size_t skip = sent > 0 ? (size_t)sent : 0;
	int r = sent < 0 ? (int)sent : 0;

	for (size_t i = 0; i < p->n && r == 0; i++) {
		size_t n = MIN(skip, p->iov[i].iov_len);

		skip -= n;
		if (n < p->iov[i].iov_len)
			r = buf_add(&v->out, (char *)p->iov[i].iov_base + n, p->iov[i].iov_len - n);
	}
	return r;
}

static bool visitor_owes(const struct visitor *v)
{
	return v->out_start < v->out.len;
}

/* --- the head of an answer -------------------------------------------------------------------- */

static int buf_add_text(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

/* How long the body is: one statement, ours. */
static int answer_add_framing(const struct visitor *v, struct buf *b)
{
	char length[24];

	if (v->answer.body == PORT_BODY_CHUNKED || v->answer.body == PORT_BODY_TO_END)
		return head_add_line(b, "Transfer-Encoding", "chunked");
	if (v->answer.body == PORT_BODY_NONE && (!v->to_head || v->answer.length == UINT64_MAX))
		return 0;
	(void)snprintf(length, sizeof(length), "%" PRIu64, v->answer.length);
	return head_add_line(b, "Content-Length", length);
}

/* An answer without a date gets one: when it came. */
static int answer_add_date(struct buf *b)
{
	static _Thread_local char text[HEAD_DATE_SIZE];
	static _Thread_local int64_t of;
	int64_t now = clock_wall_ms() / 1000;

	if (now != of)
		head_date(now, text);
	of = now;
	return head_add_line(b, "Date", text);
}

static int answer_write_head(const struct visitor *v, struct buf *b)
{
	const struct port_answer *a = &v->answer;
	char line[80];
	int r;

	b->len = 0;
	(void)snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", a->status,
		       MHD_get_reason_phrase_for(a->status));
	r = buf_add_text(b, line);
	for (size_t i = 0; i < a->n_fields && r == 0; i++)
		if (port_field_goes_out(a, &a->field[i], false))
			r = head_add_line(b, a->field[i].name, a->field[i].value);
	if (r == 0 && !port_answer_get(a, "Date"))
		r = answer_add_date(b);
	if (r == 0)
		r = answer_add_framing(v, b);
	if (r == 0 && v->last)
		r = head_add_line(b, "Connection", "close");
	return r == 0 ? buf_add(b, "\r\n", 2) : r;
}

/* The head of the answer itself, and *data behind it: those of 1xx before it are passed over.
 * -EAGAIN: it has not come. */
static int answer_read_head(struct visitor *v, char **data, size_t *len)
{
	do {
		size_t n = port_head_end(*data, *len);
		int r;

		if (n == 0 || n > PORT_HEAD_MAX)
			return *len < PORT_HEAD_MAX ? -EAGAIN : -EPROTO;
		r = port_answer_read(&v->answer, *data, n, v->to_head);
		if (r < 0)
			return r;
		*data += n;
		*len -= n;
		if (v->answer.status >= 200)
			return 0;
	} while (v->answer.status != 101 && ++v->interim < INTERIM_MAX);
	return -EPROTO;
}

/* There is an answer: from here on the request is ours, and taken from the kernel. */
static int answer_accept(struct visitor *v, struct parcel *p)
{
	struct buf *head = &v->thread->head;
	ssize_t n = recv(v->fd, v->thread->peeked, v->head_len, MSG_TRUNC | MSG_DONTWAIT);
	int r;

	v->state = VISITOR_HEARING;
	v->left = v->answer.length;
	v->ended = false;
	if (n != (ssize_t)v->head_len)
		return -EPROTO;
	v->taken += v->head_len;
	r = answer_write_head(v, head);
	if (r == 0)
		parcel_add(p, head->data, head->len);
	return r;
}

/* --- its body --------------------------------------------------------------------------------- */

static void answer_add_chunk(struct visitor *v, struct parcel *p, const char *data, size_t len)
{
	if (len > 0) {
		parcel_add(p, p->size, (size_t)snprintf(p->size, sizeof(p->size), "%zx\r\n", len));
		parcel_add(p, data, len);
	}
	if (v->ended)
		parcel_add(p, len > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n", len > 0 ? 7 : 5);
	else if (len > 0)
		parcel_add(p, "\r\n", 2);
}

/* Bytes behind the answer: a program that sends those is not trusted with another request. */
static void answer_has_rest(struct visitor *v, size_t rest)
{
	if (rest > 0)
		v->answer.keeps = false;
}

static int answer_take_length(struct visitor *v, struct parcel *p, const char *data, size_t len)
{
	size_t n = MIN(len, v->left);

	v->left -= n;
	v->ended = v->left == 0;
	answer_has_rest(v, len - n);
	if (n > 0)
		parcel_add(p, data, n);
	return 0;
}

static int answer_take_chunks(struct visitor *v, struct parcel *p, char *data, size_t len)
{
	size_t rest = 0;
	ssize_t n = len > 0 ? port_answer_unchunk(&v->answer, data, len, &v->ended, &rest) : 0;

	if (n < 0)
		return (int)n;
	answer_has_rest(v, rest);
	answer_add_chunk(v, p, data, (size_t)n);
	return 0;
}

static int answer_take_body(struct visitor *v, struct parcel *p, char *data, size_t len)
{
	switch (v->answer.body) {
	case PORT_BODY_LENGTH:
		return answer_take_length(v, p, data, len);
	case PORT_BODY_CHUNKED:
		return answer_take_chunks(v, p, data, len);
	case PORT_BODY_TO_END:
		answer_add_chunk(v, p, data, len);
		return 0;
	case PORT_BODY_NONE:
	default:
		v->ended = true;
		answer_has_rest(v, len);
		return 0;
	}
}

/* --- an answer's piece ------------------------------------------------------------------------ */

/* The next request may have the connection although the client has not taken all. And before the
 * client hears the end, or its next request finds a program busy with a connection that nobody
 * uses. */
static void visitor_give_call_back(struct visitor *v)
{
	if (v->ended && v->call)
		call_release(take_ptr(v->call), v->answer.keeps);
}

static void visitor_finish(struct visitor *v);

static void answer_end(struct visitor *v)
{
	if (v->ended && !visitor_owes(v))
		visitor_finish(v);
}

/* What has come, of which the head may be a part. -EAGAIN: it is kept, there must be more. */
static int answer_pass_on(struct visitor *v, char *data, size_t len)
{
	struct port_link *l = v->call->link;
	struct parcel p = { 0 };
	int r = 0;

	if (v->state == VISITOR_ASKING) {
		r = answer_read_head(v, &data, &len);
		if (r == -EAGAIN) {
			memcpy(l->data, data, len);
			l->end = len;
		}
		if (r == 0)
			r = answer_accept(v, &p);
	}
	if (r == 0)
		r = answer_take_body(v, &p, data, len);
	if (r == 0)
		visitor_give_call_back(v);
	return r == 0 ? visitor_deliver(v, &p) : r;
}

/* An end that is the end of the body only if the sandbox is still there: one that was hung up ends
 * like that, too. */
static void answer_hung_up(struct visitor *v, ssize_t n)
{
	struct parcel p = { 0 };

	if (v->state == VISITOR_ASKING) {
		visitor_hand_over(v);
		return;
	}
	v->ended = n == 0 && v->answer.body == PORT_BODY_TO_END && port_is_running(v->sandbox);
	if (v->ended) {
		answer_add_chunk(v, &p, NULL, 0);
		visitor_give_call_back(v);
	}
	if (!v->ended || visitor_deliver(v, &p) < 0)
		visitor_break_off(v);
	else
		answer_end(v);
}

static void visitor_give_up(struct visitor *v)
{
	if (v->state == VISITOR_ASKING)
		visitor_hand_over(v);
	else
		visitor_break_off(v);
}

static void answer_take_piece(struct visitor *v)
{
	struct port_link *l = v->call->link;
	char *data = v->thread->piece;
	ssize_t n = recv(l->op.sock, data + l->end, EXPRESS_PIECE - l->end, MSG_DONTWAIT);
	size_t len = l->end + (size_t)MAX(n, 0);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		answer_hung_up(v, n);
		return;
	}
	memcpy(data, l->data, l->end);
	l->end = 0;
	r = answer_pass_on(v, data, len);
	if (r < 0 && r != -EAGAIN)
		visitor_give_up(v);
	else if (v->state == VISITOR_HEARING)
		answer_end(v);
}

void visitor_hear(struct visitor *v)
{
	const struct call *l = v->call;

	answer_take_piece(v);
	/* While the client has not taken this, nothing more is asked for: visitor_send_rest() does
	 * it then. The next request may have begun, with another call. */
	if (v->call == l && !visitor_owes(v) && call_await(v->call) < 0)
		visitor_give_up(v);
}

static void visitor_send_rest(struct visitor *v)
{
	struct iovec rest = { .iov_base = v->out.data + v->out_start,
			      .iov_len = v->out.len - v->out_start };
	ssize_t n;

	if (!visitor_owes(v))
		return;
	n = visitor_send_some(v, &rest, 1);
	if (n < 0) {
		visitor_drop(v);
		return;
	}
	v->out_start += (size_t)n;
	if (visitor_owes(v))
		return;
	v->out.len = v->out_start = 0;
	if (v->ended)
		answer_end(v);
	else if (call_await(v->call) < 0)
		visitor_give_up(v);
}

/* --- a request -------------------------------------------------------------------------------- */

/* What lies in the kernel, as far as there is space for it: thread->asked. False: it is not for
 * here. */
static bool visitor_peek(struct visitor *v, size_t *ret_n)
{
	struct express_thread *t = v->thread;
	ssize_t n = recv(v->fd, t->peeked, sizeof(t->peeked), MSG_PEEK | MSG_DONTWAIT);

	*ret_n = n > 0 ? (size_t)n : 0;
	if (n <= 0 || !port_head_read(&t->asked, t->peeked, (size_t)n))
		return false;
	v->more = v->more || (size_t)n > t->asked.len; /* the next one came with it */
	return true;
}

/* Finds the sandbox and takes a place in it. False: the library will say why that cannot be. */
static bool visitor_enter_sandbox(struct visitor *v)
{
	const struct config *config = &v->thread->server->config;
	const struct port_head *q = &v->thread->asked;
	struct host h = host_parse(q->host, config->server_domain);

	if (h.kind != HOST_SANDBOX || h.port == HTTP_ENVD_PORT || h.port == HTTP_INTERPRETER_PORT)
		return false;
	v->sandbox = sandbox_get(v->thread->server, h.id);
	if (!v->sandbox)
		return false;
	v->port = h.port;
	return __atomic_add_fetch(&v->sandbox->port_visits, 1, __ATOMIC_RELAXED) <=
		       config->limits_connections_per_sandbox &&
	       access_may_visit(v->sandbox, q->traffic_token) && port_is_running(v->sandbox) &&
	       !port_speaks_tls(v->sandbox, v->port);
}

/* The head as the program gets it: thread->head. */
static int visitor_write_head(struct visitor *v)
{
	const struct port_head *h = &v->thread->asked;
	struct buf *to = &v->thread->head;
	char told[HOST_MASKED_SIZE];
	struct port_ask q = {
		.method = h->method,
		.target = h->target,
		.host = h->host,
		.host_to_tell = port_host_to_tell(v->sandbox, v->port, h->host, told),
		.client = v->client,
		.connection = h->connection,
	};
	int r;

	to->len = 0;
	r = port_ask_begin(&q, to);
	for (size_t i = 0; r == 0 && i < h->n_fields; i++)
		r = port_ask_field(&q, h->field[i].name, h->field[i].value, to);
	return r == 0 ? port_ask_end(to) : r;
}

/* With a call that is connected. The head goes whole or not at all: part of one is never acted
 * upon. */
static void visitor_ask(struct visitor *v)
{
	const struct buf *head = &v->thread->head;
	struct port_link *link = v->call->link;

	if (visitor_write_head(v) < 0 ||
	    send(link->op.sock, head->data, head->len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)head->len ||
	    call_await(v->call) < 0) {
		visitor_hand_over(v);
		return;
	}
	v->head_len = v->thread->asked.len;
	v->to_head = v->thread->asked.to_head;
	v->last = v->thread->asked.last;
	v->interim = 0;
	v->state = VISITOR_ASKING;
}

static void visitor_begin(struct visitor *v)
{
	const char *method = v->thread->asked.method;

	if (!visitor_enter_sandbox(v)) {
		visitor_hand_over(v);
		return;
	}
	(void)snprintf(v->method, sizeof(v->method), "%s", method);
	v->since_us = v->thread->now_us;
	connection_set(v->connection, CONNECTION_BUSY);
	v->state = VISITOR_DIALING;
	v->call = call_take(v);
	if (!v->call)
		visitor_hand_over(v);
	else if (v->call->link)
		visitor_ask(v);
}

static void visitor_next_request(struct visitor *v)
{
	size_t n;

	v->more = false;
	if (visitor_peek(v, &n))
		visitor_begin(v);
	else if (n > 0)
		visitor_hand_over(v);
	else if (v->leaving)
		visitor_drop(v);
}

void visitor_call_ready(struct visitor *v, bool ok)
{
	size_t n;

	/* The head is where it was: that saves keeping it while the call was made. */
	if (ok && visitor_peek(v, &n))
		visitor_ask(v);
	else
		visitor_hand_over(v);
}

/* Whatever a client says after its request waits in the kernel, until the answer is through. */
static void visitor_finish(struct visitor *v)
{
	visitor_note_visit(v, false);
	visitor_leave_sandbox(v);
	buf_done(&v->out);
	connection_wait_after(v->connection, v->taken);
	v->state = VISITOR_WAITING;
	if (v->last)
		visitor_drop(v);
	else if (v->more)
		visitor_next_request(v);
}

void visitor_event(struct visitor *v, uint32_t events)
{
	if (v->fd < 0)
		return;
	v->more = v->more || (events & (EPOLLIN | EPOLLRDHUP));
	if (!v->leaving && (events & EPOLLRDHUP)) {
		v->leaving = true;
		v->leaving_us = v->thread->now_us;
	}
	if (events & (EPOLLERR | EPOLLHUP)) {
		visitor_drop(v);
	} else if (v->state == VISITOR_WAITING) {
		if (v->more)
			visitor_next_request(v);
	} else if (v->state == VISITOR_HEARING && (events & EPOLLOUT)) {
		visitor_send_rest(v);
	}
}
