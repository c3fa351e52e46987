/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches one command from its start to its end. Everything it does arrives on the operation's
 * socket and is checked as hostile; every limit is read from the cgroup, the writable layer and our
 * own clock, never from what the box says. The first limit that is hit ends the run.
 */
#include "cli/run/run.h"

#include "base/clock.h"
#include "box/breakable.h"
#include "wire/wire.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define TICK_US 10000
#define STARTED_TIMEOUT_US (UINT64_C(10) * 1000000)
#define FRAMES_PER_TURN 64
#define TASKS_PER_CPU 4
#define NICE 10

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_ENDED };

struct watch {
	const struct run_request *request;
	const struct run_step *step;
	struct box *box;
	struct box_exec *exec;
	struct run_result *result;
	struct run_usage *usage;
	enum phase phase;
	bool over; /* the reason is in result->status; wait no longer */
	bool stdin_open;
	bool nice; /* we have lowered our priority */
	uint64_t started_us;
	uint64_t next_tick_us;
	uint32_t weight_milli;
};

static void end_with(struct watch *w, enum run_status status, const char *message)
{
	if (w->over)
		return;
	w->over = true;
	w->result->status = status;
	(void)snprintf(w->result->message, sizeof(w->result->message), "%s", message);
}

/*
 * RX-18: a quota says how much CPU a box gets, not that it is taken from one CPU. A thousand threads
 * spread over all of them and claim an equal share of each beside whoever runs there. So a box weighs
 * less the more it runs at once beyond what its quota can use.
 */
static void weigh(struct watch *w, uint32_t tasks)
{
	uint32_t milli = box_weight(w->step->limits.cpu_milli, tasks);

	/* Only for a change that matters: it is a write to the kernel at most every tick. */
	if (!control_on("weight") || (milli < w->weight_milli * 2 && milli * 2 > w->weight_milli))
		return;
	if (cgroup_exec_weigh(&w->box->cgroup, &w->exec->cgroup, milli) == 0)
		w->weight_milli = milli;
}

/* Reads the counters; a cgroup that cannot be read leaves what the last sample said. */
static void sample(struct watch *w)
{
	const struct run_limits *limits = &w->step->limits;
	unsigned features = w->box->cgroup.host ? w->box->cgroup.host->features : 0;
	struct box_disk disk = { .free_bytes = UINT64_MAX, .free_files = UINT64_MAX };
	struct cgroup_usage u = { 0 };
	uint64_t memory;

	w->usage->wall_us = clock_boot_us() - w->started_us;
	if (w->request->json)
		(void)!box_io_bytes(w->box, &w->usage->read_bytes, &w->usage->written_bytes);
	if (box_disk_usage(w->box, &disk) == 0 && control_on("disk-watch") &&
	    (disk.free_bytes < 4096 || disk.free_files == 0))
		end_with(w, RUN_DISK_LIMIT,
			 disk.free_files == 0 ? "the box holds as many files as --files allows" :
						"the box's disk is full (--disk)");
	if (!features || cgroup_exec_sample(&w->box->cgroup, &w->exec->cgroup, &u) < 0)
		return;
	w->usage->cpu_user_us = u.cpu_user_us;
	w->usage->cpu_system_us = u.cpu_system_us;
	w->usage->memory_peak = MAX(w->usage->memory_peak, u.memory_peak);
	w->usage->processes_peak = MAX(w->usage->processes_peak, MAX(u.pids_peak, u.pids_now));
	weigh(w, u.pids_now);
	memory = u.memory_now - MIN(u.memory_shmem, MIN(disk.used_bytes, u.memory_now));
	if (u.oom_kills || (memory > limits->memory_bytes && control_on("memory")))
		end_with(w, RUN_MEMORY_LIMIT, "it used more memory than --memory allows");
	if (u.pids_denied && control_on("pids"))
		end_with(w, RUN_PIDS_LIMIT, "it started more processes than --pids allows");
	if (u.cpu_us >= limits->cpu_time_us && control_on("cpu-time"))
		end_with(w, RUN_CPU_LIMIT, "it used more CPU time than --cpu-time allows");
}

static bool counts_cpu(const struct watch *w)
{
	return w->box->cgroup.host && (w->box->cgroup.host->features & CGROUP_CPUACCT);
}

static void on_exit_frame(struct watch *w, const struct wire_exit *e)
{
	bool exited = e->signal == 0;

	if (!wire_exit_ok(e) || e->timed_out) {
		end_with(w, RUN_SETUP_ERROR, "the box's agent reported nonsense");
		return;
	}
	w->phase = PHASE_ENDED;
	sample(w);
	w->result->exit_code = exited ? e->code : -1;
	w->result->signal = e->signal;
	if (w->over)
		return;
	if (exited)
		end_with(w, e->code == 0 ? RUN_OK : RUN_ERROR, "");
	else if (e->signal == SIGXCPU && !counts_cpu(w))
		/* The kernel's own limit per process is all there is to go by. */
		end_with(w, RUN_CPU_LIMIT, "it used more CPU time than --cpu-time allows");
	else if (e->signal == SIGSYS)
		end_with(w, RUN_SIGNAL,
			 "killed for a system call of a foreign kind (32-bit "
			 "programs are not enabled in a box)");
	else
		end_with(w, RUN_SIGNAL, "");
}

static void on_failed_frame(struct watch *w, const struct wire_failed *f)
{
	int err = f->err > 0 && f->err < 4096 ? f->err : EIO;
	bool not_found = err == ENOENT || err == ENOTDIR;

	if (w->phase != PHASE_STARTING) {
		end_with(w, RUN_SETUP_ERROR, "the box's agent broke the protocol");
		return;
	}
	if (f->step != WIRE_STEP_EXEC) {
		char text[128];

		(void)snprintf(text, sizeof(text), "cannot %s: %s", wire_step_name(f->step),
			       strerror(err));
		end_with(w, RUN_SETUP_ERROR, text);
		return;
	}
	end_with(w, RUN_ERROR, "");
	w->result->exit_code = not_found ? 127 : 126;
	(void)snprintf(w->result->message, sizeof(w->result->message), "%s: %s", w->step->argv[0],
		       not_found ? "not found in the box" : strerror(err));
}

static void on_output(struct watch *w, bool is_err, const void *data, size_t len)
{
	uint64_t room = w->step->limits.output_bytes -
			MIN(w->result->output_bytes, w->step->limits.output_bytes);
	bool all = len <= room || !control_on("output");
	int r;

	/* RX-16: passing on its output is work for this box that its quota does not count. */
	if (!w->nice)
		w->nice = setpriority(PRIO_PROCESS, 0, NICE) == 0;
	w->result->output_bytes += all ? len : room;
	r = run_emit(w->request, w->result, is_err, data, all ? len : (size_t)room);
	if (r == -EPIPE) {
		w->result->cancelled_by = SIGPIPE;
		end_with(w, RUN_SIGNAL, "nobody reads the output any more");
	} else if (r < 0) {
		end_with(w, RUN_SETUP_ERROR, "cannot write the output");
	}
	if (!all) {
		w->result->truncated = true;
		end_with(w, RUN_OUTPUT_LIMIT, "it printed more than --output allows");
	}
}

/* One frame from the agent, in the phase we are in. */
static void on_frame(struct watch *w, const struct wire_frame *f)
{
	if (f->head.type == WIRE_STARTED && w->phase == PHASE_STARTING) {
		w->phase = PHASE_RUNNING;
	} else if (f->head.type == WIRE_FAILED) {
		on_failed_frame(w, (const struct wire_failed *)f->data);
	} else if (f->head.type == WIRE_EXIT && w->phase == PHASE_RUNNING) {
		on_exit_frame(w, (const struct wire_exit *)f->data);
	} else if ((f->head.type == WIRE_OUT || f->head.type == WIRE_ERR) &&
		   w->phase == PHASE_RUNNING) {
		on_output(w, f->head.type == WIRE_ERR, f->data, wire_len(f));
	} else {
		end_with(w, RUN_SETUP_ERROR, "the box's agent broke the protocol");
	}
}

/* A turn is bounded, so that a flood of frames cannot keep us from looking at the clock (AG-08). */
static void read_frames(struct watch *w)
{
	static struct wire_frame f;

	for (int i = 0; i < FRAMES_PER_TURN && !w->over; i++) {
		int r = wire_recv(w->exec->sock, &f, WIRE_ON_FROM_OP);

		if (r == -EAGAIN)
			return;
		if (r <= 0) {
			/* The agent is gone or talks nonsense; if its end was a limit, that is it. */
			sample(w);
			end_with(w, RUN_SETUP_ERROR,
				 r == -EPROTO ? "the box's agent broke the protocol" :
						"the box's agent is lost");
			return;
		}
		on_frame(w, &f);
	}
}

/* Passes on what our own input has; only when the agent can take it. */
static void feed_stdin(struct watch *w)
{
	static unsigned char chunk[32768];
	ssize_t n = read(w->request->stdin_fd, chunk, sizeof(chunk));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		r = wire_send(w->exec->sock, WIRE_IN, chunk, (size_t)n);
	else
		r = wire_send(w->exec->sock, WIRE_IN_END, NULL, 0);
	if (n <= 0 || r < 0)
		w->stdin_open = false;
}

static void on_signal(struct watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->request->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	w->result->cancelled_by = (int)info.ssi_signo;
	end_with(w, RUN_SIGNAL, "interrupted");
}

static void on_clock(struct watch *w)
{
	uint64_t now = clock_boot_us();

	if (now >= w->next_tick_us) {
		w->next_tick_us = now + TICK_US;
		if (w->phase == PHASE_RUNNING)
			sample(w);
	}
	if (now - w->started_us >= w->step->limits.timeout_us && control_on("timeout"))
		end_with(w, RUN_TIMEOUT, "it ran longer than --timeout allows");
	if (w->phase == PHASE_STARTING && now - w->started_us >= STARTED_TIMEOUT_US)
		end_with(w, RUN_SETUP_ERROR, "the box's agent does not answer");
}

static int wait_ms(const struct watch *w)
{
	uint64_t now = clock_boot_us();
	uint64_t until = MIN(w->next_tick_us, w->started_us + w->step->limits.timeout_us);

	return until <= now ? 0 : (int)((until - now + 999) / 1000);
}

int run_watch(const struct run_request *q, const struct run_step *step, struct box *b,
	      struct box_exec *e, const struct run_extras *extras, struct run_result *r,
	      struct run_usage *usage)
{
	struct watch w = {
		.request = q,
		.step = step,
		.box = b,
		.exec = e,
		.result = r,
		.usage = usage,
		.stdin_open = q->stdin_fd >= 0 && step == &q->run,
		.started_us = clock_boot_us(),
		.weight_milli = 1000,
	};
	w.next_tick_us = w.started_us + TICK_US;
	/* Opens the counters' files while the command is being started: at its end we are waited for. */
	(void)!cgroup_exec_sample(&b->cgroup, &e->cgroup, &(struct cgroup_usage){ 0 });
	r->exit_code = -1;
	r->signal = 0;
	while (!w.over) {
		/* Our input is read only when the last of it has been taken. */
		struct pollfd sock_out = { .fd = e->sock, .events = POLLOUT };
		bool feed = w.stdin_open && w.phase == PHASE_RUNNING && poll(&sock_out, 1, 0) > 0 &&
			    (sock_out.revents & POLLOUT);
		struct pollfd polls[] = {
			{ .fd = e->sock, .events = POLLIN },
			{ .fd = b->pidfd, .events = POLLIN },
			{ .fd = q->signal_fd, .events = POLLIN },
			{ .fd = feed ? q->stdin_fd : -1, .events = POLLIN },
			{ .fd = extras && extras->fd ? extras->fd(extras->arg) : -1,
			  .events = POLLIN },
		};

		if (poll(polls, ARRAY_SIZE(polls), wait_ms(&w)) < 0 && errno != EINTR)
			return -errno;
		if (polls[2].revents)
			on_signal(&w);
		if (polls[0].revents)
			read_frames(&w);
		else if (polls[1].revents)
			end_with(&w, RUN_SETUP_ERROR, "the box's agent is lost");
		if (polls[3].revents)
			feed_stdin(&w);
		if (extras && polls[4].revents)
			extras->read(extras->arg);
		on_clock(&w);
	}
	if (w.phase != PHASE_ENDED)
		sample(&w);
	return 0;
}
