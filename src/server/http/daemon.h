/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/server.h"

/* PEM, or NULL both: plain HTTP. */
struct http_tls {
	char *cert;
	char *key;
};

struct acceptor;
struct connection;
struct sockaddr_storage;

/* Takes over a connection, whose descriptor does not block. On failure it is still the caller's. */
typedef int connection_taker(struct server *s, struct connection *c,
			     const struct sockaddr_storage *peer);

/* Serves the connections that it is given from now on: s->daemon. */
_must_check_ int http_start(struct server *s, const struct http_tls *tls);
connection_taker http_take; /* never fails */

/* A thread that accepts connections, counts them (http/connection.h) and gives them to take(). */
_must_check_ int acceptor_start(struct server *s, int listen_fd, connection_taker *take,
				struct acceptor **ret);
/* Accepts no more, and closes listen_fd. */
void acceptor_stop(struct acceptor *a);
