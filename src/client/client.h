/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox-client: the verbs that talk to a service or look after its files. `glovebox VERB`
 * becomes this program; one file (or a few with one beginning) per verb, one line per verb in
 * main.c's table.
 */
#pragma once

#include "base/fail.h"

#include <jansson.h>

enum {
	CLIENT_OK = 0,
	CLIENT_FAILURE = 1, /* what was asked for could not be done */
	CLIENT_USAGE = 2,   /* what was asked for makes no sense; nothing was changed */
	CLIENT_LOST = 125,  /* where other statuses are a command's own: we failed, not it */
};

/* argv[0] is the verb. */
int client_cert(int argc, char **argv);
int client_config(int argc, char **argv);
int client_cp(int argc, char **argv);
int client_create(int argc, char **argv);
int client_exec(int argc, char **argv);
int client_inspect(int argc, char **argv);
int client_key(int argc, char **argv);
int client_kill(int argc, char **argv);
int client_logs(int argc, char **argv);
int client_ls(int argc, char **argv);
int client_network(int argc, char **argv);
int client_pause(int argc, char **argv);
int client_repl_request(int argc, char **argv);
int client_resume(int argc, char **argv);
int client_run_request(int argc, char **argv);
int client_secret(int argc, char **argv);
int client_shell(int argc, char **argv);
int client_snapshot(int argc, char **argv);
int client_stats(int argc, char **argv);

/* --- what is said (output.c) ------------------------------------------------------------------ */

/* One line on standard error: "glovebox: …". Returns status, for `return client_error(…)`. */
int client_error(int status, const char *fmt, ...) _printf_(2, 3);

/* -o json or -o table; -EINVAL. */
_must_check_ int client_output_format(const char *text, bool *ret_json);
int client_print_json(const json_t *o);

/* A table: filled cell by cell, row by row, then printed and emptied. What is empty is shown as
 * "-". */
struct text_table {
	const char *const *columns; /* their heads, NULL at the end */
	char **cells;
	size_t n_cells;
};

void table_add(struct text_table *t, const char *fmt, ...) _printf_(2, 3);
int table_print(struct text_table *t);

/* "1.5G". */
void client_bytes(double bytes, char *ret, size_t size);
/* How long ago a time of the API was, or how long it is until then: "90s", "5m". */
void client_age(const char *text, bool until, char *ret, size_t size);

/* --- what several verbs do (common.c) --------------------------------------------------------- */

/* A string of an object, "" when it is not there. */
const char *client_text(const json_t *o, const char *key);
/* The help text: to standard output when it was asked for, else to standard error. Returns the
 * status. */
int client_help(const char *help, bool asked);
/* "/sandboxes/ID" and the rest, with the id escaped. -ENAMETOOLONG. */
_must_check_ int client_path(const char *id, const char *rest, char *ret, size_t size);
/* A duration in whole seconds, at least one. -EINVAL. */
_must_check_ int client_seconds(const char *text, json_int_t *ret);
/* Asks the service something about the one sandbox that argv[first] names; takes body. Returns a
 * status. */
_must_check_ int client_ask(const char *method, int first, int argc, char **argv, const char *rest,
			    json_t *body, json_t **ret);
/* The message for what getopt_long() said: an unknown option, or one without its value. */
int client_bad_option(const char *verb, int said, char **argv);
