/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, and where in the value. */
#include "server/http/check_priv.h"

#include <stdarg.h>

int check_fail(struct check_error *err, const struct place *at, const char *fmt, ...)
{
	va_list args;

	err->where[0] = '\0';
	place_text(at, err->where, sizeof(err->where));
	va_start(args, fmt);
	(void)vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Appends the outer places first. */
void place_text(const struct place *at, char *ret, size_t size)
{
	size_t n;

	if (!at)
		return;
	place_text(at->outer, ret, size);
	n = strlen(ret);
	if (at->name)
		(void)snprintf(ret + n, size - n, "%s%.64s", n ? "." : "", at->name);
	else
		(void)snprintf(ret + n, size - n, "[%zu]", at->index);
}

void check_error_text(const struct check_error *err, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s%s%s", err->where, err->where[0] ? ": " : "", err->what);
}
