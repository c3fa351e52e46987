/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/repl/repl.h"
#include "wire/wire.h"

struct local {
	struct box_host host;
	struct box box;
	struct cgroup_exec leaf;
	bool has_kernel;
	bool in_cell;
	int tell_sock; /* of the last interrupt, until its cell is over */
	uint64_t next_tick_us;
	uint32_t weight_milli;
	unsigned memory_kills; /* since the box was made */
	unsigned memory_kills_told;
	struct buf event; /* the JSON text that is coming in */
	bool event_lost;  /* it was too large */
	json_t *error;    /* what the cell told; shown when it is over */
};

/* repl/frame.c: one frame of a cell that has started. -EPROTO when it may not come. */
_must_check_ int local_frame(struct repl *r, const struct wire_frame *f);
