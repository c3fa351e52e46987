/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command of a run: what run/guard.c does not know itself. The counters are the kernel's and
 * come from the warden; output is collected, or passed on as it comes.
 */
#include "server/run/run.h"

#include "run/guard.h"
#include "server/sandbox/sandbox.h"
#include "server/server.h"
#include "sys/cgroup.h"
#include "sys/payload.h"

#include <fcntl.h>

struct step_guard {
	struct run_guard guard;
	struct server_run *run;
	struct warden_usage before; /* what an earlier step used */
	struct wire_frame frame;
};

static void step_look(struct run_guard *g)
{
	const struct step_guard *s = g->arg;
	const struct warden_usage *before = &s->before;
	struct run_usage *to = g->usage;
	struct warden_usage u;

	if (server_run_usage(s->run, &u) < 0)
		return; /* a box that is gone: what the last look said stays */
	to->cpu_user_us = u.cpu_user_us - before->cpu_user_us;
	to->cpu_system_us = u.cpu_system_us - before->cpu_system_us;
	to->memory_peak = MAX(to->memory_peak, u.memory_peak);
	to->processes_peak = MAX(to->processes_peak, MAX(u.pids_peak, u.pids_now));
	to->read_bytes = u.read_bytes - before->read_bytes;
	to->written_bytes = u.written_bytes - before->written_bytes;
	if (u.disk_size) {
		g->seen.disk_free = u.disk_free;
		g->seen.files_free = u.files_free;
	}
	g->seen.memory = run_memory(u.memory_now, u.memory_shmem, u.disk_used);
	g->seen.memory_kills = u.oom_kills - before->oom_kills;
	g->seen.pids_denied = u.pids_denied - before->pids_denied;
	g->seen.cpu_counted = s->run->result.isolation.cgroup_features & CGROUP_CPUACCT;
	g->seen.cpu_us = u.cpu_us - before->cpu_us;
}

static void step_emit(struct run_guard *g, bool is_err, const void *data, size_t len)
{
	struct server_run *o = ((struct step_guard *)g->arg)->run;

	if (o->emit) {
		if (o->emit(o->emit_arg, is_err, data, len) < 0)
			run_guard_end(g, RUN_SIGNAL, "nobody reads the output any more");
	} else if (server_run_hold(o, len) < 0) {
		run_guard_end(g, RUN_SETUP_ERROR, SERVER_RUN_FULL);
	} else if (buf_add(is_err ? &g->result->err : &g->result->out, data, len) < 0) {
		run_guard_end(g, RUN_SETUP_ERROR, "no memory for the output");
	}
}

static void step_wait(struct run_guard *g, struct pollfd polls[static RUN_GUARD_POLLS])
{
	const struct server_run *o = ((const struct step_guard *)g->arg)->run;

	polls[0] = (struct pollfd){ .fd = o->client_fd, .events = POLLRDHUP };
	polls[1] = (struct pollfd){ .fd = o->server->stop_fd, .events = POLLIN };
}

static void step_woken(struct run_guard *g, const struct pollfd polls[static RUN_GUARD_POLLS],
		       bool heard)
{
	const struct server_run *o = ((const struct step_guard *)g->arg)->run;

	(void)heard;
	if (polls[0].revents || polls[1].revents ||
	    __atomic_load_n(&o->cancelled, __ATOMIC_RELAXED))
		run_guard_end(g, RUN_SIGNAL, "interrupted");
}

/* A client that does not read keeps the command from writing, not us from guarding it. */
static bool step_goes_on(void *arg)
{
	struct step_guard *s = arg;

	if (__atomic_load_n(&s->run->cancelled, __ATOMIC_RELAXED))
		run_guard_end(&s->guard, RUN_SIGNAL, "interrupted");
	return run_guard_goes_on(&s->guard);
}

static int step_send_strings(int sock, enum wire_type type, char *const *strings)
{
	for (; *strings; strings++) {
		int r = wire_send(sock, type, *strings, strlen(*strings));

		if (r < 0)
			return r;
	}
	return 0;
}

/* A socket on which the command reports. */
static int step_start(struct server_run *o, const struct server_run_step *step, bool with_input)
{
	const struct warden_limits limits = {
		.memory_bytes = step->limits.memory_bytes,
		.pids = step->limits.pids,
	};
	struct wire_exec q = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.flags = WIRE_EXEC_ALONE | (with_input ? WIRE_EXEC_STDIN : 0) |
			 (o->script ? WIRE_EXEC_RUNNER : 0),
		.oom_score_adj = PAYLOAD_OOM_SCORE,
		.fsize_max = step->limits.disk_bytes,
		.nofile_max = PAYLOAD_NOFILE_MAX,
	};
	int sock, r;

	exec_limits(&o->result.isolation, &limits, &q);
	if (!(o->result.isolation.cgroup_features & CGROUP_CPUACCT))
		q.cpu_max_s = (step->limits.cpu_time_us + 999999) / 1000000;
	sock = server_run_op(o, WIRE_EXEC, &q, sizeof(q));
	if (sock < 0)
		return sock;
	r = wire_send(sock, WIRE_CWD, RUN_HOME, strlen(RUN_HOME));
	if (r == 0)
		r = step_send_strings(sock, WIRE_ARG, step->argv);
	if (r == 0)
		r = step_send_strings(sock, WIRE_ENV, o->env);
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

int server_run_do_step(struct server_run *o, const struct server_run_step *step,
		       struct run_usage *usage, struct fail *fail)
{
	static const struct run_guard_ops ops = { step_look, step_emit, step_wait, step_woken };
	bool with_input = step == &o->run && o->input;
	_cleanup_(freep) struct step_guard *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fail_set(fail, ENOMEM, "run", "out of memory");
	s->run = o;
	s->guard = (struct run_guard){
		.ops = &ops,
		.arg = s,
		.limits = &step->limits,
		.words = &run_words_fields,
		.program = step->argv[0],
		.tick_us = UINT64_C(1000) * SERVER_RUN_TICK_MS,
		.input_fd = -EBADF,
		.input = o->input,
		.input_len = o->input_len,
		.with_input = with_input,
		.may_fork = o->script,
		.frame = &s->frame,
		.result = &o->result,
		.usage = usage,
	};
	o->result.exit_code = -1;
	r = server_run_usage(o, &s->before);
	if (r < 0)
		return fail_set(fail, -r, "run", "the box is gone");
	s->guard.sock = step_start(o, step, with_input);
	if (s->guard.sock < 0)
		return fail_set(fail, -s->guard.sock, "run",
				s->guard.sock == -EMSGSIZE ?
					"an argument or variable is larger than 64 KiB" :
					"the box's agent does not answer (%s)",
				strerror(-s->guard.sock));
	o->goes_on_arg = s;
	o->goes_on = step_goes_on;
	r = run_guard(&s->guard);
	o->goes_on = NULL;
	fd_close(s->guard.sock);
	return r < 0 ? fail_set(fail, -r, "run", "cannot guard the command: %s", strerror(-r)) : 0;
}
