/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "server/server.h"

/* PEM, or NULL both: plain HTTP. */
struct http_tls {
	char *cert;
	char *key;
};

/* Serves on the socket from now on: s->daemon. Takes over the descriptor. */
_must_check_ int http_start(struct server *s, int listen_fd, const struct http_tls *tls);
