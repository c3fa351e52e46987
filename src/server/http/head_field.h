/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request may be, field by field (AP-04), and how a field is written. Pure. */
#pragma once

#include "base/buf.h"

#define HTTP_TARGET_MAX 8192
#define HTTP_HEADERS_MAX 64
#define HTTP_HEADER_BYTES_MAX 16384

/* Headers of which there must not be two: readers differ in which one they take. */
enum head_single {
	HEAD_HOST,
	HEAD_LENGTH,
	HEAD_ENCODING,
	HEAD_TYPE,
	HEAD_KEY,
	HEAD_AUTHORIZATION,
	HEAD_TOKEN,
	HEAD_SANDBOX_ID,
	HEAD_SANDBOX_PORT,
	_HEAD_SINGLE_MAX,
};

struct head_fields {
	size_t n;
	size_t bytes;
	unsigned seen[_HEAD_SINGLE_MAX];
	const char *broken; /* what is wrong with one of them */
};

/* Could it be the name of one? */
bool head_is_token(const char *name, size_t len);
/* Looks at the next one, whose name has a NUL behind it. value is NULL where there was none. */
void head_field_look(struct head_fields *f, const char *name, size_t name_len, const char *value,
		     size_t value_len);
/* All have been looked at: the status to refuse them with, and *ret_why; 0: they are fine. */
unsigned head_field_verdict(const struct head_fields *f, const char **ret_why);
/* Writes one, with its line end. */
_must_check_ int head_add_line(struct buf *b, const char *name, const char *value);

#define HEAD_DATE_SIZE 40
/* Seconds since 1970 as HTTP writes them; "" where it cannot. */
void head_date(int64_t s, char ret[static HEAD_DATE_SIZE]);
/* Of a request that is passed on: a path and perhaps a query, of characters that can be in a line.
 * What they mean is the program's business. */
bool head_target_ok(const char *target);
