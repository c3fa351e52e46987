/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/server.h"

/* PEM, or NULL both: plain HTTP. */
struct http_tls {
	char *cert;
	char *key;
};

struct sockaddr_storage;

/* Serves the connections that it is given from now on: s->daemon. */
_must_check_ int http_start(struct server *s, const struct http_tls *tls);
/* Takes over a connection, which http/connection.h knows. */
void http_add(struct server *s, int fd, const struct sockaddr_storage *peer);
