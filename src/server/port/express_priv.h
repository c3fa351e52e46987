/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/http/request_log.h"
#include "server/port/express.h"
#include "server/port/head.h"
#include "server/port/port.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define EXPRESS_PIECE ((size_t)128 << 10) /* as much of an answer is received at once */

/* What an event is about. */
enum express_kind {
	EXPRESS_WAKE,
	EXPRESS_VISITOR,
	EXPRESS_CALL,
};

enum visitor_state {
	VISITOR_WAITING, /* for a request */
	VISITOR_DIALING, /* for a connection to the program */
	VISITOR_ASKING,  /* for the head of the answer: the request is still in the kernel */
	VISITOR_HEARING, /* for more of the answer */
};

/* A client's connection. */
struct visitor {
	enum express_kind kind; /* first, as in every kind */
	enum visitor_state state;
	struct express_thread *thread;
	struct connection *connection;
	int fd;
	bool more;           /* bytes came since we last looked */
	bool leaving;        /* the client will not say any more */
	uint64_t leaving_us; /* since then */
	struct call *call;   /* while not WAITING */
	uint64_t taken;      /* bytes of all requests so far */
	struct visitor *next, *prev;
	struct sockaddr_storage peer;
	char client[INET6_ADDRSTRLEN];
	/* of the request: */
	struct sandbox *sandbox; /* a reference, and a place among its visits; NULL: none */
	uint32_t port;
	size_t head_len;
	char method[16];
	bool to_head, last;
	uint64_t since_us;
	unsigned interim; /* answers of 1xx so far */
	/* of the answer: */
	struct port_answer answer;
	uint64_t left;        /* of a body of known length */
	bool ended;           /* all of it has been received */
	struct buf out;       /* what the client has not taken yet, */
	size_t out_start;     /* from here on */
	struct visit_log log; /* of the visits that have not been written to the log */
};

/*
 * A connection to a program, or one that is to be, for one request. It comes from the pool and goes
 * back there with the end of the answer, so that a program that serves one connection at a time is
 * never asked on another one while we hold the first.
 */
struct call {
	enum express_kind kind;
	struct express_thread *thread;
	struct visitor *visitor; /* NULL: nobody waits for it any more */
	struct sandbox *sandbox; /* a reference, until there is a link */
	uint32_t port;
	int fd;            /* until there is a link; what the dialer found */
	uint64_t since_us; /* being connected since then */
	struct port_link *link;
	bool dialing;      /* the dialer has it */
	struct call *next; /* among those that the dialer has, or that are closed */
};

struct express_thread {
	enum express_kind kind; /* of its wake_fd */
	struct express *express;
	struct server *server;
	pthread_t pthread;
	bool started;
	int epoll_fd, wake_fd;
	uint64_t now_us; /* of this round */
	uint64_t looked_us;
	/* Closed in this round: events of the same round may still be about them. */
	struct visitor *dead_visitors;
	struct call *dead_calls;
	pthread_mutex_t lock; /* for what follows, up to dialed */
	struct visitor *visitors;
	struct call *dialed;    /* that the dialer is through with */
	struct buf head;        /* one that is being written */
	struct port_head asked; /* the last one that was read */
	char peeked[PORT_EXPRESS_HEAD_MAX];
	char piece[EXPRESS_PIECE];
};

/* --- port/express.c --------------------------------------------------------------------------- */

/* What happens to the descriptor is told to its source from now on: a visitor. */
_must_check_ int express_watch(struct express_thread *t, int fd, void *source);
void express_unwatch(struct express_thread *t, int fd);

/* One from the pool, or one without a link yet, for which visitor_call_ready() will be called.
 * NULL: none can be made. */
struct call *call_take(struct visitor *v);
/* Tells the visitor, once, when there is something to read: visitor_hear(). */
_must_check_ int call_await(struct call *l);
/* Nobody accepts: the program does not come to it. */
bool call_is_stuck(const struct call *l);
/* Nobody needs it now; the next request may have its link, or not. */
void call_release(struct call *l, bool keep);

/* --- port/visitor.c --------------------------------------------------------------------------- */

_must_check_ int visitor_new(struct express_thread *t, struct connection *c,
			     const struct sockaddr_storage *peer);
void visitor_event(struct visitor *v, uint32_t events);
/* Its call is connected, or (not ok) cannot be. */
void visitor_call_ready(struct visitor *v, bool ok);
/* Its call has something to read. */
void visitor_hear(struct visitor *v);
/* So that the client cannot take what it has for the whole. */
void visitor_break_off(struct visitor *v);
/* From time to time. */
void visitor_look_after(struct visitor *v);
/* Those of a thread, newest first; only the thread itself takes any out. */
struct visitor *visitors_first(struct express_thread *t);
