/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox repl: a notebook prompt. repl.c is the verb, prompt.c asks people for cells (edit.c
 * reads their lines, complete.c tells when a cell is whole) and pipe.c takes them from programs,
 * local.c and service.c are the places where cells run, show.c shows what comes of them, record.c
 * keeps it for :save.
 */
#pragma once

#include "cli/run/run.h"
#include "language/language.h"

#include <jansson.h>

#define REPL_EVENT_MAX ((size_t)32 << 20) /* of JSON text; a picture is one */
#define REPL_CODE_MAX LANGUAGE_CODE_MAX
#define REPL_RECORD_MAX ((size_t)16 << 20)

struct repl;

/* Where cells run. Each returns negative with *fail filled when there is no use in going on; -EINTR
 * without a message when a signal to us says that it is over. */
struct repl_place {
	int (*open)(struct repl *r, struct fail *fail);
	/* To its end, showing what it says: repl_show_output() and repl_show_event(). */
	int (*cell)(struct repl *r, const char *code, size_t len, struct fail *fail);
	/* Forgets all variables. */
	int (*restart)(struct repl *r, struct fail *fail);
	void (*close)(struct repl *r);
};

extern const struct repl_place repl_local, repl_service;

struct repl {
	struct run_request q; /* template, inputs, environment, limits, --json, --raw, -v */
	struct language language;
	const struct repl_place *place;
	void *here;           /* the place's own */
	const char *pictures; /* the directory for them */
	bool terminal;        /* somebody types and somebody reads */
	bool colour;
	int ended_by; /* a signal to us, or 0 */

	/* The cell that runs, or ran last. */
	json_int_t count;
	unsigned n_pictures;
	bool failed;
	bool over;
	bool in_line; /* what was shown last has no line end yet */

	struct buf record;
	bool record_in_line;
	unsigned char rest[2]
			  [4]; /* --json: the beginning of a character whose end is still to come */
	size_t n_rest[2];
};

/* prompt.c, pipe.c: until there are no more cells. An exit status. */
int repl_prompt(struct repl *r);
int repl_pipe(struct repl *r);

/* Runs one cell. 0 whatever came of it; negative when it was the last. */
_must_check_ int repl_run(struct repl *r, const char *code, size_t len, struct fail *fail);

/* What a cell prints, and everything else that it says: an object with a `type`, as E2B's
 * interpreter has them. Both are hostile. -EPIPE: nobody reads it any more. */
_must_check_ int repl_show_output(struct repl *r, bool is_err, const void *data, size_t len);
_must_check_ int repl_show_event(struct repl *r, const json_t *event);
/* Our own words, on a line of their own. */
void repl_say(struct repl *r, const char *fmt, ...) _printf_(2, 3);

/* record.c: what :save saves. The marker stands before each cell; repl_pipe() reads it. */
void repl_record_cell(struct repl *r, const char *code, size_t len);
void repl_record_output(struct repl *r, const void *data, size_t len);
_must_check_ int repl_record_save(struct repl *r, const char *path, struct fail *fail);
bool repl_is_marker(const struct repl *r, const char *line, size_t len);
