/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection on the express way: from one request to the next. */
#include "server/port/express_priv.h"

#include "server/http/connection.h"
#include "server/http/host.h"
#include "server/port/ask.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#define OUT_MAX (2 * EXPRESS_PIECE) /* a piece, and a head before it */
#define LOG_US UINT64_C(1000000)    /* visits within that time are one line of the log */
/* Who has said all may still hear the answer, if it comes soon. Most who end their side of the connection are gone. */
#define LEAVING_US UINT64_C(20000)

/* --- it comes and goes ---------------------------------------------------------------------------------- */

struct visitor *visitors_first(struct express_thread *t)
{
	struct visitor *v;

	pthread_mutex_lock(&t->lock);
	v = t->visitors;
	pthread_mutex_unlock(&t->lock);
	return v;
}

/* With the lock held. */
static void list_in(struct visitor *v)
{
	struct express_thread *t = v->thread;

	v->next = t->visitors;
	if (v->next)
		v->next->prev = v;
	t->visitors = v;
}

static void list_out(struct visitor *v)
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
	/* From here on it is the thread's: it may know of it before it is in the list, but takes it out only under the lock.
	 * Nobody else may take one out, so what cannot be watched is never in. */
	pthread_mutex_lock(&t->lock);
	r = express_watch(t, v->fd, v);
	if (r == 0)
		list_in(v);
	pthread_mutex_unlock(&t->lock);
	if (r < 0)
		free(v);
	return r;
}

static void write_log(struct visitor *v)
{
	if (v->log.count > 0)
		visit_log_write(&v->log, connection_peer(v->connection), NULL);
	v->log.count = 0;
}

static void note_visit(struct visitor *v, bool broken_off)
{
	uint64_t ms = (v->thread->now_us - v->since_us) / 1000;
	const char *id = v->sandbox->info.id;

	if (v->log.count > 0 && (v->log.port != v->port || strcmp(v->log.id, id) != 0))
		write_log(v);
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

void visitor_look_after(struct visitor *v)
{
	if (v->log.count > 0 && v->thread->now_us - v->log.since_us >= LOG_US)
		write_log(v);
	/* The library tries for longer, and says what is the matter. */
	if (v->state == VISITOR_DIALING && line_is_stuck(v->line))
		visitor_hand_over(v);
	else if (v->state != VISITOR_WAITING && v->leaving &&
		 v->thread->now_us - v->leaving_us >= LEAVING_US)
		visitor_break_off(v);
}

/* The request is over, or it was none of ours. */
static void leave_sandbox(struct visitor *v)
{
	if (!v->sandbox)
		return;
	(void)__atomic_sub_fetch(&v->sandbox->port_visits, 1, __ATOMIC_RELAXED);
	sandbox_putp(&v->sandbox);
}

/* What is left of it is freed when no event of this round can be about it any more. */
static void retire(struct visitor *v)
{
	struct line *l = take_ptr(v->line);

	if (l)
		line_release(l, false);
	leave_sandbox(v);
	list_out(v);
	v->fd = -EBADF;
	v->next = v->thread->dead_visitors;
	v->thread->dead_visitors = v;
}

void visitor_drop(struct visitor *v)
{
	int fd = v->fd;

	if (v->sandbox && v->state == VISITOR_HEARING)
		note_visit(v, true);
	write_log(v);
	express_unwatch(v->thread, fd);
	connection_remove(v->thread->server->connections, take_ptr(v->connection));
	retire(v);
	fd_close(fd);
}

void visitor_break_off(struct visitor *v)
{
	if (v->state != VISITOR_WAITING)
		connection_reset(v->fd);
	visitor_drop(v);
}

void visitor_hand_over(struct visitor *v)
{
	write_log(v);
	express_unwatch(v->thread, v->fd);
	connection_set(v->connection, CONNECTION_WAITING);
	retire(v);
	(void)http_take(v->thread->server, v->connection, &v->peer);
}

/* --- a request -------------------------------------------------------------------------------------------- */

/* What lies in the kernel, as far as there is room for it: thread->asked. False: it is not for here. */
static bool look_at_request(struct visitor *v, size_t *ret_n)
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
static bool enter_sandbox(struct visitor *v)
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
static int write_head(struct visitor *v)
{
	const struct port_head *h = &v->thread->asked;
	struct buf *to = &v->thread->head;
	char told[PORT_HOST_SIZE];
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

/* On a line that is connected. The head goes whole or not at all: part of one is never acted upon. */
static void ask(struct visitor *v)
{
	const struct buf *head = &v->thread->head;
	struct port_link *link = v->line->link;

	if (write_head(v) < 0 ||
	    send(link->op.sock, head->data, head->len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)head->len ||
	    line_await(v->line) < 0) {
		visitor_hand_over(v);
		return;
	}
	v->head_len = v->thread->asked.len;
	v->to_head = v->thread->asked.to_head;
	v->last = v->thread->asked.last;
	v->interim = 0;
	v->state = VISITOR_ASKING;
}

static void begin(struct visitor *v)
{
	const char *method = v->thread->asked.method;

	if (!enter_sandbox(v)) {
		visitor_hand_over(v);
		return;
	}
	(void)snprintf(v->method, sizeof(v->method), "%s", method);
	v->since_us = v->thread->now_us;
	connection_set(v->connection, CONNECTION_BUSY);
	v->state = VISITOR_DIALING;
	v->line = line_take(v);
	if (!v->line)
		visitor_hand_over(v);
	else if (v->line->link)
		ask(v);
}

static void next_request(struct visitor *v)
{
	size_t n;

	v->more = false;
	if (look_at_request(v, &n))
		begin(v);
	else if (n > 0)
		visitor_hand_over(v);
	else if (v->leaving)
		visitor_drop(v);
}

void visitor_line_ready(struct visitor *v, bool ok)
{
	size_t n;

	/* The head is where it was: that saves keeping it while the line was made. */
	if (ok && look_at_request(v, &n))
		ask(v);
	else
		visitor_hand_over(v);
}

/* Whatever a client says after its request waits in the kernel, until the answer is through. */
void visitor_finish(struct visitor *v)
{
	note_visit(v, false);
	leave_sandbox(v);
	buf_done(&v->out);
	connection_wait_after(v->connection, v->taken);
	v->state = VISITOR_WAITING;
	if (v->last)
		visitor_drop(v);
	else if (v->more)
		next_request(v);
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
			next_request(v);
	} else if (v->state == VISITOR_HEARING && (events & EPOLLOUT)) {
		relay_client(v);
	}
}
