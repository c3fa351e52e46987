/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells in a box of our own. The interpreter is a child of the box's agent, started as any program
 * there; a cell is an operation, and what comes on its socket is hostile: checked by wire_check(),
 * then by the state we are in.
 *
 * Time limits of a cell are kept by the agent, which can interrupt without ending the box. It
 * cannot be trusted with that: a cell that is not over some seconds after its limit ends the box.
 * Memory and files are the kernel's to limit, and memory alone is looked after here, as in a
 * sandbox of a service.
 */
#include "cli/repl/repl.h"

#include "base/clock.h"
#include "template/template.h"
#include "wire/wire.h"

#include <poll.h>
#include <sys/signalfd.h>

struct local {
	struct box_host host;
	struct box box;
	struct cgroup_exec leaf;
	bool has_kernel;
	bool in_cell;
	int tell_sock; /* of the last interrupt, until its cell is over */
	uint64_t next_tick_us;
	uint32_t weight_milli;
	unsigned memory_kills; /* since the box was made */
	unsigned memory_kills_told;
	struct buf event; /* the JSON text that is coming in */
	bool event_lost;  /* it was too large */
	json_t *error;    /* what the cell told; shown when it is over */
};

/* --- what an agent says of a cell, in the words of E2B's interpreter ------------------------- */

static int local_show(struct repl *r, json_t *event)
{
	int e = event ? repl_show_event(r, event) : -ENOMEM;

	json_decref(event);
	return e;
}

static json_t *error_event(const char *name, const char *value)
{
	return json_pack("{ss ss ss ss}", "type", "error", "name", name, "value", value,
			 "traceback", "");
}

/* The text is an object that the interpreter, or what took its place, made up. */
static json_t *object_event(const struct buf *text, const char *type)
{
	json_t *o = json_loadb((const char *)text->data, text->len, 0, NULL), *event;

	if (!json_is_object(o)) {
		json_decref(o);
		return error_event("BadResult", "what the interpreter says is not JSON");
	}
	event = json_pack("{ss}", "type", type);
	if (json_object_update(event, o) < 0 ||
	    json_object_set_new(event, "type", json_string(type)) < 0) {
		json_decref(event);
		event = NULL;
	}
	json_decref(o);
	return event;
}

static int show_count(struct repl *r, const struct buf *text)
{
	json_t *n = json_loadb((const char *)text->data, text->len, JSON_DECODE_ANY, NULL);
	int e = -EPROTO;

	if (json_is_integer(n))
		e = local_show(r, json_pack("{ss sI}", "type", "number_of_executions",
					    "execution_count", json_integer_value(n)));
	json_decref(n);
	return e;
}

/* It is shown when the cell is over: a limit can be what stands behind it. */
static int keep_error(struct local *l)
{
	json_decref(l->error);
	l->error = object_event(&l->event, "error");
	return l->error ? 0 : -ENOMEM;
}

static int on_event_end(struct repl *r, const struct wire_event *end)
{
	struct local *l = r->here;
	int e;

	if (l->event_lost)
		e = local_show(r, error_event("ResultTooLarge", "a result of more than 32 MiB"));
	else if (end->kind == WIRE_EVENT_COUNT)
		e = show_count(r, &l->event);
	else if (end->kind == WIRE_EVENT_ERROR)
		e = keep_error(l);
	else
		e = local_show(r, object_event(&l->event, "result"));
	l->event.len = 0;
	l->event_lost = false;
	return e;
}

static int on_spilled(struct repl *r, const struct wire_frame *f)
{
	const struct wire_spilled *s = (const struct wire_spilled *)f->data;

	return local_show(r, json_pack("{ss ss ss%}", "type", "output_spilled", "stream",
				       s->stream == 1 ? "stdout" : "stderr", "path",
				       (const char *)(s + 1), wire_len(f) - sizeof(*s)));
}

static const char *reason_name(const struct wire_cell_end *end)
{
	static const char *const names[_WIRE_CELL_MAX] = {
		[WIRE_CELL_DONE] = "done",     [WIRE_CELL_INTERRUPTED] = "interrupted",
		[WIRE_CELL_WALL] = "wall",     [WIRE_CELL_CPU] = "cpu",
		[WIRE_CELL_MEMORY] = "memory",
	};

	return end->died && end->reason == WIRE_CELL_DONE ? "died" : names[end->reason];
}

/* What a cell did that nobody but we can tell: it reached a limit, or its interpreter is gone.
 * NULL: neither. */
static const char *why_ended(struct local *l, const struct run_limits *limits,
			     const struct wire_cell_end *end, char *ret, size_t size)
{
	enum run_limit limit = run_cell_limit(end);
	const char *gone = end->died ? "; its variables are gone" : "";
	char text[RUN_LIMIT_TEXT_SIZE];

	if (limit == RUN_LIMIT_NONE && l->memory_kills > l->memory_kills_told)
		limit = RUN_LIMIT_MEMORY;
	l->memory_kills_told = l->memory_kills;
	if (limit != RUN_LIMIT_NONE) {
		run_limit_text(limit, limits, &run_words_options, text);
		(void)snprintf(ret, size, "%s%s", text, gone);
		return run_cell_error(limit);
	}
	if (!end->died)
		return NULL;
	if (end->exit.code >= 0)
		(void)snprintf(ret, size, "the interpreter ended with status %d%s", end->exit.code,
			       gone);
	else
		(void)snprintf(ret, size, "the interpreter was ended by signal %d%s",
			       end->exit.signal, gone);
	return "ContextDied";
}

/* The error that the cell told, or what stands behind it. */
static int local_show_error(struct repl *r, const struct wire_cell_end *end)
{
	struct local *l = r->here;
	char value[RUN_LIMIT_TEXT_SIZE + 32] = "";
	const char *name = why_ended(l, &r->q.run.limits, end, value, sizeof(value));
	json_t *told = take_ptr(l->error);

	if (!name)
		return told ? local_show(r, told) : 0;
	json_decref(told);
	return local_show(r, error_event(name, value));
}

static int on_cell_end(struct repl *r, const struct wire_cell_end *end)
{
	struct local *l = r->here;
	int e = local_show_error(r, end);

	if (end->died)
		l->has_kernel = false;
	if (e == 0)
		e = local_show(r,
			       json_pack("{ss sI sI sI sI sI ss}", "type", "usage", "cpu_ms",
					 (json_int_t)(end->cpu_us / 1000), "wall_ms",
					 (json_int_t)(end->wall_us / 1000), "memory_peak_bytes",
					 (json_int_t)end->memory_peak, "stdout_bytes",
					 (json_int_t)end->out_bytes, "stderr_bytes",
					 (json_int_t)end->err_bytes, "reason", reason_name(end)));
	if (e == 0 && end->died)
		e = local_show(r, json_pack("{ss}", "type", "unexpected_end_of_execution"));
	return e < 0 ? e : local_show(r, json_pack("{ss}", "type", "end_of_execution"));
}

static int local_frame(struct repl *r, const struct wire_frame *f)
{
	struct local *l = r->here;

	switch (f->head.type) {
	case WIRE_OUT:
	case WIRE_ERR:
		return repl_show_output(r, f->head.type == WIRE_ERR, f->data, wire_len(f));
	case WIRE_EVENT:
		if (buf_add(&l->event, f->data, wire_len(f)) < 0)
			l->event_lost = true;
		return 0;
	case WIRE_EVENT_END:
		return on_event_end(r, (const struct wire_event *)f->data);
	case WIRE_SPILLED:
		return on_spilled(r, f);
	case WIRE_CELL_END:
		return on_cell_end(r, (const struct wire_cell_end *)f->data);
	default:
		return -EPROTO;
	}
}

#define READY_US (UINT64_C(90) * 1000000)
#define GRACE_US (UINT64_C(15) * 1000000) /* for an agent that has to interrupt, then to kill */
#define TICK_MS 20

static struct local *local_of(const struct repl *r)
{
	return r->here;
}

/* --- the box ---------------------------------------------------------------------------------- */

static int local_make_box(struct repl *r, struct local *l, struct fail *fail)
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
	return local_make_box(r, l, fail);
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

/* --- waiting ---------------------------------------------------------------------------------- */

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
static void local_look_after(struct local *l, const struct run_limits *limits)
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
	local_look_after(l, &r->q.run.limits);
	l->next_tick_us = clock_boot_us() + TICK_MS * UINT64_C(1000);
	return 0;
}

/* Waits for the next frame; deadline 0: for ever. */
static int local_next_frame(struct repl *r, int sock, uint64_t deadline_us, struct wire_frame *f,
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

/* --- the interpreter -------------------------------------------------------------------------- */

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

static int local_start_kernel(struct repl *r, struct fail *fail)
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
		e = local_next_frame(r, sock, deadline_us, &f, fail);
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
	e = sock < 0 ? sock : local_next_frame(r, sock, clock_boot_us() + GRACE_US, &f, fail);
	l->has_kernel = false;
	return e;
}

/* --- a cell ----------------------------------------------------------------------------------- */

/* Follows a cell to its end. 1: there was no interpreter to run it. */
static int local_follow(struct repl *r, int sock, struct fail *fail)
{
	static struct wire_frame f;
	const struct run_limits *limits = &r->q.run.limits;
	bool started = false;
	uint64_t deadline_us = 0;
	int e = 0;

	while (e == 0 && !r->over) {
		e = local_next_frame(r, sock, deadline_us, &f, fail);
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
	/* An interpreter that ended meanwhile is started again; one that cannot live is not, for
	 * ever. */
	for (int attempt = 0; e == 1 && attempt < 2; attempt++) {
		_cleanup_(fd_closep) int sock = -EBADF;

		e = l->has_kernel ? 0 : local_start_kernel(r, fail);
		if (e < 0)
			return e;
		sock = box_cell(&l->box, &cell, code, len, fail);
		if (sock < 0)
			return sock;
		l->in_cell = true;
		e = local_follow(r, sock, fail);
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
