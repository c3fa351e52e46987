/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/uri.h"

#include "base/utf8.h"

static int uri_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int uri_decode(const char *text, size_t len, bool plus, char *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 2 < len ? uri_hex_digit(text[i + 1]) : -1;
			int low = i + 2 < len ? uri_hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return -EINVAL;
			c = (char)(high * 16 + low);
			i += 2;
		} else if (plus && c == '+') {
			c = ' ';
		}
		if (c == '\0')
			return -EINVAL;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return utf8_valid(ret, n, NULL) ? 0 : -EINVAL;
}

/* RFC 3986: pchar. */
static bool path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~%!$&'()*+,;=:@", c));
}

static bool segment_ok(const char *text, size_t len)
{
	if (len == 0 || (len == 1 && text[0] == '.') ||
	    (len == 2 && text[0] == '.' && text[1] == '.'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!path_char(text[i]))
			return false;
	return true;
}

int uri_split_path(const char *path, size_t len, struct uri_path *ret)
{
	const char *end = path + len;

	ret->n = 0;
	if (len == 0 || path[0] != '/')
		return -EINVAL;
	if (len == 1)
		return 0;
	while (path < end) {
		const char *start = path + 1;
		const char *slash = memchr(start, '/', (size_t)(end - start));

		path = slash ? slash : end;
		if (ret->n >= URI_SEGMENTS_MAX || !segment_ok(start, (size_t)(path - start)))
			return -EINVAL;
		ret->segment[ret->n].text = start;
		ret->segment[ret->n++].len = (size_t)(path - start);
	}
	return 0;
}

/* One "name=value" of len bytes; what is decoded goes to *memory, which moves on. */
static int uri_add_pair(struct uri_query *q, const char *text, size_t len, char **memory)
{
	const char *equals = memchr(text, '=', len);
	size_t name_len = equals ? (size_t)(equals - text) : len;
	size_t value_len = equals ? len - name_len - 1 : 0;
	char *name = *memory, *value;
	int r = uri_decode(text, name_len, true, name);

	if (r < 0)
		return r;
	value = name + name_len + 1;
	r = uri_decode(equals ? equals + 1 : "", value_len, true, value);
	if (r < 0)
		return r;
	if (name[0] == '\0' || uri_query_get(q, name))
		return -EINVAL;
	if (q->n >= URI_QUERY_MAX)
		return -E2BIG;
	q->pair[q->n].name = name;
	q->pair[q->n++].value = value;
	*memory = value + value_len + 1;
	return 0;
}

int uri_parse_query(const char *text, struct uri_query *ret)
{
	struct uri_query q = { 0 };
	size_t len = strlen(text);
	char *memory;
	int r = 0;

	/* Decoding never makes text longer; each pair needs two terminators, one of which is the
	 * '=' or '&'. */
	q.memory = malloc(2 * len + 2);
	if (!q.memory)
		return -ENOMEM;
	memory = q.memory;
	while (*text && r == 0) {
		size_t n = strcspn(text, "&");

		if (n > 0)
			r = uri_add_pair(&q, text, n, &memory);
		text += n + (text[n] == '&');
	}
	if (r < 0) {
		free(q.memory);
		return r;
	}
	*ret = q;
	return 0;
}

void uri_query_done(struct uri_query *q)
{
	free(q->memory);
	*q = (struct uri_query){ 0 };
}

const char *uri_query_get(const struct uri_query *q, const char *name)
{
	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->pair[i].name, name) == 0)
			return q->pair[i].value;
	return NULL;
}
