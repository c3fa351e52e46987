/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request in the clear (NW-13). Two readers must agree on it: ours, which takes only
 * what the standard allows without any of its leniencies, and the library's, which then also finds
 * the end of the body. Whatever else a server could read into it is refused before it leaves.
 */
#include "egress/parse/request.h"

#include <strings.h>

#define EMPTY_LINE "\r\n\r\n"

ssize_t http_head_length(const unsigned char *data, size_t len)
{
	size_t look = MIN(len, (size_t)REQUEST_MAX);
	const unsigned char *end = memmem(data, look, EMPTY_LINE, sizeof(EMPTY_LINE) - 1);

	if (end)
		return end - data + (ssize_t)sizeof(EMPTY_LINE) - 1;
	if (memmem(data, look, "\n\n", 2) || memmem(data, look, "\n\r\n", 3))
		return -EINVAL; /* it ended for a reader who takes LF alone */
	return len >= REQUEST_MAX ? -E2BIG : 0;
}

/* --- small things --------------------------------------------------------------------------- */

static bool is_token_char(unsigned char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool http_is_token(const unsigned char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(text[i]))
			return false;
	return len > 0;
}

static bool is_value(const unsigned char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return true;
}

static struct http_slice slice(size_t from, size_t to)
{
	return (struct http_slice){ .at = (uint16_t)from, .len = (uint16_t)(to - from) };
}

static bool slice_is(const unsigned char *data, struct http_slice s, const char *text)
{
	return s.len == strlen(text) && strncasecmp((const char *)data + s.at, text, s.len) == 0;
}

/* --- the first line ------------------------------------------------------------------------- */

/* "METHOD SP target SP HTTP/1.x"; *ret_next is behind its line end. */
static int read_request_line(const unsigned char *data, size_t len, struct http_head *h,
			     struct http_slice *ret_target, size_t *ret_next)
{
	const char version[] = "HTTP/1.";
	const unsigned char *end = memmem(data, len, "\r\n", 2);
	const unsigned char *first = end ? memchr(data, ' ', (size_t)(end - data)) : NULL;
	const unsigned char *last = first ? memrchr(data, ' ', (size_t)(end - data)) : NULL;

	if (!last || last <= first + 1 || !http_is_token(data, (size_t)(first - data)))
		return -EINVAL;
	for (const unsigned char *c = first + 1; c < last; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return -EINVAL;
	if ((size_t)(end - last - 1) != sizeof(version) || /* its NUL stands for the digit */
	    memcmp(last + 1, version, sizeof(version) - 1) != 0 ||
	    (end[-1] != '0' && end[-1] != '1'))
		return -EINVAL;
	h->minor = (unsigned)(end[-1] - '0');
	h->method = slice(0, (size_t)(first - data));
	*ret_target = slice((size_t)(first - data) + 1, (size_t)(last - data));
	*ret_next = (size_t)(end - data) + 2;
	return 0;
}

/* "http://authority/path": the parts. A fragment is never sent, and what is before an '@' would be
 * somebody's password. */
static enum policy_reason read_absolute(const unsigned char *data, struct http_slice t,
					struct http_head *h)
{
	const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;
	const unsigned char *text = data + t.at;
	size_t end;

	if (t.len < skip || strncasecmp((const char *)text, scheme, skip) != 0)
		return memmem(text, t.len, "://", 3) ? POLICY_PROTOCOL : POLICY_BAD_REQUEST;
	for (end = skip; end < t.len && text[end] != '/' && text[end] != '?'; end++)
		if (text[end] == '@')
			return POLICY_BAD_REQUEST;
	h->path = slice(t.at + end, (size_t)t.at + t.len);
	if (target_authority(text + skip, end - skip, 80, &h->target) < 0)
		return POLICY_BAD_NAME;
	return POLICY_ALLOWED;
}

static enum policy_reason read_request_target(const unsigned char *data, struct http_slice t,
					      bool as_proxy, struct http_head *h)
{
	if (memchr(data + t.at, '#', t.len))
		return POLICY_BAD_REQUEST;
	if (slice_is(data, h->method, "TRACE"))
		return POLICY_PROTOCOL; /* the host would send back what we add: NW-23 */
	h->is_connect = slice_is(data, h->method, "CONNECT");
	if (h->is_connect && !as_proxy)
		return POLICY_PROTOCOL;
	if (h->is_connect)
		return target_authority(data + t.at, t.len, 0, &h->target) < 0 ? POLICY_BAD_NAME :
										 POLICY_ALLOWED;
	if (as_proxy)
		return read_absolute(data, t, h);
	h->path = t;
	return data[t.at] == '/' ||
			       (slice_is(data, t, "*") && slice_is(data, h->method, "OPTIONS")) ?
		       POLICY_ALLOWED :
		       POLICY_BAD_REQUEST;
}

/* --- the fields ----------------------------------------------------------------------------- */

/* "Name: value" from `at` to `end`. A line that begins with a blank goes on with the one before,
 * for some. */
static int read_field(const unsigned char *data, size_t at, size_t end, struct http_field *ret)
{
	const unsigned char *colon = memchr(data + at, ':', end - at);
	size_t from, to = end;

	if (!colon || !http_is_token(data + at, (size_t)(colon - data) - at))
		return -EINVAL;
	from = (size_t)(colon - data) + 1;
	while (from < to && (data[from] == ' ' || data[from] == '\t'))
		from++;
	while (to > from && (data[to - 1] == ' ' || data[to - 1] == '\t'))
		to--;
	if (!is_value(data + from, to - from))
		return -EINVAL;
	*ret = (struct http_field){ .name = slice(at, (size_t)(colon - data)),
				    .value = slice(from, to) };
	return 0;
}

static int read_fields(const unsigned char *data, size_t at, struct http_head *h)
{
	while (at < h->len - 2) {
		const unsigned char *end = memmem(data + at, h->len - at, "\r\n", 2);

		if (!end || h->n_fields == HTTP_FIELDS_MAX ||
		    read_field(data, at, (size_t)(end - data), &h->fields[h->n_fields]) < 0)
			return -EINVAL;
		h->n_fields++;
		at = (size_t)(end - data) + 2;
	}
	return at == h->len - 2 ? 0 : -EINVAL;
}

/* *ret: the only field of that name, or NULL. */
static int only_field(const unsigned char *data, struct http_head *h, const char *name,
		      struct http_field **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < h->n_fields; i++) {
		if (!slice_is(data, h->fields[i].name, name))
			continue;
		if (*ret)
			return -EINVAL;
		*ret = &h->fields[i];
	}
	return 0;
}

/* Host says the same as the target, or is what the target is taken from. */
static enum policy_reason read_host(const unsigned char *data, uint16_t port, bool as_proxy,
				    struct http_head *h)
{
	struct target said;
	struct http_field *host;
	uint16_t unsaid = h->is_connect ? h->target.port : port;

	if (only_field(data, h, "Host", &host) < 0)
		return POLICY_BAD_REQUEST;
	if (!host) /* Python's and older clients leave it out where the first line has it */
		return as_proxy && (h->is_connect || h->minor == 0) ? POLICY_ALLOWED :
								      POLICY_BAD_REQUEST;
	host->drop = true;
	if (target_authority(data + host->value.at, host->value.len, unsaid, &said) < 0)
		return POLICY_BAD_NAME;
	if (!as_proxy)
		h->target = said;
	return target_equal(&h->target, &said) ? POLICY_ALLOWED : POLICY_HOST_MISMATCH;
}

static int read_length(const unsigned char *data, struct http_slice s, uint64_t *ret)
{
	uint64_t n = 0;

	if (s.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = data[s.at + i];

		if (c < '0' || c > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(c - '0'), &n))
			return -EINVAL;
	}
	*ret = n;
	return n > INT64_MAX ? -EINVAL : 0;
}

/* How long the body is: said once, in one way. */
static int read_body(const unsigned char *data, struct http_head *h)
{
	struct http_field *length, *encoding, *expect;

	if (only_field(data, h, "Content-Length", &length) < 0 ||
	    only_field(data, h, "Transfer-Encoding", &encoding) < 0 ||
	    only_field(data, h, "Expect", &expect) < 0)
		return -EINVAL;
	if (expect && !slice_is(data, expect->value, "100-continue"))
		return -EINVAL;
	if ((length && encoding) || (h->is_connect && (length || encoding)))
		return -EINVAL;
	if (encoding) {
		h->body = HTTP_BODY_CHUNKED;
		return slice_is(data, encoding->value, "chunked") && h->minor == 1 ? 0 : -EINVAL;
	}
	if (length && read_length(data, length->value, &h->body_len) < 0)
		return -EINVAL;
	h->body = length && h->body_len ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	return 0;
}

/* --- fields of this connection only --------------------------------------------------------- */

static void drop_field(const unsigned char *data, struct http_head *h, const unsigned char *name,
		       size_t len)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (h->fields[i].name.len == len &&
		    strncasecmp((const char *)data + h->fields[i].name.at, (const char *)name,
				len) == 0)
			h->fields[i].drop = true;
}

/* What Connection names goes no further; that it names what the message is framed by is an attack
 * on the next reader. */
static int drop_named(const unsigned char *data, struct http_slice s, struct http_head *h,
		      bool *ret_upgrade)
{
	static const char *const framing[] = { "Host", "Content-Length", "Transfer-Encoding" };
	size_t at = s.at, end = (size_t)s.at + s.len;

	while (at < end) {
		size_t from, to;

		for (from = at; from < end && strchr(" \t,", data[from]); from++)
			;
		for (to = from; to < end && !strchr(" \t,", data[to]); to++)
			;
		at = to;
		if (to == from)
			continue;
		if (!http_is_token(data + from, to - from))
			return -EINVAL;
		for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
			if (slice_is(data, slice(from, to), framing[i]))
				return -EINVAL;
		*ret_upgrade = *ret_upgrade || slice_is(data, slice(from, to), "upgrade");
		drop_field(data, h, data + from, to - from);
	}
	return 0;
}

static int drop_hops(const unsigned char *data, struct http_head *h)
{
	static const char *const hops[] = { "Connection", "Keep-Alive", "TE", "Trailer",
					    "Upgrade" };
	bool upgrade = false;
	struct http_field *to;

	for (size_t i = 0; i < h->n_fields; i++) {
		struct http_slice name = h->fields[i].name;

		if (slice_is(data, name, "Connection") &&
		    drop_named(data, h->fields[i].value, h, &upgrade) < 0)
			return -EINVAL;
		if (name.len > 6 && strncasecmp((const char *)data + name.at, "Proxy-", 6) == 0)
			h->fields[i].drop = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(hops); i++)
		drop_field(data, h, (const unsigned char *)hops[i], strlen(hops[i]));
	if (only_field(data, h, "Upgrade", &to) < 0)
		return -EINVAL;
	h->is_upgrade = upgrade && to && slice_is(data, to->value, "websocket");
	if (h->is_upgrade &&
	    (h->body != HTTP_BODY_NONE || h->minor != 1 || !slice_is(data, h->method, "GET")))
		return -EINVAL;
	return 0;
}

/* --- the second reader ---------------------------------------------------------------------- */

/* The library must understand the same; it then stands at the first byte of the body. */
static int agree(const unsigned char *data, struct http_head *h)
{
	const http_parser_settings settings = { 0 };
	http_parser *p = &h->parser;
	size_t used;

	http_parse_requests(p);
	if (!http_parse(p, &settings, (const char *)data, h->len, &used) || used != h->len)
		return -EINVAL;
	if (p->http_major != 1 || p->http_minor != h->minor ||
	    (p->method == HTTP_CONNECT) != h->is_connect)
		return -EINVAL;
	if (((p->flags & F_CHUNKED) != 0) != (h->body == HTTP_BODY_CHUNKED))
		return -EINVAL;
	return h->body == HTTP_BODY_LENGTH && p->content_length != h->body_len ? -EINVAL : 0;
}

enum policy_reason http_head_read(const unsigned char *data, size_t len, bool as_proxy,
				  uint16_t port, struct http_head *ret)
{
	struct http_slice target;
	enum policy_reason reason;
	size_t at;

	*ret = (struct http_head){ .len = len };
	if (!data || len < sizeof(EMPTY_LINE) - 1 || len > REQUEST_MAX || memchr(data, '\0', len))
		return POLICY_BAD_REQUEST;
	if (read_request_line(data, len, ret, &target, &at) < 0)
		return POLICY_BAD_REQUEST;
	reason = read_request_target(data, target, as_proxy, ret);
	if (reason != POLICY_ALLOWED)
		return reason;
	if (read_fields(data, at, ret) < 0 || read_body(data, ret) < 0 || drop_hops(data, ret) < 0)
		return POLICY_BAD_REQUEST;
	reason = read_host(data, port, as_proxy, ret);
	if (reason != POLICY_ALLOWED)
		return reason;
	return agree(data, ret) < 0 ? POLICY_BAD_REQUEST : POLICY_ALLOWED;
}

/* --- as it is sent on ----------------------------------------------------------------------- */

/*
 * A request as it is sent on: written anew from what was understood, never copied as it came. So
 * there is only one way to read it for all that come after us. The headers that are added may hold
 * secrets: they are in one piece of memory that is never moved.
 */
#define HEAD_MAX ((size_t)256 * 1024) /* with what is added */

struct text {
	unsigned char *data; /* NULL: only counts */
	size_t len;
	size_t size;
	bool is_over; /* it would not have fitted */
};

static void text_add(struct text *t, const void *data, size_t len)
{
	if (t->data && len > t->size - t->len) {
		t->is_over = true;
		return;
	}
	if (t->data && len)
		memcpy(t->data + t->len, data, len);
	t->len += len;
}

static void text_add_string(struct text *t, const char *text)
{
	text_add(t, text, strlen(text));
}

static void text_add_slice(struct text *t, const unsigned char *data, struct http_slice s)
{
	text_add(t, data + s.at, s.len);
}

static void text_add_field(struct text *t, const char *name, const char *value)
{
	text_add_string(t, name);
	text_add_string(t, ": ");
	text_add_string(t, value);
	text_add_string(t, "\r\n");
}

static void write_line(struct text *t, const struct http_head *h, const unsigned char *data,
		       const struct http_extra *e, const char *host)
{
	text_add_slice(t, data, h->method);
	text_add_string(t, " ");
	if (e->absolute) {
		text_add_string(t, "http://");
		text_add_string(t, host);
	}
	if (h->path.len == 0 || data[h->path.at] == '?')
		text_add_string(t, "/");
	text_add_slice(t, data, h->path);
	text_add_string(t, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
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
	text_add_field(t, "Host", host);
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (f->drop || is_replaced(e, data, f->name))
			continue;
		text_add_slice(t, data, f->name);
		text_add_string(t, ": ");
		text_add_slice(t, data, f->value);
		text_add_string(t, "\r\n");
	}
	for (size_t i = 0; i < e->n_headers; i++)
		text_add_field(t, e->headers[i]->name, e->headers[i]->value);
	if (e->proxy_authorization && e->proxy_authorization[0])
		text_add_field(t, "Proxy-Authorization", e->proxy_authorization);
	if (h->is_upgrade)
		text_add_field(t, "Upgrade", "websocket");
	text_add_field(t, "Connection", h->is_upgrade ? "Upgrade" : "close");
	text_add_string(t, "\r\n");
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

/* --- the body ------------------------------------------------------------------------------- */

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
		text_add_string(&b->out, size);
	}
	text_add(&b->out, data, len);
	if (b->kind == HTTP_BODY_CHUNKED)
		text_add_string(&b->out, "\r\n");
	return 0;
}

static int take_end(http_parser *p)
{
	struct body *b = p->data;

	if (b->kind == HTTP_BODY_CHUNKED)
		text_add_string(&b->out, "0\r\n\r\n");
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
