/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reply of many messages. The source adds what it has without waiting, several messages at once
 * where they come fast; what is kept here is bounded, and while the client does not read, nobody
 * asks the source for more: so a slow client holds back its own command and costs no memory.
 *
 * The end is a message of its own. A stream that cannot have a proper one (its sandbox was killed
 * or paused) resets the connection instead, which is how clients tell the two apart.
 */
#include "server/rpc/rpc.h"

#include "base/clock.h"
#include "server/http/http.h"

static void rpc_stream_close(void *arg)
{
	struct rpc_stream *s = arg;

	if (s->source)
		s->source->free(s->arg);
	buf_done(&s->out);
	free(s);
}

int rpc_stream_add(struct rpc_stream *s, const void *message, size_t len)
{
	return rpc_envelope_add(&s->out, 0, message, len);
}

static int add_json(struct rpc_stream *s, unsigned char flags, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	int r = -ENOMEM;

	json_decref(message);
	if (text)
		r = rpc_envelope_add(&s->out, flags, text, strlen(text));
	free(text);
	return r;
}

int rpc_stream_add_json(struct rpc_stream *s, json_t *message)
{
	return add_json(s, 0, message);
}

int rpc_stream_end(struct rpc_stream *s, const struct rpc_error *e)
{
	s->ended = true;
	if (!e)
		return rpc_envelope_add(&s->out, RPC_FLAG_END, "{}", 2);
	return add_json(s, RPC_FLAG_END,
			json_pack("{s:{s:s, s:o}}", "error", "code", rpc_code_name(e->code),
				  "message", rpc_text(e->message, strlen(e->message))));
}

/* Waits for the source; says something in the meantime when it is time to. */
static int rpc_stream_wait(struct rpc_stream *s)
{
	uint64_t now = clock_boot_us(), until = s->last_us + s->keepalive_us;
	struct rpc_error e;
	int r;

	if (s->deadline_us && s->deadline_us < until)
		until = s->deadline_us;
	/* Rounded up, or the last millisecond would be spent asking. */
	r = stream_wait(s->request, s->fd, until > now ? (int)((until - now + 999) / 1000) : 0);
	if (r != 0)
		return r;
	if (s->deadline_us && clock_boot_us() >= s->deadline_us) {
		(void)rpc_fail(&e, RPC_DEADLINE_EXCEEDED, "the time the client gave is over");
		return rpc_stream_end(s, &e);
	}
	return rpc_stream_add(s, s->source->keepalive, s->source->keepalive_len);
}

static ssize_t rpc_stream_read(void *arg, char *data, size_t max)
{
	struct rpc_stream *s = arg;
	size_t n;

	while (s->sent == s->out.len) {
		int r;

		s->sent = s->out.len = 0;
		if (s->ended)
			return 0;
		r = s->source->pump(s);
		if (r == 0 && s->out.len == 0)
			r = rpc_stream_wait(s);
		if (r < 0)
			return r;
	}
	n = MIN(max, s->out.len - s->sent);
	memcpy(data, s->out.data + s->sent, n);
	s->sent += n;
	s->last_us = clock_boot_us();
	return (ssize_t)n;
}

static const struct stream stream_functions = { .read = rpc_stream_read,
						.close = rpc_stream_close };

static struct rpc_stream *stream_new(struct request *r)
{
	struct rpc_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->request = r;
	s->fd = -EBADF;
	s->out.max = RPC_STREAM_MAX;
	s->last_us = clock_boot_us();
	s->keepalive_us = rpc_keepalive_us(request_header(r, "Keepalive-Ping-Interval"));
	return s;
}

static int stream_start(struct rpc_stream *s)
{
	return reply_stream(s->request, 200, "application/connect+json", UINT64_MAX,
			    &stream_functions, s);
}

int rpc_stream_reply(struct request *r, const struct rpc_source *source, void *arg, int fd,
		     uint64_t timeout_ms)
{
	struct rpc_stream *s = stream_new(r);

	if (!s) {
		source->free(arg);
		return -ENOMEM;
	}
	s->source = source;
	s->arg = arg;
	s->fd = fd;
	s->deadline_us = timeout_ms ? s->last_us + timeout_ms * 1000 : 0;
	return stream_start(s);
}

static int stream_at_once(struct request *r, const struct rpc_error *e)
{
	struct rpc_stream *s = stream_new(r);
	int n = s ? 0 : -ENOMEM;

	if (n == 0 && !e)
		n = rpc_stream_add(s, "{}", 2);
	if (n == 0)
		n = rpc_stream_end(s, e);
	if (n == 0)
		return stream_start(s);
	if (s)
		rpc_stream_close(s);
	return n;
}

int rpc_stream_error(struct request *r, const struct rpc_error *e)
{
	return stream_at_once(r, e);
}

int rpc_stream_empty(struct request *r)
{
	return stream_at_once(r, NULL);
}
