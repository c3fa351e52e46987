/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/http/check.h"

#define REF_HOPS_MAX 4 /* "$ref" to a "$ref" … */

/* Where in the value we are: a chain on the stack. */
struct place {
	const struct place *outer;
	const char *name; /* NULL: an array's item */
	size_t index;
};

void place_text(const struct place *at, char *ret, size_t size);
int check_fail(struct check_error *err, const struct place *at, const char *fmt, ...)
	_printf_(3, 4);
_must_check_ int check_at(const json_t *doc, const json_t *schema, const json_t *v,
			  const struct place *at, struct check_error *err);

/* What "$ref" leads to, or the schema itself; NULL when it leads nowhere. */
const json_t *schema_resolve(const json_t *doc, const json_t *schema);

/* Our named formats ("x-format"): is there one of that name, and is this text one? */
bool format_known(const char *name);
bool format_ok(const char *name, const char *text);
