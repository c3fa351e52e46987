/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One token (a character, a \r, an escape sequence) at a time is collected in `pending`. Each new
 * byte either extends it, completes it, or shows that it was not what it looked like; then the
 * token is shown and the byte starts the next one.
 */
#include "base/termsafe.h"

#include <assert.h>

#include "base/utf8.h"

#define ESC 0x1b
#define DEL 0x7f

/* No byte becomes more than "\xNN": the longest <U+XXXX> forms replace two or more bytes. */
#define OUT_PER_BYTE 4

struct out {
	char *data;
	size_t len;
	size_t size;
};

struct range {
	uint32_t first, last;
};

/* Characters that move the cursor, end the line or reorder the text around them. */
static const struct range shown[] = {
	{ 0x80, 0x9f },     /* C1 */
	{ 0x61c, 0x61c },   /* Arabic letter mark */
	{ 0x200e, 0x200f }, /* left-to-right and right-to-left mark */
	{ 0x2028, 0x202e }, /* line and paragraph separator, bidi embeddings and overrides */
	{ 0x2066, 0x206f }, /* bidi isolates, deprecated format characters */
	{ 0xfff9, 0xfffb }, /* interlinear annotation */
};

static void out_put(struct out *out, const void *data, size_t n)
{
	assert(n <= out->size - out->len);
	memcpy(out->data + out->len, data, n);
	out->len += n;
}

static void put_code_point(struct out *out, const unsigned char *bytes, size_t n, uint32_t cp)
{
	char text[16] = "";

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		if (cp < shown[i].first || cp > shown[i].last)
			continue;
		(void)snprintf(text, sizeof(text), "<U+%04X>", cp);
		out_put(out, text, strlen(text));
		return;
	}
	out_put(out, bytes, n);
}

static bool termsafe_is_plain(unsigned char c)
{
	return (c >= 0x20 && c < DEL) || c == '\n' || c == '\t';
}

static void put_ascii(struct out *out, unsigned char c)
{
	if (termsafe_is_plain(c))
		out_put(out, &c, 1);
	else
		out_put(out, (char[]){ '^', (char)(c ^ 0x40) }, 2);
}

static void put_bad(struct out *out, const unsigned char *bytes, size_t n)
{
	char text[8] = "";

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(text, sizeof(text), "\\x%02x", bytes[i]);
		out_put(out, text, strlen(text));
	}
}

/* Shows a token that will not be completed. Only the first byte of one can be special. */
static void termsafe_give_up(struct termsafe *ts, struct out *out)
{
	if (ts->n_pending > 0 && ts->pending[0] >= 0x80)
		put_bad(out, ts->pending, ts->n_pending);
	else
		for (size_t i = 0; i < ts->n_pending; i++)
			put_ascii(out, ts->pending[i]);
	ts->n_pending = 0;
}

/* A reset has no parameters but zeroes; "38;5;0" ends in one and is a colour, so all must be. */
static bool sgr_is_reset(const unsigned char *seq, size_t n)
{
	for (size_t i = 2; i + 1 < n; i++)
		if (seq[i] != '0' && seq[i] != ';')
			return false;
	return true;
}

/* Each feed_* returns true when it took the byte into the token that is pending. */
static bool feed_escape(struct termsafe *ts, struct out *out, unsigned char c)
{
	bool parameter = (c >= '0' && c <= '9') || c == ';';

	if (ts->n_pending == sizeof(ts->pending))
		return false;
	if (ts->n_pending == 1 ? c != '[' : (!parameter && c != 'm'))
		return false;
	ts->pending[ts->n_pending++] = c;
	if (c == 'm') {
		ts->coloured = !sgr_is_reset(ts->pending, ts->n_pending);
		out_put(out, ts->pending, ts->n_pending);
		ts->n_pending = 0;
	}
	return true;
}

static bool feed_return(struct termsafe *ts, struct out *out, unsigned char c)
{
	if (c != '\n')
		return false;
	out_put(out, "\r\n", 2);
	ts->n_pending = 0;
	return true;
}

static bool feed_utf8(struct termsafe *ts, struct out *out, unsigned char c)
{
	struct utf8_step step;

	ts->pending[ts->n_pending++] = c;
	step = utf8_next(ts->pending, ts->n_pending);
	if (step.kind == UTF8_BAD) {
		ts->n_pending--;
		return false;
	}
	if (step.kind == UTF8_CHAR) {
		put_code_point(out, ts->pending, step.len, step.cp);
		ts->n_pending = 0;
	}
	return true;
}

static bool feed_pending(struct termsafe *ts, struct out *out, unsigned char c)
{
	if (ts->pending[0] == ESC)
		return feed_escape(ts, out, c);
	if (ts->pending[0] == '\r')
		return feed_return(ts, out, c);
	return feed_utf8(ts, out, c);
}

/* The first byte of a token. */
static void feed_first(struct termsafe *ts, struct out *out, unsigned char c)
{
	if (c >= 0x80 && utf8_next(&c, 1).kind == UTF8_BAD)
		put_bad(out, &c, 1);
	else if (c >= 0x80 || c == ESC || c == '\r')
		ts->pending[ts->n_pending++] = c;
	else
		put_ascii(out, c);
}

void termsafe_init(struct termsafe *ts)
{
	*ts = (struct termsafe){ 0 };
}

size_t termsafe_max_out(size_t n)
{
	size_t total;

	if (__builtin_add_overflow(n, (size_t)TERMSAFE_SGR_MAX, &total) ||
	    __builtin_mul_overflow(total, (size_t)OUT_PER_BYTE, &total))
		return SIZE_MAX;
	return total;
}

size_t termsafe_feed(struct termsafe *ts, const void *in, size_t n, char *out, size_t out_size)
{
	struct out to = { out, 0, out_size };
	const unsigned char *p = in;
	size_t most = termsafe_max_out(n);

	assert(out_size >= most);
	for (size_t i = 0; i < n; i++) {
		size_t start = i;

		if (ts->n_pending > 0) {
			if (feed_pending(ts, &to, p[i]))
				continue;
			termsafe_give_up(ts, &to);
		}
		while (i < n && termsafe_is_plain(p[i]))
			i++;
		out_put(&to, p + start, i - start);
		if (i < n)
			feed_first(ts, &to, p[i]);
	}
	return to.len;
}

size_t termsafe_flush(struct termsafe *ts, char *out, size_t out_size)
{
	struct out to = { out, 0, out_size };
	size_t most = termsafe_max_out(0);

	assert(out_size >= most);
	termsafe_give_up(ts, &to);
	if (ts->coloured)
		out_put(&to, "\x1b[0m", 4);
	termsafe_init(ts);
	return to.len;
}

/* Adds a piece if it and the ellipsis fit. */
static bool termsafe_add_piece(char *out, size_t out_size, size_t *at, const char *piece, size_t n)
{
	bool fits = *at + n + sizeof("…") <= out_size;

	memcpy(out + *at, fits ? piece : "…", fits ? n : sizeof("…"));
	*at += fits ? n : 0;
	return fits;
}

void termsafe_line(const char *text, char *out, size_t out_size)
{
	struct termsafe ts;
	char piece[1024];
	size_t at = 0, n;

	termsafe_init(&ts);
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t' || *text == '\r' || *text == '\033') {
			n = termsafe_flush(&ts, piece, sizeof(piece));
			piece[n++] = '^';
			piece[n++] = (char)(*text + '@');
		} else {
			n = termsafe_feed(&ts, text, 1, piece, sizeof(piece));
		}
		if (!termsafe_add_piece(out, out_size, &at, piece, n))
			return;
	}
	n = termsafe_flush(&ts, piece, sizeof(piece));
	if (termsafe_add_piece(out, out_size, &at, piece, n))
		out[at] = '\0';
}

void termsafe_say(const char *fmt, va_list args)
{
	char text[512], line[1024];

	(void)vsnprintf(text, sizeof(text), fmt, args);
	termsafe_line(text, line, sizeof(line));
	(void)fprintf(stderr, "glovebox: %s\n", line);
}
