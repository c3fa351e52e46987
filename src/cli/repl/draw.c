/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the line that is being typed. */
#include "cli/repl/edit_priv.h"

#include "base/io.h"
#include "base/utf8.h"

#include <sys/ioctl.h>

#define COLUMNS_DEFAULT 80
#define TAB_COLUMNS 4

size_t edit_at(const struct edit *e, size_t at)
{
	return at < e->line.len ? utf8_next(e->line.data + at, e->line.len - at).len : 0;
}

size_t edit_before(const struct edit *e, size_t at)
{
	size_t n = 0;

	while (n < at && (n == 0 || (e->line.data[at - n] & 0xc0) == 0x80))
		n++;
	return n;
}

/* Columns of a character: those of East Asian scripts and pictures take two, accents none. */
static unsigned width_of(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
		{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
		{ 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
	};

	if (cp == '\t')
		return TAB_COLUMNS;
	if ((cp >= 0x300 && cp <= 0x36f) || (cp >= 0x200b && cp <= 0x200f) || cp == 0xfe0f)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
		if (cp >= wide[i].first && cp <= wide[i].last)
			return 2;
	return 1;
}

static unsigned width_at(const struct edit *e, size_t at)
{
	return width_of(utf8_next(e->line.data + at, e->line.len - at).cp);
}

static unsigned columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col :
										  COLUMNS_DEFAULT;
}

/* Where the part that is shown begins, so that the cursor is in it. */
static size_t first_shown(const struct edit *e, unsigned room)
{
	size_t first = e->cursor;
	unsigned used = 0;

	while (first > 0) {
		size_t n = edit_before(e, first);

		used += width_at(e, first - n);
		if (used >= room)
			break;
		first -= n;
	}
	return first;
}

void edit_draw(const struct edit *e)
{
	unsigned prompt = (unsigned)strlen(e->prompt), room = MAX(columns(), prompt + 10) - prompt;
	size_t at = first_shown(e, room);
	unsigned used = 0, cursor = 0;
	_cleanup_(buf_done) struct buf out = BUF_INIT(EDIT_LINE_MAX * 2);
	char move[32];
	int r = buf_add(&out, "\r", 1);

	if (r == 0)
		r = buf_add(&out, e->prompt, prompt);
	for (size_t n; r == 0 && (n = edit_at(e, at)) > 0; at += n) {
		unsigned width = width_at(e, at);

		if (at == e->cursor)
			cursor = used;
		if (used + width >= room)
			break;
		r = e->line.data[at] == '\t' ? buf_add(&out, "    ", TAB_COLUMNS) :
					       buf_add(&out, e->line.data + at, n);
		used += width;
	}
	if (e->cursor >= at)
		cursor = used;
	(void)snprintf(move, sizeof(move), "\033[K\r\033[%uC", prompt + cursor);
	if (r == 0 && buf_add(&out, move, strlen(move)) == 0)
		(void)!io_write_all(STDOUT_FILENO, out.data, out.len);
}
