/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to ports that have served a request and can serve another. They stay for a moment
 * only: most programs close one that is idle after five seconds. A thread looks after them each
 * second, so those of a sandbox that was paused or has ended (which hung them up) go as well; no
 * more than a second later nothing holds its network.
 */
#include "server/port/port.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define IDLE_MAX 256 /* of all sandboxes together */
#define IDLE_MS 4000
#define LOOK_MS 1000

struct port_pool {
	pthread_mutex_t lock; /* for the list; nothing else is locked while it is held */
	struct port_link *newest, *oldest;
	size_t n;
	pthread_t thread;
	int stop_fd;
};

static uint64_t pool_now_ms(void)
{
	return clock_boot_us() / 1000;
}

static void pool_take_out(struct port_pool *p, struct port_link *l)
{
	if (l->prev)
		l->prev->next = l->next;
	else
		p->newest = l->next;
	if (l->next)
		l->next->prev = l->prev;
	else
		p->oldest = l->prev;
	l->next = l->prev = NULL;
	p->n--;
}

/* Nothing to read: neither an end nor bytes that nobody asked for. */
static bool is_quiet(const struct port_link *l)
{
	char byte;

	return recv(l->op.sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Moves to a list what is too old or dead, or everything. */
static struct port_link *pool_take_stale(struct port_pool *p, bool all)
{
	struct port_link *list = NULL, *l, *prev;
	uint64_t now = pool_now_ms();

	pthread_mutex_lock(&p->lock);
	for (l = p->oldest; l; l = prev) {
		prev = l->prev;
		if (!all && now - l->idle_since_ms < IDLE_MS && is_quiet(l))
			continue;
		pool_take_out(p, l);
		l->next = list;
		list = l;
	}
	pthread_mutex_unlock(&p->lock);
	return list;
}

static void pool_close_all(struct port_link *list)
{
	while (list) {
		struct port_link *next = list->next;

		port_link_close(list);
		list = next;
	}
}

static void *pool_look_after(void *arg)
{
	struct port_pool *p = arg;
	struct pollfd stop = { .fd = p->stop_fd, .events = POLLIN };

	while (poll(&stop, 1, LOOK_MS) <= 0)
		pool_close_all(pool_take_stale(p, false));
	return NULL;
}

int port_pool_start(struct port_pool **ret)
{
	struct port_pool *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = p->stop_fd < 0 ? -errno : -pthread_create(&p->thread, NULL, pool_look_after, p);
	if (r < 0) {
		fd_close(p->stop_fd);
		pthread_mutex_destroy(&p->lock);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void port_pool_stop(struct port_pool *p)
{
	if (!p)
		return;
	(void)eventfd_write(p->stop_fd, 1);
	pthread_join(p->thread, NULL);
	pool_close_all(pool_take_stale(p, true));
	fd_close(p->stop_fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct port_link *port_pool_take(struct port_pool *p, const struct sandbox *b, uint32_t port)
{
	for (;;) {
		struct port_link *l;

		pthread_mutex_lock(&p->lock);
		for (l = p->newest; l && (l->op.sandbox != b || l->port != port); l = l->next)
			;
		if (l)
			pool_take_out(p, l);
		pthread_mutex_unlock(&p->lock);
		if (!l || is_quiet(l))
			return l;
		port_link_close(l);
	}
}

void port_pool_put(struct port_pool *p, struct port_link *l)
{
	struct port_link *out = NULL;

	l->used = true;
	l->idle_since_ms = pool_now_ms();
	pthread_mutex_lock(&p->lock);
	if (p->n >= IDLE_MAX) {
		out = p->oldest;
		pool_take_out(p, out);
	}
	l->prev = NULL;
	l->next = p->newest;
	if (l->next)
		l->next->prev = l;
	else
		p->oldest = l;
	p->newest = l;
	p->n++;
	pthread_mutex_unlock(&p->lock);
	port_link_close(out);
}
