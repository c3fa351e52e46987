/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request that can take the express way (port/express.h), read strictly. Pure: bytes in, a structure out.
 * Whatever is unusual about it, wrong or not, makes it one that cannot: it is then read again, by the library, and answered or
 * refused by what holds for all requests. So nothing is refused here, and what is taken here would have been there.
 */
#pragma once

#include "server/http/head_field.h"

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

/* Reads a head at the front of len bytes, which are changed in place. False: it is not one for the express way, or not
 * all of it is there. */
bool port_head_read(struct port_head *ret, char *data, size_t len);
