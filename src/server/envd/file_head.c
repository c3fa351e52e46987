/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/file_head.h"

#include "base/parse.h"

#include <ctype.h>
#include <strings.h>
#include <time.h>

#define DIGITS_MAX 20
#define FILE_NAME_MAX 255
#define BOUNDARY_MAX 70
#define METADATA_PREFIX "X-Metadata-"

/* Digits at *at, or none at all; moves behind them. */
static int take_number(const char **at, bool *ret_given, uint64_t *ret)
{
	char digits[DIGITS_MAX + 1];
	size_t n = 0;

	while (isdigit((unsigned char)(*at)[n]))
		if (n++ == DIGITS_MAX)
			return -EINVAL;
	memcpy(digits, *at, n);
	digits[n] = '\0';
	*at += n;
	*ret_given = n > 0;
	return n ? parse_u64(digits, ret) : 0;
}

int envd_range_parse(const char *header, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length)
{
	uint64_t first = 0, last = 0;
	bool has_first, has_last;
	const char *at;

	if (!header || strncasecmp(header, "bytes=", 6) != 0)
		return 0;
	at = header + 6;
	if (take_number(&at, &has_first, &first) < 0 || *at++ != '-' ||
	    take_number(&at, &has_last, &last) < 0 || *at || (!has_first && !has_last) ||
	    (has_first && has_last && last < first))
		return 0;
	if (has_first ? first >= size : last == 0 || size == 0)
		return -ERANGE;
	if (!has_first) {
		*ret_length = MIN(last, size);
		*ret_offset = size - *ret_length;
	} else {
		*ret_offset = first;
		*ret_length = (has_last ? MIN(last, size - 1) : size - 1) - first + 1;
	}
	return 1;
}

void envd_etag(int64_t mtime_s, uint32_t mtime_ns, uint64_t size, char ret[ENVD_ETAG_SIZE])
{
	(void)snprintf(ret, ENVD_ETAG_SIZE, "\"%llx-%x-%llx\"", (unsigned long long)mtime_s,
		       mtime_ns, (unsigned long long)size);
}

bool envd_etag_matches(const char *header, const char *etag)
{
	size_t len = strlen(etag);

	while (header && *header) {
		header += strspn(header, " \t,");
		if (*header == '*')
			return true;
		if (strncmp(header, "W/", 2) == 0)
			header += 2;
		if (strncmp(header, etag, len) == 0)
			return true;
		header += strcspn(header, ",");
	}
	return false;
}

bool envd_date_parse(const char *header, int64_t *ret)
{
	struct tm tm = { 0 };
	const char *end = header ? strptime(header, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;

	if (!end || *end)
		return false;
	*ret = timegm(&tm);
	return true;
}

/* Is this element's weight zero? ("identity;q=0", "*; q=0.000") */
static bool weight_is_zero(const char *at, const char *end)
{
	const char *q = memchr(at, ';', (size_t)(end - at));

	if (!q)
		return false;
	q++;
	q += strspn(q, " \t");
	if (strncasecmp(q, "q=0", 3) != 0)
		return false;
	q += 3;
	return q + strspn(q, ".0 \t") >= end;
}

bool envd_identity_accepted(const char *header)
{
	bool star_refused = false;

	if (!header)
		return true;
	while (*header) {
		const char *end;
		size_t name;

		header += strspn(header, " \t,");
		end = header + strcspn(header, ",");
		name = strcspn(header, " \t,;");
		if (name == 8 && strncasecmp(header, "identity", name) == 0)
			return !weight_is_zero(header, end);
		if (name == 1 && *header == '*')
			star_refused = weight_is_zero(header, end);
		header = end;
	}
	return !star_refused;
}

bool envd_gzip_wanted(const char *header)
{
	bool gzip = false;

	while (header && *header) {
		const char *end;
		size_t name;

		header += strspn(header, " \t,");
		end = header + strcspn(header, ",");
		name = strcspn(header, " \t,;");
		if (name == 4 && strncasecmp(header, "gzip", name) == 0)
			gzip = !weight_is_zero(header, end);
		else if (name > 0 && !weight_is_zero(header, end))
			return false;
		header = end;
	}
	return gzip;
}

/* Characters that stand for themselves in a header's quoted text and in RFC 5987's. */
static bool is_plain_byte(unsigned char c)
{
	return isalnum(c) || c == '.' || c == '-' || c == '_';
}

void envd_disposition(const char *path, char ret[ENVD_DISPOSITION_SIZE])
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char plain[FILE_NAME_MAX + 1], encoded[3 * FILE_NAME_MAX + 1];
	size_t n = strlen(name), at = 0;

	if (n == 0 || n > FILE_NAME_MAX) {
		(void)snprintf(ret, ENVD_DISPOSITION_SIZE, "inline");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		plain[i] = is_plain_byte(c) ? (char)c : '_';
		at += (size_t)snprintf(encoded + at, sizeof(encoded) - at,
				       is_plain_byte(c) ? "%c" : "%%%02X", c);
	}
	plain[n] = '\0';
	(void)snprintf(ret, ENVD_DISPOSITION_SIZE, "inline; filename=\"%s\"; filename*=UTF-8''%s",
		       plain, encoded);
}

bool envd_boundary_ok(const char *content_type)
{
	const char *at = strcasestr(content_type, "boundary=");
	bool quoted;
	size_t n;

	if (!at || strcasestr(at + 1, "boundary="))
		return false;
	at += 9;
	quoted = *at == '"';
	at += quoted;
	n = strspn(at, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		       "'()+_,-./:=?");
	if (n == 0 || n > BOUNDARY_MAX)
		return false;
	return quoted ? at[n] == '"' : at[n] == '\0' || at[n] == ';' || at[n] == ' ';
}

int envd_part_name(const char *filename, char *ret, size_t size)
{
	static const struct {
		const char *escape;
		char plain;
	} escapes[] = { { "%22", '"' }, { "%0D", '\r' }, { "%0A", '\n' } };
	size_t n = 0;

	while (*filename) {
		size_t used = 1;
		char c = *filename;

		for (size_t i = 0; i < ARRAY_SIZE(escapes); i++)
			if (strncasecmp(filename, escapes[i].escape, 3) == 0) {
				c = escapes[i].plain;
				used = 3;
			}
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		ret[n++] = c;
		filename += used;
	}
	ret[n] = '\0';
	return 0;
}

int envd_attr_key(const char *header, char ret[ENVD_ATTR_KEY_MAX + 1])
{
	size_t prefix = sizeof(METADATA_PREFIX) - 1, n;

	if (strncasecmp(header, METADATA_PREFIX, prefix) != 0)
		return -ENOENT;
	header += prefix;
	n = strlen(header);
	if (n == 0 || n > ENVD_ATTR_KEY_MAX)
		return -EINVAL;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)tolower((unsigned char)header[i]);
	return envd_attr_value_ok(ret) ? 0 : -EINVAL;
}

bool envd_attr_value_ok(const char *value)
{
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return false;
	return true;
}
