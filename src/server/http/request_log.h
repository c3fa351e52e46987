/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in the log (AP-12): one line each, and nothing secret. */
#pragma once

#include "base/util.h"
#include "server/http/host.h"

struct exchange;

/*
 * Visits to ports. There may be tens of thousands in a second, so those that come close after each
 * other on one connection are one line: how many, the highest status, the longest time.
 */
struct visit_log {
	unsigned count; /* 0: nothing to be written */
	unsigned status;
	uint64_t ms;
	uint64_t since_us; /* when the first of them ended */
	uint32_t port;
	char id[HOST_ID_SIZE]; /* of the sandbox */
	char method[32];       /* of the last one */
	bool broken_off;
};

/* request: the id of the request, or NULL. */
void visit_log_write(const struct visit_log *l, const char *peer, const char *request);
/* A request that is over. completed: the reply has been sent. */
void request_log_write(const struct exchange *x, bool completed);
