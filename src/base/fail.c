/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail.h"

#include <stdarg.h>

int fail_set(struct fail *fail, int err, const char *where, const char *fmt, ...)
{
	va_list args;

	fail->err = err;
	(void)snprintf(fail->where, sizeof(fail->where), "%s", where);
	va_start(args, fmt);
	(void)vsnprintf(fail->msg, sizeof(fail->msg), fmt, args);
	va_end(args);
	return err ? -err : -EINVAL;
}
