/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server room as a whole: what every part of it can reach. Made by main() before the first thread starts
 * and not changed afterwards; each member does its own locking.
 */
#pragma once

#include "server/sandbox/link.h"
#include "service/config.h"
#include "store/store.h"

struct MHD_Daemon;
struct acceptor;
struct connections;
struct express;
struct outlets;
struct port_pool;
struct rates;
struct route;
struct routes;
struct secret_key;
struct table;

struct server {
	struct config config;
	struct store *store;
	struct secret_key
		*secret_key; /* what values of secrets are encrypted with: sandbox/secret.h */
	struct link *link;
	struct table *table;             /* the sandboxes: sandbox/sandbox.h */
	struct outlets *outlets;         /* boxes with network, and egress: sandbox/outlet.h */
	struct routes *routes;           /* what openapi.json says: http/routes.h */
	const struct route *port_route;  /* what answers at all other ports of sandboxes */
	struct rates *rates;             /* requests and creates of each key: http/rate.h */
	struct connections *connections; /* open ones and their timers: http/connection.h */
	struct port_pool *ports;         /* connections to programs in sandboxes: port/port.h */
	struct express
		*express; /* most visits to programs in sandboxes: port/express.h; NULL: none */
	struct MHD_Daemon *daemon;
	struct acceptor *acceptor;
	int stop_fd;        /* an eventfd that becomes readable, for ever, when the service stops */
	int64_t started_ms; /* by the clock on the wall */
};
