/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/run/run.h"
#include "language/language.h"

#define RUN_ARGS_HELP 1

#define RUN_REQUEST_INIT                                                                           \
	{                                                                                          \
		.stdin_fd = -EBADF, .signal_fd = -EBADF, .template_name = "base",                  \
		.net = { .learn_fd = -EBADF },                                                     \
	}

enum run_option {
	OPT_STDIN = 256,
	OPT_IN,
	OPT_OUT,
	OPT_ENV,
	OPT_TIMEOUT,
	OPT_CPU_TIME,
	OPT_CPUS,
	OPT_MEMORY,
	OPT_DISK,
	OPT_FILES,
	OPT_PIDS,
	OPT_OUTPUT,
	OPT_JSON,
	OPT_RAW,
	OPT_LOCAL,
	OPT_SERVICE,
	OPT_NO_ZYGOTE,
	OPT_ALLOW,
	OPT_ALLOW_SET,
	OPT_ALLOW_PRIVATE,
	OPT_NET,
	OPT_LEARN_TO,
};

#define RUN_ENV_MAX 256

/* An option that opens or creates something, for when all have been read: an enum run_option. */
struct run_later {
	int id;
	const char *text;
};

/* What is read before the language is known. The strings are the command line's. 0 in a limit:
 * not given. */
struct run_args {
	const char *language;
	const char *code;
	const char *stdin_path;
	const char *file; /* FILE or "-" */
	char **command;   /* behind -- */
	struct run_limits given;
	const char *env[RUN_ENV_MAX + 1]; /* NULL-terminated */
	size_t n_env;
	struct run_later *later;
	size_t n_later;
	char **language_env; /* may be NULL */
};

/*
 * Reads the command line of `glovebox run`, in three steps; negative with *fail filled.
 *
 * First the options, which touches nothing: they are in *a and *ret. Or RUN_ARGS_HELP.
 */
_must_check_ int run_args_options(int argc, char **argv, struct run_args *a,
				  struct run_request *ret, struct fail *fail);
/* Do they ask for network? */
bool run_args_network(const struct run_args *a);
/* Then everything that is neither network nor environment: files are open, limits possible, the
 * code is valid text of a known language. */
_must_check_ int run_args_open(struct run_args *a, struct run_request *ret, struct fail *fail);
/* Then the program's environment; network: run_network_env() or NULL. */
_must_check_ int run_args_env(const struct run_args *a, const char *const *network,
			      struct run_request *ret, struct fail *fail);
void run_args_done(struct run_args *a);
/* Nothing fails without a word: passes r on, with *fail filled where it is negative. */
int run_args_reason(int r, struct fail *fail);

void run_request_done(struct run_request *q);

/* For others that have some of these options. One limit (an enum run_option) as it was typed;
 * one --in PATH[:DEST]. */
_must_check_ int run_args_limit(int id, const char *text, struct run_limits *l, struct fail *fail);
_must_check_ int run_args_input(struct run_request *q, const char *text, struct fail *fail);
