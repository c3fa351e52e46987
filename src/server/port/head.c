/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/head.h"

#include "server/port/rules.h"

#include <strings.h>

/* What has a body, asks for another protocol, or says so twice: the library's. */
static const char *const not_express[] = { "Content-Length", "Transfer-Encoding", "Upgrade",
					   "Expect" };

/* A request that may be made twice without harm: until there is an answer, the library can still have it. */
static bool is_harmless(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "OPTIONS") == 0;
}

/* Cuts off what is before the separator, and leaves *at behind it. NULL: there is none. */
static char *cut(char **at, const char *separator)
{
	char *start = *at, *end = strstr(start, separator);

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + strlen(separator);
	return start;
}

static bool read_line(struct port_head *h, char *line)
{
	char *method = cut(&line, " "), *target = method ? cut(&line, " ") : NULL;

	if (!target || strcmp(line, "HTTP/1.1") != 0 || strlen(target) > HTTP_TARGET_MAX)
		return false;
	h->method = method;
	h->target = target;
	h->to_head = strcmp(method, "HEAD") == 0;
	return is_harmless(method) && head_target_ok(target);
}

static char *trim(char *value)
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
static bool note(struct port_head *h, const char *name, const char *value)
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

static bool read_field(struct port_head *h, struct head_fields *f, char *line)
{
	char *value = line, *name = cut(&value, ":");

	if (!name || h->n_fields >= ARRAY_SIZE(h->field))
		return false;
	value = trim(value);
	head_field_look(f, name, strlen(name), value, strlen(value));
	h->field[h->n_fields++] = (struct port_head_field){ .name = name, .value = value };
	return note(h, name, value);
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
	line = cut(&at, "\r\n");
	if (!line || !read_line(ret, line))
		return false;
	while (*at) {
		line = cut(&at, "\r\n");
		if (!line || !read_field(ret, &fields, line))
			return false;
	}
	return head_field_verdict(&fields, &why) == 0;
}
