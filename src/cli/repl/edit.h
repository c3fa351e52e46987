/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line typed at a terminal, with the keys that everybody's fingers know: arrows, Home, End,
 * Delete, and Ctrl-A B C D E F H K L N P U W. A line longer than the terminal is wide is shown in
 * part, around the cursor. Pasted text (bracketed paste) comes line by line and is marked, so that
 * nothing runs in the middle of it. A library would do more; it would also be linked into the
 * program that makes boxes.
 */
#pragma once

#include "base/buf.h"

#include <termios.h>

#define EDIT_LINE_MAX ((size_t)64 * 1024)
#define EDIT_HISTORY_MAX 500

struct edit {
	int signal_fd;
	struct termios before; /* what the terminal goes back to at the end */
	bool has_before;
	struct buf line;
	size_t cursor; /* a byte offset, always between characters */
	const char *prompt;
	char *history[EDIT_HISTORY_MAX];
	size_t n_history;
	size_t shown; /* which line of the history is in the line; n_history: the one being typed */
	char *typed;  /* that one, while another is shown */
	bool pasting;
	bool prefilled; /* nothing but the indentation that was proposed */
	unsigned char pending[256];
	size_t pending_at, pending_len;
};

#define EDIT_INIT                                                                                  \
	{                                                                                          \
		.signal_fd = -EBADF, .line = BUF_INIT(EDIT_LINE_MAX)                               \
	}

enum edit_end {
	EDIT_LINE,      /* e->line has it */
	EDIT_PASTED,    /* the same, and more is coming */
	EDIT_EOF,       /* Ctrl-D in an empty line, or the terminal is gone */
	EDIT_INTERRUPT, /* Ctrl-C */
	EDIT_SIGNAL,    /* signal_fd can be read */
};

/* Reads a line from the terminal at descriptor 0, showing it at 1; indent is what it begins with.
 */
_must_check_ int edit_line(struct edit *e, const char *prompt, const char *indent);

/* Keeps a line for the arrow keys. */
void edit_remember(struct edit *e, const char *line);
void edit_done(struct edit *e);
