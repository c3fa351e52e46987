/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer on its way from a line to a visitor. Nothing more is read from the program while the client has not taken what
 * there is, so a slow client slows the program, and what is kept for it is bounded. Where the answer breaks off the
 * client's connection is reset, so that nobody takes a part for the whole.
 */
#include "server/port/express_priv.h"

#include "server/sandbox/clock.h"
#include "server/http/head_field.h"

#include <inttypes.h>
#include <strings.h>
#include <sys/uio.h>

#define INTERIM_MAX 16 /* answers of 1xx before the real one */

/* A piece for the client: the head, perhaps, and a chunk or the end. */
struct parcel {
	struct iovec iov[5];
	size_t n;
	char size[24]; /* of the chunk */
};

static void add(struct parcel *p, const void *data, size_t len)
{
	p->iov[p->n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = len };
}

/* --- to the client ---------------------------------------------------------------------------------------- */

static ssize_t send_some(const struct visitor *v, struct iovec *iov, size_t n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent = sendmsg(v->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return sent;
}

/* What does not go now is kept. */
static int deliver(struct visitor *v, struct parcel *p)
{
	ssize_t sent = p->n > 0 ? send_some(v, p->iov, p->n) : 0;
	size_t skip = sent > 0 ? (size_t)sent : 0;
	int r = sent < 0 ? (int)sent : 0;

	for (size_t i = 0; i < p->n && r == 0; i++) {
		size_t n = MIN(skip, p->iov[i].iov_len);

		skip -= n;
		if (n < p->iov[i].iov_len)
			r = buf_add(&v->out, (char *)p->iov[i].iov_base + n, p->iov[i].iov_len - n);
	}
	return r;
}

static bool is_waiting(const struct visitor *v)
{
	return v->out_start < v->out.len;
}

/* --- the head ------------------------------------------------------------------------------------------------ */

static int add_text(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

/* How long the body is: one statement, ours. */
static int add_framing(const struct visitor *v, struct buf *b)
{
	char length[24];

	if (v->answer.body == PORT_BODY_CHUNKED || v->answer.body == PORT_BODY_TO_END)
		return head_add_line(b, "Transfer-Encoding", "chunked");
	if (v->answer.body == PORT_BODY_NONE && (!v->to_head || v->answer.length == UINT64_MAX))
		return 0;
	(void)snprintf(length, sizeof(length), "%" PRIu64, v->answer.length);
	return head_add_line(b, "Content-Length", length);
}

/* Who passes on an answer without a date says when it came. */
static int add_date(struct buf *b)
{
	static _Thread_local char text[HEAD_DATE_SIZE];
	static _Thread_local int64_t of;
	int64_t now = clock_wall_ms() / 1000;

	if (now != of)
		head_date(now, text);
	of = now;
	return head_add_line(b, "Date", text);
}

static int write_head(const struct visitor *v, struct buf *b)
{
	const struct port_answer *a = &v->answer;
	char line[80];
	int r;

	b->len = 0;
	(void)snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", a->status,
		       MHD_get_reason_phrase_for(a->status));
	r = add_text(b, line);
	for (size_t i = 0; i < a->n_fields && r == 0; i++)
		if (port_field_goes_out(a, &a->field[i], false))
			r = head_add_line(b, a->field[i].name, a->field[i].value);
	if (r == 0 && !port_answer_get(a, "Date"))
		r = add_date(b);
	if (r == 0)
		r = add_framing(v, b);
	if (r == 0 && v->last)
		r = head_add_line(b, "Connection", "close");
	return r == 0 ? buf_add(b, "\r\n", 2) : r;
}

/* The head of the answer itself, and *data behind it: those of 1xx before it are passed over. -EAGAIN: it has not come. */
static int read_head(struct visitor *v, char **data, size_t *len)
{
	do {
		size_t n = port_head_end(*data, *len);
		int r;

		if (n == 0 || n > PORT_HEAD_MAX)
			return *len < PORT_HEAD_MAX ? -EAGAIN : -EPROTO;
		r = port_answer_read(&v->answer, *data, n, v->to_head);
		if (r < 0)
			return r;
		*data += n;
		*len -= n;
		if (v->answer.status >= 200)
			return 0;
	} while (v->answer.status != 101 && ++v->interim < INTERIM_MAX);
	return -EPROTO;
}

/* There is an answer: from here on the request is ours, and taken from the kernel. */
static int accept_answer(struct visitor *v, struct parcel *p)
{
	struct buf *head = &v->thread->head;
	ssize_t n = recv(v->fd, v->thread->peeked, v->head_len, MSG_TRUNC | MSG_DONTWAIT);
	int r;

	v->state = VISITOR_HEARING;
	v->left = v->answer.length;
	v->ended = false;
	if (n != (ssize_t)v->head_len)
		return -EPROTO;
	v->taken += v->head_len;
	r = write_head(v, head);
	if (r == 0)
		add(p, head->data, head->len);
	return r;
}

/* --- the body ------------------------------------------------------------------------------------------------- */

static void add_chunk(struct visitor *v, struct parcel *p, const char *data, size_t len)
{
	if (len > 0) {
		add(p, p->size, (size_t)snprintf(p->size, sizeof(p->size), "%zx\r\n", len));
		add(p, data, len);
	}
	if (v->ended)
		add(p, len > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n", len > 0 ? 7 : 5);
	else if (len > 0)
		add(p, "\r\n", 2);
}

/* Bytes behind the answer: whoever sends those is not trusted with another request. */
static void has_rest(struct visitor *v, size_t rest)
{
	if (rest > 0)
		v->answer.keeps = false;
}

static int take_length(struct visitor *v, struct parcel *p, const char *data, size_t len)
{
	size_t n = MIN(len, v->left);

	v->left -= n;
	v->ended = v->left == 0;
	has_rest(v, len - n);
	if (n > 0)
		add(p, data, n);
	return 0;
}

static int take_chunks(struct visitor *v, struct parcel *p, char *data, size_t len)
{
	size_t rest = 0;
	ssize_t n = len > 0 ? port_answer_unchunk(&v->answer, data, len, &v->ended, &rest) : 0;

	if (n < 0)
		return (int)n;
	has_rest(v, rest);
	add_chunk(v, p, data, (size_t)n);
	return 0;
}

static int take_body(struct visitor *v, struct parcel *p, char *data, size_t len)
{
	switch (v->answer.body) {
	case PORT_BODY_LENGTH:
		return take_length(v, p, data, len);
	case PORT_BODY_CHUNKED:
		return take_chunks(v, p, data, len);
	case PORT_BODY_TO_END:
		add_chunk(v, p, data, len);
		return 0;
	case PORT_BODY_NONE:
	default:
		v->ended = true;
		has_rest(v, len);
		return 0;
	}
}

/* --- both ------------------------------------------------------------------------------------------------------ */

/* The next request may have the line although the client has not taken all; and before he hears the end, or his next
 * request finds a program busy with a line that nobody uses. */
static void give_line_back(struct visitor *v)
{
	if (v->ended && v->line)
		line_release(take_ptr(v->line), v->answer.keeps);
}

static void end_of_answer(struct visitor *v)
{
	if (v->ended && !is_waiting(v))
		visitor_finish(v);
}

/* What has come, of which the head may be a part. -EAGAIN: it is kept, there must be more. */
static int pass_on(struct visitor *v, char *data, size_t len)
{
	struct port_link *l = v->line->link;
	struct parcel p = { 0 };
	int r = 0;

	if (v->state == VISITOR_ASKING) {
		r = read_head(v, &data, &len);
		if (r == -EAGAIN) {
			memcpy(l->data, data, len);
			l->end = len;
		}
		if (r == 0)
			r = accept_answer(v, &p);
	}
	if (r == 0)
		r = take_body(v, &p, data, len);
	if (r == 0)
		give_line_back(v);
	return r == 0 ? deliver(v, &p) : r;
}

/* An end that is the end of the body only if the sandbox is still there: one that was hung up ends like that, too. */
static void hung_up(struct visitor *v, ssize_t n)
{
	struct parcel p = { 0 };

	if (v->state == VISITOR_ASKING) {
		visitor_hand_over(v);
		return;
	}
	v->ended = n == 0 && v->answer.body == PORT_BODY_TO_END && port_is_running(v->sandbox);
	if (v->ended) {
		add_chunk(v, &p, NULL, 0);
		give_line_back(v);
	}
	if (!v->ended || deliver(v, &p) < 0)
		visitor_break_off(v);
	else
		end_of_answer(v);
}

static void give_up(struct visitor *v)
{
	if (v->state == VISITOR_ASKING)
		visitor_hand_over(v);
	else
		visitor_break_off(v);
}

static void one_piece(struct visitor *v)
{
	struct port_link *l = v->line->link;
	char *data = v->thread->piece;
	ssize_t n = recv(l->op.sock, data + l->end, EXPRESS_PIECE - l->end, MSG_DONTWAIT);
	size_t len = l->end + (size_t)MAX(n, 0);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hung_up(v, n);
		return;
	}
	memcpy(data, l->data, l->end);
	l->end = 0;
	r = pass_on(v, data, len);
	if (r < 0 && r != -EAGAIN)
		give_up(v);
	else if (v->state == VISITOR_HEARING)
		end_of_answer(v);
}

void relay_line(struct visitor *v)
{
	const struct line *l = v->line;

	one_piece(v);
	/* While the client has not taken this, nothing more is asked for: relay_client() does it
	 * then. The next request may have begun, on another line. */
	if (v->line == l && !is_waiting(v) && line_await(v->line) < 0)
		give_up(v);
}

void relay_client(struct visitor *v)
{
	struct iovec rest = { .iov_base = v->out.data + v->out_start,
			      .iov_len = v->out.len - v->out_start };
	ssize_t n;

	if (!is_waiting(v))
		return;
	n = send_some(v, &rest, 1);
	if (n < 0) {
		visitor_drop(v);
		return;
	}
	v->out_start += (size_t)n;
	if (is_waiting(v))
		return;
	v->out.len = v->out_start = 0;
	if (v->ended)
		end_of_answer(v);
	else if (line_await(v->line) < 0)
		give_up(v);
}
