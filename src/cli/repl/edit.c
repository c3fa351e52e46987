/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl/edit_priv.h"

#include "base/io.h"

#include <termios.h>

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
static void insert(struct edit *e, const unsigned char *bytes, size_t n)
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

	insert(e, bytes, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
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

/* --- history ------------------------------------------------------------------------------------ */

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

/* --- keys ----------------------------------------------------------------------------------------- */

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
			insert(e, (const unsigned char *)"    ", 4 - e->cursor % 4);
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

/* --- a line --------------------------------------------------------------------------------------- */

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
	 * While a cell runs, keys stay keys for the next line: in a line mode the terminal would keep
	 * Ctrl-D, for one, as something that no later read can tell. Only Ctrl-C and Ctrl-Z act at once.
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
