/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which protocol a client speaks that spoke first. Servers forgive a lot in a request (empty lines
 * before it, any case, tabs, lines that end with LF alone), so everything that one of them might
 * take for a request counts as one here; the strict reader then refuses what is odd about it.
 */
#include "egress/parse/request.h"

#include <strings.h>

#define LINE_MAX_BYTES                                                                             \
	8192 /* text without an end: counts as a request, which is then refused as too long */

static bool is_text(unsigned char c)
{
	return c == '\t' || c == '\r' || c == '\n' || (c >= ' ' && c != 0x7f);
}

static bool has_http(const unsigned char *line, size_t len)
{
	static const char mark[] = "HTTP/";

	for (size_t i = 0; i + sizeof(mark) - 1 <= len; i++)
		if (strncasecmp((const char *)line + i, mark, sizeof(mark) - 1) == 0)
			return true;
	return false;
}

enum first first_bytes(const unsigned char *data, size_t len)
{
	size_t begin = 0;

	if (len == 0)
		return FIRST_MORE;
	if (data[0] == 0x16)
		return len == 1 ? FIRST_MORE : data[1] == 3 ? FIRST_TLS : FIRST_RAW;
	while (begin < len && (data[begin] == '\r' || data[begin] == '\n'))
		begin++;
	for (size_t i = begin; i < len; i++) {
		if (!is_text(data[i]))
			return has_http(data + begin, i - begin) ? FIRST_HTTP : FIRST_RAW;
		if (data[i] == '\n')
			return has_http(data + begin, i - begin) ? FIRST_HTTP : FIRST_RAW;
	}
	return len >= LINE_MAX_BYTES ? FIRST_HTTP : FIRST_MORE;
}
