/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server room as a whole: what every part of it can reach. Made by main() before the first
 * thread starts and not changed afterwards; each member does its own locking.
 */
#pragma once

#include "service/config.h"
#include "store/store.h"

struct MHD_Daemon;
struct acceptor;
struct connections;
struct express;
struct link;
struct outlets;
struct port_pool;
struct rates;
struct route;
struct routes;
struct sandbox;
struct secret_key;
struct table;

struct server {
	struct config config;
	struct store *store;
	struct secret_key *secret_key;   /* encrypts values of secrets: sandbox/secret.h */
	struct link *link;               /* to the warden: sandbox/link.h */
	struct table *table;             /* the sandboxes: sandbox/sandbox.h */
	struct outlets *outlets;         /* boxes with network, and egress: sandbox/outlet.h */
	struct routes *routes;           /* what openapi.json says: http/routes.h */
	const struct route *port_route;  /* what answers at all other ports of sandboxes */
	struct rates *rates;             /* requests and creates of each key: http/rate.h */
	struct connections *connections; /* open ones and their timers: http/connection.h */
	struct port_pool *ports;         /* connections to programs in sandboxes: port/port.h */
	struct express *express;         /* most visits to such programs: port/express.h; or NULL */
	struct MHD_Daemon *daemon;
	struct acceptor *acceptor;
	int stop_fd;        /* an eventfd that becomes readable, for ever, when the service stops */
	int64_t started_ms; /* by the clock on the wall */
	bool has_filter;    /* of system calls, in force */
	int landlock_abi;   /* that is in force; 0: the kernel has none */

	/* What lower parts ask of higher ones. */

	/* Traffic for a paused sandbox: resumes it if it is to be resumed by traffic, and returns
	 * when that is done. -ENOTCONN: it is not. Several threads may call this at once. */
	int (*wake)(struct sandbox *b);
	/* An event for the webhooks of this key; takes over the reference. Never waits. */
	void (*deliver)(struct server *s, const char *key_id, const char *type, json_t *event);
};
