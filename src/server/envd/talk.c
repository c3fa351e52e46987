/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/envd.h"

#include "base/clock.h"
#include "server/http/exchange.h"

#include <fcntl.h>

#define ENV_MAX 131072 /* NAME=VALUE: checked against smaller bounds where it came in */

struct talk *talk_new(struct request *r)
{
	struct talk *t =
		malloc(sizeof(*t)); /* not calloc(): the frame is large and gets written anyway */

	if (!t)
		return NULL;
	t->request = r;
	t->op = (struct op)OP_INIT;
	talk_wait_anew(t);
	return t;
}

void talk_wait_anew(struct talk *t)
{
	uint64_t ms = 0;

	if (rpc_timeout_parse(request_header(t->request, "Connect-Timeout-Ms"), &ms) < 0 ||
	    ms == 0 || ms > ENVD_WAIT_MS)
		ms = ENVD_WAIT_MS;
	t->until_us = clock_boot_us() + ms * 1000;
}

void talk_wait_with_client(struct talk *t)
{
	uint64_t ms;

	if (rpc_timeout_parse(request_header(t->request, "Connect-Timeout-Ms"), &ms) < 0)
		return; /* what makes no sense changes nothing */
	t->until_us = ms ? clock_boot_us() + ms * 1000 : UINT64_MAX;
}

int talk_left_ms(const struct talk *t)
{
	uint64_t now = clock_boot_us();

	if (t->until_us == UINT64_MAX)
		return -1;
	return t->until_us > now ? (int)MIN((t->until_us - now + 999) / 1000, (uint64_t)INT_MAX) :
				   0;
}

void talk_free(struct talk *t)
{
	if (!t)
		return;
	op_close(&t->op);
	free(t);
}

void talk_freep(struct talk **t)
{
	talk_free(*t);
	*t = NULL;
}

int talk_open(struct talk *t, enum wire_type type, const void *data, size_t len)
{
	return op_open(t->request->sandbox, type, data, len, &t->op);
}

int talk_send(struct talk *t, enum wire_type type, const void *data, size_t len)
{
	int r = wire_send(t->op.sock, type, data, len);

	/* An agent that hung up may have said why before: that is for the reader to find out. */
	if (r == -EPIPE)
		return 0;
	/* AG-09: it did not read for ten seconds, or, after talk_no_wait(), does not now. */
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

int talk_text(struct talk *t, enum wire_type type, const char *text)
{
	return talk_send(t, type, text, strlen(text));
}

int talk_string(struct talk *t, enum wire_type type, const char *text, size_t len)
{
	size_t n = MIN(len, WIRE_DATA_MAX);
	int r = talk_send(t, type, text, n);

	while (r == 0 && n < len) {
		text += n;
		len -= n;
		n = MIN(len, WIRE_DATA_MAX);
		r = talk_send(t, WIRE_MORE, text, n);
	}
	return r;
}

int talk_env(struct talk *t, const char *name, const char *value)
{
	struct buf text = BUF_INIT(ENV_MAX);
	int r = buf_add(&text, name, strlen(name));

	if (r == 0)
		r = buf_add(&text, "=", 1);
	if (r == 0)
		r = buf_add(&text, value, strlen(value));
	if (r == 0)
		r = talk_string(t, WIRE_ENV, (const char *)text.data, text.len);
	buf_done(&text);
	return r;
}

int talk_pipe(int ret[2], unsigned ours)
{
	int fds[2], size;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	/* The larger, the fewer changes between the two processes. */
	(void)fcntl(fds[ours], F_SETPIPE_SZ, ENVD_PIPE_SIZE);
	size = fcntl(fds[ours], F_GETPIPE_SZ);
	if (size < 0 || fcntl(fds[ours], F_SETFL, O_NONBLOCK) < 0) {
		size = -errno;
		fd_close(fds[0]);
		fd_close(fds[1]);
		return size;
	}
	memcpy(ret, fds, sizeof(fds));
	return size;
}

int talk_no_wait(struct talk *t)
{
	return fcntl(t->op.sock, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int talk_recv_now(struct talk *t)
{
	int r = wire_recv(t->op.sock, &t->frame, WIRE_ON_FROM_OP);

	if (r == -EPROTO)
		return envd_broken(t->op.sandbox, "not a message");
	return r == 0 ? -ENOTCONN : r;
}

int talk_recv(struct talk *t)
{
	int r = stream_wait(t->request, t->op.sock, talk_left_ms(t));

	if (r == 0)
		return -ETIMEDOUT;
	return r < 0 ? r : talk_recv_now(t);
}

int talk_failed(const struct wire_frame *f, struct wire_failed *ret)
{
	struct wire_failed failed;

	if (f->head.type != WIRE_FAILED)
		return -EPROTO;
	memcpy(&failed, f->data, sizeof(failed));
	/* AG-06: numbers that cannot be are not passed on. */
	if (failed.step == WIRE_STEP_NONE || failed.step >= _WIRE_STEP_MAX || failed.err <= 0 ||
	    failed.err > 4095)
		return -EPROTO;
	*ret = failed;
	return 0;
}

int talk_await_done(struct talk *t, struct wire_failed *ret_failed)
{
	int r = talk_recv(t);

	if (r < 0)
		return r;
	if (t->frame.head.type == WIRE_DONE)
		return 0;
	r = talk_failed(&t->frame, ret_failed);
	return r < 0 ? envd_broken(t->request->sandbox, "an answer to something else") : 1;
}

int envd_broken(struct sandbox *b, const char *what)
{
	server_log(b->server, "warn", "agent_broke_protocol",
		   json_pack("{s:s, s:s}", "sandbox", b->info.id, "what", what));
	sandbox_log(b, "error", "the sandbox's agent broke the protocol: %s", what);
	return -EPROTO;
}
