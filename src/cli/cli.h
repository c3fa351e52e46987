/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: one file per verb, one line per verb in main.c's table. front.c: what is ahead
 * of all that. */
#pragma once

#include "base/fail.h"

/* Exit statuses that are ours; everything else is the program's own. */
enum {
	CLI_OK = 0,
	CLI_USAGE = 2,     /* what was asked for makes no sense; nothing was created */
	CLI_TIME = 124,    /* wall clock or CPU time */
	CLI_FAILURE = 125, /* we failed */
	CLI_CANNOT_EXECUTE = 126,
	CLI_NOT_FOUND = 127,
	CLI_KILLED = 137, /* memory and every other limit that ends a run */
};

struct cli_verb {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
	const char *heading; /* above it in the help, or NULL */
};

int cli_run(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_repl(int argc, char **argv);
int cli_languages(int argc, char **argv);
int cli_egress(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_client(int argc, char **argv); /* all verbs of glovebox-client; argv[-1] must be there */

/* One line on standard error: "glovebox: …". Returns status, for `return cli_error(…)`. */
int cli_error(int status, const char *fmt, ...) _printf_(2, 3);

/* Started without standard descriptors, the next file opened would become one of them, and what a
 * program prints would be written into it. */
_must_check_ int cli_ensure_stdio(void);

/* Signals end the box first: from here on they arrive where the box is watched. The descriptor to
 * read them from. */
_must_check_ int cli_hold_signals(void);
