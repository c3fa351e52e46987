/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are taken past the HTTP library. It reads a body through its own buffer and cannot be
 * told that somebody else has read some of it: so a handler that takes a part takes all the rest,
 * the reply is written here, and the connection ends.
 */
#include "server/sandbox/clock.h"
#include "server/http/exchange.h"
#include "server/http/head_field.h"

#include <fcntl.h>
#include <sys/socket.h>

#define SPLICE_MAX ((size_t)1 << 20)
#define PIECE_SIZE ((size_t)16 << 10)
#define HEAD_MAX ((size_t)64 << 10) /* of a reply */

uint64_t body_rest(const struct request *r)
{
	const struct exchange *x = (const struct exchange *)(const void *)r;

	if (x->length == UINT64_MAX || r->server->config.server_tls_cert[0])
		return 0;
	return x->received < x->length ? x->length - x->received : 0;
}

ssize_t body_splice(struct request *r, int pipe_fd)
{
	struct exchange *x = exchange_of(r);
	ssize_t n;

	x->taken = true;
	do {
		n = splice(r->socket, NULL, pipe_fd, NULL, MIN(body_rest(r), SPLICE_MAX),
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	x->received += (uint64_t)n;
	return n ? n : -ECONNRESET;
}

int body_wait(struct request *r, int other_fd)
{
	struct connection *peer = exchange_of(r)->peer;
	int n;

	connection_set(peer, CONNECTION_BODY);
	n = stream_wait_either(r, r->socket, other_fd, -1);
	connection_set(peer, CONNECTION_BUSY);
	return n;
}

/* What the handler left, piece by piece, as the library would have handed it on. */
static int body_read_rest(struct exchange *x)
{
	char piece[PIECE_SIZE];
	int r = 0;

	while (r >= 0 && body_rest(&x->r) > 0) {
		ssize_t n = recv(x->r.socket, piece, MIN(body_rest(&x->r), sizeof(piece)),
				 MSG_DONTWAIT);

		if (n > 0)
			r = exchange_data(x, piece, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			r = body_wait(&x->r, -EBADF);
		else if (n == 0 || errno != EINTR)
			r = -ECONNRESET;
	}
	return r < 0 ? r : 0;
}

struct fields {
	struct buf *to;
	int r;
};

/* The library has checked them: there is no line end in any. */
static enum MHD_Result each_field(void *arg, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	struct fields *f = arg;

	(void)kind;
	f->r = head_add_line(f->to, name, value);
	return f->r == 0 ? MHD_YES : MHD_NO;
}

static int body_add_fields(struct buf *b, struct MHD_Response *reply)
{
	struct fields f = { .to = b };

	(void)MHD_get_response_headers(reply, each_field, &f);
	return f.r;
}

/* The reply as the library would write it for a connection that ends. */
static int body_write_reply(struct exchange *x, struct buf *b)
{
	char line[80], date[HEAD_DATE_SIZE], length[24];
	int r;

	(void)snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", x->status,
		       MHD_get_reason_phrase_for(x->status));
	(void)snprintf(length, sizeof(length), "%zu", x->text_len);
	head_date(clock_wall_ms() / 1000, date);
	r = buf_add(b, line, strlen(line));
	if (r == 0)
		r = head_add_line(b, "Date", date);
	if (r == 0)
		r = body_add_fields(b, x->reply);
	if (r == 0)
		r = head_add_line(b, "Content-Length", length);
	if (r == 0)
		r = head_add_line(b, "Connection", "close");
	if (r == 0)
		r = buf_add(b, "\r\n", 2);
	return r == 0 ? buf_add(b, x->text, x->text_len) : r;
}

static int body_send_reply(struct exchange *x)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(HEAD_MAX + x->text_len);
	int r = x->text ? body_write_reply(x, &b) : -EINVAL;

	for (size_t at = 0; r >= 0 && at < b.len;) {
		ssize_t n = send(x->r.socket, b.data + at, b.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			at += (size_t)n;
		else if (errno == EAGAIN)
			r = stream_wait_space(&x->r, x->r.socket, -EBADF, -1);
		else if (errno != EINTR)
			r = -errno;
	}
	return r < 0 ? r : 0;
}

int body_finish(struct exchange *x)
{
	int r = body_read_rest(x);

	if (r == 0)
		r = exchange_end(x);
	if (r == 0)
		r = body_send_reply(x);
	if (r < 0)
		return r;
	x->sent = true;
	return -ESHUTDOWN;
}
