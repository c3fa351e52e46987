/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/connection.h"

#include "base/clock.h"
#include "server/http/share.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define LOOK_MS 1000
#define BUCKETS 256

struct connection {
	int fd;
	uint64_t cookie;             /* the kernel's own number of this socket: never another's */
	struct share *guest;         /* the address */
	_Atomic uint64_t clock;      /* state and since when, in one word: they are read together */
	_Atomic uint64_t body_until; /* in ms; 0: no such deadline */
	_Atomic uint64_t received;   /* bytes by the end of the last request */
	_Atomic bool served;         /* there was one */
	uint64_t head_since_ms;      /* when the looking thread first saw more bytes; 0: not yet */
	uint64_t waiting_since_ms; /* the wait that this belongs to; both are that thread's alone */
	struct connection *next, *prev; /* of the same bucket */
};

struct connections {
	pthread_mutex_t lock;               /* for what follows */
	struct connection *bucket[BUCKETS]; /* by descriptor */
	struct shares guests;
	size_t n, max, max_of_address;
	bool refused; /* somebody waits for space */
	pthread_t thread;
	int stop_fd;
	int space_fd;
};

#define STATE_BITS 2

static uint64_t connections_now_ms(void)
{
	return clock_boot_us() / 1000;
}

void connection_set_body_deadline(struct connection *c, bool on)
{
	c->body_until = on ? connections_now_ms() + CONNECTION_BODY_JSON_MS : 0;
}

/* Which socket this descriptor is; 0: none. */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

/*
 * Whether the descriptor is still the connection's. The library closes one that it has no memory
 * for and tells nobody: the number is somebody else's then.
 */
static bool connection_is_there(const struct connection *c)
{
	return cookie_of(c->fd) == c->cookie;
}

/* Bytes that ever came, by the kernel's count: also those the library has not told us of. */
static uint64_t bytes_received(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	return info.tcpi_bytes_received;
}

void connection_set(struct connection *c, enum connection_state state)
{
	c->clock = connections_now_ms() << STATE_BITS | state;
}

void connection_wait(struct connection *c)
{
	connection_wait_after(c, bytes_received(c->fd));
}

void connection_wait_after(struct connection *c, uint64_t received)
{
	c->received = received;
	c->served = true;
	connection_set_body_deadline(c, false);
	connection_set(c, CONNECTION_WAITING);
}

/* Between requests, or in the head of one: which, the number of bytes tells. */
static bool connection_waited_too_long(struct connection *c, uint64_t since, uint64_t now)
{
	if (c->waiting_since_ms != since) {
		c->waiting_since_ms = since;
		c->head_since_ms = 0;
	}
	if (c->head_since_ms == 0 && bytes_received(c->fd) != c->received)
		c->head_since_ms = now;
	if (c->head_since_ms)
		return now - c->head_since_ms >= CONNECTION_HEAD_MS;
	return now - since >= (c->served ? CONNECTION_IDLE_MS : CONNECTION_HEAD_MS);
}

static bool connection_is_late(struct connection *c, uint64_t now)
{
	uint64_t clock = c->clock, until = c->body_until, since = clock >> STATE_BITS;

	if (since > now)
		return false;
	switch ((enum connection_state)(clock & ((1 << STATE_BITS) - 1))) {
	case CONNECTION_WAITING:
		return connection_waited_too_long(c, since, now);
	case CONNECTION_BODY:
		return now - since >= CONNECTION_BODY_IDLE_MS || (until && now >= until);
	case CONNECTION_BUSY:
	default:
		return false;
	}
}

/* With the lock held. */
static void connections_drop(struct connections *cs, struct connection *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		cs->bucket[(size_t)c->fd % BUCKETS] = c->next;
	if (c->next)
		c->next->prev = c->prev;
	share_give(&cs->guests, c->guest);
	cs->n--;
	if (cs->refused)
		(void)eventfd_write(cs->space_fd, 1);
	cs->refused = false;
	free(c);
}

/* With the lock held: shuts those down that are too late, and forgets those that have long gone. */
static void connections_look_at(struct connections *cs, struct connection *c, uint64_t now)
{
	while (c) {
		struct connection *next = c->next;

		if (connection_is_late(c, now)) {
			if (connection_is_there(c))
				(void)shutdown(c->fd, SHUT_RDWR);
			else
				connections_drop(cs, c);
		}
		c = next;
	}
}

static void *connections_look_after(void *arg)
{
	struct connections *cs = arg;
	struct pollfd p = { .fd = cs->stop_fd, .events = POLLIN };

	while (poll(&p, 1, LOOK_MS) <= 0) {
		uint64_t now = connections_now_ms();

		pthread_mutex_lock(&cs->lock);
		for (size_t i = 0; i < BUCKETS; i++)
			connections_look_at(cs, cs->bucket[i], now);
		pthread_mutex_unlock(&cs->lock);
	}
	return NULL;
}

int connections_start(size_t max, size_t max_of_address, struct connections **ret)
{
	struct connections *cs = calloc(1, sizeof(*cs));
	int r;

	if (!cs)
		return -ENOMEM;
	pthread_mutex_init(&cs->lock, NULL);
	cs->max = max;
	cs->max_of_address = max_of_address;
	cs->stop_fd = eventfd(0, EFD_CLOEXEC);
	cs->space_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = cs->stop_fd < 0 || cs->space_fd < 0 ?
		    -errno :
		    -pthread_create(&cs->thread, NULL, connections_look_after, cs);
	if (r < 0) {
		fd_close(cs->space_fd);
		fd_close(cs->stop_fd);
		pthread_mutex_destroy(&cs->lock);
		free(cs);
		return r;
	}
	*ret = cs;
	return 0;
}

void connections_stop(struct connections *cs)
{
	if (!cs)
		return;
	(void)eventfd_write(cs->stop_fd, 1);
	pthread_join(cs->thread, NULL);
	for (size_t i = 0; i < BUCKETS; i++)
		while (cs->bucket[i])
			connection_remove(cs, cs->bucket[i]);
	fd_close(cs->space_fd);
	fd_close(cs->stop_fd);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

/* --- coming and going ----------------------------------------------------------------------- */

/* With the lock held. */
static struct connection *connections_find(struct connections *cs, int fd)
{
	struct connection *c = cs->bucket[(size_t)fd % BUCKETS];

	while (c && c->fd != fd)
		c = c->next;
	return c;
}

/* With the lock held. */
static int connections_insert(struct connections *cs, struct connection *c, const char *name)
{
	struct connection **bucket = &cs->bucket[(size_t)c->fd % BUCKETS];
	struct connection *old = connections_find(cs, c->fd);
	int r;

	if (old && !connection_is_there(old))
		connections_drop(cs, old);
	if (cs->n >= cs->max) {
		cs->refused = true;
		return -EAGAIN;
	}
	r = share_take(&cs->guests, name, cs->max_of_address, &c->guest);
	if (r < 0)
		return r;
	cs->n++;
	c->next = *bucket;
	if (c->next)
		c->next->prev = c;
	*bucket = c;
	return 0;
}

int connection_add(struct connections *cs, int fd, const struct sockaddr *peer,
		   struct connection **ret)
{
	struct connection *c = calloc(1, sizeof(*c));
	unsigned write_ms = CONNECTION_WRITE_MS;
	char name[RATE_NAME_SIZE];
	int r;

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	c->cookie = cookie_of(fd);
	rate_address_name(peer, name);
	connection_set(c, CONNECTION_WAITING);
	pthread_mutex_lock(&cs->lock);
	r = connections_insert(cs, c, name);
	pthread_mutex_unlock(&cs->lock);
	if (r < 0) {
		free(c);
		return r;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &write_ms, sizeof(write_ms));
	*ret = c;
	return 0;
}

/* Before the descriptor is closed: the looking thread must not shut down what gets its number
 * next. */
void connection_remove(struct connections *cs, struct connection *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&cs->lock);
	connections_drop(cs, c);
	pthread_mutex_unlock(&cs->lock);
}

void connection_forget(struct connections *cs, int fd, uint64_t cookie)
{
	struct connection *c;

	pthread_mutex_lock(&cs->lock);
	c = connections_find(cs, fd);
	if (c && c->cookie == cookie)
		connections_drop(cs, c);
	pthread_mutex_unlock(&cs->lock);
}

struct connection *connection_find(struct connections *cs, int fd)
{
	struct connection *c;

	pthread_mutex_lock(&cs->lock);
	c = connections_find(cs, fd);
	pthread_mutex_unlock(&cs->lock);
	return c;
}

int connections_space_fd(const struct connections *cs)
{
	return cs->space_fd;
}

uint64_t connection_cookie(const struct connection *c)
{
	return c->cookie;
}

int connection_fd(const struct connection *c)
{
	return c->fd;
}

const char *connection_peer(const struct connection *c)
{
	return c->guest->name;
}

static bool connection_is_busy(struct connection *c)
{
	return (c->clock & ((1 << STATE_BITS) - 1)) != CONNECTION_WAITING;
}

size_t connections_busy(struct connections *cs)
{
	size_t n = 0;

	pthread_mutex_lock(&cs->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct connection *c = cs->bucket[i]; c; c = c->next)
			n += connection_is_busy(c);
	pthread_mutex_unlock(&cs->lock);
	return n;
}

void connections_cut(struct connections *cs)
{
	pthread_mutex_lock(&cs->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct connection *c = cs->bucket[i]; c; c = c->next) {
			if (!connection_is_there(c))
				continue;
			if (connection_is_busy(c))
				connection_reset(c->fd);
			(void)shutdown(c->fd, SHUT_RDWR);
		}
	pthread_mutex_unlock(&cs->lock);
}

void connection_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	/* Dissolves the connection at once. Closing would do it too, but the library says FIN
	 * first. */
	(void)connect(fd, &nobody, sizeof(nobody));
}
