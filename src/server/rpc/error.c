/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/rpc.h"

#include "base/utf8.h"

#include <stdarg.h>

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
