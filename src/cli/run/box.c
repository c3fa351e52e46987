/* SPDX-License-Identifier: Apache-2.0 */
/* One run: a box, the inputs, compiling, running, and nothing left. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "box/breakable.h"
#include "cli/cli.h"
#include "run/guard.h"
#include "wire/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

/* --- inputs ---------------------------------------------------------------------------------- */

/* The agent's answer to a transfer into the box. */
static int inputs_await_end(const struct run_request *q, int sock)
{
	const struct tree_limits none = {
		.deadline_boot_us = clock_boot_us() + RUN_TRANSFER_US,
		.cancel_fd = q->signal_fd,
	};
	const struct tree_events events = { 0 };

	/* An empty tree, or the reason of a failure. */
	return tree_recv(sock, WIRE_ON_FROM_OP, -EBADF, &none, &events);
}

static int inputs_error(struct fail *fail, const char *dest, const struct tree_inward *inward,
			int r)
{
	if (r == -ENOSPC)
		return fail_set(fail, ENOSPC, "inputs",
				"the input for %s does not fit: raise --disk or --files", dest);
	if (r == -ECANCELED)
		return fail_set(fail, ECANCELED, "inputs", "interrupted");
	if (r == -EAGAIN || r == -ETIME)
		return fail_set(fail, ETIME, "inputs", "the box's agent does not answer");
	if (r == -EOPNOTSUPP)
		return fail_set(fail, -r, "inputs",
				"the input for %s has '%.100s' in it: only files, directories and "
				"links can be copied",
				dest, inward->refused);
	if (r == -EEXIST)
		return fail_set(fail, EEXIST, "inputs",
				"%s is there already: two inputs with one name", dest);
	return fail_set(fail, -r, "inputs", "cannot copy the input to %s: %s", dest, strerror(-r));
}

static int inputs_finish(const struct run_request *q, int sock, int r)
{
	int answer;

	if (r == 0)
		r = wire_send(sock, WIRE_TREE_END, NULL, 0);
	/* A sender that was cut off asks why. */
	answer = r == 0 || r == -EPIPE ? inputs_await_end(q, sock) : 0;
	return answer < 0 ? answer : r;
}

static int inputs_send_code(const struct run_request *q, struct box *b, struct fail *fail)
{
	_cleanup_(fd_closep) int sock = box_files(b, WIRE_PUT, RUN_HOME, fail);
	struct wire_entry entry = { .size = q->code_len, .mode = 0644 };
	int r;

	if (sock < 0)
		return sock;
	r = wire_send2(sock, WIRE_FILE, &entry, sizeof(entry), q->code_file, strlen(q->code_file));
	for (size_t at = 0; r == 0 && at < q->code_len;) {
		size_t n = MIN(q->code_len - at, (size_t)WIRE_DATA_MAX);

		r = wire_send(sock, WIRE_DATA, q->code + at, n);
		at += n;
	}
	if (r == 0)
		r = wire_send(sock, WIRE_FILE_END, NULL, 0);
	r = inputs_finish(q, sock, r);
	return r < 0 ? inputs_error(fail, q->code_file, NULL, r) : 0;
}

static int inputs_send_one(const struct run_request *q, const struct run_input *in, struct box *b,
			   struct fail *fail)
{
	_cleanup_(fd_closep) int sock = -EBADF;
	struct tree_inward inward = { "" };
	char root[WIRE_PATH_MAX + 1];
	const char *name = strrchr(in->dest, '/') + 1;
	int r;

	if (in->is_dir)
		(void)snprintf(root, sizeof(root), "%s", in->dest);
	else
		(void)snprintf(root, sizeof(root), "%.*s", (int)MAX(name - in->dest - 1, 1),
			       in->dest);
	sock = box_files(b, WIRE_PUT, root, fail);
	if (sock < 0)
		return sock;
	r = in->is_dir ? tree_send_dir(sock, in->fd, &inward) : tree_send_file(sock, name, in->fd);
	r = inputs_finish(q, sock, r);
	return r < 0 ? inputs_error(fail, in->dest, &inward, r) : 0;
}

int run_send_inputs(const struct run_request *q, struct box *b, struct fail *fail)
{
	for (size_t i = 0; i < q->n_inputs; i++) {
		int r = inputs_send_one(q, &q->inputs[i], b, fail);

		if (r < 0)
			return r;
	}
	return q->code ? inputs_send_code(q, b, fail) : 0;
}

/* --- the box --------------------------------------------------------------------------------- */

#define TICK_US 10000
#define NICE 10
#define NEVER_US (UINT64_MAX / 4)

static void box_destroyp(struct box *b)
{
	box_destroy(b);
}

static void box_host_closep(struct box_host *h)
{
	box_host_close(h);
}

/* What the whole box may use: the larger of its two steps. */
static struct box_limits job_limits(const struct run_request *q)
{
	const struct run_limits *run = &q->run.limits, *compile = &q->compile.limits;
	struct box_limits l = {
		.memory_bytes = run->memory_bytes,
		.disk_bytes = run->disk_bytes,
		.files = run->files,
		.pids = run->pids,
	};

	if (q->has_compile) {
		l.memory_bytes = MAX(l.memory_bytes, compile->memory_bytes);
		l.disk_bytes = MAX(l.disk_bytes, compile->disk_bytes);
		l.files = MAX(l.files, compile->files);
		l.pids = MAX(l.pids, compile->pids);
	}
	return l;
}

/* What is done to the box in this run. */
struct job {
	const struct run_request *q;
	struct box *b;
	const struct run_extras *extras;
	struct run_result *r;
	/* Of the step that runs: */
	struct box_exec exec;
	uint32_t cpu_milli;
	uint32_t weight_milli;
	bool nice; /* we have lowered our priority */
};

/* --- guarding a command ---------------------------------------------------------------------- */

/*
 * RX-18: a quota says how much CPU a box gets, not that it is taken from one CPU. A thousand
 * threads spread over all of them and claim an equal share of each beside what runs there. So a box
 * weighs less the more it runs at once beyond what its quota can use.
 */
static void job_weigh(struct job *j, uint32_t tasks)
{
	uint32_t milli = box_weight(j->cpu_milli, tasks);

	/* Only for a change that matters: it is a write to the kernel at most every tick. */
	if (!control_on("weight") || (milli < j->weight_milli * 2 && milli * 2 > j->weight_milli))
		return;
	if (cgroup_exec_weigh(&j->b->cgroup, &j->exec.cgroup, milli) == 0)
		j->weight_milli = milli;
}

static void job_look(struct run_guard *g)
{
	struct job *j = g->arg;
	const struct cgroup_host *host = j->b->cgroup.host;
	struct box_disk disk = { 0 };
	struct cgroup_usage u = { 0 };

	if (j->q->json)
		(void)!box_io_bytes(j->b, &g->usage->read_bytes, &g->usage->written_bytes);
	if (box_disk_usage(j->b, &disk) == 0 && control_on("disk-watch")) {
		g->seen.disk_free = disk.free_bytes;
		g->seen.files_free = disk.free_files;
	}
	if (!host || !host->features || cgroup_exec_sample(&j->b->cgroup, &j->exec.cgroup, &u) < 0)
		return;
	g->usage->cpu_user_us = u.cpu_user_us;
	g->usage->cpu_system_us = u.cpu_system_us;
	g->usage->memory_peak = MAX(g->usage->memory_peak, u.memory_peak);
	g->usage->processes_peak = MAX(g->usage->processes_peak, MAX(u.pids_peak, u.pids_now));
	job_weigh(j, u.pids_now);
	g->seen.memory = run_memory(u.memory_now, u.memory_shmem, disk.used_bytes);
	g->seen.memory_kills = u.oom_kills;
	g->seen.pids_denied = control_on("pids") ? u.pids_denied : 0;
	g->seen.cpu_counted = host->features & CGROUP_CPUACCT;
	g->seen.cpu_us = u.cpu_us;
}

static void job_emit(struct run_guard *g, bool is_err, const void *data, size_t len)
{
	struct job *j = g->arg;
	int r;

	/* RX-16: passing on its output is work for this box that its quota does not count. */
	if (!j->nice)
		j->nice = setpriority(PRIO_PROCESS, 0, NICE) == 0;
	r = run_emit(j->q, j->r, is_err, data, len);
	if (r == -EPIPE) {
		j->r->cancelled_by = SIGPIPE;
		run_guard_end(g, RUN_SIGNAL, "nobody reads the output any more");
	} else if (r < 0) {
		run_guard_end(g, RUN_SETUP_ERROR, "cannot write the output");
	}
}

/* A signal to us; false: there is none. */
static bool note_signal(const struct run_request *q, struct run_result *r)
{
	struct signalfd_siginfo info;

	if (q->signal_fd < 0 || read(q->signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	r->cancelled_by = (int)info.ssi_signo;
	return true;
}

static void job_wait(struct run_guard *g, struct pollfd polls[static RUN_GUARD_POLLS])
{
	const struct job *j = g->arg;
	int extra = j->extras && j->extras->fd ? j->extras->fd(j->extras->arg) : -1;

	polls[0] = (struct pollfd){ .fd = j->b->pidfd, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = j->q->signal_fd, .events = POLLIN };
	polls[2] = (struct pollfd){ .fd = extra, .events = POLLIN };
}

static void job_woken(struct run_guard *g, const struct pollfd polls[static RUN_GUARD_POLLS],
		      bool heard)
{
	struct job *j = g->arg;

	if (polls[0].revents && !heard)
		run_guard_end(g, RUN_SETUP_ERROR, "the box's agent is lost");
	if (polls[1].revents && note_signal(j->q, j->r))
		run_guard_end(g, RUN_SIGNAL, "interrupted");
	if (polls[2].revents)
		j->extras->read(j->extras->arg);
}

/* Without those that a test has switched off. */
static struct run_limits job_guarded_limits(struct run_limits l)
{
	if (!control_on("timeout"))
		l.timeout_us = NEVER_US;
	if (!control_on("cpu-time"))
		l.cpu_time_us = NEVER_US;
	if (!control_on("memory"))
		l.memory_bytes = UINT64_MAX;
	if (!control_on("output"))
		l.output_bytes = UINT64_MAX;
	return l;
}

static int job_guard(struct job *j, const struct run_step *step, struct run_usage *usage)
{
	static const struct run_guard_ops ops = { job_look, job_emit, job_wait, job_woken };
	static struct wire_frame frame;
	const struct run_limits limits = job_guarded_limits(step->limits);
	struct run_guard g = {
		.ops = &ops,
		.arg = j,
		.limits = &limits,
		.words = &run_words_options,
		.program = step->argv[0],
		.tick_us = TICK_US,
		.sock = j->exec.sock,
		.input_fd = j->q->stdin_fd,
		.with_input = j->q->stdin_fd >= 0 && step == &j->q->run,
		.frame = &frame,
		.result = j->r,
		.usage = usage,
	};

	j->cpu_milli = step->limits.cpu_milli;
	j->weight_milli = 1000;
	/* Opens the counters' files while the command is being started: at its end we are waited
	 * for. */
	(void)!cgroup_exec_sample(&j->b->cgroup, &j->exec.cgroup, &(struct cgroup_usage){ 0 });
	return run_guard(&g);
}

/* --- the steps ------------------------------------------------------------------------------- */

/* Has the box come up as it should? */
static int job_await_box(struct job *j, struct fail *fail)
{
	struct run_result *r = j->r;
	int ready = box_await(j->b, fail);

	if (ready < 0)
		return ready;
	r->isolated = true;
	r->isolation.features = j->b->report.features;
	r->isolation.landlock_abi = j->b->report.landlock_abi;
	r->isolation.masks = j->b->report.masks;
	r->setup_us = clock_boot_us() - j->q->begun_us;
	return 0;
}

/* Its network, that is: which must be there before the first command is. */
static int job_give_extras(struct job *j, struct fail *fail)
{
	int e = job_await_box(j, fail);

	if (e == 0)
		e = j->extras->up(j->extras->arg, j->b, fail);
	j->r->setup_us = clock_boot_us() - j->q->begun_us;
	return e;
}

static int job_exec_step(struct job *j, const struct run_step *step, struct run_usage *usage,
			 struct fail *fail)
{
	const struct run_request *q = j->q;
	struct box *b = j->b;
	const struct box_command command = {
		.argv = (const char *const *)step->argv,
		.env = (const char *const *)q->env,
		.cwd = RUN_HOME,
		.memory_bytes = step->limits.memory_bytes,
		.cpu_time_us = step->limits.cpu_time_us,
		.pids = step->limits.pids,
		.cpu_milli = step->limits.cpu_milli,
		.with_stdin = q->stdin_fd >= 0 && step == &q->run,
		.last = step == &q->run && !q->out_dir,
	};
	int e = box_exec(b, &command, &j->exec, fail);

	/* The first command was sent ahead; what counts is whether the box came up as it should. */
	if (b->setup_fd >= 0) {
		int ready = job_await_box(j, fail);

		if (ready < 0)
			return ready;
	}
	if (e < 0)
		return e;
	e = cgroup_exec_mark(&b->cgroup, &j->exec.cgroup);
	if (e < 0)
		return fail_set(fail, -e, "cgroups", "cannot read the box's CPU time: %s",
				strerror(-e));
	(void)fcntl(j->exec.sock, F_SETFL, O_NONBLOCK);
	e = job_guard(j, step, usage);
	if (e < 0)
		return fail_set(fail, -e, "watch", "cannot watch the command: %s", strerror(-e));
	return 0;
}

static int job_run_step(struct job *j, const struct run_step *step, struct run_usage *usage,
			struct fail *fail)
{
	int e;

	j->exec = (struct box_exec)BOX_EXEC_INIT;
	e = job_exec_step(j, step, usage, fail);
	box_exec_close(&j->exec);
	return e;
}

static int job_run_steps(struct job *j, struct fail *fail)
{
	const struct run_request *q = j->q;
	struct run_result *r = j->r;
	int e = run_send_inputs(q, j->b, fail);

	if (e < 0) {
		/* If it was the box that failed, that is the reason to tell. */
		int ready = j->b->setup_fd >= 0 ? box_await(j->b, fail) : 0;

		return ready < 0 ? ready : e;
	}
	if (j->extras && j->extras->up)
		e = job_give_extras(j, fail);
	if (e < 0)
		return e;
	if (q->has_compile) {
		r->step = "compile";
		r->compiled = true;
		e = job_run_step(j, &q->compile, &r->compile_usage, fail);
		if (e < 0 || r->status != RUN_OK)
			return e;
	}
	r->step = "run";
	return job_run_step(j, &q->run, &r->usage, fail);
}

void run_failed(const struct run_request *q, struct run_result *r, const struct fail *fail)
{
	r->exit_code = -1;
	r->status = RUN_SETUP_ERROR;
	(void)snprintf(r->message, sizeof(r->message), "%s", fail->msg);
	if (!r->cancelled_by)
		(void)note_signal(q, r);
}

void run_begin(struct run_request *q)
{
#ifdef GLOVEBOX_BREAKABLE
	(void)fprintf(stderr,
		      "glovebox: warning: a test build whose protections can be switched off\n");
#endif
	q->signal_fd = cli_hold_signals();
	q->begun_us = clock_boot_us();
}

int run_in_box(const struct run_request *q, const struct template *t,
	       const struct run_extras *extras, struct run_result *r)
{
	_cleanup_(box_host_closep) struct box_host host = BOX_HOST_INIT;
	_cleanup_(box_destroyp) struct box b = BOX_INIT;
	const struct box_template layers = {
		.root = t->root,
		.usr = t->usr,
		.fixed = t->usr != NULL,
		.one_command = !q->has_compile && !q->out_dir,
	};
	struct box_limits limits = job_limits(q);
	struct job job = { .q = q, .b = &b, .extras = extras, .r = r };
	struct fail fail = { 0 };
	int e = box_host_open(&host, &fail);

	r->exit_code = -1;
	if (e == 0) {
		r->isolation.cgroup_mode = host.cgroups.mode;
		r->isolation.cgroup_features = host.cgroups.features;
		r->isolation.ids_kind = host.ids.kind;
		e = box_create(&host, &layers, &limits, &b, &fail);
	}
	if (e == 0)
		e = job_run_steps(&job, &fail);
	if (e == 0 && extras && extras->over)
		extras->over(extras->arg, &b, r);
	if (e < 0)
		run_failed(q, r, &fail);
	else if (!r->cancelled_by)
		(void)note_signal(q, r); /* that came while files were moved */
	(void)run_emit_end(q);
	/* Whose own copy goes with it: what freeing ours takes, we would wait for the box's end
	 * otherwise. */
	fd_closep(&host.agent_fd);
	return e;
}
