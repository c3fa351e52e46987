/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as it is sent on: written anew from what was understood, never copied as it came. So there is only one
 * way to read it, whoever reads it next. The headers that are added may hold secrets: they are in one piece of
 * memory that is never moved.
 */
#include "egress/request.h"

#include <strings.h>

#define HEAD_MAX ((size_t)256 * 1024) /* with what is added */

struct text {
	unsigned char *data; /* NULL: only counts */
	size_t len;
	size_t size;
	bool is_over; /* it would not have fitted */
};

static void add(struct text *t, const void *data, size_t len)
{
	if (t->data && len > t->size - t->len) {
		t->is_over = true;
		return;
	}
	if (t->data && len)
		memcpy(t->data + t->len, data, len);
	t->len += len;
}

static void add_text(struct text *t, const char *text)
{
	add(t, text, strlen(text));
}

static void add_slice(struct text *t, const unsigned char *data, struct http_slice s)
{
	add(t, data + s.at, s.len);
}

static void add_field(struct text *t, const char *name, const char *value)
{
	add_text(t, name);
	add_text(t, ": ");
	add_text(t, value);
	add_text(t, "\r\n");
}

static void write_line(struct text *t, const struct http_head *h, const unsigned char *data,
		       const struct http_extra *e, const char *host)
{
	add_slice(t, data, h->method);
	add_text(t, " ");
	if (e->absolute) {
		add_text(t, "http://");
		add_text(t, host);
	}
	if (h->path.len == 0 || data[h->path.at] == '?')
		add_text(t, "/");
	add_slice(t, data, h->path);
	add_text(t, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
}

/* The box's own header of that name is replaced. */
static bool is_replaced(const struct http_extra *e, const unsigned char *data,
			struct http_slice name)
{
	for (size_t i = 0; i < e->n_headers; i++)
		if (strlen(e->headers[i]->name) == name.len &&
		    strncasecmp(e->headers[i]->name, (const char *)data + name.at, name.len) == 0)
			return true;
	return false;
}

static void write_head(struct text *t, const struct http_head *h, const unsigned char *data,
		       const struct http_extra *e)
{
	char host[TARGET_TEXT_SIZE];
	struct target to = h->target;

	to.port = e->port;
	target_text(&to, e->scheme_port, host);
	write_line(t, h, data, e, host);
	add_field(t, "Host", host);
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (f->drop || is_replaced(e, data, f->name))
			continue;
		add_slice(t, data, f->name);
		add_text(t, ": ");
		add_slice(t, data, f->value);
		add_text(t, "\r\n");
	}
	for (size_t i = 0; i < e->n_headers; i++)
		add_field(t, e->headers[i]->name, e->headers[i]->value);
	if (e->proxy_authorization && e->proxy_authorization[0])
		add_field(t, "Proxy-Authorization", e->proxy_authorization);
	if (h->is_upgrade)
		add_field(t, "Upgrade", "websocket");
	add_field(t, "Connection", h->is_upgrade ? "Upgrade" : "close");
	add_text(t, "\r\n");
}

int http_head_build(const struct http_head *h, const unsigned char *data,
		    const struct http_extra *extra, unsigned char **ret, size_t *ret_len)
{
	struct text t = { 0 };
	size_t len;

	write_head(&t, h, data, extra);
	len = t.len;
	if (len > HEAD_MAX)
		return -E2BIG;
	t = (struct text){ .data = malloc(len), .size = len };
	if (!t.data)
		return -ENOMEM;
	write_head(&t, h, data, extra);
	*ret = t.data;
	*ret_len = len;
	return 0;
}

/* --- the body --------------------------------------------------------------------------------- */

struct body {
	enum http_body kind;
	struct text out;
	bool done;
};

static int take_body(http_parser *p, const char *data, size_t len)
{
	struct body *b = p->data;
	char size[sizeof("ffffffffffffffff\r\n")];

	if (b->kind == HTTP_BODY_CHUNKED) {
		(void)snprintf(size, sizeof(size), "%zx\r\n", len);
		add_text(&b->out, size);
	}
	add(&b->out, data, len);
	if (b->kind == HTTP_BODY_CHUNKED)
		add_text(&b->out, "\r\n");
	return 0;
}

static int take_end(http_parser *p)
{
	struct body *b = p->data;

	if (b->kind == HTTP_BODY_CHUNKED)
		add_text(&b->out, "0\r\n\r\n");
	b->done = true;
	return 1; /* what follows would be another request: NW-13 */
}

int http_body_feed(http_parser *p, enum http_body kind, const unsigned char *data, size_t len,
		   unsigned char *out, size_t *ret_out_len, bool *ret_done)
{
	struct body b = { .kind = kind, .out = { .data = out, .size = len + HTTP_BODY_MORE } };
	const http_parser_settings settings = { .on_body = take_body,
						.on_message_complete = take_end };
	size_t used;
	bool good;

	p->data = &b;
	good = http_parse(p, &settings, (const char *)data, len, &used);
	p->data = NULL;
	if (b.out.is_over || (!b.done && !good))
		return -EPROTO;
	*ret_out_len = b.out.len;
	*ret_done = b.done;
	return 0;
}
