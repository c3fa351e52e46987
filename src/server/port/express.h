/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The express way to ports of sandboxes: a few threads that hold many connections each, for what
 * most visits are: a request without a body, by the sandbox's name, of a program that listens.
 *
 * Theory of operation: every new connection begins here. When a request comes, its head is looked
 * at where it lies, in the kernel's memory (MSG_PEEK). If it is for a port and nothing about it is
 * unusual, the thread sends the program the request and passes on the answer, piece by piece; the
 * request is taken from the kernel only once there is an answer that can be passed on. In every
 * other case (another plane, a body, a WebSocket, a head that is not whole or that somebody could
 * misread, a sandbox that does not run, a program that is not there or breaks off) the connection
 * is given to the HTTP library as it is, with nothing taken: the rules are there, and so is
 * everything that we say ourselves. It does not come back.
 *
 *	port/express.c   the threads and what they wait for; calls to programs
 *	port/visitor.c   a client's connection: from one request to the next, and the answers
 *
 * A thread's visitors and calls are its own: nothing of them is locked. None of the threads ever
 * waits for anybody: sockets in boxes are asked for by another one.
 */
#pragma once

#include "server/http/daemon.h"

struct express;

_must_check_ int express_start(struct server *s, struct express **ret);
connection_taker express_take;
/* What is under way may finish for a moment, then everything is closed. */
void express_stop(struct express *e);
