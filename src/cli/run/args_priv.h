/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of reading the command line of `glovebox run`. */
#pragma once

#include "language/language.h"
#include "cli/run/args.h"

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

/* run/limits.c: one limit (an enum run_option) as it was typed. */
_must_check_ int run_args_limit(int id, const char *text, struct run_limits *l, struct fail *fail);

/* run/inputs.c: one --in PATH[:DEST]. */
_must_check_ int run_args_input(struct run_request *q, const char *text, struct fail *fail);
