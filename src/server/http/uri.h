/* SPDX-License-Identifier: Apache-2.0 */
/* The request target: split first, decoded after, once. */
#pragma once

#include "base/util.h"

#define URI_SEGMENTS_MAX 8
#define URI_QUERY_MAX 32

/*
 * Percent-decodes text[0..len) into ret, which must have space for len + 1 and may be text itself.
 * Strict: a '%' that is not followed by two hexadecimal digits, a NUL, or a result that is not
 * UTF-8 is -EINVAL. plus: '+' means a space (query).
 */
_must_check_ int uri_decode(const char *text, size_t len, bool plus, char *ret);

struct uri_path {
	size_t n;
	struct {
		const char *text; /* not decoded */
		size_t len;
	} segment[URI_SEGMENTS_MAX];
};

/* Splits "/a/b" into its segments. -EINVAL for anything that is not an absolute path of non-empty
 * segments other than "." and "..", each of characters that may stand in a path. */
_must_check_ int uri_split_path(const char *path, size_t len, struct uri_path *ret);

struct uri_query {
	size_t n;
	struct {
		char *name;
		char *value;
	} pair[URI_QUERY_MAX];
	char *memory; /* what the texts above are in */
};

/* Splits and decodes "a=b&c". -EINVAL: cannot be decoded, a name twice or empty; -E2BIG: more than
 * the maximum. */
_must_check_ int uri_parse_query(const char *text, struct uri_query *ret);
void uri_query_done(struct uri_query *q);
const char *uri_query_get(const struct uri_query *q, const char *name);
