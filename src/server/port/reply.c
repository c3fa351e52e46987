/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a program on its way to the client. Its body is never kept: each piece goes out as it comes, so events
 * arrive when they happen. Where it breaks off the client's connection is reset, so that nobody takes a part for the
 * whole.
 */
#include "server/port/port.h"

#define BLOCK ((size_t)64 << 10)
#define SMALL ((size_t)4 << 10)

/* --- fields -------------------------------------------------------------------------------------------------- */

/* The library takes no tabs, which mean the same as a blank. */
static void untab(char *value)
{
	for (; *value; value++)
		if (*value == '\t')
			*value = ' ';
}

int port_reply_fields(const struct port_visit *v, struct MHD_Response *reply)
{
	const struct port_answer *a = &v->answer;

	for (size_t i = 0; i < a->n_fields; i++) {
		if (!port_field_goes_out(a, &a->field[i], v->own_address))
			continue;
		untab(a->field[i].value);
		if (MHD_add_response_header(reply, a->field[i].name, a->field[i].value) != MHD_YES)
			return -EPROTO;
	}
	if (!v->own_address)
		return 0;
	/* Shown in a browser at our own address, it is nobody: no scripts, no cookies, no storage of ours, and no cache
	 * keeps it for an answer of ours. */
	if (MHD_add_response_header(reply, "Content-Security-Policy", "sandbox") != MHD_YES ||
	    MHD_add_response_header(reply, "X-Content-Type-Options", "nosniff") != MHD_YES ||
	    MHD_add_response_header(reply, "Cache-Control", "no-store") != MHD_YES)
		return -ENOMEM;
	return 0;
}

/* --- the body -------------------------------------------------------------------------------------------------- */

/* What came together with the head, or else what comes next. */
static ssize_t next_bytes(struct port_visit *v, char *data, size_t max)
{
	struct port_link *l = v->link;
	size_t n = MIN(max, l->end - l->start);

	if (n == 0)
		return port_link_recv(v->r, l, data, max);
	memcpy(data, l->data + l->start, n);
	l->start += n;
	return (ssize_t)n;
}

/* An end that is the end of the body only if the sandbox is still there: one that was hung up ends like that, too. */
static ssize_t to_end(struct port_visit *v, ssize_t n)
{
	bool running;

	if (n != 0)
		return n;
	running = port_is_running(v->r->sandbox);
	v->ended = running;
	return running ? 0 : -ENOTCONN;
}

static ssize_t read_length(struct port_visit *v, char *data, size_t max)
{
	ssize_t n = next_bytes(v, data, MIN(max, v->left));

	if (n <= 0)
		return n < 0 ? n : -ENODATA;
	v->left -= (uint64_t)n;
	v->ended = v->left == 0;
	return n;
}

static ssize_t read_chunks(struct port_visit *v, char *data, size_t max)
{
	size_t rest = 0;
	ssize_t n = 0;

	while (n == 0 && !v->ended) {
		n = next_bytes(v, data, max);
		if (n == 0)
			return -ENODATA;
		if (n > 0)
			n = port_answer_unchunk(&v->answer, data, (size_t)n, &v->ended, &rest);
		if (rest > 0)
			v->answer.keeps = false;
	}
	return n;
}

static ssize_t read_body(void *cls, uint64_t pos, char *data, size_t max)
{
	struct port_visit *v = cls;
	ssize_t n;

	(void)pos;
	if (v->answer.body == PORT_BODY_LENGTH)
		n = read_length(v, data, max);
	else if (v->answer.body == PORT_BODY_CHUNKED)
		n = read_chunks(v, data, max);
	else
		n = to_end(v, next_bytes(v, data, max));
	if (n > 0)
		return n;
	if (n == 0 && v->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	connection_reset(v->r->socket);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* Never asked: the library sends no body with what this is for. */
static ssize_t read_nothing(void *cls, uint64_t pos, char *data, size_t max)
{
	(void)cls;
	(void)pos;
	(void)data;
	(void)max;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* --- the reply --------------------------------------------------------------------------------------------------- */

static struct MHD_Response *make_empty(struct port_visit *v)
{
	static char nothing[1];
	bool to_head = strcmp(v->r->method, "HEAD") == 0;
	bool no_length = v->answer.length == UINT64_MAX;

	v->ended = true;
	if (!to_head || v->answer.length == 0)
		return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
	return MHD_create_response_from_callback(no_length ? MHD_SIZE_UNKNOWN : v->answer.length,
						 BLOCK, read_nothing, NULL, NULL);
}

/* A body that has arrived whole goes out together with its head. A small one is copied, so that the connection can serve
 * others meanwhile. */
static struct MHD_Response *make_whole(struct port_visit *v)
{
	struct port_link *l = v->link;
	size_t len = (size_t)v->answer.length;
	char *body = l->data + l->start;

	l->start += len;
	v->ended = true;
	v->lent = len > SMALL;
	return MHD_create_response_from_buffer(
		len, body, v->lent ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
}

static struct MHD_Response *make_reply(struct port_visit *v)
{
	const struct port_answer *a = &v->answer;

	v->left = a->length;
	if (a->body == PORT_BODY_NONE)
		return make_empty(v);
	if (a->body == PORT_BODY_LENGTH && a->length <= v->link->end - v->link->start)
		return make_whole(v);
	return MHD_create_response_from_callback(a->body == PORT_BODY_LENGTH ? a->length :
									       MHD_SIZE_UNKNOWN,
						 BLOCK, read_body, v, NULL);
}

int port_reply(struct port_visit *v)
{
	struct MHD_Response *reply = make_reply(v);
	int r = reply ? port_reply_fields(v, reply) : -ENOMEM;

	if (r < 0) {
		if (reply)
			MHD_destroy_response(reply);
		return r;
	}
	r = reply_made(v->r, v->answer.status, reply);
	/* Nothing more is wanted of the program: the next one can have it at once. */
	if (r == 0 && v->ended && !v->lent)
		port_visit_release(v, true);
	return r;
}
