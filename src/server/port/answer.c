/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/answer.h"

#include "base/parse.h"
#include "server/http/head_field.h"

#include <strings.h>

static int answer_wrong(struct port_answer *a, const char *what)
{
	a->broken = what;
	return -EPROTO;
}

size_t port_head_end(const char *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);

	return end ? (size_t)(end - data) + 4 : 0;
}

bool port_is_lines(const char *head, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)head[i];

		if (c == '\r') {
			if (i + 1 >= len || head[i + 1] != '\n')
				return false;
			i++;
			if (i + 1 < len && (head[i + 1] == ' ' || head[i + 1] == '\t'))
				return false;
		} else if ((c < ' ' && c != '\t') || c == 0x7f) {
			return false;
		}
	}
	return true;
}

/* --- the head --------------------------------------------------------------------------------- */

/* While the library reads a head. */
struct reading {
	struct port_answer *answer;
	bool to_head;
	bool complete;
	unsigned flags;
};

static int on_name(http_parser *p, const char *text, size_t len)
{
	struct reading *reading = p->data;
	struct port_answer *a = reading->answer;

	if (a->n_fields >= PORT_FIELDS_MAX || !head_is_token(text, len))
		return -1;
	a->field[a->n_fields++] =
		(struct port_field){ .name = (char *)(uintptr_t)text, .name_len = len };
	return 0;
}

static int on_value(http_parser *p, const char *text, size_t len)
{
	struct reading *reading = p->data;
	struct port_field *f;

	if (reading->answer->n_fields == 0)
		return -1;
	f = &reading->answer->field[reading->answer->n_fields - 1];
	/* Once for each name: the head is read in one piece, and there is no folding. */
	if (f->value)
		return -1;
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	f->value = (char *)(uintptr_t)text;
	f->value_len = len;
	return 0;
}

static int on_head(http_parser *p)
{
	struct reading *reading = p->data;

	reading->complete = true;
	reading->flags = p->flags;
	return reading->to_head; /* 1: no body follows, whatever the head says */
}

/* Once the library is through: what ends a name or a value is not needed any more. */
static void end_fields(struct port_answer *a)
{
	static char empty[1];

	for (size_t i = 0; i < a->n_fields; i++) {
		struct port_field *f = &a->field[i];

		f->name[f->name_len] = '\0';
		if (f->value_len > 0)
			f->value[f->value_len] = '\0';
		else
			f->value = empty; /* the library may have pointed at the next line */
	}
}

/* How the body is delimited: only ways that everybody understands alike. */
static int read_framing(struct port_answer *a, bool to_head)
{
	const char *length = NULL, *encoding = NULL;
	size_t n = 0;

	for (size_t i = 0; i < a->n_fields; i++) {
		if (strcasecmp(a->field[i].name, "Content-Length") == 0) {
			length = a->field[i].value;
			n++;
		} else if (strcasecmp(a->field[i].name, "Transfer-Encoding") == 0) {
			encoding = a->field[i].value;
			n++;
		}
	}
	a->length = UINT64_MAX;
	if (n > 1)
		return answer_wrong(a, "it says its length more than once");
	if (encoding && (strcasecmp(encoding, "chunked") != 0 || a->parser.http_minor == 0))
		return answer_wrong(a, "it has a Transfer-Encoding other than chunked");
	if (length && (parse_u64(length, &a->length) < 0 || a->length > INT64_MAX))
		return answer_wrong(a, "its Content-Length is not a number");
	if (to_head || a->status < 200 || a->status == 204 || a->status == 304)
		a->body = PORT_BODY_NONE;
	else if (encoding)
		a->body = PORT_BODY_CHUNKED;
	else
		a->body = length ? PORT_BODY_LENGTH : PORT_BODY_TO_END;
	return 0;
}

int port_answer_read(struct port_answer *ret, char *head, size_t len, bool to_head)
{
	static const http_parser_settings settings = { .on_header_field = on_name,
						       .on_header_value = on_value,
						       .on_headers_complete = on_head };
	struct reading reading = { .answer = ret, .to_head = to_head };
	http_parser *p = &ret->parser;
	size_t used;
	int r;

	ret->n_fields = 0;
	ret->broken = NULL;
	if (len < 7 || memcmp(head, "HTTP/1.", 7) != 0)
		return answer_wrong(
			ret, "it is not HTTP/1.1"); /* the library would pass over empty lines */
	if (!port_is_lines(head, len))
		return answer_wrong(ret, "its head is not made of lines that end with CR LF");
	http_parse_answers(p);
	p->data = &reading;
	if (!http_parse(p, &settings, head, len, &used) || used != len || !reading.complete)
		return answer_wrong(ret, "its head cannot be read");
	p->data = NULL;
	if (p->http_minor > 1)
		return answer_wrong(ret, "it is not HTTP/1.1");
	ret->status = p->status_code;
	if (ret->status < 100 || ret->status > 599)
		return answer_wrong(ret, "its status is not one of HTTP");
	end_fields(ret);
	r = read_framing(ret, to_head);
	ret->keeps = r == 0 && ret->body != PORT_BODY_TO_END &&
		     (p->http_minor ? !(reading.flags & F_CONNECTION_CLOSE) :
				      reading.flags & F_CONNECTION_KEEP_ALIVE);
	return r;
}

const char *port_answer_get(const struct port_answer *a, const char *name)
{
	for (size_t i = 0; i < a->n_fields; i++)
		if (strcasecmp(a->field[i].name, name) == 0)
			return a->field[i].value;
	return NULL;
}

bool port_list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list && *list) {
		size_t n;

		list += strspn(list, ", \t");
		n = strcspn(list, ", \t");
		if (n == len && strncasecmp(list, word, len) == 0)
			return true;
		list += n;
	}
	return false;
}

/* --- chunks ----------------------------------------------------------------------------------- */

struct unchunking {
	char *to;
	size_t n;
	bool end;
};

static int on_chunk(http_parser *p, const char *text, size_t len)
{
	struct unchunking *u = p->data;

	memmove(u->to + u->n, text, len); /* never ahead of what is being read */
	u->n += len;
	return 0;
}

static int on_chunks_end(http_parser *p)
{
	struct unchunking *u = p->data;

	u->end = true;
	return 1; /* what follows is not part of this answer */
}

ssize_t port_answer_unchunk(struct port_answer *a, char *data, size_t len, bool *ret_end,
			    size_t *ret_rest)
{
	/* Trailers are dropped: nobody asks for their callbacks. */
	static const http_parser_settings settings = { .on_body = on_chunk,
						       .on_message_complete = on_chunks_end };
	struct unchunking u = { .to = data };
	size_t used;
	bool good;

	a->parser.data = &u;
	good = http_parse(&a->parser, &settings, data, len, &used);
	a->parser.data = NULL;
	if (!u.end && (used != len || !good)) {
		a->broken = "its chunks cannot be read";
		return -EPROTO;
	}
	*ret_end = u.end;
	*ret_rest = len - used;
	return (ssize_t)u.n;
}
