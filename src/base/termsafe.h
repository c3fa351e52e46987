/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DV-07: what a hostile program prints must not drive the operator's terminal. A filter between the
 * box's output and the terminal that lets text and colours through and shows everything else:
 *
 *	printable UTF-8, \n, \t, \r\n     unchanged
 *	ESC [ digits and ; m              unchanged (colours), up to TERMSAFE_SGR_MAX bytes
 *	other C0 bytes, DEL               ^X, so ESC is ^[ and a \r that would overwrite its line is
 *	                                  ^M
 *	C1, bidi and line controls        <U+XXXX>
 *	bytes that are not UTF-8          \xNN
 *
 * Works on a stream: what arrives in pieces comes out as if it had arrived at once. The state is
 * small and fixed, nothing is allocated.
 */
#pragma once

#include "base/util.h"

#include <stdarg.h>

#define TERMSAFE_SGR_MAX 32

struct termsafe {
	unsigned char pending[TERMSAFE_SGR_MAX]; /* start of something not yet decided */
	size_t n_pending;
	bool coloured; /* the last colour sequence was not a plain reset */
};

void termsafe_init(struct termsafe *ts);

/* Room that n more bytes may need in the worst case; with n = 0, what termsafe_flush() may need. */
size_t termsafe_max_out(size_t n);

/* Filters in[0..n) into out; out_size must be >= termsafe_max_out(n). Returns the length. */
size_t termsafe_feed(struct termsafe *ts, const void *in, size_t n, char *out, size_t out_size);

/* The end of the stream: shows what is still pending and switches colours off. Starts afresh. */
size_t termsafe_flush(struct termsafe *ts, char *out, size_t out_size);

/* A name or another short text on one line: also line ends, tabs and colours are shown, and what
 * does not fit is cut off with an ellipsis. */
void termsafe_line(const char *text, char *out, size_t out_size);

/* "glovebox: " and such a line, to stderr: how every program of ours speaks to people. File names
 * may have line ends and worse in them. */
void termsafe_say(const char *fmt, va_list args) _printf_(1, 0);
