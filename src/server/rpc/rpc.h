/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Connect protocol with JSON messages, as far as E2B's clients speak it: unary calls, server
 * streams (Start, Connect, WatchDir) and one client stream (StreamInput). No compression, no binary
 * messages.
 *
 *	rpc/message.c  bytes and fields: envelopes, base64, names, numbers. Pure, fuzzed.
 *	rpc/rpc.c          a unary call from request to reply, and errors
 *	rpc/stream.c   a reply of many messages
 */
#pragma once

#include "base/buf.h"
#include "base/util.h"

#include <jansson.h>

struct request;

/* --- errors ---------------------------------------------------------------------------------- */

enum rpc_code {
	RPC_OK,
	RPC_CANCELED,
	RPC_UNKNOWN,
	RPC_INVALID_ARGUMENT,
	RPC_DEADLINE_EXCEEDED,
	RPC_NOT_FOUND,
	RPC_ALREADY_EXISTS,
	RPC_PERMISSION_DENIED,
	RPC_RESOURCE_EXHAUSTED,
	RPC_FAILED_PRECONDITION,
	RPC_UNIMPLEMENTED,
	RPC_INTERNAL,
	RPC_UNAVAILABLE,
	RPC_UNAUTHENTICATED,
	_RPC_CODE_MAX,
};

struct rpc_error {
	enum rpc_code code;
	char message[512]; /* may have a client's own text in it, cut */
};

const char *rpc_code_name(enum rpc_code code);
unsigned rpc_code_status(enum rpc_code code); /* of HTTP, for a unary call */

/* rpc_fail(e, code, fmt, …) fills *e and is -EREMOTEIO, for `return rpc_fail(…)`: "the error is
 * in e". A macro, so that compilers see that. */
#define rpc_fail(...) (rpc_fill(__VA_ARGS__), -EREMOTEIO)

void rpc_fill(struct rpc_error *e, enum rpc_code code, const char *fmt, ...) _printf_(3, 4);

/* --- messages (rpc/message.c) ---------------------------------------------------------------- */

#define RPC_MESSAGE_MAX (UINT64_C(1) << 20) /* of one message from a client */
#define RPC_DROP_MAX (UINT64_C(64) << 20)   /* of a request that is refused */
#define RPC_ENVELOPE_HEAD 5                 /* flags, length in network order */
#define RPC_FLAG_END 2

/* The message at the start of data[0..n): 1 (and how long head and message are together), 0 when
 * there is more to come, -EMSGSIZE, -EPROTO for flags that a client does not send. */
_must_check_ int rpc_envelope_next(const unsigned char *data, size_t n, size_t *ret_len);

/* Appends head and message. */
_must_check_ int rpc_envelope_add(struct buf *out, unsigned char flags, const void *data,
				  size_t len);

/* Parses one message: an object, nothing behind it, no key twice, not too deep. */
_must_check_ int rpc_parse(const void *data, size_t len, json_t **ret, struct rpc_error *e);

/* A member by its lowerCamelCase name, or by the same in snake_case; NULL: not there, or null. */
json_t *rpc_member(const json_t *message, const char *name);

/* Members with a type. Not there: *ret is NULL, false or 0, as in protobuf. */
_must_check_ int rpc_object(const json_t *message, const char *name, const json_t **ret,
			    struct rpc_error *e);
_must_check_ int rpc_string(const json_t *message, const char *name, size_t max, const char **ret,
			    struct rpc_error *e);
_must_check_ int rpc_bool(const json_t *message, const char *name, bool *ret, struct rpc_error *e);
/* A number, or a string of digits (as int64 travels in JSON). */
_must_check_ int rpc_number(const json_t *message, const char *name, uint64_t max, uint64_t *ret,
			    struct rpc_error *e);
/* base64, standard or URL alphabet, padded or not. The bytes are the caller's to free. */
_must_check_ int rpc_bytes(const json_t *message, const char *name, unsigned char **ret,
			   size_t *ret_len, struct rpc_error *e);
/* {"size": {"cols": n, "rows": n}} as the member `name`; *ret_given tells whether it was there. */
_must_check_ int rpc_terminal(const json_t *message, const char *name, bool *ret_given,
			      uint16_t *ret_rows, uint16_t *ret_cols, struct rpc_error *e);

/* Appends data as base64. */
_must_check_ int rpc_base64_add(struct buf *out, const void *data, size_t len);

/* A text of unknown encoding as a JSON string; what is not UTF-8 becomes U+FFFD. NULL: no
 * memory. */
json_t *rpc_text(const void *data, size_t len);

/* Connect-Timeout-Ms: at most ten digits. 0 for an absent one; -EINVAL. */
_must_check_ int rpc_timeout_parse(const char *text, uint64_t *ret_ms);
/* "Keepalive-Ping-Interval": seconds; what is absent or makes no sense is the default. */
uint64_t rpc_keepalive_us(const char *text);

/* --- calls (rpc/rpc.c) ----------------------------------------------------------------------- */

/* For struct route: collects the body; replies by itself when it is not what the protocol wants. */
int rpc_begin_unary(struct request *r);
int rpc_begin_stream(struct request *r);
int rpc_data(struct request *r, const char *data, size_t len);
void rpc_done(struct request *r);

/* The user that `Authorization: Basic` names, or "user". */
#define RPC_USER_SIZE 33
_must_check_ int rpc_user(const struct request *r, char ret[RPC_USER_SIZE], struct rpc_error *e);
_must_check_ int rpc_user_parse(const char *authorization, char ret[RPC_USER_SIZE],
				struct rpc_error *e);

/* A user's name as it may be asked for; whether there is such a user, the box knows. */
_must_check_ int rpc_user_check(const void *name, size_t len, char ret[RPC_USER_SIZE],
				struct rpc_error *e);

/* Does Content-Type say this type (parameters such as charset=utf-8 aside)? */
bool rpc_type_is(const char *header, const char *type);

/* What the client gave as its time-out; 0: none. */
_must_check_ int rpc_timeout(const struct request *r, uint64_t *ret_ms, struct rpc_error *e);

/*
 * A unary call: parses the message, asks call() and replies with what it made. call() returns 0
 * with *ret set (or left NULL for an empty message), -EREMOTEIO with the error in e, or another
 * errno for a sandbox that has gone.
 */
typedef int (*rpc_call)(struct request *r, const json_t *message, json_t **ret,
			struct rpc_error *e);
int rpc_unary(struct request *r, rpc_call call);

/* Replies for an operation in the box that ended with such an errno: 502 when the sandbox is
 * gone, and so on. */
int rpc_reply_gone(struct request *r, int err);
/* Replies to a unary call that went wrong. */
int rpc_reply_error(struct request *r, const struct rpc_error *e);

/* The only message of a request for a server stream. */
_must_check_ int rpc_stream_message(struct request *r, json_t **ret, struct rpc_error *e);

/* --- streams (rpc/stream.c) ------------------------------------------------------------------ */

struct rpc_stream;

struct rpc_source {
	/* Adds messages for as long as it need not wait. 0: nothing more now; an errno resets
	 * the connection. */
	int (*pump)(struct rpc_stream *s);
	void (*free)(void *arg);
	const char *keepalive; /* the message to send when there was none for a while */
	size_t keepalive_len;
};

struct rpc_stream {
	struct request *request;
	const struct rpc_source *source;
	void *arg;      /* the source's own */
	int fd;         /* what to wait for */
	struct buf out; /* not yet sent, from sent on */
	size_t sent;
	bool ended;
	uint64_t keepalive_us;
	uint64_t last_us;     /* when something was sent */
	uint64_t deadline_us; /* 0: none */
};

#define RPC_STREAM_BATCH (UINT64_C(32) << 10) /* pump() stops adding beyond this */
/* One frame of the agent in base64, its wrapping, and a batch. */
#define RPC_STREAM_MAX (RPC_STREAM_BATCH + (UINT64_C(128) << 10))

/* Starts the reply; arg is the source's from then on, also when this fails. timeout_ms: 0 for
 * none. */
int rpc_stream_reply(struct request *r, const struct rpc_source *source, void *arg, int fd,
		     uint64_t timeout_ms);
/* A stream that only says what went wrong. */
int rpc_stream_error(struct request *r, const struct rpc_error *e);
/* A stream of one empty message: the answer to a client stream. */
int rpc_stream_empty(struct request *r);

/* For pump(). */
_must_check_ int rpc_stream_add(struct rpc_stream *s, const void *message, size_t len);
_must_check_ int rpc_stream_add_json(struct rpc_stream *s, json_t *message /* taken */);
/* The last message: without an error, or with one. */
_must_check_ int rpc_stream_end(struct rpc_stream *s, const struct rpc_error *e);
