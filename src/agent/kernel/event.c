/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/event.h"

#include <string.h>

#define LENGTH_DIGITS 8

static const struct {
	const char *word;
	uint64_t min, max; /* bytes */
} words[_KERNEL_WORD_MAX] = {
	[KERNEL_WORD_READY] = { "ready", 1, KERNEL_NUMBER_DIGITS },
	[KERNEL_WORD_COUNT] = { "count", 1, KERNEL_NUMBER_DIGITS },
	[KERNEL_WORD_RESULT] = { "result", 2, KERNEL_EVENT_MAX }, /* the shortest object is {} */
	[KERNEL_WORD_ERROR] = { "error", 2, KERNEL_EVENT_MAX },
	[KERNEL_WORD_END] = { "end", 0, 0 },
};

static bool word_is_number(enum kernel_word word)
{
	return word == KERNEL_WORD_READY || word == KERNEL_WORD_COUNT;
}

/* Decimal, without leading zeros. */
static int parse_length(const char *text, size_t len, uint64_t *ret)
{
	uint64_t n = 0;

	if (len == 0 || len > LENGTH_DIGITS || (len > 1 && text[0] == '0'))
		return -EPROTO;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EPROTO;
		n = n * 10 + (uint64_t)(text[i] - '0');
	}
	*ret = n;
	return 0;
}

static int event_parse(struct kernel_event *e)
{
	const char *space = memchr(e->line, ' ', e->line_len);
	size_t word_len = space ? (size_t)(space - e->line) : 0;
	uint64_t n = 0;

	if (!space || parse_length(space + 1, e->line_len - word_len - 1, &n) < 0)
		return -EPROTO;
	for (enum kernel_word w = 0; w < _KERNEL_WORD_MAX; w++) {
		if (strlen(words[w].word) != word_len ||
		    memcmp(words[w].word, e->line, word_len) != 0)
			continue;
		if (n < words[w].min || n > words[w].max)
			return -EPROTO;
		e->word = w;
		e->left = n;
		return 0;
	}
	return -EPROTO;
}

/* Up to the newline, or as much of the line as there is. */
static int take_line(struct kernel_event *e, struct kernel_bytes *in)
{
	while (in->len) {
		char c = (char)*in->at;

		in->at++;
		in->len--;
		if (c == '\n') {
			if (event_parse(e) < 0)
				return -EPROTO;
			e->line_len = 0;
			e->number = 0;
			e->in_bytes = true;
			return KERNEL_TOKEN_BEGIN;
		}
		if (e->line_len == sizeof(e->line))
			return -EPROTO;
		e->line[e->line_len++] = c;
	}
	return KERNEL_TOKEN_NONE;
}

/* A number has no leading zero and is not zero: pids and cells are counted from 1. */
static int add_digits(struct kernel_event *e, const struct kernel_bytes *piece)
{
	for (size_t i = 0; i < piece->len; i++) {
		unsigned char c = piece->at[i];

		if (c < '0' || c > '9' || (c == '0' && e->number == 0))
			return -EPROTO;
		e->number = e->number * 10 + (uint64_t)(c - '0');
	}
	return 0;
}

static int take_piece(struct kernel_event *e, struct kernel_bytes *in, struct kernel_bytes *ret)
{
	const struct kernel_bytes piece = { .at = in->at, .len = MIN(in->len, e->left) };

	if (piece.len == 0)
		return KERNEL_TOKEN_NONE;
	if (word_is_number(e->word) && add_digits(e, &piece) < 0)
		return -EPROTO;
	in->at += piece.len;
	in->len -= piece.len;
	e->left -= piece.len;
	*ret = piece;
	return KERNEL_TOKEN_PIECE;
}

int kernel_event_next(struct kernel_event *e, struct kernel_bytes *in,
		      struct kernel_bytes *ret_piece)
{
	if (!e->in_bytes)
		return take_line(e, in);
	if (e->left)
		return take_piece(e, in, ret_piece);
	e->in_bytes = false;
	return KERNEL_TOKEN_FINISH;
}
