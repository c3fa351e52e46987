/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request: what the library lets through and we do not (AP-04). It has its own limit
 * for the whole head (half of a connection's memory); ours are smaller. Anything that two readers
 * could understand differently is refused, because the other reader may be a proxy in front of us.
 */
#include "server/http/exchange.h"

#include "base/parse.h"
#include "server/http/head_field.h"

#include <strings.h>

#define METHOD_MAX 32 /* of what is passed on */

struct looking {
	struct head_fields fields;
	const char *end; /* of the line before, in the library's memory */
};

/* Where such a request ends cannot be known for sure: it is answered at once, and nothing is read
 * after it. */
int head_refuse(struct exchange *x, unsigned status, const char *what)
{
	x->is_last = true;
	reply_header(&x->r, "Connection", "close");
	return reply_error(&x->r, status, "%s", what);
}

/*
 * The library understands more than the standard allows: lines that end with LF alone, values
 * folded over several lines or with a NUL in them, lines without a name. It does not say that it
 * did. But it works in place: each line lies where it arrived, with what ends it overwritten by
 * NULs. So a line that does not begin right after the one before has had something done to it.
 * (From 0.9.77 on it can be told to refuse all that itself: http/daemon.c.)
 */
#define LIBRARY_IS_LENIENT (MHD_VERSION < 0x00097701)

static bool follows(const char *end, const char *next)
{
	return !LIBRARY_IS_LENIENT || (uintptr_t)next == (uintptr_t)end + sizeof("\r\n") - 1;
}

/* The last line of all has two line ends behind it, of which nothing but NULs is left. Safe to look
 * at: they were received, or there would be no request, and the line was found to lie where it
 * arrived. */
static bool is_last_line(const char *end)
{
	static const char nothing[sizeof("\r\n\r\n") - 1];

	return !LIBRARY_IS_LENIENT || memcmp(end, nothing, sizeof(nothing)) == 0;
}

static enum MHD_Result look_at_field(void *cls, enum MHD_ValueKind kind, const char *name,
				     size_t name_len, const char *value, size_t value_len)
{
	struct looking *l = cls;

	(void)kind;
	if (!follows(l->end, name))
		l->fields.broken = "a header is not one line that ends with CR LF";
	if (value)
		l->end = value + value_len;
	head_field_look(&l->fields, name, name_len, value, value_len);
	return MHD_YES;
}

static int head_check_fields(struct exchange *x, const char *version)
{
	struct looking l = { .end = version + strlen(version) };
	const char *why;
	unsigned status;

	(void)MHD_get_connection_values_n(x->r.connection, MHD_HEADER_KIND, look_at_field, &l);
	if (!l.fields.broken && l.fields.n > 0 && !is_last_line(l.end))
		l.fields.broken = "the last header is not one line that ends with CR LF";
	status = head_field_verdict(&l.fields, &why);
	return status ? head_refuse(x, status, why) : 0;
}

static int head_check_framing(struct exchange *x, const char *version)
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

static int head_check_target(struct exchange *x)
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
	return head_check_target(x);
}

int head_check(struct exchange *x, const char *method, const char *version)
{
	int r;

	x->r.method = method;
	x->r.path = x->target;
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return head_refuse(x, 505, "HTTP/1.1 is spoken here");
	r = head_check_fields(x, version);
	if (r == 0 && !x->r.replied)
		r = head_check_framing(x, version);
	return r;
}

static bool is_method(const char *method)
{
	size_t len = strlen(method);

	return len < METHOD_MAX && head_is_token(method, len) && strcmp(method, "CONNECT") != 0;
}

int head_check_passed_on(struct exchange *x)
{
	if (!is_method(x->r.method))
		return head_refuse(x, 501, "this method cannot be passed on");
	if (strlen(x->target) > HTTP_TARGET_MAX)
		return head_refuse(x, 414, "the request line is longer than 8 KiB");
	if (!head_target_ok(x->target))
		return head_refuse(x, 400, "the request target must be a path of printable ASCII");
	return 0;
}
