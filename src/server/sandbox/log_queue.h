/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where lines of the log wait for being written. Whoever has something to say does not wait for whoever reads it: lines
 * go into memory, and one thread writes them out, many with one call. When there is no room any more, because nobody
 * reads, lines are dropped and counted: a full log must not stop the service.
 */
#pragma once

#include "base/util.h"

#define LOG_LINE_MAX 4096 /* PIPE_BUF: what a pipe that can be written to takes without blocking */

/* Until it is called, and after log_queue_stop(), lines are written at once. */
_must_check_ int log_queue_start(void);
/* Writes what is left. */
void log_queue_stop(void);

/* len bytes with a line end, at most LOG_LINE_MAX. urgent: more may be about to happen, so do not wait for others. */
void log_queue_add(const char *line, size_t len, bool urgent);
