/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command of a one-shot run, from its start to its end. Its output is collected up to its limit; the clock is
 * ours, the counters are the kernel's and come from the warden. The first limit that is reached ends it.
 */
#include "server/run/run.h"

#include "base/clock.h"
#include "server/sandbox/sandbox.h"
#include "server/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#define TICK_US (UINT64_C(1000) * ONESHOT_TICK_MS) /* how often the counters are looked at */
#define FRAMES_PER_TURN 64                         /* AG-08: between two looks at the clock */
#define STARTED_US 10000000                        /* how long the agent may take to start it */
#define NOFILE_MAX 4096
#define OOM_SCORE_PAYLOAD 800
#define USER_ID 1000

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_ENDED };

struct watch {
	struct oneshot *oneshot;
	const struct oneshot_step *step;
	struct run_usage *usage;
	struct warden_usage before; /* CPU time that an earlier step used */
	int sock;
	enum phase phase;
	bool over;
	uint64_t started_us;
	uint64_t next_tick_us;
	size_t input_at;
	bool input_open;
	struct wire_frame frame;
};

static void end_with(struct watch *w, enum run_status status, const char *message)
{
	struct run_result *r = &w->oneshot->result;

	if (w->over)
		return;
	w->over = true;
	r->status = status;
	(void)snprintf(r->message, sizeof(r->message), "%s", message);
}

static void judge(struct watch *w, const struct warden_usage *u)
{
	const struct run_limits *l = &w->step->limits;
	uint64_t memory = u->memory_now - MIN(u->memory_shmem, MIN(u->disk_used, u->memory_now));

	if (u->disk_size && (u->disk_free < 4096 || u->files_free == 0))
		end_with(w, RUN_DISK_LIMIT,
			 "it wrote more than limits.disk_bytes or limits.files allows");
	if (u->oom_kills > w->before.oom_kills || memory > l->memory_bytes)
		end_with(w, RUN_MEMORY_LIMIT,
			 "it used more memory than limits.memory_bytes allows");
	if (u->pids_denied > w->before.pids_denied)
		end_with(w, RUN_PIDS_LIMIT, "it started more processes than limits.pids allows");
	if (u->cpu_us - w->before.cpu_us >= l->cpu_time_us)
		end_with(w, RUN_CPU_LIMIT, "it used more CPU time than limits.cpu_time_ms allows");
}

static void sample(struct watch *w)
{
	struct run_usage *to = w->usage;
	struct warden_usage u;

	to->wall_us = clock_boot_us() - w->started_us;
	if (oneshot_usage(w->oneshot, &u) < 0)
		return; /* a box that is gone: what the last sample said stays */
	to->cpu_user_us = u.cpu_user_us - w->before.cpu_user_us;
	to->cpu_system_us = u.cpu_system_us - w->before.cpu_system_us;
	to->memory_peak = MAX(to->memory_peak, u.memory_peak);
	to->processes_peak = MAX(to->processes_peak, MAX(u.pids_peak, u.pids_now));
	to->read_bytes = u.read_bytes - w->before.read_bytes;
	to->written_bytes = u.written_bytes - w->before.written_bytes;
	judge(w, &u);
}

static void on_exit_frame(struct watch *w, const struct wire_exit *e)
{
	struct run_result *r = &w->oneshot->result;
	bool exited = e->signal == 0;

	if (!wire_exit_ok(e) || e->timed_out) {
		end_with(w, RUN_SETUP_ERROR, "the box's agent reported nonsense");
		return;
	}
	w->phase = PHASE_ENDED;
	sample(w);
	r->exit_code = exited ? e->code : -1;
	r->signal = e->signal;
	if (exited)
		end_with(w, e->code == 0 ? RUN_OK : RUN_ERROR, "");
	else
		end_with(w, RUN_SIGNAL,
			 e->signal == SIGSYS ? "killed for a system call of a foreign kind" : "");
}

static void on_failed_frame(struct watch *w, const struct wire_failed *f)
{
	struct run_result *r = &w->oneshot->result;
	int err = f->err > 0 && f->err < 4096 ? f->err : EIO;
	bool not_found = err == ENOENT || err == ENOTDIR;
	char text[160];

	if (w->phase != PHASE_STARTING) {
		end_with(w, RUN_SETUP_ERROR, "the box's agent broke the protocol");
		return;
	}
	if (f->step != WIRE_STEP_EXEC) {
		(void)snprintf(text, sizeof(text), "cannot %s: %s", wire_step_name(f->step),
			       strerror(err));
		end_with(w, RUN_SETUP_ERROR, text);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.100s: %s", w->step->argv[0],
		       not_found ? "not found in the box" : strerror(err));
	end_with(w, RUN_ERROR, text);
	r->exit_code = not_found ? 127 : 126;
}

static void on_output(struct watch *w, bool is_err, const void *data, size_t len)
{
	struct oneshot *o = w->oneshot;
	struct run_result *r = &o->result;
	uint64_t limit = w->step->limits.output_bytes;
	size_t room = (size_t)(limit - MIN(r->output_bytes, limit)), n = MIN(len, room);

	if (o->emit) {
		if (n && o->emit(o->emit_arg, is_err, data, n) < 0)
			end_with(w, RUN_SIGNAL, "nobody reads the output any more");
	} else if (oneshot_hold(o, n) < 0) {
		end_with(w, RUN_SETUP_ERROR, ONESHOT_FULL);
		return;
	} else if (buf_add(is_err ? &r->err : &r->out, data, n) < 0) {
		end_with(w, RUN_SETUP_ERROR, "no memory for the output");
	}
	r->output_bytes += n;
	if (n < len) {
		r->truncated = true;
		end_with(w, RUN_OUTPUT_LIMIT, "it printed more than limits.output_bytes allows");
	}
}

static void on_frame(struct watch *w)
{
	const struct wire_frame *f = &w->frame;

	if (f->head.type == WIRE_STARTED && w->phase == PHASE_STARTING) {
		w->phase = PHASE_RUNNING;
		/* Nothing foreign has run yet in the box of a script: its agent can be believed. */
		w->oneshot->result.forked = ((const struct wire_process *)f->data)->forked;
	} else if (f->head.type == WIRE_FAILED)
		on_failed_frame(w, (const struct wire_failed *)f->data);
	else if (f->head.type == WIRE_EXIT && w->phase == PHASE_RUNNING)
		on_exit_frame(w, (const struct wire_exit *)f->data);
	else if ((f->head.type == WIRE_OUT || f->head.type == WIRE_ERR) &&
		 w->phase == PHASE_RUNNING)
		on_output(w, f->head.type == WIRE_ERR, f->data, wire_len(f));
	else
		end_with(w, RUN_SETUP_ERROR, "the box's agent broke the protocol");
}

static void on_clock(struct watch *w)
{
	uint64_t now = clock_boot_us();

	if (now >= w->next_tick_us) {
		if (w->phase == PHASE_RUNNING)
			sample(w);
		w->next_tick_us = clock_boot_us() + TICK_US;
	}
	if (__atomic_load_n(&w->oneshot->cancelled, __ATOMIC_RELAXED))
		end_with(w, RUN_SIGNAL, "interrupted");
	if (now - w->started_us >= w->step->limits.timeout_us)
		end_with(w, RUN_TIMEOUT, "it ran longer than limits.timeout_ms allows");
	if (w->phase == PHASE_STARTING && now - w->started_us >= STARTED_US)
		end_with(w, RUN_SETUP_ERROR, "the box's agent does not answer");
}

/* A client that does not read keeps the command from writing, not us from watching it. */
static bool goes_on(void *arg)
{
	struct watch *w = arg;

	on_clock(w);
	return !w->over;
}

static void read_frames(struct watch *w)
{
	for (int i = 0; i < FRAMES_PER_TURN && !w->over; i++) {
		int r = wire_recv(w->sock, &w->frame, WIRE_ON_FROM_OP);

		if (r == -EAGAIN)
			return;
		if (r <= 0) {
			/* The agent is gone or talks nonsense; if its end was a limit, that is it. */
			sample(w);
			on_clock(w);
			end_with(w, RUN_SETUP_ERROR,
				 r == -EPROTO ? "the box's agent broke the protocol" :
						"the box's agent is lost");
			return;
		}
		on_frame(w);
	}
}

static void feed_input(struct watch *w)
{
	struct oneshot *o = w->oneshot;
	size_t n = MIN(o->input_len - w->input_at, (size_t)32768);
	int r = n ? wire_send(w->sock, WIRE_IN, o->input + w->input_at, n) :
		    wire_send(w->sock, WIRE_IN_END, NULL, 0);

	if (r == -EAGAIN)
		return;
	w->input_at += n;
	if (n == 0 || r < 0)
		w->input_open = false; /* all of it, or nobody reads it any more */
}

static int send_strings(int sock, enum wire_type type, char *const *strings)
{
	for (; *strings; strings++) {
		int r = wire_send(sock, type, *strings, strlen(*strings));

		if (r < 0)
			return r;
	}
	return 0;
}

/* A socket on which the command reports. */
static int start(struct oneshot *o, const struct oneshot_step *step, bool with_input)
{
	const struct warden_limits limits = {
		.memory_bytes = step->limits.memory_bytes,
		.pids = step->limits.pids,
	};
	struct wire_exec q = {
		.uid = USER_ID,
		.gid = USER_ID,
		.flags = WIRE_EXEC_ALONE | (with_input ? WIRE_EXEC_STDIN : 0) |
			 (o->script ? WIRE_EXEC_RUNNER : 0),
		.oom_score_adj = OOM_SCORE_PAYLOAD,
		.fsize_max = step->limits.disk_bytes,
		.nofile_max = NOFILE_MAX,
	};
	int sock, r;

	exec_limits(&o->result.isolation, &limits, &q);
	sock = oneshot_op(o, WIRE_EXEC, &q, sizeof(q));
	if (sock < 0)
		return sock;
	r = wire_send(sock, WIRE_CWD, RUN_HOME, strlen(RUN_HOME));
	if (r == 0)
		r = send_strings(sock, WIRE_ARG, step->argv);
	if (r == 0)
		r = send_strings(sock, WIRE_ENV, o->env);
	if (r == 0)
		r = wire_send(sock, WIRE_GO, NULL, 0);
	if (r == 0 && fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		fd_close(sock);
		return r;
	}
	return sock;
}

static int watch(struct watch *w)
{
	while (!w->over) {
		bool feed = w->input_open && w->phase == PHASE_RUNNING;
		uint64_t now = clock_boot_us();
		uint64_t until = MIN(w->next_tick_us, w->started_us + w->step->limits.timeout_us);
		struct pollfd p[] = {
			{ .fd = w->sock, .events = (short)(POLLIN | (feed ? POLLOUT : 0)) },
			{ .fd = w->oneshot->client_fd, .events = POLLRDHUP },
			{ .fd = w->oneshot->server->stop_fd, .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), until <= now ? 0 : (int)((until - now + 999) / 1000)) <
			    0 &&
		    errno != EINTR)
			return -errno;
		if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
			read_frames(w);
		if (!w->over && (p[0].revents & POLLOUT))
			feed_input(w);
		if (p[1].revents || p[2].revents)
			end_with(w, RUN_SIGNAL, "interrupted");
		if (!w->over)
			on_clock(w);
	}
	if (w->phase == PHASE_RUNNING)
		sample(w);
	return 0;
}

int oneshot_watch(struct oneshot *o, const struct oneshot_step *step, struct run_usage *usage,
		  struct fail *fail)
{
	bool with_input = step == &o->run && o->input;
	_cleanup_(freep) struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fail_set(fail, ENOMEM, "run", "out of memory");
	*w = (struct watch){
		.oneshot = o,
		.step = step,
		.usage = usage,
		.input_open = with_input,
	};
	o->result.exit_code = -1;
	o->result.signal = 0;
	r = oneshot_usage(o, &w->before);
	if (r < 0)
		return fail_set(fail, -r, "run", "the box is gone");
	w->started_us = clock_boot_us();
	w->next_tick_us = w->started_us + TICK_US;
	w->sock = start(o, step, with_input);
	if (w->sock < 0)
		return fail_set(fail, -w->sock, "run",
				w->sock == -EMSGSIZE ?
					"an argument or variable is larger than 64 KiB" :
					"the box's agent does not answer (%s)",
				strerror(-w->sock));
	o->goes_on_arg = w;
	o->goes_on = goes_on;
	r = watch(w);
	o->goes_on = NULL;
	fd_close(w->sock);
	return r < 0 ? fail_set(fail, -r, "run", "cannot watch the command: %s", strerror(-r)) : 0;
}
