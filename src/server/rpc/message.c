/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/rpc.h"

#include "base/parse.h"
#include "base/utf8.h"
#include "server/http/schema.h"

#include <sodium.h>
#include <stdarg.h>

/* --- errors ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned status;
} codes[_RPC_CODE_MAX] = {
	[RPC_OK] = { "ok", 200 },
	[RPC_CANCELED] = { "canceled", 499 },
	[RPC_UNKNOWN] = { "unknown", 500 },
	[RPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[RPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[RPC_NOT_FOUND] = { "not_found", 404 },
	[RPC_ALREADY_EXISTS] = { "already_exists", 409 },
	[RPC_PERMISSION_DENIED] = { "permission_denied", 403 },
	[RPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[RPC_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[RPC_UNIMPLEMENTED] = { "unimplemented", 501 },
	[RPC_INTERNAL] = { "internal", 500 },
	[RPC_UNAVAILABLE] = { "unavailable", 503 },
	[RPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

const char *rpc_code_name(enum rpc_code code)
{
	return codes[code].name;
}

unsigned rpc_code_status(enum rpc_code code)
{
	return codes[code].status;
}

/* What does not fit is cut, and not in the middle of a character. */
static void cut_whole(char *text)
{
	size_t bad;

	if (!utf8_valid(text, strlen(text), &bad))
		text[bad] = '\0';
}

void rpc_fill(struct rpc_error *e, enum rpc_code code, const char *fmt, ...)
{
	va_list args;
	int n;

	e->code = code;
	va_start(args, fmt);
	n = vsnprintf(e->message, sizeof(e->message), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(e->message))
		cut_whole(e->message);
}

/* --- messages -------------------------------------------------------------------------------- */

#define TIMEOUT_DIGITS_MAX 10
#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S 3600
#define NAME_MAX_LEN 40 /* of a member, in snake_case */

int rpc_envelope_next(const unsigned char *data, size_t n, size_t *ret_len)
{
	size_t len;

	if (n < RPC_ENVELOPE_HEAD)
		return 0;
	if (data[0] != 0)
		return -EPROTO;
	len = (size_t)data[1] << 24 | (size_t)data[2] << 16 | (size_t)data[3] << 8 | data[4];
	if (len > RPC_MESSAGE_MAX)
		return -EMSGSIZE;
	if (n - RPC_ENVELOPE_HEAD < len)
		return 0;
	*ret_len = RPC_ENVELOPE_HEAD + len;
	return 1;
}

int rpc_envelope_add(struct buf *out, unsigned char flags, const void *data, size_t len)
{
	const unsigned char head[RPC_ENVELOPE_HEAD] = {
		flags,
		(unsigned char)(len >> 24),
		(unsigned char)(len >> 16),
		(unsigned char)(len >> 8),
		(unsigned char)len,
	};
	int r;

	if (len > UINT32_MAX)
		return -EMSGSIZE;
	r = buf_add(out, head, sizeof(head));
	return r < 0 ? r : buf_add(out, data, len);
}

int rpc_parse(const void *data, size_t len, json_t **ret, struct rpc_error *e)
{
	struct check_error why = { 0 };
	json_t *message = NULL;
	char text[sizeof(why)];

	/* An empty body is an empty message. */
	if (len == 0)
		message = json_object();
	else if (check_parse(data, len, &message, &why) < 0) {
		check_error_text(&why, text, sizeof(text));
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s", text);
	}
	if (!json_is_object(message)) {
		json_decref(message);
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "the message must be an object");
	}
	*ret = message;
	return 0;
}

/* "includeEntry" as "include_entry". */
static bool snake_case(const char *name, char ret[NAME_MAX_LEN])
{
	size_t n = 0;

	for (; *name; name++) {
		if (n + 3 > NAME_MAX_LEN)
			return false;
		if (*name >= 'A' && *name <= 'Z') {
			ret[n++] = '_';
			ret[n++] = (char)(*name - 'A' + 'a');
		} else {
			ret[n++] = *name;
		}
	}
	ret[n] = '\0';
	return true;
}

json_t *rpc_member(const json_t *message, const char *name)
{
	char other[NAME_MAX_LEN];
	json_t *member = json_object_get(message, name);

	if (!member && snake_case(name, other))
		member = json_object_get(message, other);
	return json_is_null(member) ? NULL : member;
}

int rpc_object(const json_t *message, const char *name, const json_t **ret, struct rpc_error *e)
{
	const json_t *member = rpc_member(message, name);

	if (member && !json_is_object(member))
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: must be an object", name);
	*ret = member;
	return 0;
}

int rpc_string(const json_t *message, const char *name, size_t max, const char **ret,
	       struct rpc_error *e)
{
	const json_t *member = rpc_member(message, name);

	if (member && !json_is_string(member))
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: must be a string", name);
	if (member && json_string_length(member) > max)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: is longer than %zu bytes", name, max);
	*ret = member ? json_string_value(member) : NULL;
	return 0;
}

int rpc_bool(const json_t *message, const char *name, bool *ret, struct rpc_error *e)
{
	const json_t *member = rpc_member(message, name);

	if (member && !json_is_boolean(member))
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: must be true or false", name);
	*ret = json_is_true(member);
	return 0;
}

int rpc_number(const json_t *message, const char *name, uint64_t max, uint64_t *ret,
	       struct rpc_error *e)
{
	const json_t *member = rpc_member(message, name);
	uint64_t value = 0;
	int r = 0;

	if (json_is_integer(member)) {
		if (json_integer_value(member) < 0)
			r = -ERANGE;
		value = (uint64_t)json_integer_value(member);
	} else if (json_is_string(member)) {
		r = parse_u64(json_string_value(member), &value);
	} else if (member) {
		r = -EINVAL;
	}
	if (r < 0 || value > max)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: must be a number from 0 to %llu",
				name, (unsigned long long)max);
	*ret = value;
	return 0;
}

static int base64_variant(const char *text, size_t len)
{
	bool url = memchr(text, '-', len) || memchr(text, '_', len);
	bool padded = len > 0 && text[len - 1] == '=';

	if (url)
		return padded ? sodium_base64_VARIANT_URLSAFE :
				sodium_base64_VARIANT_URLSAFE_NO_PADDING;
	/* Where no padding is needed the two variants are the same. */
	return padded ? sodium_base64_VARIANT_ORIGINAL : sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
}

int rpc_bytes(const json_t *message, const char *name, unsigned char **ret, size_t *ret_len,
	      struct rpc_error *e)
{
	const json_t *member = rpc_member(message, name);
	_cleanup_(freep) unsigned char *bytes = NULL;
	const char *text;
	size_t len, got;

	if (!json_is_string(member))
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: must be a string in base64", name);
	text = json_string_value(member);
	len = json_string_length(member);
	bytes = malloc(len / 4 * 3 + 4);
	if (!bytes)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED, "no memory");
	if (sodium_base642bin(bytes, len / 4 * 3 + 4, text, len, NULL, &got, NULL,
			      base64_variant(text, len)) < 0)
		return rpc_fail(e, RPC_INVALID_ARGUMENT, "%s: is not base64", name);
	*ret = take_ptr(bytes);
	*ret_len = got;
	return 0;
}

int rpc_terminal(const json_t *message, const char *name, bool *ret_given, uint16_t *ret_rows,
		 uint16_t *ret_cols, struct rpc_error *e)
{
	const json_t *terminal = NULL, *size = NULL;
	uint64_t rows = 0, cols = 0;
	int r = rpc_object(message, name, &terminal, e);

	if (r == 0)
		r = rpc_object(terminal, "size", &size, e);
	if (r == 0)
		r = rpc_number(size, "rows", UINT16_MAX, &rows, e);
	if (r == 0)
		r = rpc_number(size, "cols", UINT16_MAX, &cols, e);
	if (r < 0)
		return r;
	*ret_given = terminal != NULL;
	*ret_rows = (uint16_t)rows;
	*ret_cols = (uint16_t)cols;
	return 0;
}

int rpc_base64_add(struct buf *out, const void *data, size_t len)
{
	/* In pieces of a multiple of three, which need no padding: no buffer beside out's own. */
	enum { PIECE = 3072, TEXT = PIECE / 3 * 4 + 1 };
	const unsigned char *from = data;
	char text[TEXT];

	while (len > 0) {
		size_t n = MIN(len, (size_t)PIECE);
		int r;

		sodium_bin2base64(text, sizeof(text), from, n, sodium_base64_VARIANT_ORIGINAL);
		r = buf_add(out, text, (n + 2) / 3 * 4);
		if (r < 0)
			return r;
		from += n;
		len -= n;
	}
	return 0;
}

json_t *rpc_text(const void *data, size_t len)
{
	struct buf fixed = BUF_INIT(3 * len + 1);
	json_t *text;

	if (utf8_valid(data, len, NULL))
		return json_stringn_nocheck(data, len);
	if (utf8_replace_invalid(data, len, &fixed) < 0)
		return NULL;
	text = json_stringn((const char *)fixed.data, fixed.len);
	buf_done(&fixed);
	return text;
}

int rpc_timeout_parse(const char *text, uint64_t *ret_ms)
{
	uint64_t ms = 0;

	if (text && (strlen(text) > TIMEOUT_DIGITS_MAX || parse_u64(text, &ms) < 0))
		return -EINVAL;
	*ret_ms = ms;
	return 0;
}

uint64_t rpc_keepalive_us(const char *text)
{
	uint64_t seconds;

	if (!text || parse_u64(text, &seconds) < 0 || seconds == 0 || seconds > KEEPALIVE_MAX_S)
		seconds = KEEPALIVE_DEFAULT_S;
	return seconds * 1000000;
}
