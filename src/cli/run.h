/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of untrusted code: what was asked for, what came of it. run.c reads the command line,
 * run_box.c drives the box, run_watch.c watches one command, run_files.c moves files, run_json.c
 * writes the result.
 */
#pragma once

#include "base/buf.h"
#include "base/fail.h"
#include "base/termsafe.h"
#include "box/box.h"

#define RUN_HOME "/home/user"
#define RUN_OUT RUN_HOME "/out"

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

struct run_usage {
	uint64_t wall_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_peak;
	uint64_t processes_peak;
	uint64_t read_bytes;
	uint64_t written_bytes;
};

/* A command: compiling or running. */
struct run_step {
	char **argv;
	struct run_limits limits;
};

struct run_input {
	int fd; /* opened while the request was checked, so what was checked is what is sent */
	bool is_dir;
	char *dest; /* absolute path in the box */
};

struct run_request {
	char *code; /* the source text, or NULL when argv was given */
	size_t code_len;
	char *code_file; /* its name in the box's home */
	bool has_compile;
	struct run_step compile;
	struct run_step run;
	const char *template_name;
	int stdin_fd;  /* -EBADF: empty standard input */
	int signal_fd; /* readable when somebody wants us to stop */
	struct run_input *inputs;
	size_t n_inputs;
	const char *out_dir; /* NULL: nothing is copied out */
	char **env;          /* "NAME=value", NULL-terminated */
	bool json;
	bool raw; /* do not defuse control characters on a terminal */
	int verbose;
};

struct run_output {
	char *path;
	uint64_t size;
	unsigned char sha256[32];
};

struct run_refused {
	char *path;
	uint32_t type; /* S_IFMT bits */
};

struct run_result {
	enum run_status status;
	const char *step; /* "run" or "compile": the one that decided */
	int exit_code;    /* -1: none */
	int signal;       /* 0: none */
	bool truncated;
	char message[256]; /* what people should know beyond the status */
	struct buf out;
	struct buf err;
	uint64_t output_bytes; /* both streams, up to the limit */
	struct run_usage usage;
	bool compiled;
	struct run_usage compile_usage;
	uint64_t setup_us; /* from the start to the first command's start */
	struct run_output *outputs;
	size_t n_outputs;
	struct run_refused *refused;
	size_t n_refused;
	size_t refused_more; /* refused and not even named */
	struct setup_report setup;
	enum ids_kind ids_kind;
	enum cgroup_mode cgroup_mode;
	unsigned cgroup_features;
	int cancelled_by; /* a signal to us, or 0 */
};

/* Does it all; the result is complete whatever it returns. Negative: r->status is RUN_SETUP_ERROR. */
int run_in_box(const struct run_request *q, struct run_result *r);
void run_result_done(struct run_result *r);

/* Watches one command to its end, passing its output on. */
int run_watch(const struct run_request *q, const struct run_step *step, struct box *b,
	      struct box_exec *e, struct run_result *r, struct run_usage *usage);

int run_send_inputs(const struct run_request *q, struct box *b, struct fail *fail);
int run_fetch_outputs(const struct run_request *q, struct box *b, struct run_result *r,
		      struct fail *fail);

/* Hands the program's output on: to the terminal or pipe, or into the result. */
int run_emit(const struct run_request *q, struct run_result *r, bool is_err, const void *data,
	     size_t len);
int run_emit_end(const struct run_request *q);
void run_emit_break(void);

/* Prints the result as one JSON object. */
int run_print_json(const struct run_request *q, const struct run_result *r);

const char *run_status_name(enum run_status s);
