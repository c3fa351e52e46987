/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running ourselves: verbs that want to know how something behaves in a box ask `glovebox run` and
 * read its JSON, so what they see is what a user would.
 */
#pragma once

#include "base/util.h"

#include <jansson.h>
#include <sys/types.h>

struct self_job {
	pid_t pid;
	int fd; /* reads its standard output */
};

#define SELF_JOB_INIT                                                                              \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* Starts `glovebox run --json ARGS`; args is NULL-terminated. Every job started must be finished.
 */
_must_check_ int self_start(const char *const *args, struct self_job *ret);

/* Waits for its end and returns the object it printed; -EBADMSG when it printed none. */
_must_check_ int self_finish(struct self_job *job, json_t **ret);

/* Both, one after the other. */
_must_check_ int self_run(const char *const *args, json_t **ret);

/* Runs another program of ours (argv[0]), with nothing to read and nowhere to write: does it end
 * well? */
bool self_succeeds(const char *const *argv);

/* A string of an object, "" when it is not there. */
const char *self_text(const json_t *object, const char *key);
