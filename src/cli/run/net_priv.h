/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/run/run.h"
#include "service/egress_start.h"

struct run_net {
	struct egress_room room;
	int sock; /* to egress, as its server; -EBADF: it is gone */
	bool catches;
	bool applied; /* since we began to wait for it */
	int applied_err;
	struct net_log log;
	struct learned learned;
	unsigned told;        /* refusals, as they happened */
	uint32_t told_reason; /* the last one, */
	char told_target[NET_TARGET_SIZE];
};
