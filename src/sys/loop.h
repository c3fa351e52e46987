/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and timers of a process with one thread.
 *
 * One thing at a time: a turn handles a single descriptor, so whatever its handler frees cannot be
 * in a list of events still to be handled, and epoll serves those that are ready in turn, so none
 * can starve another. Timers are looked at in every turn.
 *
 * Handlers get the loop; what they belong to has it as a member (container_of).
 */
#pragma once

#include "base/util.h"

#include <sys/epoll.h>

struct loop;

/* A descriptor that is waited for, level-triggered. */
struct source {
	void (*ready)(struct loop *l, struct source *self);
	int fd; /* -EBADF: not waited for. A copy: its owner closes it, after source_remove() */
	uint32_t events; /* EPOLLIN, EPOLLOUT, EPOLLRDHUP; errors always come */
	uint32_t came;   /* for ready(): those that did */
};

#define SOURCE_INIT                                                                                \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* Something to do at a time, of clock_boot_us(). */
struct timer {
	void (*due)(struct loop *l, struct timer *self);
	uint64_t at_us;
	size_t place; /* in the heap, counted from 1; 0: not in it */
};

struct loop {
	int epoll_fd;
	struct timer **heap;
	size_t n_heap, heap_size;
};

#define LOOP_INIT                                                                                  \
	{                                                                                          \
		.epoll_fd = -EBADF                                                                 \
	}

/* timers: so many can be set at once without memory being asked for. */
_must_check_ int loop_open(struct loop *l, size_t timers);
void loop_close(struct loop *l);
/* Waits for one descriptor or timer and handles it. */
_must_check_ int loop_turn(struct loop *l);

_must_check_ int source_add(struct loop *l, struct source *s, int fd, uint32_t events,
			    void (*ready)(struct loop *l, struct source *self));
void source_change(struct loop *l, struct source *s, uint32_t events);
void source_remove(struct loop *l, struct source *s);

void timer_set(struct loop *l, struct timer *t, uint64_t at_us);
void timer_clear(struct loop *l, struct timer *t);
