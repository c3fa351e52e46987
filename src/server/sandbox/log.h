/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one JSON object on one line of standard error. All text is escaped to ASCII, so whatever
 * a client puts into a name stays inside its string (AP-12).
 *
 * Nobody waits for the log's reader: lines go into memory, and one thread writes them out, many
 * with one call. When there is no space any more, because nobody reads, lines are dropped and
 * counted: a full log must not stop the service.
 */
#pragma once

#include "base/util.h"

#include <jansson.h>

struct server;

#define LOG_LINE_MAX 4096 /* PIPE_BUF: what a pipe that can be written to takes without blocking */

/* Until it is called, and after log_queue_stop(), lines are written at once. */
_must_check_ int log_queue_start(void);
/* Writes what is left. */
void log_queue_stop(void);

/* One line, escaped. */
void server_log(struct server *s, const char *level, const char *event, json_t *fields /* taken */);
/* len bytes with a line end, at most LOG_LINE_MAX. urgent: more may be about to happen, so do not
 * wait for others. */
void log_queue_add(const char *line, size_t len, bool urgent);
