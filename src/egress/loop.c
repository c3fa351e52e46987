/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll set, and timers in a heap. Whoever is called may remove any watch, his own too: events of it that were
 * fetched already are struck out, so nobody is called for something that is gone.
 */
#include "egress/core.h"

#include "base/clock.h"

#include <assert.h>
#include <sys/epoll.h>

#define BATCH 64 /* events fetched at once: how long one box can keep the others waiting */
#define TIMERS_FIRST 64

struct loop {
	struct epoll_event batch[BATCH];
	int n_batch, at;     /* those from at on have not been handled */
	struct timer **heap; /* the earliest first; from 1 on */
	size_t n_timers, room;
	bool stopped;
	int status;
};

int loop_open(struct egress *g)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll_fd < 0) {
		free(l);
		return -errno;
	}
	g->loop = l;
	return 0;
}

void loop_close(struct egress *g)
{
	struct loop *l = g->loop;

	fd_closep(&g->epoll_fd);
	free(l->heap);
	free(l);
	g->loop = NULL;
}

void loop_stop(struct egress *g, int status)
{
	struct loop *l = g->loop;

	l->stopped = true;
	l->status = status;
}

/* --- descriptors ------------------------------------------------------------------------------------ */

int watch_add(struct egress *g, struct watch *w, int fd, uint32_t events,
	      void (*ready)(struct egress *g, struct watch *self, uint32_t events))
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	*w = (struct watch){ .ready = ready, .fd = fd, .events = events };
	return 0;
}

void watch_change(struct egress *g, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w->fd < 0 || w->events == events)
		return;
	/* The descriptor is in the set: what could fail is a mistake of ours. */
	assert(epoll_ctl(g->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) == 0);
	w->events = events;
}

void watch_remove(struct egress *g, struct watch *w)
{
	struct loop *l = g->loop;

	if (w->fd < 0)
		return;
	(void)epoll_ctl(g->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -EBADF;
	for (int i = l->at; i < l->n_batch; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
}

/* --- timers ----------------------------------------------------------------------------------------- */

static void put(struct loop *l, size_t place, struct timer *t)
{
	l->heap[place] = t;
	t->place = place;
}

static void rise(struct loop *l, struct timer *t)
{
	size_t place = t->place;

	for (; place > 1 && l->heap[place / 2]->at_us > t->at_us; place /= 2)
		put(l, place, l->heap[place / 2]);
	put(l, place, t);
}

static void sink(struct loop *l, struct timer *t)
{
	size_t place = t->place, child;

	for (; (child = 2 * place) <= l->n_timers; place = child) {
		if (child < l->n_timers && l->heap[child + 1]->at_us < l->heap[child]->at_us)
			child++;
		if (l->heap[child]->at_us >= t->at_us)
			break;
		put(l, place, l->heap[child]);
	}
	put(l, place, t);
}

static void make_room(struct loop *l)
{
	struct timer **more;

	if (l->n_timers + 1 < l->room)
		return;
	l->room = l->room ? 2 * l->room : TIMERS_FIRST;
	more = reallocarray(l->heap, l->room, sizeof(struct timer *));
	/* A connection without a deadline would stay for ever. Whoever started us starts us again. */
	assert(more);
	l->heap = more;
}

void timer_set(struct egress *g, struct timer *t, uint64_t at_us)
{
	struct loop *l = g->loop;

	t->at_us = at_us;
	if (t->place == 0) {
		make_room(l);
		put(l, ++l->n_timers, t);
	}
	rise(l, t);
	sink(l, t);
}

void timer_clear(struct egress *g, struct timer *t)
{
	struct loop *l = g->loop;
	struct timer *last;

	if (t->place == 0)
		return;
	last = l->heap[l->n_timers--];
	if (last != t) {
		put(l, t->place, last);
		rise(l, last);
		sink(l, last);
	}
	t->place = 0;
}

/* --- both ------------------------------------------------------------------------------------------- */

static int wait_ms(const struct loop *l)
{
	uint64_t now = clock_boot_us(), at;

	if (l->n_timers == 0)
		return -1;
	at = l->heap[1]->at_us;
	/* Rounded up: waking before the time would only mean to wait again. */
	return at <= now ? 0 : (int)MIN((at - now + 999) / 1000, (uint64_t)60 * 1000);
}

/* Those that are due now; what they set for now in turn waits until the descriptors have been looked at. */
static void run_timers(struct egress *g, struct loop *l)
{
	uint64_t now = clock_boot_us();

	while (l->n_timers > 0 && l->heap[1]->at_us <= now && !l->stopped) {
		struct timer *t = l->heap[1];

		timer_clear(g, t);
		t->due(g, t);
	}
}

static void run_events(struct egress *g, struct loop *l)
{
	for (l->at = 0; l->at < l->n_batch && !l->stopped;) {
		struct epoll_event *ev = &l->batch[l->at++];
		struct watch *w = ev->data.ptr;

		if (w)
			w->ready(g, w, ev->events);
	}
	l->at = l->n_batch = 0;
}

int loop_run(struct egress *g)
{
	struct loop *l = g->loop;

	while (!l->stopped) {
		int n = epoll_wait(g->epoll_fd, l->batch, BATCH, wait_ms(l));

		if (n < 0 && errno != EINTR)
			return EXIT_FAILURE;
		l->n_batch = MAX(n, 0);
		run_events(g, l);
		run_timers(g, l);
	}
	return l->status;
}
