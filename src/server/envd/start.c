/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command, and following one that runs. */
#include "server/envd/envd.h"

#define NOFILE_MAX 4096
#define OOM_SCORE_COMMAND 800 /* before the agent, which has to tell of it */
#define BOX_USER 1000         /* whom the agent's own default is; the name decides */
#define TERMINAL_ROWS 24
#define TERMINAL_COLS 80

static int send_envs(struct talk *t, const json_t *envs)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)envs, name, value) {
		int r = json_is_string(value) ? talk_env(t, name, json_string_value(value)) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int send_variable(void *arg, const char *name, const char *value)
{
	return talk_env(arg, name, value);
}

/* Later ones win: the service's, the sandbox's, what the sandbox is, the client's own. */
static int send_environment(struct talk *t, const struct envd_start *start)
{
	const struct store_sandbox *info = &t->request->sandbox->info;
	int r = talk_text(t, WIRE_ENV, "PATH=" WIRE_BOX_PATH);

	if (r == 0)
		r = sandbox_network_variables(t->request->sandbox, start->envs, send_variable, t);
	if (r == 0)
		r = send_envs(t, info->env);
	if (r == 0)
		r = talk_env(t, "E2B_SANDBOX", "true");
	if (r == 0)
		r = talk_env(t, "E2B_SANDBOX_ID", info->id);
	if (r == 0)
		r = talk_env(t, "E2B_TEMPLATE_ID", info->template_id ? info->template_id : "");
	return r < 0 ? r : send_envs(t, start->envs);
}

static int send_label(struct talk *t, const struct envd_start *start)
{
	struct buf label = BUF_INIT(ENVD_LABEL_MAX);
	int r = envd_label_make(start, &label);

	if (r == 0)
		r = talk_send(t, WIRE_LABEL, label.data, label.len);
	buf_done(&label);
	return r;
}

static int send_command(struct talk *t, const char *user, const struct envd_start *start)
{
	int r = talk_text(t, WIRE_USER, user);
	json_t *arg;
	size_t i;

	if (r == 0 && start->cwd && *start->cwd)
		r = talk_text(t, WIRE_CWD, start->cwd);
	if (r == 0)
		r = talk_string(t, WIRE_ARG, start->cmd, strlen(start->cmd));
	json_array_foreach(start->args, i, arg) {
		if (r == 0)
			r = talk_string(t, WIRE_ARG, json_string_value(arg),
					json_string_length(arg));
	}
	if (r == 0)
		r = send_environment(t, start);
	if (r == 0)
		r = send_label(t, start);
	return r < 0 ? r : talk_send(t, WIRE_GO, NULL, 0);
}

static int open_command(struct talk *t, const struct envd_start *start, uint64_t timeout_ms)
{
	struct wire_exec request = {
		.uid = BOX_USER,
		.gid = BOX_USER,
		.flags = WIRE_EXEC_KEEP | (start->pty ? WIRE_EXEC_PTY : 0) |
			 (start->with_stdin && !start->pty ? WIRE_EXEC_STDIN : 0),
		.oom_score_adj = OOM_SCORE_COMMAND,
		.fsize_max = t->request->sandbox->limits.disk_bytes,
		.nofile_max = NOFILE_MAX,
		.timeout_ms = timeout_ms,
		.rows = !start->pty ? 0 :
			start->rows ? start->rows :
				      TERMINAL_ROWS,
		.cols = !start->pty ? 0 :
			start->cols ? start->cols :
				      TERMINAL_COLS,
	};

	sandbox_exec_limits(t->request->sandbox, &request);
	return talk_open(t, WIRE_EXEC, &request, sizeof(request));
}

/* Streams tell of errors in the stream; only a sandbox that is gone is told of before it. */
static int reply_stream_failure(struct request *r, int err, const struct rpc_error *e)
{
	return err == -EREMOTEIO ? rpc_stream_error(r, e) : rpc_reply_gone(r, err);
}

int envd_process_start(struct request *r)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	json_t *message = NULL;
	struct envd_start start;
	struct rpc_error e;
	char user[RPC_USER_SIZE];
	uint64_t timeout_ms;
	int n = t ? rpc_stream_message(r, &message, &e) : -ENOMEM;

	if (n == 0)
		n = envd_decode_start(message, &start, &e);
	if (n == 0)
		n = rpc_user(r, user, &e);
	if (n == 0)
		n = rpc_timeout(r, &timeout_ms, &e);
	if (n == 0)
		n = open_command(t, &start, timeout_ms);
	if (n == 0)
		n = send_command(t, user, &start);
	if (n == 0)
		n = envd_follow(take_ptr(t), user, &start, 0, timeout_ms);
	else
		n = reply_stream_failure(r, n, &e);
	json_decref(message);
	return n;
}

int envd_process_connect(struct request *r)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	struct wire_process request = { 0 };
	json_t *message = NULL;
	struct rpc_error e;
	uint64_t timeout_ms;
	int n = t ? rpc_stream_message(r, &message, &e) : -ENOMEM;

	if (n == 0)
		n = rpc_timeout(r, &timeout_ms, &e);
	if (n == 0)
		n = envd_select(r, message, &request.pid, &e);
	if (n == 0)
		n = talk_open(t, WIRE_ATTACH, &request, sizeof(request));
	if (n == 0)
		n = envd_follow(take_ptr(t), NULL, NULL, request.pid, timeout_ms);
	else
		n = reply_stream_failure(r, n, &e);
	json_decref(message);
	return n;
}
