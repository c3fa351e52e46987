/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preview: requests for ports of a sandbox that are its own programs', not ours.
 *
 * Theory of operation: most of them take the express way (port/express.h). The others (a body, a
 * WebSocket, TLS, a sandbox that is to be woken, whatever is unusual) go through the same door as
 * any request to us and are then a route like those of files and commands, port_route. Their thread
 * connects to the port from inside the box's network (a socket that the warden made there), sends
 * the request on, and the answer back, piece by piece:
 *
 *	port/visit.c     the route: the head and the body that are sent, what comes back
 *	port/upgrade.c   WebSockets: bytes both ways
 *
 * Both ways have in common:
 *
 *	port/connect.c      a connection to a port, with TLS or without, and what goes over it
 *	port/pool.c      connections that can be used again
 *	port/head.c      the head that is sent
 *	port/answer.c    what the program answers, read strictly
 *	port/rules.c     which headers go in and which come out
 *
 * The program is hostile, and so is the client. Neither learns anything of the other that is ours:
 * no key and no token of this service goes in, and what comes out by our own address cannot act
 * there.
 */
#pragma once

#include "server/http/exchange.h"
#include "server/port/answer.h"
#include "server/port/rules.h"
#include "server/sandbox/sandbox.h"

#include <netinet/in.h>

/* --- a connection to a port (port/connect.c) ----------------------------------------------------- */

#define PORT_DATA_MAX ((size_t)96 << 10) /* a head, and most bodies with it */

struct gnutls_session_int;

struct port_link {
	struct op op;                   /* its socket, hung up with the sandbox */
	struct gnutls_session_int *tls; /* or NULL */
	uint32_t port;
	bool used; /* it has served a request before: it may be dead without us knowing */
	uint64_t idle_since_ms;
	struct port_link *next, *prev; /* in the pool */
	size_t start, end;             /* what lies in data and was not looked at */
	char data[PORT_DATA_MAX];
};

/*
 * Connects to 127.0.0.1, or else [::1], in the box's network. A port that is only being opened is
 * given a moment. -ECONNREFUSED: nobody listens; -EBUSY: the sandbox is not in a state for that;
 * -ENOTCONN: it is gone; -ETIMEDOUT: somebody listens, but does not accept. Here and below,
 * -ECANCELED: the client has gone, -ESHUTDOWN: the service stops.
 */
_must_check_ int port_link_open(struct request *r, struct port_link **ret);
/* Its parts, for callers that must not wait: a socket in the box's network that does not block;
 * connect(), which may say -EINPROGRESS; and a link made of the descriptor, which is taken over in
 * any case. */
_must_check_ int port_link_socket(struct sandbox *b, uint32_t family);
_must_check_ int port_link_connect(int fd, uint32_t family, uint32_t port);
_must_check_ int port_link_adopt(int fd, struct sandbox *b, uint32_t port, struct port_link **ret);
void port_link_close(struct port_link *l);
void port_link_closep(struct port_link **l);

/* Sends all of it. -EALREADY: the program began to answer while it did not take more. */
_must_check_ int port_link_send(struct request *r, struct port_link *l, struct iovec *iov,
				size_t n);
/* Waits for bytes and receives some: 0 at the end. */
_must_check_ ssize_t port_link_recv(struct request *r, struct port_link *l, char *data, size_t max);
/* The next head, whole, in l->data from l->start on: its length. -ENODATA: the program ended the
 * connection before it said anything; -EPROTO. */
_must_check_ ssize_t port_link_recv_head(struct request *r, struct port_link *l);

/* What became of fd, or 0 after the time. */
_must_check_ int port_link_wait(struct request *r, int fd, short events, int timeout_ms);

/* Is this one of the sandbox's httpsPorts? */
bool port_speaks_tls(struct sandbox *b, uint32_t port);
/* What a call of the TLS library said, as an errno. */
ssize_t port_tls_result(ssize_t n);

/* --- the pool (port/pool.c) ------------------------------------------------------------------- */

struct port_pool;

_must_check_ int port_pool_start(struct port_pool **ret);
void port_pool_stop(struct port_pool *p);
/* One that is still open, or NULL. */
struct port_link *port_pool_take(struct port_pool *p, const struct sandbox *b, uint32_t port);
/* Takes it over. */
void port_pool_put(struct port_pool *p, struct port_link *l);

/* --- one visit (port/visit.c, port/upgrade.c) ------------------------------------------------- */

/* request->state. */
struct port_visit {
	struct request *r;
	struct port_link *link;
	struct buf head; /* of the request: kept in case that it must be sent again */
	bool chunked;    /* the request's body */
	bool upgrade;
	bool own_address;
	bool counted; /* among the sandbox's */
	bool unsent;  /* the program has part of the request only: nothing more may follow it */
	struct port_answer answer;
	uint64_t left;   /* of a body of known length */
	bool ended;      /* all of the body was received */
	bool lent;       /* the library sends it from the link's memory */
	bool taken_over; /* the connection is a WebSocket now */
};

extern const struct route port_route;

bool port_is_running(struct sandbox *b);
/* What the program is to believe its own name is: host, or maskRequestHost, in memory. */
const char *port_host_to_tell(struct sandbox *b, uint32_t port, const char *host,
			      char memory[static HOST_MASKED_SIZE]);
/* An address as the program gets it; "": none. */
void port_client_text(const struct sockaddr *sa, char ret[static INET6_ADDRSTRLEN]);
/* Those fields of the answer that go out. */
_must_check_ int port_reply_fields(const struct port_visit *v, struct MHD_Response *reply);
/* The program has said 101. */
_must_check_ int port_reply_upgrade(struct port_visit *v);

#define PORT_BROKEN "The program at this port did not give an answer that can be passed on"
