/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about commands that run: the unary calls. */
#include "server/envd/envd.h"

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

static int add_text(struct buf *to, const char *text)
{
	return buf_add(to, text, strlen(text));
}

static int add_process(void *arg, const json_t *process)
{
	char *text = json_dumps(process, JSON_COMPACT);
	struct buf *list = arg;
	int r = text ? 0 : -ENOMEM;

	if (r == 0 && list->len > sizeof(LIST_BEGIN) - 1)
		r = add_text(list, ",");
	if (r == 0)
		r = add_text(list, text);
	free(text);
	return r;
}

static int call_list(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	_cleanup_(buf_done) struct buf list = BUF_INIT(LIST_MAX);
	int n = t ? add_text(&list, LIST_BEGIN) : -ENOMEM;

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

int envd_select(struct request *r, const json_t *message, uint32_t *ret_pid, struct rpc_error *e)
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
static int finish(struct talk *t, uint32_t pid, struct rpc_error *e)
{
	struct wire_failed failed;
	int r = talk_await_done(t, &failed);

	return r > 0 ? envd_process_failed(&failed, pid, e) : r;
}

static int tell(struct request *r, const json_t *message, struct wire_tell *request,
		struct rpc_error *e)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	int n = t ? envd_select(r, message, &request->pid, e) : -ENOMEM;

	if (n == 0)
		n = talk_open(t, WIRE_TELL, request, sizeof(*request));
	if (n < 0)
		return n;
	talk_wait_anew(t);
	return finish(t, request->pid, e);
}

static int call_signal(struct request *r, const json_t *message, json_t **ret, struct rpc_error *e)
{
	struct wire_tell request = { .what = WIRE_TELL_SIGNAL };
	int n = envd_decode_signal(message, &request.signal, e);

	(void)ret;
	return n < 0 ? n : tell(r, message, &request, e);
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
	return tell(r, message, &request, e);
}

static int call_close_stdin(struct request *r, const json_t *message, json_t **ret,
			    struct rpc_error *e)
{
	struct wire_tell request = { .what = WIRE_TELL_CLOSE_INPUT };

	(void)ret;
	return tell(r, message, &request, e);
}

/* As E2B has it, the wrong kind of input is another error than the wrong kind of command. */
static int finish_input(struct talk *t, uint32_t pid, struct rpc_error *e)
{
	int r = finish(t, pid, e);

	if (r == -EREMOTEIO && e->code == RPC_UNKNOWN)
		return rpc_fail(e, RPC_INTERNAL, "process with pid %u takes another kind of input",
				pid);
	return r;
}

/* As talk_send(); while there is no room it waits, but neither for a client that has gone nor past an answer. */
static int send_when_room(struct talk *t, enum wire_type type, const void *data, size_t len)
{
	int r = talk_send(t, type, data, len);

	if (r != -ETIMEDOUT)
		return r;
	r = stream_wait_both_ways(t->request, t->op.sock, talk_left_ms(t));
	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	r = talk_send(t, type, data, len);
	/* Still no room: then the agent has answered already, which is for the reader to find out. */
	return r == -ETIMEDOUT ? 0 : r;
}

/*
 * Input that a command does not read waits, as in a pipe, for as long as the client does: who is told that it was not
 * taken in time cannot know what became of it.
 */
static int send_input(struct talk *t, const unsigned char *data, size_t len)
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
		n = envd_select(r, message, &request.pid, e);
	request.kind = kind;
	if (n == 0)
		n = talk_open(t, WIRE_INPUT, &request, sizeof(request));
	if (n == 0)
		n = send_input(t, data, len);
	return n < 0 ? n : finish_input(t, request.pid, e);
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
