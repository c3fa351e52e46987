/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open connections, with a clock each. The HTTP library has one time-out for everything; we want different ones
 * (AP-03): for the head of a request, for its body, between requests, and none while a handler works or a stream is
 * quiet. Not being able to write is the kernel's business: TCP_USER_TIMEOUT.
 */
#pragma once

#include "base/util.h"
#include "server/rate.h"

#define CONNECTION_HEAD_MS 10000 /* from the first byte of a request to the end of its headers */
#define CONNECTION_BODY_IDLE_MS 5000  /* without a byte of the body */
#define CONNECTION_BODY_JSON_MS 30000 /* for all of a JSON body */
#define CONNECTION_IDLE_MS 60000      /* between two requests */
#define CONNECTION_WRITE_MS 30000     /* without the client taking anything of what is sent */

enum connection_state {
	CONNECTION_WAITING, /* for a request, or in its headers */
	CONNECTION_BODY,    /* for more of the body */
	CONNECTION_BUSY,    /* we are at work, or sending */
};

struct connections;
struct connection;
struct sockaddr;

/* With a thread that looks at them each second. */
_must_check_ int connections_start(struct connections **ret);
void connections_stop(struct connections *cs);

/* NULL: no memory. */
struct connection *connection_add(struct connections *cs, int fd, const struct sockaddr *peer);
void connection_remove(struct connections *cs, struct connection *c);

int connection_fd(const struct connection *c);
/* The peer's address as it is counted: rate.h. */
const char *connection_peer(const struct connection *c);
/* Starts the clock of this state. */
void connection_set(struct connection *c, enum connection_state state);
/* The body must be complete within CONNECTION_BODY_JSON_MS. */
void connection_set_body_deadline(struct connection *c, bool on);
/* A request is over: the clock between requests starts. */
void connection_wait(struct connection *c);

/* How many are in a request. */
size_t connections_busy(struct connections *cs);
/* Cuts all of them off, with a reset for those in the middle of something. */
void connections_cut(struct connections *cs);

/* Ends a connection so that the client cannot take it for an end: RST, not FIN. */
void connection_reset(int fd);
