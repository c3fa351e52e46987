/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. What is malformed is cut
 * into maximal subparts (Unicode 3.9, table 3-8; the WHATWG decoders do the same), so that every
 * reader of the same bytes agrees on where the next character starts.
 */
#pragma once

#include "base/buf.h"

enum utf8_kind {
	UTF8_CHAR,  /* a character: cp is its code point, len its bytes */
	UTF8_BAD,   /* malformed: len bytes are the maximal subpart */
	UTF8_SHORT, /* the text ends inside a character that is well formed so far */
};

struct utf8_step {
	enum utf8_kind kind;
	size_t len;
	uint32_t cp;
};

/* Looks at the first character of p[0..n), n > 0. Never reads past n. */
struct utf8_step utf8_next(const unsigned char *p, size_t n);

/* True when all of it is UTF-8; otherwise *ret_bad_offset (may be NULL) is where it stops being. */
bool utf8_valid(const void *p, size_t n, size_t *ret_bad_offset);

/* Is it a text that looks like what it is: UTF-8 without control characters other than line ends
 * and tabs? */
bool utf8_plain(const char *text, size_t n);

/*
 * Appends p to *out with every malformed subpart replaced by U+FFFD. -ENOBUFS or -ENOMEM: nothing
 * is added.
 */
_must_check_ int utf8_replace_invalid(const void *p, size_t n, struct buf *out);
