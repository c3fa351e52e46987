/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command of a run, from its start to its end, whatever kind of box it is in. Everything that
 * it does arrives on the operation's socket and is checked as hostile. Limits are judged by the
 * kernel's counters and our own clock, never by what the box says, and the first that is reached
 * ends the run.
 */
#pragma once

#include "run/result.h"

#include <poll.h>

struct run_guard;

#define RUN_GUARD_POLLS 3

/* What differs from box to box. */
struct run_guard_ops {
	/* Reads the counters into g->seen and g->usage. What cannot be read stays as it was. */
	void (*look)(struct run_guard *g);
	/* Output on its way out; calls run_guard_end() when that cannot be. */
	void (*emit)(struct run_guard *g, bool is_err, const void *data, size_t len);
	/* What else to wait for, and what came of it. heard: the command had something to say,
	 * too. */
	void (*wait)(struct run_guard *g, struct pollfd polls[static RUN_GUARD_POLLS]);
	void (*woken)(struct run_guard *g, const struct pollfd polls[static RUN_GUARD_POLLS],
		      bool heard);
};

struct run_guard {
	const struct run_guard_ops *ops;
	void *arg;
	const struct run_limits *limits;
	const struct run_words *words;
	const char *program; /* what is executed */
	uint64_t tick_us;    /* how often the counters are looked at */
	int sock;            /* does not block */
	int input_fd;        /* or -EBADF: */
	const unsigned char *input;
	size_t input_len;
	bool with_input; /* until all of it was given */
	bool may_fork;   /* nothing foreign has run yet: the agent is believed that it forked */
	struct wire_frame *frame;
	struct run_result *result;
	struct run_usage *usage;

	/* Its own; zero at the beginning but for seen. */
	enum { RUN_STARTING, RUN_RUNNING, RUN_ENDED } phase;
	bool over; /* why is in the result */
	struct run_seen seen;
	uint64_t started_us;
	uint64_t next_look_us;
};

/* Guards it to its end. Negative: we cannot even wait. */
_must_check_ int run_guard(struct run_guard *g);

/* For the hooks: ends it, unless something else was first. */
void run_guard_end(struct run_guard *g, enum run_status status, const char *message);
/* For a hook that waits: looks at clock and counters. False: it is over. */
bool run_guard_goes_on(struct run_guard *g);
