/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reply of many lines. What is kept here is bounded, and while the client does not read, nobody
 * asks the source for more: a slow client holds back its own cell. A stream that cannot have a
 * proper end, because its sandbox was killed or paused, resets the connection instead.
 */
#include "server/interp/interp.h"

#include "base/clock.h"

#define KEEPALIVE_US UINT64_C(5000000)

static void interp_stream_close(void *arg)
{
	struct interp_stream *s = arg;

	s->source->free(s->arg);
	buf_done(&s->out);
	free(s);
}

int interp_stream_end(struct interp_stream *s, bool unexpected)
{
	int r = 0;

	s->ended = true;
	if (unexpected)
		r = interp_line(&s->out, json_pack("{s:s}", "type", "unexpected_end_of_execution"));
	return r < 0 ? r : interp_line(&s->out, json_pack("{s:s}", "type", "end_of_execution"));
}

/* A source that always has something, and nothing to show, keeps nobody from noticing that the
 * client has gone, nor the client from hearing that somebody is there. */
static int interp_stream_wait(struct interp_stream *s)
{
	uint64_t now = clock_boot_us(), until = s->last_us + KEEPALIVE_US;
	/* Rounded up, or the last millisecond would be spent asking. */
	int left_ms = until > now ? (int)((until - now + 999) / 1000) : 0;
	int r = stream_wait(s->request, -EBADF, 0);

	if (r == 0 && left_ms > 0)
		r = s->writing ? stream_wait_both_ways(s->request, s->fd, left_ms) :
				 stream_wait(s->request, s->fd, left_ms);
	return r ? r : interp_line(&s->out, json_pack("{s:s}", "type", "keepalive"));
}

/* What one large event needed is not kept for the rest of the cell. */
static void interp_stream_empty(struct interp_stream *s)
{
	s->sent = s->out.len = 0;
	if (s->out.size > 2 * INTERP_BATCH) {
		size_t max = s->out.max;

		buf_done(&s->out);
		s->out = (struct buf)BUF_INIT(max);
	}
}

static ssize_t interp_stream_read(void *arg, char *data, size_t max)
{
	struct interp_stream *s = arg;
	size_t n;

	while (s->sent == s->out.len) {
		int r;

		interp_stream_empty(s);
		if (s->ended)
			return 0;
		r = s->source->pump(s);
		if (r == 0 && s->out.len == 0)
			r = interp_stream_wait(s);
		if (r < 0)
			return r;
	}
	n = MIN(max, s->out.len - s->sent);
	memcpy(data, s->out.data + s->sent, n);
	s->sent += n;
	s->last_us = clock_boot_us();
	return (ssize_t)n;
}

int interp_stream_reply(struct request *r, const struct interp_source *source, void *arg, int fd)
{
	static const struct stream functions = { .read = interp_stream_read,
						 .close = interp_stream_close };
	struct interp_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		source->free(arg);
		return -ENOMEM;
	}
	s->request = r;
	s->source = source;
	s->arg = arg;
	s->fd = fd;
	s->out.max = INTERP_LINE_MAX;
	s->last_us = clock_boot_us();
	return reply_stream(r, 200, "application/x-ndjson", UINT64_MAX, &functions, s);
}
