/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its reply, as the core of the server sees it. The handlers see struct request,
 * its first member.
 *
 *	exchange_begin()   the headers are there: http/head.c checks them, http/address.c finds out
 *	                   who is meant and http/access.c who asks
 *	exchange_data()    a piece of the body
 *	exchange_end()     the body is complete: the handler runs
 *
 * A reply that is made before the body is complete waits for its end: the library can take it only
 * then.
 *
 * A handler may take the body, and with it the connection, from the library: then http/body.c does
 * the rest.
 */
#pragma once

#include "server/http/connection.h"
#include "server/http/head_field.h"
#include "server/http/http.h"
#include "server/http/routes.h"
#include "server/server.h"
#include "server/http/uri.h"

#include "base/buf.h"

#define HTTP_JSON_MAX (UINT64_C(1) << 20)
#define HTTP_DROP_MAX (UINT64_C(1) << 20) /* of a stranger's body that nobody wants */
/* The same of a client that may: it hears nothing before it has said all. */
#define HTTP_DROP_ADMITTED_MAX (UINT64_C(64) << 20)
#define HTTP_REPLY_HEADERS_MAX 8
#define HTTP_ENVD_PORT 49983
#define HTTP_INTERPRETER_PORT 49999

struct reply_field {
	char *name;
	char *value;
};

struct exchange {
	struct request r;
	struct connection *peer;
	char *target; /* as it came; cut at the '?' once it has been split */
	struct uri_path path;
	struct uri_query query;
	const struct operation *operation;
	enum plane plane;
	bool begun;
	bool has_body;     /* one will follow, */
	uint64_t length;   /* of this length; UINT64_MAX: chunked */
	uint64_t received; /* of it so far */
	bool expects_continue;
	bool by_name;  /* a sandbox was named by the host, not by headers at our own address */
	bool is_last;  /* the connection is closed after the reply */
	bool admitted; /* has shown a key or token where one is needed */
	bool taken;    /* from the library: http/body.c does the rest */
	bool sent;     /* that reply */
	struct buf body;
	struct MHD_Response *reply; /* made, not yet given to the library */
	const char *text;           /* of that reply, which keeps it; NULL: a stream */
	size_t text_len;
	int cut; /* why the stream ended in the middle, as a negative errno; 0: it did not */
	unsigned status;
	struct reply_field fields[HTTP_REPLY_HEADERS_MAX];
	size_t n_fields;
	uint64_t started_us;
};

static inline struct exchange *exchange_of(struct request *r)
{
	return (struct exchange *)(void *)r;
}

/* For a port of a sandbox's own programs, which have no operations. */
static inline bool exchange_is_visit(const struct exchange *x)
{
	return x->r.route && !x->operation;
}

/* NULL: no memory. target is the request target, as it came. */
struct exchange *exchange_new(struct server *s, struct MHD_Connection *c, struct connection *peer,
			      const char *target);
void exchange_free(struct exchange *x);

/* Each returns 0, or a negative errno: close the connection. */
_must_check_ int exchange_begin(struct exchange *x, const char *method, const char *version);
_must_check_ int exchange_data(struct exchange *x, const char *data, size_t len);
_must_check_ int exchange_end(struct exchange *x);
/* Must the reply that there is be sent now, although a body may follow? */
bool exchange_cannot_wait(const struct exchange *x);
/* Gives the reply to the library. */
_must_check_ int exchange_queue(struct exchange *x);
/* For one whose body was taken: what is left of it, the handler, the reply. A negative errno in any
 * case: the library is to close the connection. */
_must_check_ int body_finish(struct exchange *x);

/* These return 0 and leave a reply behind when there is something to refuse. */
_must_check_ int head_check(struct exchange *x, const char *method, const char *version);
/* The rest of it, for our own planes: the target is one of ours, and there is no other protocol to
 * change to. */
_must_check_ int head_check_own(struct exchange *x);
/* The rest of it, for what goes to a program in a sandbox. */
_must_check_ int head_check_passed_on(struct exchange *x);
_must_check_ int address_find(struct exchange *x);
_must_check_ int access_check(struct exchange *x);

/* Refuses a request of which it cannot be known where it ends: nothing is read after it. */
int head_refuse(struct exchange *x, unsigned status, const char *what);
/* A wrong key, token or signature: 401, or 429 for a client that tries too often. */
int access_refuse(struct exchange *x, const char *message);
/* Has the sandbox no traffic token, or is it this one? */
bool access_may_visit(const struct sandbox *b, const char *token);
/* Counts the request for this key, or, with NULL, for the address it comes from. */
int access_rate(struct exchange *x, const char *key_id);
/* What the request says of its signature, if it has one: its texts are the request's. */
struct sign_request access_signed(struct exchange *x);
/* Counts a search through the tokens of all n sandboxes for the address, whether or not it finds
 * anything. */
int access_rate_search(struct exchange *x, size_t n);

/* Takes over a response of the library's as the reply, to which nothing is added. */
_must_check_ int reply_made(struct request *r, unsigned status, struct MHD_Response *reply);
/* About a sandbox; detail may be NULL. As JSON, or as a page where a browser asks. */
int reply_sandbox(struct request *r, unsigned status, const char *sandbox_id, const char *message,
		  const char *detail, bool with_port);
/* The 502 for a sandbox that cannot be talked to, with the reason. */
int reply_gone(struct request *r, const char *sandbox_id);
