/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open connections, with a clock each. The HTTP library has one time-out for everything; we
 * want different ones (AP-03): for the head of a request, for its body, between requests, and none
 * while a handler works or a stream is quiet. Not being able to write is the kernel's business:
 * TCP_USER_TIMEOUT.
 */
#pragma once

#include "base/util.h"
#include "server/http/rate.h"

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

/* With a thread that looks at them each second. At most max of them, max_of_address from one
 * address. */
_must_check_ int connections_start(size_t max, size_t max_of_address, struct connections **ret);
void connections_stop(struct connections *cs);

/* -EUSERS: there are as many as there may be from this address; -EAGAIN: as many as there may be at
 * all. */
_must_check_ int connection_add(struct connections *cs, int fd, const struct sockaddr *peer,
				struct connection **ret);
void connection_remove(struct connections *cs, struct connection *c);
/* The same for one whose descriptor is closed already, so that it may have been noticed: by its
 * cookie. */
void connection_forget(struct connections *cs, int fd, uint64_t cookie);
uint64_t connection_cookie(const struct connection *c);
/* The one that was added with this descriptor, or NULL. */
struct connection *connection_find(struct connections *cs, int fd);
/* Becomes readable when there may be space again after -EAGAIN; read it, then try. */
int connections_space_fd(const struct connections *cs);

int connection_fd(const struct connection *c);
/* The peer's address as it is counted: http/rate.h. */
const char *connection_peer(const struct connection *c);
/* Starts the clock of this state. */
void connection_set(struct connection *c, enum connection_state state);
/* The body must be complete within CONNECTION_BODY_JSON_MS. */
void connection_set_body_deadline(struct connection *c, bool on);
/* A request is over: the clock between requests starts. */
void connection_wait(struct connection *c);
/* The same where it is known how many bytes were received by then: saves a system call. */
void connection_wait_after(struct connection *c, uint64_t received);

/* How many are in a request. */
size_t connections_busy(struct connections *cs);
/* Cuts all of them off, with a reset for those in the middle of something. */
void connections_cut(struct connections *cs);

/* Ends a connection so that the client cannot take it for an end: RST, not FIN. */
void connection_reset(int fd);
