/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl/edit.h"

#include "base/io.h"
#include "base/utf8.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

/* Keys that are not characters; characters are their code points. */
enum edit_key {
	KEY_NONE = 0x200000, /* nothing that means anything here */
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_HOME,
	KEY_END,
	KEY_DELETE,
	KEY_PASTE_BEGIN,
	KEY_PASTE_END,
	KEY_EOF,
	KEY_SIGNAL,
};

/* --- what comes from a terminal, one key at a time ------------------------------------------- */

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

static int edit_key(struct edit *e, uint32_t *ret)
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

/* --- showing the line that is being typed ---------------------------------------------------- */

#define COLUMNS_DEFAULT 80
#define TAB_COLUMNS 4

static size_t edit_at(const struct edit *e, size_t at)
{
	return at < e->line.len ? utf8_next(e->line.data + at, e->line.len - at).len : 0;
}

static size_t edit_before(const struct edit *e, size_t at)
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

static void edit_draw(const struct edit *e)
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

/* --- editing it ------------------------------------------------------------------------------ */

#define CONTROL(letter) ((uint32_t)(letter)&0x1fu)
#define BACKSPACE 127
#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

/* --- changing the line ------------------------------------------------------------------------ */

static void remove_range(struct edit *e, size_t from, size_t to)
{
	memmove(e->line.data + from, e->line.data + to, e->line.len - to);
	e->line.len -= to - from;
	e->line.data[e->line.len] = '\0';
	e->cursor = from;
}

static void set_line(struct edit *e, const char *text)
{
	e->line.len = 0;
	(void)!buf_add(&e->line, text, strlen(text));
	e->cursor = e->line.len;
}

/* At the cursor; a line that is full takes no more. */
static void edit_insert(struct edit *e, const unsigned char *bytes, size_t n)
{
	size_t behind = e->line.len - e->cursor;

	if (buf_add(&e->line, bytes, n) < 0)
		return;
	memmove(e->line.data + e->cursor + n, e->line.data + e->cursor, behind);
	memcpy(e->line.data + e->cursor, bytes, n);
	e->cursor += n;
	e->prefilled = false;
}

static void insert_character(struct edit *e, uint32_t cp)
{
	const unsigned char bytes[] = {
		(unsigned char)(cp < 0x80    ? cp :
				cp < 0x800   ? 0xc0 | cp >> 6 :
				cp < 0x10000 ? 0xe0 | cp >> 12 :
					       0xf0 | cp >> 18),
		(unsigned char)(cp < 0x800   ? 0x80 | (cp & 0x3f) :
				cp < 0x10000 ? 0x80 | (cp >> 6 & 0x3f) :
					       0x80 | (cp >> 12 & 0x3f)),
		(unsigned char)(cp < 0x10000 ? 0x80 | (cp & 0x3f) : 0x80 | (cp >> 6 & 0x3f)),
		(unsigned char)(0x80 | (cp & 0x3f)),
	};

	edit_insert(e, bytes, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
}

static void remove_word(struct edit *e)
{
	size_t from = e->cursor;

	while (from > 0 && e->line.data[from - 1] == ' ')
		from--;
	while (from > 0 && e->line.data[from - 1] != ' ')
		from--;
	remove_range(e, from, e->cursor);
}

/* One character, or the blanks of one step of indentation. */
static void remove_before(struct edit *e)
{
	size_t n = edit_before(e, e->cursor), blanks = 0;

	while (blanks < e->cursor && e->line.data[blanks] == ' ')
		blanks++;
	if (blanks == e->cursor && blanks > 0)
		n = (blanks - 1) % 4 + 1;
	remove_range(e, e->cursor - n, e->cursor);
}

/* --- history ---------------------------------------------------------------------------------- */

void edit_remember(struct edit *e, const char *line)
{
	char *copy;

	if (!*line || (e->n_history && strcmp(e->history[e->n_history - 1], line) == 0))
		return;
	copy = strdup(line);
	if (!copy)
		return;
	if (e->n_history == EDIT_HISTORY_MAX) {
		free(e->history[0]);
		memmove(e->history, e->history + 1, (EDIT_HISTORY_MAX - 1) * sizeof(char *));
		e->n_history--;
	}
	e->history[e->n_history++] = copy;
}

static void show_history(struct edit *e, bool up)
{
	if (up ? e->shown == 0 : e->shown >= e->n_history)
		return;
	if (e->shown == e->n_history) {
		free(e->typed);
		e->typed = strndup((const char *)e->line.data, e->line.len);
	}
	e->shown = up ? e->shown - 1 : e->shown + 1;
	if (e->shown < e->n_history)
		set_line(e, e->history[e->shown]);
	else
		set_line(e, e->typed ? e->typed : "");
}

void edit_done(struct edit *e)
{
	if (e->has_before)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &e->before);
	for (size_t i = 0; i < e->n_history; i++)
		free(e->history[i]);
	e->n_history = 0;
	freep(&e->typed);
	buf_done(&e->line);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void move_key(struct edit *e, uint32_t key)
{
	switch (key) {
	case KEY_LEFT:
	case CONTROL('B'):
		e->cursor -= edit_before(e, e->cursor);
		break;
	case KEY_RIGHT:
	case CONTROL('F'):
		e->cursor += edit_at(e, e->cursor);
		break;
	case KEY_HOME:
	case CONTROL('A'):
		e->cursor = 0;
		break;
	case KEY_END:
	case CONTROL('E'):
		e->cursor = e->line.len;
		break;
	case KEY_UP:
	case CONTROL('P'):
		show_history(e, true);
		break;
	case KEY_DOWN:
	case CONTROL('N'):
		show_history(e, false);
		break;
	default:
		break;
	}
}

static void change_key(struct edit *e, uint32_t key)
{
	switch (key) {
	case BACKSPACE:
	case CONTROL('H'):
		remove_before(e);
		break;
	case KEY_DELETE:
		remove_range(e, e->cursor, e->cursor + edit_at(e, e->cursor));
		break;
	case CONTROL('K'):
		remove_range(e, e->cursor, e->line.len);
		break;
	case CONTROL('U'):
		remove_range(e, 0, e->cursor);
		break;
	case CONTROL('W'):
		remove_word(e);
		break;
	case CONTROL('L'):
		(void)!io_write_all(STDOUT_FILENO, "\033[H\033[2J", 7);
		break;
	case '\t':
		if (e->pasting)
			insert_character(e, key);
		else
			edit_insert(e, (const unsigned char *)"    ", 4 - e->cursor % 4);
		break;
	case KEY_PASTE_BEGIN:
		/* What is pasted brings its own indentation. */
		if (e->prefilled)
			set_line(e, "");
		e->pasting = true;
		break;
	case KEY_PASTE_END:
		e->pasting = false;
		break;
	default:
		if (key >= ' ' && key < KEY_NONE && (key < BACKSPACE || key >= 0xa0))
			insert_character(e, key);
		else
			move_key(e, key);
	}
}

/* -1 while the line is not over, else an enum edit_end. */
static int on_key(struct edit *e, uint32_t key)
{
	switch (key) {
	case '\r':
	case '\n':
		return e->pasting ? EDIT_PASTED : EDIT_LINE;
	case CONTROL('C'):
		return EDIT_INTERRUPT;
	case KEY_EOF:
		return EDIT_EOF;
	case KEY_SIGNAL:
		return EDIT_SIGNAL;
	case CONTROL('D'):
		if (e->line.len == 0 || e->prefilled)
			return EDIT_EOF;
		change_key(e, KEY_DELETE);
		return -1;
	default:
		change_key(e, key);
		return -1;
	}
}

/* --- a line ----------------------------------------------------------------------------------- */

static int edit_keys(struct edit *e)
{
	int end = -1;

	while (end < 0) {
		uint32_t key = KEY_NONE;
		int r = edit_key(e, &key);

		if (r < 0)
			return r;
		end = on_key(e, key);
		/* What is still to come is not shown key by key. */
		if (end >= 0 || e->pending_at == e->pending_len)
			edit_draw(e);
	}
	(void)!io_write_all(STDOUT_FILENO, "\n", 1);
	return end;
}

int edit_line(struct edit *e, const char *prompt, const char *indent)
{
	struct termios raw, between;
	int r;

	if (!e->has_before && tcgetattr(STDIN_FILENO, &e->before) < 0)
		return errno == EIO ? EDIT_EOF : -errno; /* EIO: the terminal is gone */
	e->has_before = true;
	raw = e->before;
	raw.c_iflag &= (tcflag_t) ~(ICRNL | INLCR | IGNCR | IXON);
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/*
	 * While a cell runs, keys stay keys for the next line: in a line mode the terminal would
	 * keep Ctrl-D, for one, as something that no later read can tell. Only Ctrl-C and Ctrl-Z
	 * act at once.
	 */
	between = raw;
	between.c_lflag |= ISIG;
	e->prompt = prompt;
	e->shown = e->n_history;
	if (!e->pasting)
		set_line(e, indent);
	else
		set_line(e, "");
	e->prefilled = e->line.len > 0;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return errno == EIO ? EDIT_EOF : -errno;
	(void)!io_write_all(STDOUT_FILENO, PASTE_ON, strlen(PASTE_ON));
	edit_draw(e);
	r = edit_keys(e);
	(void)!io_write_all(STDOUT_FILENO, PASTE_OFF, strlen(PASTE_OFF));
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &between);
	return r == -EIO ? EDIT_EOF : r;
}
