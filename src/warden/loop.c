/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thing at a time: a turn handles a single descriptor, so whatever its handler frees cannot be in a list
 * of events still to be handled, and epoll serves those that are ready in turn, so none can starve another.
 * Timers are looked at in every turn.
 */
#include "warden/warden_priv.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

int loop_open(struct loop *l, size_t timers_max)
{
	l->heap = calloc(timers_max + 1, sizeof(void *));
	if (!l->heap)
		return -ENOMEM;
	l->heap_size = timers_max + 1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->timer_fd < 0)
		return -errno;
	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->timer_fd,
			 &(struct epoll_event){ .events = EPOLLIN }) < 0 ?
		       -errno :
		       0;
}

void loop_close(struct loop *l)
{
	fd_closep(&l->epoll_fd);
	fd_closep(&l->timer_fd);
	freep(&l->heap);
}

int watch_add(struct warden *w, struct watch *watch, int fd,
	      void (*ready)(struct warden *w, struct watch *self))
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };

	if (epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*watch = (struct watch){ .ready = ready, .fd = fd };
	return 0;
}

/* Said to the kernel, not left to close(): a forked helper may hold the same file for a moment longer. */
void watch_remove(struct warden *w, struct watch *watch)
{
	if (watch->fd >= 0)
		(void)epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	*watch = (struct watch)WATCH_INIT;
}

void watch_writing(struct warden *w, struct watch *watch, bool writing)
{
	struct epoll_event event = { .events = writing ? EPOLLOUT : EPOLLIN, .data.ptr = watch };

	if (watch->fd < 0 || watch->writing == writing)
		return;
	if (epoll_ctl(w->loop.epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) == 0)
		watch->writing = writing;
}

/* The heap counts from 1: the children of n are 2n and 2n+1. */
static void heap_put(struct loop *l, size_t place, struct timer *t)
{
	l->heap[place] = t;
	t->place = place;
}

static void heap_sift(struct loop *l, size_t place)
{
	struct timer *t = l->heap[place];

	while (place > 1 && l->heap[place / 2]->at_us > t->at_us) {
		heap_put(l, place, l->heap[place / 2]);
		place /= 2;
	}
	for (;;) {
		size_t child = place * 2;

		if (child + 1 <= l->n_heap && l->heap[child + 1]->at_us < l->heap[child]->at_us)
			child++;
		if (child > l->n_heap || l->heap[child]->at_us >= t->at_us)
			break;
		heap_put(l, place, l->heap[child]);
		place = child;
	}
	heap_put(l, place, t);
}

void timer_clear(struct warden *w, struct timer *t)
{
	struct loop *l = &w->loop;
	size_t place = t->place;

	if (!place)
		return;
	t->place = 0;
	if (place < l->n_heap) {
		heap_put(l, place, l->heap[l->n_heap--]);
		heap_sift(l, place);
	} else {
		l->n_heap--;
	}
}

void timer_set(struct warden *w, struct timer *t, uint64_t at_us)
{
	struct loop *l = &w->loop;

	timer_clear(w, t);
	if (l->n_heap + 1 >= l->heap_size)
		abort(); /* each timer belongs to something that there is a fixed number of */
	t->at_us = at_us;
	heap_put(l, ++l->n_heap, t);
	heap_sift(l, l->n_heap);
}

/* Sets the kernel's timer to the earliest of ours. */
static int arm(struct loop *l)
{
	uint64_t at_us = l->n_heap ? MAX(l->heap[1]->at_us, 1) : 0;
	struct itimerspec spec = {
		.it_value = { .tv_sec = (time_t)(at_us / 1000000),
			      .tv_nsec = (long)(at_us % 1000000 * 1000) },
	};

	if (at_us == l->armed_us)
		return 0;
	if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
		return -errno;
	l->armed_us = at_us;
	return 0;
}

/* All that are due now; those that they set for now come in the next turn. */
static void run_timers(struct warden *w)
{
	struct loop *l = &w->loop;
	uint64_t now_us = clock_boot_us();

	for (size_t i = l->n_heap; i > 0 && l->n_heap && l->heap[1]->at_us <= now_us; i--) {
		struct timer *t = l->heap[1];

		timer_clear(w, t);
		t->due(w, t);
	}
}

int loop_turn(struct warden *w)
{
	struct epoll_event event;
	int n, r = arm(&w->loop);

	if (r < 0)
		return r;
	n = epoll_wait(w->loop.epoll_fd, &event, 1, -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (event.data.ptr) {
		struct watch *watch = event.data.ptr;

		watch->ready(w, watch);
	} else {
		uint64_t times;

		(void)!read(w->loop.timer_fd, &times, sizeof(times));
		w->loop.armed_us = 0;
	}
	run_timers(w);
	return 0;
}
