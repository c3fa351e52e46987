/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StreamInput: input for a command while the request is still being sent. The body is a row of messages: first
 * which command, then its input in pieces, keepalives in between. Memory: one message.
 */
#include "server/envd/envd.h"

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

static int start_input(struct request *r, struct input *in, const json_t *start)
{
	struct wire_input request = { 0 }; /* the kind is not known yet: any */
	int n;

	if (in->pid)
		return rpc_fail(&in->error, RPC_INVALID_ARGUMENT, "start: comes twice");
	n = envd_select(r, start, &request.pid, &in->error);
	if (n < 0)
		return n;
	in->talk = talk_new(r);
	if (!in->talk)
		return -ENOMEM;
	in->pid = request.pid;
	return talk_open(in->talk, WIRE_INPUT, &request, sizeof(request));
}

static int pass_input(struct input *in, const json_t *data)
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

static int on_message(struct request *r, struct input *in, const unsigned char *text, size_t len)
{
	const json_t *start = NULL, *data = NULL;
	json_t *message = NULL;
	int n = rpc_parse(text, len, &message, &in->error);

	if (n == 0)
		n = rpc_object(message, "start", &start, &in->error);
	if (n == 0)
		n = rpc_object(message, "data", &data, &in->error);
	if (n == 0 && start)
		n = start_input(r, in, start);
	else if (n == 0 && data)
		n = pass_input(in, data);
	json_decref(message);
	return n;
}

static int reply_wrong(struct request *r, const struct input *in)
{
	return in->failed == -EREMOTEIO ? rpc_stream_error(r, &in->error) :
					  rpc_reply_gone(r, in->failed);
}

/* Takes the whole messages off the front of the body. */
static int take_messages(struct request *r, struct input *in)
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
		n = on_message(r, in, in->body.data + at + RPC_ENVELOPE_HEAD,
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
		/* There is always room for one message, so what does not fit now fits after it was taken. */
		size_t n = MIN(len, in->body.max - in->body.len);

		in->failed = buf_add(&in->body, data, n);
		if (!in->failed)
			in->failed = take_messages(r, in);
		data += n;
		len -= n;
	}
	/* The rest is read, because only then a reply can be sent. */
	in->dropped += len;
	return in->dropped > RPC_DROP_MAX ? -EFBIG : 0;
}

static int finish_input(struct input *in)
{
	struct wire_failed failed;
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
		in->failed = finish_input(in);
	return in->failed ? reply_wrong(r, in) : rpc_stream_empty(r);
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
