/* SPDX-License-Identifier: Apache-2.0 */
#include "run/guard.h"

#include "base/clock.h"

#define STARTED_US (UINT64_C(10) * 1000000) /* how long the agent may take to start it */
#define FRAMES_PER_TURN 64                  /* AG-08: between two looks at the clock */
#define INPUT_CHUNK 32768

#define BROKEN "the box's agent broke the protocol"

void run_guard_end(struct run_guard *g, enum run_status status, const char *message)
{
	if (g->over)
		return;
	g->over = true;
	g->result->status = status;
	(void)snprintf(g->result->message, sizeof(g->result->message), "%s", message);
}

static void guard_judge(struct run_guard *g)
{
	enum run_limit limit = run_judge(g->limits, &g->seen);
	char text[RUN_LIMIT_TEXT_SIZE];

	if (limit == RUN_LIMIT_NONE || g->over)
		return;
	run_limit_text(limit, g->limits, g->words, text);
	run_guard_end(g, run_limit_status(limit), text);
}

static void guard_look(struct run_guard *g)
{
	g->usage->wall_us = clock_boot_us() - g->started_us;
	g->ops->look(g);
	guard_judge(g);
}

bool run_guard_goes_on(struct run_guard *g)
{
	uint64_t now = clock_boot_us();

	if (now >= g->next_look_us) {
		if (g->phase == RUN_RUNNING)
			guard_look(g);
		g->next_look_us = clock_boot_us() + g->tick_us;
	}
	g->seen.wall_us = now - g->started_us;
	guard_judge(g);
	if (g->phase == RUN_STARTING && g->seen.wall_us >= STARTED_US)
		run_guard_end(g, RUN_SETUP_ERROR, "the box's agent does not answer");
	return !g->over;
}

static void guard_on_exit(struct run_guard *g, const struct wire_exit *e)
{
	const char *why;
	enum run_status status;

	if (!wire_exit_ok(e) || e->timed_out) {
		run_guard_end(g, RUN_SETUP_ERROR, "the box's agent reported nonsense");
		return;
	}
	g->phase = RUN_ENDED;
	g->seen.end = e;
	guard_look(g);
	g->result->exit_code = e->code;
	g->result->signal = e->signal;
	status = run_end_status(e, &why);
	run_guard_end(g, status, why);
}

static void guard_on_failed(struct run_guard *g, const struct wire_failed *f)
{
	int err = f->err > 0 && f->err < 4096 ? f->err : EIO;
	bool not_found = err == ENOENT || err == ENOTDIR;
	char text[sizeof(g->result->message)];

	if (g->phase != RUN_STARTING) {
		run_guard_end(g, RUN_SETUP_ERROR, BROKEN);
		return;
	}
	if (f->step != WIRE_STEP_EXEC) {
		(void)snprintf(text, sizeof(text), "cannot %s: %s", wire_step_name(f->step),
			       strerror(err));
		run_guard_end(g, RUN_SETUP_ERROR, text);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.160s: %s", g->program,
		       not_found ? "not found in the box" : strerror(err));
	run_guard_end(g, RUN_ERROR, text);
	g->result->exit_code = not_found ? 127 : 126;
}

static void guard_on_output(struct run_guard *g, bool is_err, const void *data, size_t len)
{
	struct run_result *r = g->result;
	uint64_t most = g->limits->output_bytes;
	size_t n = (size_t)MIN((uint64_t)len, most - MIN(r->output_bytes, most));

	r->output_bytes += n;
	if (n)
		g->ops->emit(g, is_err, data, n);
	if (n == len)
		return;
	r->truncated = true;
	g->seen.output_cut = true;
	guard_judge(g);
}

/* One frame from the agent, in the phase we are in. */
static void guard_on_frame(struct run_guard *g)
{
	const struct wire_frame *f = g->frame;
	uint16_t type = f->head.type;

	if (type == WIRE_STARTED && g->phase == RUN_STARTING) {
		g->phase = RUN_RUNNING;
		g->result->forked = g->may_fork && ((const struct wire_process *)f->data)->forked;
	} else if (type == WIRE_FAILED) {
		guard_on_failed(g, (const struct wire_failed *)f->data);
	} else if (type == WIRE_EXIT && g->phase == RUN_RUNNING) {
		guard_on_exit(g, (const struct wire_exit *)f->data);
	} else if ((type == WIRE_OUT || type == WIRE_ERR) && g->phase == RUN_RUNNING) {
		guard_on_output(g, type == WIRE_ERR, f->data, wire_len(f));
	} else {
		run_guard_end(g, RUN_SETUP_ERROR, BROKEN);
	}
}

/* A turn is bounded, so that a flood of frames cannot keep us from looking at the clock. */
static void guard_read(struct run_guard *g)
{
	for (int i = 0; i < FRAMES_PER_TURN && !g->over; i++) {
		int r = wire_recv(g->sock, g->frame, WIRE_ON_FROM_OP);

		if (r == -EAGAIN)
			return;
		if (r > 0) {
			guard_on_frame(g);
			continue;
		}
		/* The agent is gone or talks nonsense; if its end was a limit, that is it. */
		guard_look(g);
		(void)run_guard_goes_on(g);
		run_guard_end(g, RUN_SETUP_ERROR,
			      r == -EPROTO ? BROKEN : "the box's agent is lost");
	}
}

static bool sock_is_writable(const struct run_guard *g)
{
	struct pollfd p = { .fd = g->sock, .events = POLLOUT };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLOUT);
}

/* Passes on what its input has; only when the agent can take it. */
static void guard_feed(struct run_guard *g)
{
	const void *data = g->input;
	ssize_t n = (ssize_t)MIN(g->input_len, (size_t)INPUT_CHUNK);
	int r;

	if (g->input_fd >= 0) {
		data = g->frame->data; /* between two frames nobody needs it */
		n = read(g->input_fd, g->frame->data, INPUT_CHUNK);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
	}
	r = n > 0 ? wire_send(g->sock, WIRE_IN, data, (size_t)n) :
		    wire_send(g->sock, WIRE_IN_END, NULL, 0);
	if (r == -EAGAIN && g->input_fd < 0)
		return;
	if (n <= 0 || r < 0)
		g->with_input = false; /* all of it, or nobody reads it any more */
	else if (g->input_fd < 0) {
		g->input += n;
		g->input_len -= (size_t)n;
	}
}

static int guard_wait_ms(const struct run_guard *g)
{
	uint64_t now = clock_boot_us();
	uint64_t until = MIN(g->next_look_us, g->started_us + g->limits->timeout_us);

	return until <= now ? 0 : (int)((until - now + 999) / 1000);
}

static int guard_turn(struct run_guard *g)
{
	bool feed = g->with_input && g->phase == RUN_RUNNING;
	bool from_fd = feed && g->input_fd >= 0 && sock_is_writable(g);
	struct pollfd polls[2 + RUN_GUARD_POLLS] = {
		{ .fd = g->sock, .events = (short)(POLLIN | (feed && !from_fd ? POLLOUT : 0)) },
		{ .fd = from_fd ? g->input_fd : -1, .events = POLLIN },
		{ .fd = -1 },
		{ .fd = -1 },
		{ .fd = -1 },
	};
	bool heard;

	g->ops->wait(g, polls + 2);
	if (poll(polls, ARRAY_SIZE(polls), guard_wait_ms(g)) < 0 && errno != EINTR)
		return -errno;
	heard = polls[0].revents & (POLLIN | POLLHUP | POLLERR);
	if (heard)
		guard_read(g);
	g->ops->woken(g, polls + 2, heard);
	if (!g->over && ((polls[0].revents & POLLOUT && g->input_fd < 0) || polls[1].revents))
		guard_feed(g);
	if (!g->over)
		(void)run_guard_goes_on(g);
	return 0;
}

int run_guard(struct run_guard *g)
{
	int r = 0;

	g->seen = (struct run_seen)RUN_SEEN_NOTHING;
	g->started_us = clock_boot_us();
	g->next_look_us = g->started_us + g->tick_us;
	g->result->exit_code = -1;
	g->result->signal = 0;
	while (r == 0 && !g->over)
		r = guard_turn(g);
	if (r == 0 && g->phase != RUN_ENDED)
		guard_look(g);
	return r;
}
