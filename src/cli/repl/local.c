/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells in a box of our own. The interpreter is a child of the box's agent, started as any program there; a cell is an
 * operation, and what comes on its socket is hostile: checked by wire_check(), then by the state we are in.
 *
 * Time limits of a cell are kept by the agent, which can interrupt without ending the box. It cannot be trusted with
 * that: a cell that is not over some seconds after its limit ends the box. Memory and files are the kernel's to limit,
 * and memory alone is looked after here, as in a sandbox of a service.
 */
#include "cli/repl/local_priv.h"

#include "base/clock.h"
#include "template/template.h"

#include <poll.h>
#include <sys/signalfd.h>

#define READY_US (UINT64_C(90) * 1000000)
#define GRACE_US (UINT64_C(15) * 1000000) /* for an agent that has to interrupt, then to kill */
#define TICK_MS 20

static struct local *local_of(const struct repl *r)
{
	return r->here;
}

/* --- the box ------------------------------------------------------------------------------------ */

static int make_box(struct repl *r, struct local *l, struct fail *fail)
{
	const struct run_limits *limits = &r->q.run.limits;
	const struct box_limits whole = {
		.memory_bytes = limits->memory_bytes,
		.disk_bytes = limits->disk_bytes,
		.files = limits->files,
		.pids = limits->pids,
		.cpu_milli = limits->cpu_milli,
	};
	struct box_template layers;
	struct template t;
	int e = template_open(r->q.template_name, "", &t, fail);

	if (e == 0)
		e = box_host_open(&l->host, fail);
	if (e < 0)
		return e;
	layers = (struct box_template){ .root = t.root, .usr = t.usr };
	e = box_create(&l->host, &layers, &whole, &l->box, fail);
	if (e == 0)
		e = box_leaf(&l->box, &whole, &l->leaf, fail);
	if (l->box.setup_fd >= 0) {
		int ready = box_await(&l->box, fail);

		e = ready < 0 ? ready : e;
	}
	return e < 0 ? e : run_send_inputs(&r->q, &l->box, fail);
}

static int local_open(struct repl *r, struct fail *fail)
{
	struct local *l = calloc(1, sizeof(*l));

	if (!l)
		return fail_set(fail, ENOMEM, "repl", "out of memory");
	*l = (struct local){ .host = BOX_HOST_INIT,
			     .box = BOX_INIT,
			     .leaf = CGROUP_EXEC_INIT,
			     .tell_sock = -EBADF,
			     .weight_milli = 1000 };
	l->event = (struct buf)BUF_INIT(REPL_EVENT_MAX);
	r->here = l;
	return make_box(r, l, fail);
}

static void local_close(struct repl *r)
{
	struct local *l = local_of(r);

	if (!l)
		return;
	cgroup_exec_close(&l->leaf);
	box_destroy(&l->box);
	box_host_close(&l->host);
	buf_done(&l->event);
	json_decref(l->error);
	free(l);
	r->here = NULL;
}

/* --- waiting ------------------------------------------------------------------------------------ */

/* RX-18: see box_weight(). Only for a change that matters. */
static void weigh(struct local *l, uint32_t cpu_milli, uint32_t tasks)
{
	uint32_t milli = box_weight(cpu_milli, tasks);

	if (milli < l->weight_milli * 2 && milli * 2 > l->weight_milli)
		return;
	if (cgroup_exec_weigh(&l->box.cgroup, &l->leaf, milli) == 0)
		l->weight_milli = milli;
}

/* Programs alone must stay below the limit; the kernel's cap counts their files as well. */
static void look_after(struct local *l, const struct run_limits *limits)
{
	struct cgroup_usage u = { 0 };
	struct box_disk disk = { 0 };
	uint64_t memory;

	if (cgroup_exec_sample(&l->box.cgroup, &l->leaf, &u) < 0 ||
	    box_disk_usage(&l->box, &disk) < 0)
		return;
	memory = u.memory_now - MIN(u.memory_shmem, MIN(disk.used_bytes, u.memory_now));
	weigh(l, limits->cpu_milli, u.pids_now);
	if (memory > limits->memory_bytes &&
	    cgroup_exec_kill_largest(&l->box.cgroup, &l->leaf, NULL) == 0)
		l->memory_kills++;
}

static int on_signal(struct repl *r, struct fail *fail)
{
	struct local *l = local_of(r);
	struct signalfd_siginfo info;

	if (read(r->q.signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo != SIGINT || !l->in_cell) {
		r->ended_by = (int)info.ssi_signo;
		return -EINTR;
	}
	/* Its answer does not matter: the cell's own end will come. */
	fd_closep(&l->tell_sock);
	l->tell_sock = box_tell_context(&l->box, r->language.name, SIGINT, fail);
	return l->tell_sock < 0 ? l->tell_sock : 0;
}

/* A flood of frames cannot keep us from looking at the clock and the counters (AG-08). */
static int on_clock(struct repl *r, uint64_t deadline_us, struct fail *fail)
{
	struct local *l = local_of(r);
	uint64_t now_us = clock_boot_us();

	if (deadline_us && now_us > deadline_us)
		return fail_set(fail, ETIME, "repl", "the box's agent does not answer");
	if (now_us < l->next_tick_us)
		return 0;
	look_after(l, &r->q.run.limits);
	l->next_tick_us = clock_boot_us() + TICK_MS * UINT64_C(1000);
	return 0;
}

/* Waits for the next frame; deadline 0: for ever. */
static int next_frame(struct repl *r, int sock, uint64_t deadline_us, struct wire_frame *f,
		      struct fail *fail)
{
	struct local *l = local_of(r);

	for (;;) {
		struct pollfd polls[] = {
			{ .fd = sock, .events = POLLIN },
			{ .fd = l->box.pidfd, .events = POLLIN },
			{ .fd = r->q.signal_fd, .events = POLLIN },
		};
		int e = 0;

		if (poll(polls, ARRAY_SIZE(polls), TICK_MS) < 0 && errno != EINTR)
			return fail_set(fail, errno, "repl", "poll: %s", strerror(errno));
		if (polls[2].revents)
			e = on_signal(r, fail);
		if (e == 0)
			e = on_clock(r, deadline_us, fail);
		if (e < 0)
			return e;
		if (polls[0].revents)
			break;
		if (polls[1].revents)
			return fail_set(fail, ECHILD, "repl", "the box ended");
	}
	if (wire_recv(sock, f, WIRE_ON_FROM_OP) != 1)
		return fail_set(fail, EPROTO, "repl", "the box's agent broke off");
	return 0;
}

/* --- the interpreter ---------------------------------------------------------------------------- */

static int why_not_started(struct repl *r, const struct wire_failed *f, struct fail *fail)
{
	int err = f->err > 0 && f->err < 4096 ? f->err : EIO;

	if (f->step == WIRE_STEP_EXEC || f->step == WIRE_STEP_CONTEXT)
		return fail_set(fail, err, "repl",
				"%s did not start in template %s: %s; interpreters come with the "
				"built-in templates",
				r->language.title, r->q.template_name,
				f->step == WIRE_STEP_EXEC ? strerror(err) : "it ended at once");
	return fail_set(fail, err, "repl", "%s did not start: cannot %s: %s", r->language.title,
			wire_step_name(f->step), strerror(err));
}

static int start_kernel(struct repl *r, struct fail *fail)
{
	static struct wire_frame f;
	struct local *l = local_of(r);
	const struct box_command command = {
		.argv = (const char *const *)r->q.run.argv,
		.env = (const char *const *)r->q.env,
		.cwd = RUN_HOME,
		.memory_bytes = r->q.run.limits.memory_bytes,
		.cpu_time_us = r->q.run.limits.cpu_time_us,
		.pids = r->q.run.limits.pids,
	};
	struct wire_context context = { 0 };
	_cleanup_(fd_closep) int sock = -EBADF;
	uint64_t deadline_us = clock_boot_us() + READY_US;
	int e = 0;

	(void)snprintf(context.name, sizeof(context.name), "%s", r->language.name);
	(void)snprintf(context.language, sizeof(context.language), "%s", r->language.name);
	sock = box_kernel(&l->box, &command, &context, fail);
	if (sock < 0)
		return sock;
	do {
		e = next_frame(r, sock, deadline_us, &f, fail);
		if (e == 0 && f.head.type == WIRE_FAILED)
			e = why_not_started(r, (const struct wire_failed *)f.data, fail);
	} while (e == 0 && f.head.type == WIRE_STARTED);
	if (e == 0 && f.head.type != WIRE_DONE)
		e = fail_set(fail, EPROTO, "repl", "the box's agent broke the protocol");
	l->has_kernel = e == 0;
	return e;
}

static int local_restart(struct repl *r, struct fail *fail)
{
	static struct wire_frame f;
	struct local *l = local_of(r);
	_cleanup_(fd_closep) int sock = -EBADF;
	int e;

	if (!l->has_kernel)
		return 0;
	sock = box_tell_context(&l->box, r->language.name, SIGKILL, fail);
	e = sock < 0 ? sock : next_frame(r, sock, clock_boot_us() + GRACE_US, &f, fail);
	l->has_kernel = false;
	return e;
}

/* --- a cell --------------------------------------------------------------------------------------- */

/* Follows a cell to its end. 1: there was no interpreter to run it. */
static int follow(struct repl *r, int sock, struct fail *fail)
{
	static struct wire_frame f;
	const struct run_limits *limits = &r->q.run.limits;
	bool started = false;
	uint64_t deadline_us = 0;
	int e = 0;

	while (e == 0 && !r->over) {
		e = next_frame(r, sock, deadline_us, &f, fail);
		if (e < 0)
			return e;
		if (f.head.type == WIRE_FAILED && !started) {
			const struct wire_failed *why = (const struct wire_failed *)f.data;

			if (why->step == WIRE_STEP_CONTEXT)
				return 1;
			return why_not_started(r, why, fail);
		}
		if (f.head.type == WIRE_STARTED && !started) {
			started = true;
			if (limits->timeout_us)
				deadline_us = clock_boot_us() + limits->timeout_us + GRACE_US;
			continue;
		}
		e = started ? local_frame(r, &f) : -EPROTO;
	}
	if (e < 0 && e != -EPIPE)
		return fail_set(fail, -e, "repl",
				e == -EPROTO ? "the box's agent broke the protocol" :
					       "cannot show what the cell says");
	return e;
}

static int local_cell(struct repl *r, const char *code, size_t len, struct fail *fail)
{
	const struct run_limits *limits = &r->q.run.limits;
	struct wire_cell cell = {
		.wall_ms = limits->timeout_us / 1000,
		.cpu_ms = limits->cpu_time_us / 1000,
		.output_bytes = limits->output_bytes,
	};
	struct local *l = local_of(r);
	int e = 1;

	(void)snprintf(cell.context, sizeof(cell.context), "%s", r->language.name);
	/* An interpreter that ended meanwhile is started again; one that cannot live is not, for ever. */
	for (int attempt = 0; e == 1 && attempt < 2; attempt++) {
		_cleanup_(fd_closep) int sock = -EBADF;

		e = l->has_kernel ? 0 : start_kernel(r, fail);
		if (e < 0)
			return e;
		sock = box_cell(&l->box, &cell, code, len, fail);
		if (sock < 0)
			return sock;
		l->in_cell = true;
		e = follow(r, sock, fail);
		l->in_cell = false;
		fd_closep(&l->tell_sock);
		if (e == 1)
			l->has_kernel = false;
	}
	return e == 1 ? fail_set(fail, EPIPE, "repl", "%s ends as soon as it is started",
				 r->language.title) :
			e;
}

const struct repl_place repl_local = {
	.open = local_open,
	.cell = local_cell,
	.restart = local_restart,
	.close = local_close,
};
