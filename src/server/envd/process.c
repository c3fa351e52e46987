/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of process.Process: the list of commands, what is said to one, Start and Connect,
 * StreamInput. */
#include "server/envd/envd.h"

#include "sys/payload.h"

#define COMMANDS_MAX 256 /* in a list; an agent has no more */
#define LIST_BEGIN "{\"processes\":["
/* A label is JSON already: written anew it is not longer, but for the command's number. */
#define LIST_MAX (COMMANDS_MAX * (ENVD_LABEL_MAX + 64) + 64)

int envd_process_failed(const struct wire_failed *failed, uint32_t pid, struct rpc_error *e)
{
	if (failed->step != WIRE_STEP_PROCESS)
		return rpc_fail(e, RPC_INTERNAL, "the sandbox refused (%s): %s",
				wire_step_name(failed->step), strerror(failed->err));
	switch (failed->err) {
	case ESRCH:
		return rpc_fail(e, RPC_NOT_FOUND, "process with pid %u not found", pid);
	case EPIPE:
		return rpc_fail(e, RPC_INTERNAL, "process with pid %u has no open input", pid);
	case ENOTTY:
		return rpc_fail(
			e, RPC_UNKNOWN,
			"process with pid %u: only a terminal has a size, only a pipe an end", pid);
	case EAGAIN:
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"process with pid %u: too many at once follow it or write to it",
				pid);
	default:
		return rpc_fail(e, RPC_INTERNAL, "process with pid %u: %s", pid,
				strerror(failed->err));
	}
}

/* What to do with one command of a list; the values are freed afterwards. */
typedef int (*each_command)(void *arg, const json_t *process);

static int take_process(const struct wire_frame *f, each_command each, void *arg)
{
	const struct wire_process *p = (const struct wire_process *)f->data;
	json_t *process;
	int r;

	if (p->forked || p->pid == 0 || p->pid > INT32_MAX)
		return -EPROTO;
	process = envd_label_read(p->pid, f->data + sizeof(*p), wire_len(f) - sizeof(*p));
	r = process ? each(arg, process) : -ENOMEM;
	json_decref(process);
	return r;
}

/* AG-05: one at a time, for the values of a label take thirty times what its text does. */
static int read_list(struct talk *t, each_command each, void *arg, struct rpc_error *e)
{
	struct wire_failed failed;
	int r = talk_open(t, WIRE_LIST, NULL, 0);

	for (unsigned n = 0; r >= 0; n++) {
		r = talk_recv(t);
		if (r < 0 || t->frame.head.type == WIRE_DONE)
			return r < 0 ? r : 0;
		if (talk_failed(&t->frame, &failed) == 0)
			return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
					"the sandbox cannot list its commands now: %s",
					strerror(failed.err));
		r = t->frame.head.type == WIRE_PROCESS && n < COMMANDS_MAX ?
			    take_process(&t->frame, each, arg) :
			    -EPROTO;
		if (r == -EPROTO)
			(void)envd_broken(t->request->sandbox, "in a list of commands");
	}
	return r;
}

static int list_add(struct buf *to, const char *text)
{
	return buf_add(to, text, strlen(text));
}

static int add_process(void *arg, const json_t *process)
{
	char *text = json_dumps(process, JSON_COMPACT);
	struct buf *list = arg;
	int r = text ? 0 : -ENOMEM;

	if (r == 0 && list->len > sizeof(LIST_BEGIN) - 1)
		r = list_add(list, ",");
	if (r == 0)
		r = list_add(list, text);
	free(text);
	return r;
}

static int call_list(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	_cleanup_(buf_done) struct buf list = BUF_INIT(LIST_MAX);
	int n = t ? list_add(&list, LIST_BEGIN) : -ENOMEM;

	(void)message;
	(void)ret;
	if (n == 0)
		n = read_list(t, add_process, &list, e);
	if (n == 0)
		n = buf_add(&list, "]}", sizeof("]}"));
	return n < 0 ? n : reply_text(r, 200, "application/json", (const char *)list.data);
}

struct by_tag {
	const char *tag;
	uint32_t pid; /* 0: there is none */
};

static int match_tag(void *arg, const json_t *process)
{
	const char *its = json_string_value(json_object_get(process, "tag"));
	struct by_tag *wanted = arg;

	if (its && strcmp(its, wanted->tag) == 0)
		wanted->pid = (uint32_t)json_integer_value(json_object_get(process, "pid"));
	return 0;
}

static int select_tag(struct request *r, const char *tag, uint32_t *ret_pid, struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	struct by_tag wanted = { .tag = tag };
	int n = t ? read_list(t, match_tag, &wanted, e) : -ENOMEM;

	if (n < 0)
		return n;
	if (!wanted.pid)
		return rpc_fail(e, RPC_NOT_FOUND, "process with tag %s not found", tag);
	*ret_pid = wanted.pid;
	return 0;
}

static int process_select(struct request *r, const json_t *message, uint32_t *ret_pid,
			  struct rpc_error *e)
{
	struct envd_selector selector;
	int n = envd_decode_selector(message, &selector, e);

	if (n < 0)
		return n;
	if (selector.tag)
		return select_tag(r, selector.tag, ret_pid, e);
	*ret_pid = selector.pid;
	return 0;
}

/* Waits for the answer to a question about one command. */
static int tell_finish(struct talk *t, uint32_t pid, struct rpc_error *e)
{
	struct wire_failed failed = { 0 };
	int r = talk_await_done(t, &failed);

	return r > 0 ? envd_process_failed(&failed, pid, e) : r;
}

static int process_tell(struct request *r, const json_t *message, struct wire_tell *request,
			struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	int n = t ? process_select(r, message, &request->pid, e) : -ENOMEM;

	if (n == 0)
		n = talk_open(t, WIRE_TELL, request, sizeof(*request));
	if (n < 0)
		return n;
	talk_wait_anew(t);
	return tell_finish(t, request->pid, e);
}

static int call_signal(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	struct wire_tell request = { .what = WIRE_TELL_SIGNAL };
	int n = envd_decode_signal(message, &request.signal, e);

	(void)ret;
	return n < 0 ? n : process_tell(r, message, &request, e);
}

static int call_update(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	struct wire_tell request = { .what = WIRE_TELL_RESIZE };
	bool given;
	int n = rpc_terminal(message, "pty", &given, &request.rows, &request.cols, e);

	(void)ret;
	if (n < 0 || !given)
		return n; /* there is nothing else that could be updated */
	if (!request.rows || !request.cols)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "pty.size: must have rows and cols");
	return process_tell(r, message, &request, e);
}

static int call_close_stdin(struct request *r, const json_t *message, json_t **ret,
			    struct rpc_error *e)
{
	struct wire_tell request = { .what = WIRE_TELL_CLOSE_INPUT };

	(void)ret;
	return process_tell(r, message, &request, e);
}

/* As E2B has it, the wrong kind of input is another error than the wrong kind of command. */
static int send_input_finish(struct talk *t, uint32_t pid, struct rpc_error *e)
{
	int r = tell_finish(t, pid, e);

	if (r == -EREMOTEIO && e->code == RPC_UNKNOWN)
		return rpc_fail(e, RPC_INTERNAL, "process with pid %u takes another kind of input",
				pid);
	return r;
}

/* As talk_send(); while there is no room it waits, but neither for a client that has gone nor
 * past an answer. */
static int send_when_room(struct talk *t, enum wire_type type, const void *data, size_t len)
{
	int r = talk_send(t, type, data, len);

	if (r != -ETIMEDOUT)
		return r;
	r = stream_wait_both_ways(t->request, t->op.sock, talk_left_ms(t));
	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	r = talk_send(t, type, data, len);
	/* Still no room: then the agent has answered already, which is for the reader to find
	 * out. */
	return r == -ETIMEDOUT ? 0 : r;
}

/*
 * Input that a command does not read waits, as in a pipe, for as long as the client does: who is
 * told that it was not taken in time cannot know what became of it.
 */
static int send_input_data(struct talk *t, const unsigned char *data, size_t len)
{
	int r = talk_no_wait(t);

	talk_wait_with_client(t);
	while (r == 0 && len > 0) {
		size_t n = MIN(len, WIRE_DATA_MAX);

		r = send_when_room(t, WIRE_IN, data, n);
		data += n;
		len -= n;
	}
	return r < 0 ? r : send_when_room(t, WIRE_IN_END, NULL, 0);
}

static int call_send_input(struct request *r, const json_t *message, json_t **ret,
			   struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	_cleanup_(freep) unsigned char *data = NULL;
	enum wire_input_kind kind = WIRE_INPUT_ANY;
	struct wire_input request = { 0 };
	size_t len;
	int n = t ? envd_decode_input(message, &kind, &data, &len, e) : -ENOMEM;

	(void)ret;
	if (n == 0)
		n = process_select(r, message, &request.pid, e);
	request.kind = kind;
	if (n == 0)
		n = talk_open(t, WIRE_INPUT, &request, sizeof(request));
	if (n == 0)
		n = send_input_data(t, data, len);
	return n < 0 ? n : send_input_finish(t, request.pid, e);
}

int envd_process_list(struct request *r)
{
	return rpc_unary(r, call_list);
}

int envd_process_update(struct request *r)
{
	return rpc_unary(r, call_update);
}

int envd_process_send_input(struct request *r)
{
	return rpc_unary(r, call_send_input);
}

int envd_process_send_signal(struct request *r)
{
	return rpc_unary(r, call_signal);
}

int envd_process_close_stdin(struct request *r)
{
	return rpc_unary(r, call_close_stdin);
}

/* --- Start and Connect ----------------------------------------------------------------------- */

#define TERMINAL_ROWS 24
#define TERMINAL_COLS 80

static int start_send_envs(struct talk *t, const json_t *envs)
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

static int start_send_variable(void *arg, const char *name, const char *value)
{
	return talk_env(arg, name, value);
}

/* Later ones win: the service's, the sandbox's, what the sandbox is, the client's own. */
static int start_send_environment(struct talk *t, const struct envd_start *start)
{
	const struct store_sandbox *info = &t->request->sandbox->info;
	int r = talk_text(t, WIRE_ENV, "PATH=" WIRE_BOX_PATH);

	if (r == 0)
		r = sandbox_network_variables(t->request->sandbox, start->envs, start_send_variable,
					      t);
	if (r == 0)
		r = start_send_envs(t, info->env);
	if (r == 0)
		r = talk_env(t, "E2B_SANDBOX", "true");
	if (r == 0)
		r = talk_env(t, "E2B_SANDBOX_ID", info->id);
	if (r == 0)
		r = talk_env(t, "E2B_TEMPLATE_ID", info->template_id ? info->template_id : "");
	return r < 0 ? r : start_send_envs(t, start->envs);
}

static int start_send_label(struct talk *t, const struct envd_start *start)
{
	struct buf label = BUF_INIT(ENVD_LABEL_MAX);
	int r = envd_label_make(start, &label);

	if (r == 0)
		r = talk_send(t, WIRE_LABEL, label.data, label.len);
	buf_done(&label);
	return r;
}

static int start_send_command(struct talk *t, const char *user, const struct envd_start *start)
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
		r = start_send_environment(t, start);
	if (r == 0)
		r = start_send_label(t, start);
	return r < 0 ? r : talk_send(t, WIRE_GO, NULL, 0);
}

static int start_open(struct talk *t, const struct envd_start *start, uint64_t timeout_ms)
{
	struct wire_exec request = {
		.uid = PAYLOAD_USER,
		.gid = PAYLOAD_USER,
		.flags = WIRE_EXEC_KEEP | (start->pty ? WIRE_EXEC_PTY : 0) |
			 (start->with_stdin && !start->pty ? WIRE_EXEC_STDIN : 0),
		.oom_score_adj = PAYLOAD_OOM_SCORE,
		.fsize_max = t->request->sandbox->limits.disk_bytes,
		.nofile_max = PAYLOAD_NOFILE_MAX,
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
		n = start_open(t, &start, timeout_ms);
	if (n == 0)
		n = start_send_command(t, user, &start);
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
		n = process_select(r, message, &request.pid, &e);
	if (n == 0)
		n = talk_open(t, WIRE_ATTACH, &request, sizeof(request));
	if (n == 0)
		n = envd_follow(take_ptr(t), NULL, NULL, request.pid, timeout_ms);
	else
		n = reply_stream_failure(r, n, &e);
	json_decref(message);
	return n;
}

/* --- StreamInput ----------------------------------------------------------------------------- */

/*
 * StreamInput: input for a command while the request is still being sent. The body is a row of
 * messages: first which command, then its input in pieces, keepalives in between. Memory: one
 * message.
 */

struct input {
	struct buf body; /* the message that is being received */
	struct talk *talk;
	uint32_t pid; /* 0 until the first message has said */
	int failed;   /* what went wrong: an errno, or -EREMOTEIO and */
	struct rpc_error error;
	uint64_t dropped; /* what came after that */
};

int envd_input_begin(struct request *r)
{
	struct input *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	if (!rpc_type_is(request_header(r, "Content-Type"), "application/connect+json")) {
		free(in);
		return reply_error(r, 415, "Content-Type must be application/connect+json");
	}
	in->body.max = RPC_ENVELOPE_HEAD + RPC_MESSAGE_MAX;
	r->state = in;
	return 0;
}

static int input_start(struct request *r, struct input *in, const json_t *start)
{
	struct wire_input request = { 0 }; /* the kind is not known yet: any */
	int n;

	if (in->pid)
		return rpc_fail(&in->error, RPC_INVALID_ARGUMENT, "start: comes twice");
	n = process_select(r, start, &request.pid, &in->error);
	if (n < 0)
		return n;
	in->talk = talk_new(r);
	if (!in->talk)
		return -ENOMEM;
	in->pid = request.pid;
	return talk_open(in->talk, WIRE_INPUT, &request, sizeof(request));
}

static int input_pass(struct input *in, const json_t *data)
{
	_cleanup_(freep) unsigned char *bytes = NULL;
	enum wire_input_kind kind;
	size_t len;
	int n;

	if (!in->pid)
		return rpc_fail(&in->error, RPC_INVALID_ARGUMENT, "start: must come first");
	n = envd_decode_input(data, &kind, &bytes, &len, &in->error);
	for (size_t at = 0; n == 0 && at < len; at += MIN(len - at, WIRE_DATA_MAX))
		n = talk_send(in->talk, WIRE_IN, bytes + at, MIN(len - at, WIRE_DATA_MAX));
	return n;
}

static int input_on_message(struct request *r, struct input *in, const unsigned char *text,
			    size_t len)
{
	const json_t *start = NULL, *data = NULL;
	json_t *message = NULL;
	int n = rpc_parse(text, len, &message, &in->error);

	if (n == 0)
		n = rpc_object(message, "start", &start, &in->error);
	if (n == 0)
		n = rpc_object(message, "data", &data, &in->error);
	if (n == 0 && start)
		n = input_start(r, in, start);
	else if (n == 0 && data)
		n = input_pass(in, data);
	json_decref(message);
	return n;
}

static int input_reply_wrong(struct request *r, const struct input *in)
{
	return in->failed == -EREMOTEIO ? rpc_stream_error(r, &in->error) :
					  rpc_reply_gone(r, in->failed);
}

/* Takes the whole messages off the front of the body. */
static int input_take(struct request *r, struct input *in)
{
	size_t at = 0, len;
	int n;

	for (;;) {
		n = rpc_envelope_next(in->body.data + at, in->body.len - at, &len);
		if (n < 0)
			n = rpc_fail(&in->error, RPC_INVALID_ARGUMENT,
				     "messages must be uncompressed and at most %d KiB long",
				     (int)(RPC_MESSAGE_MAX >> 10));
		if (n <= 0)
			break;
		n = input_on_message(r, in, in->body.data + at + RPC_ENVELOPE_HEAD,
				     len - RPC_ENVELOPE_HEAD);
		if (n < 0)
			break;
		at += len;
	}
	memmove(in->body.data, in->body.data + at, in->body.len - at);
	in->body.len -= at;
	return n;
}

int envd_input_data(struct request *r, const char *data, size_t len)
{
	struct input *in = r->state;

	while (len > 0 && !in->failed) {
		/* There is always room for one message, so what does not fit now fits after it
		 * was taken. */
		size_t n = MIN(len, in->body.max - in->body.len);

		in->failed = buf_add(&in->body, data, n);
		if (!in->failed)
			in->failed = input_take(r, in);
		data += n;
		len -= n;
	}
	/* The rest is read, because only then a reply can be sent. */
	in->dropped += len;
	return in->dropped > RPC_DROP_MAX ? -EFBIG : 0;
}

static int input_finish(struct input *in)
{
	struct wire_failed failed = { 0 };
	int n;

	if (in->body.len)
		return rpc_fail(&in->error, RPC_INVALID_ARGUMENT, "the last message is cut off");
	if (!in->pid)
		return rpc_fail(&in->error, RPC_INVALID_ARGUMENT, "start: is missing");
	n = talk_send(in->talk, WIRE_IN_END, NULL, 0);
	talk_wait_anew(in->talk);
	if (n == 0)
		n = talk_await_done(in->talk, &failed);
	return n > 0 ? envd_process_failed(&failed, in->pid, &in->error) : n;
}

int envd_input_handle(struct request *r)
{
	struct input *in = r->state;

	if (!in->failed)
		in->failed = input_finish(in);
	return in->failed ? input_reply_wrong(r, in) : rpc_stream_empty(r);
}

void envd_input_done(struct request *r)
{
	struct input *in = r->state;

	if (!in)
		return;
	buf_done(&in->body);
	talk_free(in->talk);
	free(in);
	r->state = NULL;
}
