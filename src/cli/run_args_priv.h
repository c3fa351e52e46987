/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of reading the command line of `glovebox run`. */
#pragma once

#include "cli/language.h"
#include "cli/run_args.h"

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
};

/* run_limits.c: one limit (an enum run_option) as it was typed. */
_must_check_ int run_args_limit(int id, const char *text, struct run_limits *l, struct fail *fail);

/* The limits of a step: what was given, else what the language needs, else the default. */
struct run_limits run_args_step_limits(const struct run_limits *given,
				       const struct language_limits *needs);

/* run_inputs.c: one --in PATH[:DEST]. */
_must_check_ int run_args_input(struct run_request *q, const char *text, struct fail *fail);
