/* SPDX-License-Identifier: Apache-2.0 */
/* One run: a box, the inputs, compiling, running, and nothing left. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <sys/signalfd.h>

static void box_destroyp(struct box *b)
{
	box_destroy(b);
}

static void box_host_closep(struct box_host *h)
{
	box_host_close(h);
}

static void box_exec_closep(struct box_exec *e)
{
	box_exec_close(e);
}

/* What the whole box may use: the larger of its two steps. */
static struct box_limits whole_box(const struct run_request *q)
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
};

/* Has the box come up as it should? */
static int await_box(struct job *j, struct fail *fail)
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
static int give_extras(struct job *j, struct fail *fail)
{
	int e = await_box(j, fail);

	if (e == 0)
		e = j->extras->up(j->extras->arg, j->b, fail);
	j->r->setup_us = clock_boot_us() - j->q->begun_us;
	return e;
}

static int run_step(struct job *j, const struct run_step *step, struct run_usage *usage,
		    struct fail *fail)
{
	const struct run_request *q = j->q;
	struct box *b = j->b;
	_cleanup_(box_exec_closep) struct box_exec e = BOX_EXEC_INIT;
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
	int e_result = box_exec(b, &command, &e, fail);

	/* The first command was sent ahead; what counts is whether the box came up as it should. */
	if (b->setup_fd >= 0) {
		int ready = await_box(j, fail);

		if (ready < 0)
			return ready;
	}
	if (e_result < 0)
		return e_result;
	e_result = cgroup_exec_mark(&b->cgroup, &e.cgroup);
	if (e_result < 0)
		return fail_set(fail, -e_result, "cgroups", "cannot read the box's CPU time: %s",
				strerror(-e_result));
	(void)fcntl(e.sock, F_SETFL, O_NONBLOCK);
	e_result = run_watch(q, step, b, &e, j->extras, j->r, usage);
	if (e_result < 0)
		return fail_set(fail, -e_result, "watch", "cannot watch the command: %s",
				strerror(-e_result));
	return 0;
}

static int run_steps(struct job *j, struct fail *fail)
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
		e = give_extras(j, fail);
	if (e < 0)
		return e;
	if (q->has_compile) {
		r->step = "compile";
		r->compiled = true;
		e = run_step(j, &q->compile, &r->compile_usage, fail);
		if (e < 0 || r->status != RUN_OK)
			return e;
	}
	r->step = "run";
	return run_step(j, &q->run, &r->usage, fail);
}

/* A signal that came while files were moved. */
static void note_signal(const struct run_request *q, struct run_result *r)
{
	struct signalfd_siginfo info;

	if (!r->cancelled_by && q->signal_fd >= 0 &&
	    read(q->signal_fd, &info, sizeof(info)) == sizeof(info))
		r->cancelled_by = (int)info.ssi_signo;
}

void run_failed(const struct run_request *q, struct run_result *r, const struct fail *fail)
{
	r->exit_code = -1;
	r->status = RUN_SETUP_ERROR;
	(void)snprintf(r->message, sizeof(r->message), "%s", fail->msg);
	note_signal(q, r);
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
	struct box_limits limits = whole_box(q);
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
		e = run_steps(&job, &fail);
	if (e == 0 && extras && extras->over)
		extras->over(extras->arg, &b, r);
	if (e < 0)
		run_failed(q, r, &fail);
	else
		note_signal(q, r);
	(void)run_emit_end(q);
	/* Whose own copy goes with it: what freeing ours takes, we would wait for the box's end otherwise. */
	fd_closep(&host.agent_fd);
	return e;
}
