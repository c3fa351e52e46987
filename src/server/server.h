/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server room as a whole: what every part of it can reach. Made by main() before the first thread starts
 * and not changed afterwards; each member does its own locking.
 */
#pragma once

#include "server/link.h"
#include "service/config.h"
#include "store/store.h"

struct MHD_Daemon;
struct connections;
struct rates;
struct routes;
struct table;

struct server {
	struct config config;
	struct store *store;
	struct link *link;
	struct table *table;             /* the sandboxes: sandbox.h */
	struct routes *routes;           /* what openapi.json says: routes.h */
	struct rates *rates;             /* requests and creates of each key: rate.h */
	struct connections *connections; /* open ones and their timers: connection.h */
	struct MHD_Daemon *daemon;
	int stop_fd;        /* an eventfd that becomes readable, for ever, when the service stops */
	int64_t started_ms; /* by the clock on the wall */
};
