/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/run.h"

#define RUN_ARGS_HELP 1

#define RUN_REQUEST_INIT                                                                           \
	{                                                                                          \
		.stdin_fd = -EBADF, .signal_fd = -EBADF, .template_name = "base",                  \
		.net = { .learn_fd = -EBADF },                                                     \
	}

/*
 * Reads the command line of `glovebox run` and checks all of it: files are open, limits possible, the
 * code is valid text of a known language. 0, RUN_ARGS_HELP, or negative with *fail filled.
 */
_must_check_ int run_args_read(int argc, char **argv, struct run_request *ret, struct fail *fail);
void run_request_done(struct run_request *q);
