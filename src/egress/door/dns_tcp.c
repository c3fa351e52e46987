/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS over TCP: each message has its length before it. One question of a connection is answered
 * before the next is read, so there is one message each way in memory at most.
 */
#include "egress/door/dns.h"

#include "base/clock.h"

#include <sys/epoll.h>

#define CLIENTS_MAX 16 /* of one box */
#define IDLE_US (UINT64_C(10) * 1000000)
#define LENGTH_SIZE 2

struct client {
	struct client *next;
	struct net *net;
	struct source source;
	struct timer idle;
	int fd;
	bool waits; /* for the answer */
	size_t in_len, out_len, out_at;
	uint8_t in[LENGTH_SIZE + DNS_QUERY_MAX];
	uint8_t out[LENGTH_SIZE + DNS_ANSWER_MAX];
};

static void client_close(struct egress *g, struct client *c)
{
	struct asked *a = c->net->asked;
	struct client **at = &a->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	a->n_clients--;
	dns_forget(g, c->net, c);
	timer_clear(&g->loop, &c->idle);
	source_remove(&g->loop, &c->source);
	fd_close(c->fd);
	free(c);
}

void dns_tcp_close_all(struct egress *g, struct net *n)
{
	while (n->asked->clients)
		client_close(g, n->asked->clients);
}

static void idle_due(struct loop *l, struct timer *self)
{
	struct egress *g = egress_of(l);

	client_close(g, container_of(self, struct client, idle));
}

/* While an answer is being found or sent, nothing is read. */
static void look_for(struct egress *g, struct client *c)
{
	source_change(&g->loop, &c->source, c->out_len ? EPOLLOUT : c->waits ? 0 : EPOLLIN);
	timer_set(&g->loop, &c->idle, clock_boot_us() + IDLE_US);
}

/* The length of the message at the beginning of what has come, with its own; 0: not all of it is
 * there. -EBADMSG */
static int whole_message(const struct client *c)
{
	size_t len;

	if (c->in_len < LENGTH_SIZE)
		return 0;
	len = (size_t)c->in[0] << 8 | c->in[1];
	if (len == 0 || len > DNS_QUERY_MAX)
		return -EBADMSG;
	return c->in_len < LENGTH_SIZE + len ? 0 : (int)(LENGTH_SIZE + len);
}

/* Writes what there is to write; -EAGAIN: not all of it was taken. */
static int client_flush(struct client *c)
{
	while (c->out_at < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		c->out_at += (size_t)n;
	}
	c->out_at = c->out_len = 0;
	return 0;
}

/* The answer to the question at hand. Sent from the loop, so that no caller finds its client
 * gone. */
void dns_tcp_send(struct egress *g, struct client *c, const uint8_t *data, size_t len)
{
	c->out[0] = (uint8_t)(len >> 8);
	c->out[1] = (uint8_t)len;
	memcpy(c->out + LENGTH_SIZE, data, len);
	c->out_len = LENGTH_SIZE + len;
	c->out_at = 0;
	c->waits = false;
	look_for(g, c);
}

/* 0: go on waiting; else the client is of no use any more. */
static int client_ask_next(struct egress *g, struct client *c)
{
	const struct question where = { .client = c };
	uint8_t message[DNS_QUERY_MAX];
	int used = whole_message(c);
	size_t len = used > 0 ? (size_t)used - LENGTH_SIZE : 0;

	if (used <= 0)
		return used;
	memcpy(message, c->in + LENGTH_SIZE, len);
	c->in_len -= (size_t)used;
	memmove(c->in, c->in + used, c->in_len);
	c->waits = true;
	look_for(g, c);
	return dns_ask(g, c->net, &where, message, len) ? 0 : -EBADMSG;
}

static int client_read(struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	c->in_len += (size_t)n;
	return 0;
}

static void dns_client_ready(struct loop *l, struct source *self)
{
	struct egress *g = egress_of(l);
	struct client *c = container_of(self, struct client, source);
	int r = 0;

	if (c->out_len)
		r = client_flush(c);
	else if (self->came & EPOLLIN)
		r = client_read(c);
	else
		r = -EPIPE;
	if (r == -EAGAIN)
		return;
	if (r == 0 && !c->waits && !c->out_len)
		r = client_ask_next(g, c);
	if (r < 0)
		client_close(g, c);
	else
		look_for(g, c);
}

void dns_tcp_accepted(struct egress *g, struct net *n, int fd)
{
	struct asked *a = dns_of(n);
	struct client *c = a && a->n_clients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c || source_add(&g->loop, &c->source, fd, EPOLLIN, dns_client_ready) < 0) {
		fd_close(fd);
		free(c);
		return;
	}
	c->fd = fd;
	c->net = n;
	c->idle.due = idle_due;
	c->next = a->clients;
	a->clients = c;
	a->n_clients++;
	look_for(g, c);
}
