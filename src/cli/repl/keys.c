/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a terminal, one key at a time. */
#include "cli/repl/edit_priv.h"

#include "base/utf8.h"

#include <poll.h>

#define ESCAPE 27
#define ESCAPE_MS 30 /* the rest of a sequence comes at once; the Escape key comes alone */

/* 1 for a byte, 0 when none came in time, KEY_EOF or KEY_SIGNAL. */
static int next_byte(struct edit *e, int timeout_ms, unsigned char *ret)
{
	struct pollfd polls[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = e->signal_fd, .events = POLLIN },
	};
	ssize_t n;

	if (e->pending_at < e->pending_len) {
		*ret = e->pending[e->pending_at++];
		return 1;
	}
	n = poll(polls, ARRAY_SIZE(polls), timeout_ms);
	if (n <= 0)
		return n < 0 && errno != EINTR ? -errno : 0;
	if (polls[1].revents)
		return KEY_SIGNAL;
	n = read(STDIN_FILENO, e->pending, sizeof(e->pending));
	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : KEY_EOF;
	e->pending_len = (size_t)n;
	e->pending_at = 1;
	*ret = e->pending[0];
	return 1;
}

static uint32_t letter_key(unsigned char c)
{
	switch (c) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'C':
		return KEY_RIGHT;
	case 'D':
		return KEY_LEFT;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	default:
		return KEY_NONE;
	}
}

static uint32_t number_key(unsigned number)
{
	switch (number) {
	case 1:
	case 7:
		return KEY_HOME;
	case 4:
	case 8:
		return KEY_END;
	case 3:
		return KEY_DELETE;
	case 200:
		return KEY_PASTE_BEGIN;
	case 201:
		return KEY_PASTE_END;
	default:
		return KEY_NONE;
	}
}

/* Behind ESC [: parameters up to a final byte. */
static int control_sequence(struct edit *e, uint32_t *ret)
{
	unsigned number = 0;
	bool first = true;
	unsigned char c = 0;

	for (;;) {
		int r = next_byte(e, ESCAPE_MS, &c);

		if (r != 1) {
			*ret = KEY_NONE;
			return r < 0 ? r : 0;
		}
		if (c >= 0x40 && c <= 0x7e)
			break;
		first &= c != ';';
		if (first && c >= '0' && c <= '9' && number < 1000)
			number = number * 10 + (c - '0');
	}
	*ret = c == '~' ? number_key(number) : letter_key(c);
	return 0;
}

static int escape_sequence(struct edit *e, uint32_t *ret)
{
	unsigned char c = 0;
	int r = next_byte(e, ESCAPE_MS, &c);

	*ret = KEY_NONE;
	if (r == 1 && c == '[')
		return control_sequence(e, ret);
	if (r == 1 && c == 'O' && (r = next_byte(e, ESCAPE_MS, &c)) == 1)
		*ret = letter_key(c);
	return r < 0 ? r : 0;
}

/* The rest of a character that began with `first`; what is not UTF-8 is no key. */
static int character(struct edit *e, unsigned char first, uint32_t *ret)
{
	unsigned char bytes[4] = { first };

	*ret = KEY_NONE;
	for (size_t n = 1; n <= sizeof(bytes); n++) {
		struct utf8_step step = utf8_next(bytes, n);
		int r;

		if (step.kind == UTF8_CHAR)
			*ret = step.cp;
		if (step.kind != UTF8_SHORT || n == sizeof(bytes))
			return 0;
		r = next_byte(e, ESCAPE_MS, &bytes[n]);
		if (r != 1)
			return r < 0 ? r : 0;
	}
	return 0;
}

int edit_key(struct edit *e, uint32_t *ret)
{
	unsigned char c = 0;
	int r;

	do {
		r = next_byte(e, -1, &c);
	} while (r == 0);
	if (r < 0)
		return r;
	if (r != 1)
		*ret = (uint32_t)r;
	else if (c == ESCAPE)
		return escape_sequence(e, ret);
	else
		return character(e, c, ret);
	return 0;
}
