/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/loop.h"

#include "base/clock.h"

#include <assert.h>
#include <poll.h>

/* The kernel's wait does not count the time that a machine sleeps, and timers do: so late they are
 * then at most. */
#define WAIT_MAX_MS 60000

int loop_open(struct loop *l, size_t timers)
{
	l->heap = calloc(timers + 1, sizeof(*l->heap)); /* NOLINT(bugprone-sizeof-expression) */
	if (!l->heap)
		return -ENOMEM;
	l->heap_size = timers + 1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll_fd < 0 ? -errno : 0;
}

void loop_close(struct loop *l)
{
	fd_close(l->epoll_fd);
	free(l->heap);
	*l = (struct loop)LOOP_INIT;
}

/* --- descriptors ---------------------------------------------------------------------------- */

int source_add(struct loop *l, struct source *s, int fd, uint32_t events,
	       void (*ready)(struct loop *l, struct source *self))
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	*s = (struct source){ .ready = ready, .fd = fd, .events = events };
	return 0;
}

void source_change(struct loop *l, struct source *s, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = s };
	int r;

	if (s->fd < 0 || s->events == events)
		return;
	r = epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
	assert(r == 0); /* the descriptor is in the set: what could fail is a mistake of ours */
	s->events = events;
}

/* Said to the kernel, not left to close(): a forked helper may hold the same file for a moment
 * longer. */
void source_remove(struct loop *l, struct source *s)
{
	if (s->fd >= 0)
		(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	*s = (struct source)SOURCE_INIT;
}

/* --- timers --------------------------------------------------------------------------------- */

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

static void heap_grow(struct loop *l)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) */
	struct timer **more = reallocarray(l->heap, l->heap_size, 2 * sizeof(*more));

	if (!more)
		abort(); /* what has no deadline would stay for ever: begin anew */
	l->heap = more;
	l->heap_size *= 2;
}

void timer_clear(struct loop *l, struct timer *t)
{
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

void timer_set(struct loop *l, struct timer *t, uint64_t at_us)
{
	timer_clear(l, t);
	if (l->n_heap + 1 == l->heap_size)
		heap_grow(l);
	t->at_us = at_us;
	heap_put(l, ++l->n_heap, t);
	heap_sift(l, l->n_heap);
}

/* All that are due now; those that they set for now come in the next turn. */
static void run_timers(struct loop *l)
{
	uint64_t now_us = clock_boot_us();

	for (size_t i = l->n_heap; i > 0 && l->n_heap && l->heap[1]->at_us <= now_us; i--) {
		struct timer *t = l->heap[1];

		timer_clear(l, t);
		t->due(l, t);
	}
}

/* --- both ----------------------------------------------------------------------------------- */

/* epoll counts in milliseconds: it waits for the whole ones, poll for the rest. */
static int wait_event(struct loop *l, struct epoll_event *ret)
{
	struct pollfd poll_fd = { .fd = l->epoll_fd, .events = POLLIN };
	uint64_t now_us, left_us;
	int n;

	if (!l->n_heap)
		return epoll_wait(l->epoll_fd, ret, 1, -1);
	now_us = clock_boot_us();
	left_us = l->heap[1]->at_us > now_us ? l->heap[1]->at_us - now_us : 0;
	n = epoll_wait(l->epoll_fd, ret, 1, (int)MIN(left_us / 1000, WAIT_MAX_MS));
	if (n != 0 || left_us == 0 || left_us >= 1000)
		return n;
	n = ppoll(&poll_fd, 1, &(struct timespec){ .tv_nsec = (long)left_us * 1000 }, NULL);
	return n > 0 ? epoll_wait(l->epoll_fd, ret, 1, 0) : n;
}

int loop_turn(struct loop *l)
{
	struct epoll_event event;
	int n = wait_event(l, &event);

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0) {
		struct source *s = event.data.ptr;

		s->came = event.events;
		s->ready(l, s);
	}
	run_timers(l);
	return 0;
}
