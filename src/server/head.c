/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request: what the library lets through and we do not (AP-04). It has its own limit for the whole
 * head (half of a connection's memory); ours are smaller. Anything that two readers could understand differently is
 * refused, because the other reader may be a proxy in front of us.
 */
#include "server/exchange.h"

#include "base/parse.h"

#include <strings.h>

/* Headers of which there must not be two: readers differ in which one they take. */
enum single {
	SINGLE_HOST,
	SINGLE_LENGTH,
	SINGLE_ENCODING,
	SINGLE_TYPE,
	SINGLE_KEY,
	SINGLE_AUTHORIZATION,
	SINGLE_TOKEN,
	SINGLE_SANDBOX_ID,
	SINGLE_SANDBOX_PORT,
	_SINGLE_MAX,
};

static const char *const single_names[_SINGLE_MAX] = {
	[SINGLE_HOST] = "Host",
	[SINGLE_LENGTH] = "Content-Length",
	[SINGLE_ENCODING] = "Transfer-Encoding",
	[SINGLE_TYPE] = "Content-Type",
	[SINGLE_KEY] = "X-API-KEY",
	[SINGLE_AUTHORIZATION] = "Authorization",
	[SINGLE_TOKEN] = "X-Access-Token",
	[SINGLE_SANDBOX_ID] = "E2b-Sandbox-Id",
	[SINGLE_SANDBOX_PORT] = "E2b-Sandbox-Port",
};

struct fields {
	size_t n;
	size_t bytes;
	unsigned seen[_SINGLE_MAX];
	const char *end;    /* of the line before, in the library's memory */
	const char *broken; /* what is wrong with one of them */
};

/* Where such a request ends cannot be known for sure: it is answered at once, and nothing is read after it. */
int head_refuse(struct exchange *x, unsigned status, const char *what)
{
	x->is_last = true;
	reply_header(&x->r, "Connection", "close");
	return reply_error(&x->r, status, "%s", what);
}

/*
 * The library understands more than the standard allows: lines that end with LF alone, values folded over several lines
 * or with a NUL in them, lines without a name. It does not say that it did. But it works in place: each line lies
 * where it arrived, with what ends it overwritten by NULs. So a line that does not begin right after the one before has
 * had something done to it. (From 0.9.77 on it can be told to refuse all that itself: http.c.)
 */
#define LIBRARY_IS_LENIENT (MHD_VERSION < 0x00097701)

static bool follows(const char *end, const char *next)
{
	return !LIBRARY_IS_LENIENT || (uintptr_t)next == (uintptr_t)end + sizeof("\r\n") - 1;
}

/* The last line of all has two line ends behind it, of which nothing but NULs is left. Safe to look at: they were
 * received, or there would be no request, and the line was found to lie where it arrived. */
static bool is_last_line(const char *end)
{
	static const char nothing[sizeof("\r\n\r\n") - 1];

	return !LIBRARY_IS_LENIENT || memcmp(end, nothing, sizeof(nothing)) == 0;
}

static bool is_token(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || (unsigned char)name[i] >= 0x7f ||
		    strchr("()<>@,;:\\\"/[]?={}", name[i]))
			return false;
	return len > 0;
}

static bool is_value(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

static enum MHD_Result look_at_field(void *cls, enum MHD_ValueKind kind, const char *name,
				     size_t name_len, const char *value, size_t value_len)
{
	struct fields *f = cls;

	(void)kind;
	if (!follows(f->end, name))
		f->broken = "a header is not one line that ends with CR LF";
	if (value)
		f->end = value + value_len;
	f->n++;
	f->bytes += name_len + value_len + sizeof(": \r\n") - 1;
	if (!is_token(name, name_len))
		f->broken = "a header's name has a character that must not be in one";
	if (!value || !is_value(value, value_len))
		f->broken = "a header's value has a control character";
	for (size_t i = 0; i < _SINGLE_MAX; i++)
		if (strcasecmp(name, single_names[i]) == 0 && ++f->seen[i] > 1)
			f->broken = "a header is there twice that must be there once";
	return MHD_YES;
}

static int check_fields(struct exchange *x, const char *version)
{
	struct fields f = { .end = version + strlen(version) };

	(void)MHD_get_connection_values_n(x->r.connection, MHD_HEADER_KIND, look_at_field, &f);
	if (f.n > HTTP_HEADERS_MAX)
		return head_refuse(x, 431, "there are more than 64 headers");
	if (f.bytes > HTTP_HEADER_BYTES_MAX)
		return head_refuse(x, 431, "the headers are larger than 16 KiB");
	if (!f.broken && f.n > 0 && !is_last_line(f.end))
		f.broken = "the last header is not one line that ends with CR LF";
	if (f.broken)
		return head_refuse(x, 400, f.broken);
	if (!f.seen[SINGLE_HOST])
		return head_refuse(x, 400, "a request must have a Host header");
	if (f.seen[SINGLE_LENGTH] && f.seen[SINGLE_ENCODING])
		return head_refuse(x, 400, "both Content-Length and Transfer-Encoding");
	return 0;
}

static int check_framing(struct exchange *x, const char *version)
{
	const char *length = request_header(&x->r, "Content-Length");
	const char *encoding = request_header(&x->r, "Transfer-Encoding");
	const char *expect = request_header(&x->r, "Expect");

	if (length && parse_u64(length, &x->length) < 0)
		return head_refuse(x, 400, "Content-Length must be a number");
	if (encoding && strcmp(version, "HTTP/1.1") != 0)
		return head_refuse(x, 400, "Transfer-Encoding is of HTTP/1.1");
	if (encoding && strcasecmp(encoding, "chunked") != 0)
		return head_refuse(x, 501, "the only Transfer-Encoding is chunked");
	if (expect && strcasecmp(expect, "100-continue") != 0)
		return head_refuse(x, 417, "the only expectation is 100-continue");
	if (encoding)
		x->length = UINT64_MAX;
	x->has_body = x->length > 0;
	x->expects_continue = expect && x->has_body;
	return 0;
}

static int check_target(struct exchange *x)
{
	char *question;
	int r;

	if (strlen(x->target) > HTTP_TARGET_MAX)
		return head_refuse(x, 414, "the request line is longer than 8 KiB");
	if (x->target[0] != '/')
		return head_refuse(x, 400, "the request target must be a path");
	question = strchr(x->target, '?');
	if (question) {
		*question = '\0';
		r = uri_parse_query(question + 1, &x->query);
		if (r == -EINVAL || r == -E2BIG)
			return reply_error(&x->r, 400,
					   "the query cannot be read: a name is there twice, "
					   "or something is not encoded properly");
		if (r < 0)
			return r;
	}
	/* AP-08: what is not a plain path is the path of nothing. */
	if (uri_split_path(x->target, strlen(x->target), &x->path) < 0)
		return reply_error(&x->r, 404, "there is nothing at this path");
	return 0;
}

int head_check_own(struct exchange *x)
{
	if (request_header(&x->r, "Upgrade"))
		return head_refuse(x, 400, "upgrades to another protocol are not supported");
	return check_target(x);
}

int head_check(struct exchange *x, const char *method, const char *version)
{
	int r;

	x->r.method = method;
	x->r.path = x->target;
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return head_refuse(x, 505, "HTTP/1.1 is spoken here");
	r = check_fields(x, version);
	if (r == 0 && !x->r.replied)
		r = check_framing(x, version);
	return r;
}
