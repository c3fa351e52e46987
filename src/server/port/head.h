/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request for a program: read, and written as the program gets it. Pure: bytes in, a
 * structure out. */
#pragma once

#include "server/http/head_field.h"

/* --- read: one that can take the express way (port/express.h) --------------------------------- */

#define PORT_EXPRESS_HEAD_MAX ((size_t)24 << 10) /* a request line of 8 KiB, headers of 16 */

struct port_head_field {
	const char *name;
	const char *value;
};

struct port_head {
	size_t len; /* of the head, with the empty line at its end */
	const char *method;
	const char *target;
	const char *host;
	const char *connection;    /* or NULL */
	const char *traffic_token; /* what came as one, or NULL */
	bool to_head;              /* it is a HEAD request */
	bool last;                 /* the client wants the connection closed after it */
	struct port_head_field field[HTTP_HEADERS_MAX];
	size_t n_fields;
};

/*
 * Reads a head at the front of len bytes, strictly; they are changed in place. False: it is not one
 * for the express way, or not all of it is there. Whatever is unusual about it, wrong or not, makes
 * it such a one: it is then read again, by the library, and answered or refused by what holds for
 * all requests. So nothing is refused here, and what is taken here would have been there.
 */
bool port_head_read(struct port_head *ret, char *data, size_t len);

/* --- written: the one place where it is ------------------------------------------------------- */

#define PORT_ASK_MAX ((size_t)48 << 10) /* target, headers and what we add */

struct port_ask {
	const char *method;
	const char *target;
	const char *host;         /* as the client said it */
	const char *host_to_tell; /* what the program is to believe its own name is */
	const char *client;       /* its address, or "" */
	const char *connection;   /* what the client's Connection field says, or NULL */
	bool tls;                 /* the client's connection is */
	bool upgrade;
	bool has_length;
	uint64_t length; /* of the body; UINT64_MAX: chunked */
};

/* The request line, and what we say in place of what the client said about itself and about the
 * body. */
_must_check_ int port_ask_begin(const struct port_ask *q, struct buf *ret);
/* One of the client's fields, if it goes in. */
_must_check_ int port_ask_field(const struct port_ask *q, const char *name, const char *value,
				struct buf *ret);
_must_check_ int port_ask_end(struct buf *ret);
