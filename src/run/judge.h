/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which limit ended a run, a command or a cell, and in which words people are told. Pure: it knows
 * no box, no clock and no file. `glovebox run`, the service's /v1/run, its commands and its cells
 * all ask here, so that they give one answer.
 */
#pragma once

#include "wire/wire.h"

struct run_limits {
	uint64_t timeout_us;
	uint64_t cpu_time_us;
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t files;
	uint64_t output_bytes;
	uint32_t pids;
	uint32_t cpu_milli;
};

enum run_status {
	RUN_OK,
	RUN_ERROR,
	RUN_TIMEOUT,
	RUN_CPU_LIMIT,
	RUN_MEMORY_LIMIT,
	RUN_DISK_LIMIT,
	RUN_PIDS_LIMIT,
	RUN_OUTPUT_LIMIT,
	RUN_SIGNAL,
	RUN_SETUP_ERROR,
	_RUN_STATUS_MAX,
};

enum run_limit {
	RUN_LIMIT_NONE,
	RUN_LIMIT_TIME,
	RUN_LIMIT_CPU_TIME,
	RUN_LIMIT_MEMORY,
	RUN_LIMIT_DISK,
	RUN_LIMIT_FILES,
	RUN_LIMIT_PIDS,
	RUN_LIMIT_OUTPUT,
	_RUN_LIMIT_MAX,
};

/*
 * What was observed, from its beginning on. What nobody could see stays as it is in
 * RUN_SEEN_NOTHING and decides nothing.
 */
struct run_seen {
	const struct wire_exit *end; /* NULL: it still runs */
	bool output_cut;
	uint64_t wall_us;
	bool cpu_counted;
	uint64_t cpu_us;
	uint64_t memory;       /* now, without its files: run_memory() */
	uint64_t memory_kills; /* by the kernel or by the warden */
	uint64_t pids_denied;
	uint64_t disk_free;
	uint64_t files_free;
	/* The counters are those of a sandbox, in which others run: the end has to look like it,
	 * too. */
	bool shared;
};

#define RUN_SEEN_NOTHING                                                                           \
	{                                                                                          \
		.disk_free = UINT64_MAX, .files_free = UINT64_MAX                                  \
	}

/* Linux counts files in memory as memory: without those on the box's own disk. */
uint64_t run_memory(uint64_t now, uint64_t shared, uint64_t disk_used);

/* The limit that was reached, of several the one that comes first in judge.c. 0 is no limit at
 * all. */
enum run_limit run_judge(const struct run_limits *l, const struct run_seen *s);

enum run_status run_limit_status(enum run_limit limit);
/* How it ended, when no limit ended it; *ret_why: what people should know beyond that. */
enum run_status run_end_status(const struct wire_exit *end, const char **ret_why);

/* The limit that the agent says ended a cell, and the name of the error that tells of it. */
enum run_limit run_cell_limit(const struct wire_cell_end *end);
const char *run_cell_error(enum run_limit limit); /* NULL: it ends no cell */

/* Of what the limits are, and the names by which they can be raised. NULL: that limit is the
 * sandbox's. */
struct run_words {
	const char *who;
	const char *name[_RUN_LIMIT_MAX];
};

extern const struct run_words run_words_options; /* of `glovebox run` */
extern const struct run_words run_words_fields;  /* of POST /v1/run */
extern const struct run_words run_words_cell;    /* of POST /execute */
extern const struct run_words run_words_command; /* of a sandbox */
extern const struct run_words run_words_sandbox; /* the operator's settings */

/* "it used more memory than its limit, 64 MiB; raise --memory if it needs more" */
#define RUN_LIMIT_TEXT_SIZE 160
void run_limit_text(enum run_limit limit, const struct run_limits *l, const struct run_words *w,
		    char ret[static RUN_LIMIT_TEXT_SIZE]);
