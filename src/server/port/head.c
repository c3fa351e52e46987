/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/head.h"

#include "server/http/head_field.h"
#include "server/port/rules.h"

#include <inttypes.h>
#include <strings.h>

/* --- read ------------------------------------------------------------------------------------- */

/* What has a body, asks for another protocol, or says so twice: the library's. */
static const char *const not_express[] = { "Content-Length", "Transfer-Encoding", "Upgrade",
					   "Expect" };

/* A request that may be made twice without harm: until there is an answer, the library can still
 * have it. */
static bool is_harmless(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "OPTIONS") == 0;
}

/* Cuts off what is before the separator, and leaves *at behind it. NULL: there is none. */
static char *head_cut(char **at, const char *separator)
{
	char *start = *at, *end = strstr(start, separator);

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + strlen(separator);
	return start;
}

static bool head_read_line(struct port_head *h, char *line)
{
	char *method = head_cut(&line, " "), *target = method ? head_cut(&line, " ") : NULL;

	if (!target || strcmp(line, "HTTP/1.1") != 0 || strlen(target) > HTTP_TARGET_MAX)
		return false;
	h->method = method;
	h->target = target;
	h->to_head = strcmp(method, "HEAD") == 0;
	return is_harmless(method) && head_target_ok(target);
}

static char *head_trim(char *value)
{
	size_t len;

	value += strspn(value, " \t");
	len = strlen(value);
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	value[len] = '\0';
	return value;
}

/* Remembers those that mean something to us. False: not for here. */
static bool head_note(struct port_head *h, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_express); i++)
		if (strcasecmp(name, not_express[i]) == 0)
			return false;
	if (strcasecmp(name, "Host") == 0)
		h->host = value;
	if (strcasecmp(name, "Connection") == 0) {
		if (h->connection)
			return false;
		h->connection = value;
		h->last = port_list_has(value, "close");
	}
	if (strcasecmp(name, "E2B-Traffic-Access-Token") == 0) {
		if (h->traffic_token)
			return false;
		h->traffic_token = value;
	}
	return true;
}

static bool head_read_field(struct port_head *h, struct head_fields *f, char *line)
{
	char *value = line, *name = head_cut(&value, ":");

	if (!name || h->n_fields >= ARRAY_SIZE(h->field))
		return false;
	value = head_trim(value);
	head_field_look(f, name, strlen(name), value, strlen(value));
	h->field[h->n_fields++] = (struct port_head_field){ .name = name, .value = value };
	return head_note(h, name, value);
}

bool port_head_read(struct port_head *ret, char *data, size_t len)
{
	struct head_fields fields = { 0 };
	const char *why;
	char *at = data, *line;

	ret->len = port_head_end(data, len);
	if (ret->len == 0 || ret->len > PORT_EXPRESS_HEAD_MAX || !port_is_lines(data, ret->len))
		return false;
	ret->host = ret->connection = ret->traffic_token = NULL;
	ret->last = false;
	ret->n_fields = 0;
	data[ret->len - 2] = '\0'; /* of the empty line: the text ends behind the last header */
	line = head_cut(&at, "\r\n");
	if (!line || !head_read_line(ret, line))
		return false;
	while (*at) {
		line = head_cut(&at, "\r\n");
		if (!line || !head_read_field(ret, &fields, line))
			return false;
	}
	return head_field_verdict(&fields, &why) == 0;
}

/* --- written ---------------------------------------------------------------------------------- */

static int ask_add(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

/* How long the body is: one statement, ours. */
static int ask_framing(const struct port_ask *q, struct buf *b)
{
	char length[24];
	int r;

	if (q->upgrade) {
		r = head_add_line(b, "Connection", "Upgrade");
		return r == 0 ? head_add_line(b, "Upgrade", "websocket") : r;
	}
	if (q->length == UINT64_MAX)
		return head_add_line(b, "Transfer-Encoding", "chunked");
	if (!q->has_length)
		return 0;
	(void)snprintf(length, sizeof(length), "%" PRIu64, q->length);
	return head_add_line(b, "Content-Length", length);
}

static int ask_origin(const struct port_ask *q, struct buf *b)
{
	int r = head_add_line(b, "Host", q->host_to_tell);

	if (r == 0 && q->client[0])
		r = head_add_line(b, "X-Forwarded-For", q->client);
	if (r == 0)
		r = head_add_line(b, "X-Forwarded-Proto", q->tls ? "https" : "http");
	return r == 0 ? head_add_line(b, "X-Forwarded-Host", q->host) : r;
}

int port_ask_begin(const struct port_ask *q, struct buf *ret)
{
	int r = ask_add(ret, q->method);

	if (r == 0)
		r = buf_add(ret, " ", 1);
	if (r == 0)
		r = ask_add(ret, q->target);
	if (r == 0)
		r = ask_add(ret, " HTTP/1.1\r\n");
	if (r == 0)
		r = ask_origin(q, ret);
	return r == 0 ? ask_framing(q, ret) : r;
}

int port_ask_field(const struct port_ask *q, const char *name, const char *value, struct buf *ret)
{
	return port_field_goes_in(name, value, q->connection) ? head_add_line(ret, name, value) : 0;
}

int port_ask_end(struct buf *ret)
{
	return buf_add(ret, "\r\n", 2);
}
