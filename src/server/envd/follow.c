/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a command: from the agent's frames to the client's stream of events. The order is the
 * protocol's and the agent is held to it:
 *
 *	STARTED, then OUT, ERR or PTY in any number, then EXIT; or FAILED alone
 *
 * When the client goes, the socket is closed and the command runs on.
 */
#include "server/envd/envd.h"

#define LOGGED_COMMAND_MAX 200
#define LATE_MS 5000 /* how much later than its time-out the end of a command may come */

struct follow {
	struct talk *talk;
	struct buf event;
	uint32_t pid;
	bool started;
	bool began; /* here, by Start: what it was is in command */
	bool pty;
	uint64_t timeout_ms; /* of the command, if it began here */
	char command[LOGGED_COMMAND_MAX + 1];
	char user[RPC_USER_SIZE];
	char *cwd;
};

static void follow_free(void *arg)
{
	struct follow *f = arg;

	talk_free(f->talk);
	buf_done(&f->event);
	free(f->cwd);
	free(f);
}

/* Why a command could not be started, in E2B's words where its clients know them. */
static int follow_start_failed(const struct follow *f, const struct wire_failed *failed,
			       struct rpc_error *e)
{
	const char *why = strerror(failed->err);

	switch (failed->step) {
	case WIRE_STEP_USER:
		if (failed->err == EPERM)
			return rpc_fail(e, RPC_PERMISSION_DENIED,
					"this sandbox runs no commands as '%s'", f->user);
		return rpc_fail(e, RPC_UNAUTHENTICATED, "invalid username: '%s'", f->user);
	case WIRE_STEP_CWD:
		if (failed->err == ENOENT)
			return rpc_fail(e, RPC_INVALID_ARGUMENT, "cwd '%.300s' does not exist",
					f->cwd);
		return rpc_fail(
			e, failed->err == EACCES ? RPC_PERMISSION_DENIED : RPC_INVALID_ARGUMENT,
			"cwd '%.300s': %s", f->cwd, why);
	case WIRE_STEP_EXEC:
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "cannot execute '%s': %s", f->command,
				why);
	case WIRE_STEP_DROP:
		return rpc_fail(e, RPC_PERMISSION_DENIED,
				"this sandbox runs no commands as '%s': %s", f->user, why);
	case WIRE_STEP_REQUEST:
		if (failed->err == EAGAIN)
			return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
					"too many commands run in this sandbox");
		if (failed->err == E2BIG)
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"arguments and variables are larger than 1 MiB together");
		return rpc_fail(e, RPC_INTERNAL, "the sandbox refused the command: %s", why);
	default:
		return rpc_fail(e,
				failed->err == EAGAIN || failed->err == ENOMEM ?
					RPC_RESOURCE_EXHAUSTED :
					RPC_INTERNAL,
				"the command could not be started (%s): %s",
				wire_step_name(failed->step), why);
	}
}

static int follow_on_failed(struct rpc_stream *s, struct follow *f)
{
	struct wire_failed failed;
	struct rpc_error e;

	if (f->started || talk_failed(&f->talk->frame, &failed) < 0)
		return -EPROTO;
	if (f->began)
		(void)follow_start_failed(f, &failed, &e);
	else
		(void)envd_process_failed(&failed, f->pid, &e);
	return rpc_stream_end(s, &e);
}

static int follow_on_started(struct rpc_stream *s, struct follow *f)
{
	const struct wire_process *p = (const struct wire_process *)f->talk->frame.data;

	if (f->started || p->forked || p->pid == 0 || p->pid > INT32_MAX ||
	    (f->pid && p->pid != f->pid))
		return -EPROTO;
	f->started = true;
	f->pid = p->pid;
	if (f->began)
		sandbox_log(f->talk->op.sandbox, "info", "command %u started by %s: %s", f->pid,
			    f->user, f->command);
	f->event.len = 0;
	if (envd_event_start(&f->event, f->pid) < 0)
		return -ENOMEM;
	return rpc_stream_add(s, f->event.data, f->event.len);
}

static int follow_on_output(struct rpc_stream *s, struct follow *f)
{
	bool terminal = f->talk->frame.head.type == WIRE_PTY;

	/* Of a command that was attached to, the first output tells what it is. */
	if (!f->started || (f->began && terminal != f->pty))
		return -EPROTO;
	f->event.len = 0;
	if (envd_event_data(&f->event, f->talk->frame.head.type, f->talk->frame.data,
			    wire_len(&f->talk->frame)) < 0)
		return -ENOMEM;
	return rpc_stream_add(s, f->event.data, f->event.len);
}

static int follow_on_exit(struct rpc_stream *s, struct follow *f)
{
	const struct wire_exit *end = (const struct wire_exit *)f->talk->frame.data;
	struct run_limits limits = { .timeout_us = f->timeout_ms * 1000 };
	char status[ENVD_STATUS_SIZE], why[RUN_LIMIT_TEXT_SIZE] = "";
	enum run_limit limit;
	struct rpc_error e;

	if (!f->started || envd_exit_text(end, status) < 0)
		return -EPROTO;
	limit = sandbox_judge(f->talk->op.sandbox, end, &limits);
	/* A client that came later does not know with which time-out it began. */
	if (limit != RUN_LIMIT_NONE && (f->began || limit != RUN_LIMIT_TIME))
		run_limit_text(limit, &limits, &run_words_command, why);
	if (f->began)
		sandbox_log(f->talk->op.sandbox, "info", "command %u ended: %s%s%s", f->pid, status,
			    *why ? "; " : "", why);
	if (f->began && limit == RUN_LIMIT_TIME) {
		(void)rpc_fail(&e, RPC_DEADLINE_EXCEEDED, "%s", why);
		return rpc_stream_end(s, &e);
	}
	f->event.len = 0;
	if (envd_event_end(&f->event, end, why) < 0)
		return -ENOMEM;
	if (rpc_stream_add(s, f->event.data, f->event.len) < 0)
		return -ENOMEM;
	return rpc_stream_end(s, NULL);
}

static int follow_on_frame(struct rpc_stream *s, struct follow *f)
{
	int r = -EPROTO;

	switch (f->talk->frame.head.type) {
	case WIRE_STARTED:
		r = follow_on_started(s, f);
		break;
	case WIRE_FAILED:
		r = follow_on_failed(s, f);
		break;
	case WIRE_OUT:
	case WIRE_ERR:
	case WIRE_PTY:
		r = follow_on_output(s, f);
		break;
	case WIRE_EXIT:
		r = follow_on_exit(s, f);
		break;
	default:
		break;
	}
	return r == -EPROTO ? envd_broken(f->talk->op.sandbox, "on a command's socket") : r;
}

/* AG-04: what the agent may not say here ends the stream, and nothing more is read from it. */
static int follow_end_broken(struct rpc_stream *s)
{
	struct rpc_error e;

	(void)rpc_fail(&e, RPC_INTERNAL, "the sandbox gave an answer that makes no sense");
	return rpc_stream_end(s, &e);
}

static int follow_pump(struct rpc_stream *s)
{
	struct follow *f = s->arg;

	while (!s->ended && s->out.len < RPC_STREAM_BATCH) {
		int r = talk_recv_now(f->talk);

		if (r == -EAGAIN)
			return 0;
		if (r > 0)
			r = follow_on_frame(s, f);
		if (r == -EPROTO)
			r = follow_end_broken(s);
		/* -ENOTCONN: killed or paused. There is no end that a client could believe. */
		if (r < 0)
			return r;
	}
	return 0;
}

#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"

static const struct rpc_source follow_source = {
	.pump = follow_pump,
	.free = follow_free,
	.keepalive = KEEPALIVE,
	.keepalive_len = sizeof(KEEPALIVE) - 1,
};

static struct follow *follow_new(const char *user, const struct envd_start *start)
{
	struct follow *f = calloc(1, sizeof(*f));

	if (!f || !start)
		return f;
	f->began = true;
	f->pty = start->pty;
	(void)snprintf(f->user, sizeof(f->user), "%s", user);
	envd_command_line(start, f->command, sizeof(f->command));
	f->cwd = strdup(start->cwd ? start->cwd : "");
	if (!f->cwd) {
		free(f);
		return NULL;
	}
	return f;
}

int envd_follow(struct talk *t, const char *user, const struct envd_start *start, uint32_t pid,
		uint64_t timeout_ms)
{
	struct follow *f = follow_new(user, start);
	int r = f ? talk_no_wait(t) : -ENOMEM;

	if (f) {
		f->talk = t;
		f->pid = pid;
		f->timeout_ms = timeout_ms;
		f->event.max = RPC_STREAM_MAX;
	}
	if (r < 0) {
		if (f)
			follow_free(f);
		else
			talk_free(t);
		return r;
	}
	/* Of a command's own time-out the agent takes care; this is for one that does not. */
	if (start && timeout_ms)
		timeout_ms += LATE_MS;
	return rpc_stream_reply(t->request, &follow_source, f, t->op.sock, timeout_ms);
}
