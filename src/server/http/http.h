/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP as the handlers see it. libmicrohttpd gives every connection a thread, so a handler is
 * straight-line code that may wait. The order of things for each request (http/daemon.c):
 *
 *	connection limits -> Host check -> which plane (sandbox headers or host name: data; else
 *	control) -> route -> key or token -> rate -> body, checked against openapi.json -> handler
 *	-> one reply
 *
 * A handler must queue exactly one reply. The request lives until the reply has been sent.
 */
#pragma once

#include "base/fail.h"
#include "server/sandbox/log.h"
#include "store/store.h"

#include <jansson.h>
#include <microhttpd.h>

#define HTTP_PARAMS_MAX 4

struct sandbox;
struct server;
struct route;

struct request {
	struct server *server;
	struct MHD_Connection *connection;
	int socket;  /* of the connection: for noticing that the client has gone */
	char id[20]; /* of this request: in logs and in errors whose cause is ours */
	const char *method;
	const char *path; /* as it came, not decoded */
	const struct route *route;
	char *params[HTTP_PARAMS_MAX]; /* of the path, decoded, in the route's order */
	struct store_key key;          /* control plane: who asks */
	struct sandbox *sandbox;       /* data plane: a reference to the one that is addressed */
	uint32_t port;                 /* data plane: its logical port */
	json_t *body;                  /* HTTP_BODY_JSON: checked; NULL when there was none */
	void *state;                   /* the handler's own, from begin() to done() */
	bool replied;
};

enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_JSON,   /* read whole, at most body_max, checked before handle() */
	HTTP_BODY_STREAM, /* handed on piece by piece: begin(), data()…, handle() */
};

enum http_auth {
	HTTP_AUTH_KEY, /* control plane: X-API-KEY */
	HTTP_AUTH_NONE,
	HTTP_AUTH_TOKEN, /* data plane: X-Access-Token where the sandbox is secured */
	HTTP_AUTH_FILES, /* data plane: that, or a signature in the query */
};

/*
 * What a route does. begin(), data() and handle() return 0, or a negative errno after which the
 * connection is closed without a word; to say something, reply and return 0. Once a
 * reply is queued in begin() or data(), the rest of the body is read and dropped.
 */
struct route {
	const char *operation; /* operationId in openapi.json, which has method and path */
	enum http_auth auth;
	enum http_body body;
	uint64_t body_max; /* of a JSON body; 0: 1 MiB */
	unsigned scopes;   /* control plane: a key needs one of these */
	int (*begin)(struct request *r);
	int (*data)(struct request *r, const char *data, size_t len);
	int (*handle)(struct request *r);
	void (*done)(struct request *r); /* after the reply, whatever happened */
};

/* The query's value, decoded once; NULL when it is not there. "" is a value. */
const char *request_query(const struct request *r, const char *name);
const char *request_header(const struct request *r, const char *name);

/* For handlers that make a sandbox: counts it against limits.creates_per_second of the key. Over
 * the limit it has replied (429): look at r->replied. */
int request_take_create(struct request *r);

/* --- replies: each returns 0 or a negative errno, for `return reply_…` ------------------------ */

/* Takes over the reference to body. */
int reply_json(struct request *r, unsigned status, json_t *body);
int reply_empty(struct request *r, unsigned status); /* with Content-Length: 0 */
/* {"code": status, "message": …}. The message must not have a path or an address of this
 * machine. */
int reply_error(struct request *r, unsigned status, const char *fmt, ...) _printf_(3, 4);
/* Something that is not the client's doing: 500 with the request's id; fail goes to the log. */
int reply_failure(struct request *r, const struct fail *fail);
int reply_text(struct request *r, unsigned status, const char *type, const char *text);
/* A JSON string of text that need not be UTF-8: what is not is replaced. */
json_t *reply_safe_string(const char *text);
/* Adds a header to the reply that will be made next (at most eight): call it before reply_…(). */
void reply_header(struct request *r, const char *name, const char *value);

/*
 * A reply that comes piece by piece. read() may wait; it returns bytes put into data, 0 at the end,
 * or a negative errno, upon which the connection is reset so that the client cannot mistake it for
 * an end. size: known length, or UINT64_MAX for chunks. close() is called exactly once, whatever
 * happens.
 */
struct stream {
	ssize_t (*read)(void *arg, char *data, size_t max);
	void (*close)(void *arg);
};
int reply_stream(struct request *r, unsigned status, const char *type, uint64_t size,
		 const struct stream *stream, void *arg);

/* For read(): waits until fd can be read, at most timeout_ms (-1: for ever). 1, 0 when the time is
 * over, -ECONNRESET when the client has gone, -ESHUTDOWN when the service stops. */
int stream_wait(struct request *r, int fd, int timeout_ms);
/* The same for either of two. */
_must_check_ int stream_wait_either(struct request *r, int fd, int other_fd, int timeout_ms);
/* The same until fd can be read or written. */
_must_check_ int stream_wait_both_ways(struct request *r, int fd, int timeout_ms);
/* The same until fd can be written, or other_fd be read. */
_must_check_ int stream_wait_space(struct request *r, int fd, int other_fd, int timeout_ms);

/* --- a body past the library (http/body.c) ---------------------------------------------------- */

/* How many bytes of the body are still in the socket, as the client sent them; 0 also where that is
 * not known or they are encrypted. */
uint64_t body_rest(const struct request *r);
/*
 * In data(): has the kernel move what there is of them into a pipe whose end does not block,
 * without waiting. Bytes moved, -EAGAIN when none came or no space is there, -EPIPE when nobody
 * reads the pipe, -ECONNRESET when the client is gone.
 *
 * The library does not hear of these bytes, so from the first call on the connection is ours: what
 * data() leaves of the body comes to it in further calls, and the connection ends after the reply,
 * which must not be a stream.
 */
_must_check_ ssize_t body_splice(struct request *r, int pipe_fd);
/* Waits for more of the body, or until other_fd can be read; as stream_wait(), with the clock for
 * slow clients running. */
_must_check_ int body_wait(struct request *r, int other_fd);
