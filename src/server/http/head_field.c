/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/head_field.h"

#include <strings.h>
#include <time.h>

static const char *const single_names[_HEAD_SINGLE_MAX] = {
	[HEAD_HOST] = "Host",
	[HEAD_LENGTH] = "Content-Length",
	[HEAD_ENCODING] = "Transfer-Encoding",
	[HEAD_TYPE] = "Content-Type",
	[HEAD_KEY] = "X-API-KEY",
	[HEAD_AUTHORIZATION] = "Authorization",
	[HEAD_TOKEN] = "X-Access-Token",
	[HEAD_SANDBOX_ID] = "E2b-Sandbox-Id",
	[HEAD_SANDBOX_PORT] = "E2b-Sandbox-Port",
};

bool head_is_token(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || (unsigned char)name[i] >= 0x7f ||
		    strchr("()<>@,;:\\\"/[]?={}", name[i]))
			return false;
	return len > 0;
}

static bool head_is_value(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

void head_field_look(struct head_fields *f, const char *name, size_t name_len, const char *value,
		     size_t value_len)
{
	f->n++;
	f->bytes += name_len + value_len + sizeof(": \r\n") - 1;
	if (!head_is_token(name, name_len))
		f->broken = "a header's name has a character that must not be in one";
	if (!value || !head_is_value(value, value_len))
		f->broken = "a header's value has a control character";
	for (size_t i = 0; i < _HEAD_SINGLE_MAX; i++)
		if ((single_names[i][0] | 32) == (name[0] | 32) &&
		    strcasecmp(name, single_names[i]) == 0 && ++f->seen[i] > 1)
			f->broken = "a header is there twice that must be there once";
}

static unsigned verdict(unsigned status, const char *why, const char **ret_why)
{
	*ret_why = why;
	return status;
}

unsigned head_field_verdict(const struct head_fields *f, const char **ret_why)
{
	if (f->n > HTTP_HEADERS_MAX)
		return verdict(431, "there are more than 64 headers", ret_why);
	if (f->bytes > HTTP_HEADER_BYTES_MAX)
		return verdict(431, "the headers are larger than 16 KiB", ret_why);
	if (f->broken)
		return verdict(400, f->broken, ret_why);
	if (!f->seen[HEAD_HOST])
		return verdict(400, "a request must have a Host header", ret_why);
	if (f->seen[HEAD_LENGTH] && f->seen[HEAD_ENCODING])
		return verdict(400, "both Content-Length and Transfer-Encoding", ret_why);
	return 0;
}

int head_add_line(struct buf *b, const char *name, const char *value)
{
	int r = buf_add(b, name, strlen(name));

	if (r == 0)
		r = buf_add(b, ": ", 2);
	if (r == 0)
		r = buf_add(b, value, strlen(value));
	return r == 0 ? buf_add(b, "\r\n", 2) : r;
}

void head_date(int64_t s, char ret[static HEAD_DATE_SIZE])
{
	time_t when = (time_t)s;
	struct tm tm;

	/* The server never sets a locale, so the names are English. */
	if (!gmtime_r(&when, &tm) || tm.tm_year + 1900 > 9999 || tm.tm_year + 1900 < 0 ||
	    strftime(ret, HEAD_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		ret[0] = '\0';
}

bool head_target_ok(const char *target)
{
	if (target[0] != '/')
		return false;
	for (; *target; target++)
		if (*target <= ' ' || (unsigned char)*target >= 0x7f || *target == '#')
			return false;
	return true;
}
