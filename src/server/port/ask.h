/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request as a program in a box gets it. Pure: the one place where it is written. */
#pragma once

#include "base/buf.h"

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

/* The request line, and what we say in place of what the client said about itself and about the body. */
_must_check_ int port_ask_begin(const struct port_ask *q, struct buf *ret);
/* One of the client's fields, if it goes in. */
_must_check_ int port_ask_field(const struct port_ask *q, const char *name, const char *value,
				struct buf *ret);
_must_check_ int port_ask_end(struct buf *ret);
