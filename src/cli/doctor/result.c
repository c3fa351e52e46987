/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"

#include <stdarg.h>

/* Longer texts than these have no place in a table: they are cut. */
static __attribute__((format(printf, 3, 0))) void fill(char *text, size_t size, const char *fmt,
						       va_list args)
{
	(void)vsnprintf(text, size, fmt, args);
}

void doctor_summary(struct doctor_result *r, enum doctor_level level, const char *fmt, ...)
{
	va_list args;

	r->level = level;
	va_start(args, fmt);
	fill(r->summary, sizeof(r->summary), fmt, args);
	va_end(args);
}

void doctor_detail(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(r->detail, sizeof(r->detail), fmt, args);
	va_end(args);
}

void doctor_cost(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(r->cost, sizeof(r->cost), fmt, args);
	va_end(args);
}

void doctor_remedy(struct doctor_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(r->fix, sizeof(r->fix), fmt, args);
	va_end(args);
}

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_WARNING] = "warning",
		[DOCTOR_ERROR] = "error",
	};

	return names[level];
}

enum doctor_level doctor_needed(const struct doctor *d)
{
	return d->box_ok ? DOCTOR_WARNING : DOCTOR_ERROR;
}

bool doctor_is_blocked(const struct doctor *d, struct doctor_result *r)
{
	if (d->userns == 0)
		return false;
	doctor_summary(r, DOCTOR_NOTE, "not tried: it takes user namespaces");
	return true;
}
