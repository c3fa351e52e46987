/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visits to ports in the log (AP-12). There may be tens of thousands in a second, so those that come close after each other on
 * one connection are one line: how many, the highest status, the longest time.
 */
#pragma once

#include "base/util.h"
#include "server/http/host.h"

struct port_log {
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
void port_log_write(const struct port_log *l, const char *peer, const char *request);
