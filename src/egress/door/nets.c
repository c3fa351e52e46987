/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes by id, and their doors.
 *
 * A box that has as many connections as it may is not turned away but waits: its doors are left
 * alone for a moment, the kernel keeps some callers in the queue of the listening socket and
 * ignores the others (NW-22). That costs nothing, however often the box tries. A lack of
 * descriptors or memory is met in the same way.
 *
 * Half of all connections that there can be are divided among the boxes: so many each of them gets,
 * whatever the others have. The rest is for who comes first. A box beyond its share waits as soon
 * as no more is left than the shares of the others.
 */
#include "egress/door/door.h"
#include "egress/flow/conn.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define BUCKETS 1024
#define NETS_MAX 65536
#define DESCRIPTORS_EACH 6 /* of a connection: both sides, and a pipe each way when neither reads */
#define DESCRIPTORS_KEPT 256 /* for what each box gets always, DNS and ourselves */
#define ACCEPTS 16           /* of one door in one go */
#define UNKNOWN_MAX 16       /* connections of a box without a policy, which are all refused */
#define ALWAYS 4             /* connections that a box gets whatever the others have */
#define PAUSE_US 50000       /* that a box waits which has as many as it may */
#define REPORT_US UINT64_C(10000000) /* and how often that is told */

struct door {
	struct source source;
	int fd;
	enum egress_door kind;
	struct net *net;
	struct door *next;
};

struct nets {
	struct net *bucket[BUCKETS];
	size_t n, n_doors;
	size_t descriptors; /* that there can be */
};

int nets_open(struct egress *g)
{
	struct nets *all = calloc(1, sizeof(*all));
	struct rlimit limit;

	if (!all)
		return -ENOMEM;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		free(all);
		return -errno;
	}
	all->descriptors = limit.rlim_cur;
	g->nets = all;
	return 0;
}

/* The server chooses the ids of boxes and the warden holds it to their grammar; that somebody could
 * choose them to fall into one bucket harms nobody but that server. */
static size_t net_bucket(const char *id)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h % BUCKETS;
}

static struct net **net_place(struct nets *all, const char *id)
{
	struct net **at = &all->bucket[net_bucket(id)];

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

struct net *net_find(struct egress *g, const char *id)
{
	return *net_place(g->nets, id);
}

void nets_each(struct egress *g, void (*f)(struct egress *g, struct net *n))
{
	struct nets *all = g->nets;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct net *n = all->bucket[i]; n; n = n->next)
			f(g, n);
}

/* --- who may come in ------------------------------------------------------------------------ */

/* Of all boxes: what the settings allow, and what there are descriptors for. */
static size_t conns_max(const struct egress *g)
{
	const struct nets *all = g->nets;
	size_t used = all->n_doors + DESCRIPTORS_KEPT;
	size_t rest = all->descriptors > used ? all->descriptors - used : 0;

	return MIN(g->conns_max, rest / DESCRIPTORS_EACH);
}

/* How many connections each box may have, as many as there are now. */
static size_t room_of_each(const struct egress *g)
{
	const struct nets *all = g->nets;
	size_t max = conns_max(g), share = max / (2 * MAX(all->n, (size_t)1));
	size_t of_others = share * (MAX(all->n, (size_t)1) - 1);

	if (g->n_conns >= max) /* shares were larger when there were fewer boxes */
		return ALWAYS;
	return g->n_conns >= max - of_others ? MAX(share, (size_t)ALWAYS) : SIZE_MAX;
}

/* ALLOWED: one more connection. */
static enum policy_reason may_come(const struct egress *g, const struct net *n)
{
	size_t most = n->has_policy ? n->limits.connections : UNKNOWN_MAX;

	if (most && n->n_conns >= most)
		return POLICY_CONNECTIONS;
	return n->n_conns >= room_of_each(g) ? POLICY_BUSY : POLICY_ALLOWED;
}

static void listen_again(struct loop *l, struct timer *self)
{
	struct egress *g = egress_of(l);
	struct net *n = container_of(self, struct net, pause);

	if (may_come(g, n) != POLICY_ALLOWED) {
		timer_set(&g->loop, self, clock_boot_us() + PAUSE_US);
		return;
	}
	for (struct door *d = n->doors; d; d = d->next)
		source_change(&g->loop, &d->source, EPOLLIN);
}

static void pause_doors(struct egress *g, struct net *n, enum policy_reason reason)
{
	uint64_t now = clock_boot_us();
	struct egress_event e = { .how = EGRESS_HOW_CONNECT, .reason = reason };

	for (struct door *d = n->doors; d; d = d->next)
		if (d->kind != EGRESS_DOOR_DNS_UDP)
			source_change(&g->loop, &d->source, 0);
	timer_set(&g->loop, &n->pause, now + PAUSE_US);
	if (n->paused_us && now - n->paused_us < REPORT_US)
		return;
	n->paused_us = now;
	(void)report(g, n, &e);
}

/* --- doors ---------------------------------------------------------------------------------- */

static void come_in(struct egress *g, struct door *d, int fd)
{
	if (d->kind == EGRESS_DOOR_DNS_TCP)
		dns_tcp_accepted(g, d->net, fd);
	else
		conn_accepted(g, d->net, d->kind, fd);
}

static void accept_failed(struct egress *g, struct door *d, int err)
{
	switch (err) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		pause_doors(g, d->net, POLICY_BUSY);
		return;
	case EBADF:
	case EINVAL:
	case ENOTSOCK:
	case EOPNOTSUPP:
		say_log("a door of sandbox %s is no socket that listens", d->net->id);
		source_remove(&g->loop, &d->source);
		return;
	default: /* nobody is there (any more) */
		return;
	}
}

static void door_ready(struct loop *l, struct source *self)
{
	struct egress *g = egress_of(l);
	struct door *d = container_of(self, struct door, source);

	if (d->kind == EGRESS_DOOR_DNS_UDP) {
		dns_udp_ready(g, d->net, d->fd);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS; i++) {
		enum policy_reason reason = may_come(g, d->net);
		int fd;

		if (reason != POLICY_ALLOWED) {
			pause_doors(g, d->net, reason);
			return;
		}
		fd = accept4(d->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			accept_failed(g, d, errno);
			return;
		}
		come_in(g, d, fd);
	}
}

/* Owns fd. */
static int add_door(struct egress *g, struct net *n, enum egress_door kind, int fd)
{
	struct door *d = calloc(1, sizeof(*d));
	int r = d ? source_add(&g->loop, &d->source, fd, EPOLLIN, door_ready) : -ENOMEM;

	if (r < 0) {
		fd_close(fd);
		free(d);
		return r;
	}
	d->fd = fd;
	d->kind = kind;
	d->net = n;
	d->next = n->doors;
	n->doors = d;
	((struct nets *)g->nets)->n_doors++;
	return 0;
}

static void close_doors(struct egress *g, struct net *n)
{
	while (n->doors) {
		struct door *d = n->doors;

		n->doors = d->next;
		source_remove(&g->loop, &d->source);
		fd_close(d->fd);
		free(d);
		((struct nets *)g->nets)->n_doors--;
	}
}

/* --- boxes ---------------------------------------------------------------------------------- */

static void net_free(struct egress *g, struct net *n)
{
	close_doors(g, n);
	timer_clear(&g->loop, &n->pause);
	conn_end_all(g, n);
	dns_done(g, n);
	resolve_disown(n);
	told_done(n);
	apply_done(n);
	free(n);
}

static struct net *net_new(struct egress *g, const char *id)
{
	struct nets *all = g->nets;
	struct net **place = net_place(all, id), *n;

	n = all->n < NETS_MAX ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return NULL;
	memcpy(n->id, id, sizeof(n->id));
	n->pause.due = listen_again;
	/* Beyond all that the box before it had: numbers are given at less than one in a
	 * microsecond. */
	n->last_number = clock_boot_us();
	*place = n;
	all->n++;
	return n;
}

void net_close(struct egress *g, const char *id)
{
	struct nets *all = g->nets;
	struct net **place = net_place(all, id), *n = *place;

	if (!n)
		return;
	*place = n->next;
	all->n--;
	net_free(g, n);
}

int net_open(struct egress *g, const struct egress_open *o, const int *fds)
{
	struct net *n;
	int r = 0;

	net_close(g, o->id);
	n = net_new(g, o->id);
	for (size_t i = 0; i < o->n_doors; i++) {
		if (!n || r < 0)
			fd_close(fds[i]);
		else
			r = add_door(g, n, (enum egress_door)o->door[i], fds[i]);
	}
	if (n && r < 0)
		net_close(g, o->id);
	return n ? r : -ENOMEM;
}
