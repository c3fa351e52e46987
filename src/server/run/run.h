/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that the server drives: what `glovebox run --json` does, in a box of the warden's that
 * exists for this request alone. request.c reads what was asked for, box.c makes the box, gives it
 * network and moves files, step.c runs a command in it, hold.c counts what it holds, control/run.c
 * is the conversation.
 */
#pragma once

#include "base/fail.h"
#include "run/result.h"
#include "server/sandbox/link.h"
#include "server/sandbox/network.h"
#include "store/store.h"
#include "wire/wire.h"

#define SERVER_RUN_FILES_MAX 256
#define SERVER_RUN_ENV_MAX 256
#define SERVER_RUN_ARGS_MAX 1024
#define SERVER_RUN_OUTPUT_FILES_MAX 1000
#define SERVER_RUN_OUTPUT_BYTES_MAX (UINT64_C(64) << 20)
#define SERVER_RUN_TICK_MS 20 /* how often the counters of a command are looked at */

struct language;
struct outlet;
struct share;

/* Before the room is sealed. */
_must_check_ int run_languages_load(struct fail *fail);
void run_languages_free(void);
/* Those that were loaded. */
const struct language *run_languages(size_t *ret_n);

struct server_run_file {
	char *path; /* relative to the home, or absolute */
	unsigned char *data;
	size_t len;
};

struct server_run_step {
	char **argv; /* NULL-terminated */
	struct run_limits limits;
};

/* What a run has of what is everybody's: run/hold.c. */
struct server_run_claim {
	struct share *share; /* of its key; NULL: it has nothing */
	size_t held;         /* bytes of its result that count, */
	size_t small;        /* and those that do not */
};

struct server_run {
	enum warden_template template;
	char *code; /* or NULL: argv was given */
	size_t code_len;
	char *code_file;
	bool has_compile;
	struct server_run_step compile;
	struct server_run_step run;
	char **env; /* "NAME=value", NULL-terminated */
	unsigned char *input;
	size_t input_len;
	struct server_run_file files[SERVER_RUN_FILES_MAX];
	size_t n_files;
	bool fetch_outputs;
	bool script; /* of the kind that a loaded interpreter can become */
	/* Where output goes as it comes; NULL: into the result. Negative: nobody wants it any
	 * more. */
	int (*emit)(void *arg, bool is_err, const void *data, size_t len);
	void *emit_arg;
	/* For emit(), whenever it waits: looks at the clock and the counters. False: the run is
	 * over, so there is nothing to wait for. NULL while no command runs. */
	bool (*goes_on)(void *arg);
	void *goes_on_arg;
	bool cancelled; /* atomic: somebody else says that nobody wants it any more */
	int client_fd;  /* a client that hangs up wants it no more; -EBADF: that is said as above */
	struct server_run_claim claim;

	struct server *server;
	char key_id[STORE_ID_SIZE];
	struct network network; /* what it may reach; egress' own once there is an outlet */
	struct outlet *outlet;  /* or NULL */

	char id[WARDEN_ID_SIZE]; /* of the box; empty: there is none */
	int control_fd;
	json_t *contents; /* of the outputs: array of base64 texts in the order of result.outputs */
	struct run_result result;
};

#define SERVER_RUN_INIT                                                                            \
	{                                                                                          \
		.client_fd = -EBADF, .control_fd = -EBADF                                          \
	}

/* What clients may ask for at most. */
struct server_run_bounds {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t files;
	uint32_t pids;
	uint32_t cpu_milli;
	uint64_t timeout_us;
};

/* Before the rest is read: settings of the network (NULL: none). -EBADMSG: *fail says what the
 * client should change. */
_must_check_ int server_run_read_network(struct server *s, const char *key_id,
					 const json_t *settings, struct server_run *o,
					 struct fail *fail);
/* Reads the body, which openapi.json has checked. Negative: *fail says what the client should
 * change. */
_must_check_ int server_run_read(const json_t *body, const struct server_run_bounds *bounds,
				 struct server_run *ret, struct fail *fail);
void server_run_done(struct server_run *o);

/* Before it is run: -EUSERS when the key has max runs already. server_run_done() undoes it. */
_must_check_ int server_run_begin(struct server_run *o, const char *key_id, size_t max);

/* Makes the box, runs everything, ends the box. The result is complete whatever it returns;
 * negative: the service could not do it, *fail says why. */
_must_check_ int server_run_execute(struct server_run *o, struct fail *fail);

/* Gives a claim back that was taken over; server_run_done() does so otherwise. */
void server_run_release(struct server_run_claim *c);

/* --- among its files -------------------------------------------------------------------------- */

/* So many bytes more of a result that is kept; -EDQUOT: its key's results, or all together, are as
 * large as they may be. */
_must_check_ int server_run_hold(struct server_run *o, size_t bytes);
#define SERVER_RUN_FULL                                                                            \
	"the service holds as many results as it may, of this key or of all: try again in a "      \
	"moment, or take the output as it comes"

/* A socket for an operation in the box. */
_must_check_ int server_run_op(struct server_run *o, enum wire_type type, const void *data,
			       size_t len);
_must_check_ int server_run_usage(struct server_run *o, struct warden_usage *ret);
_must_check_ int server_run_do_step(struct server_run *o, const struct server_run_step *step,
				    struct run_usage *usage, struct fail *fail);

/* The variables for a box that has network; NULL: it has none. */
const char *const *server_run_network_env(const struct server_run *o);
void server_run_forget_network(struct server_run *o);

json_t *server_run_json(const struct server_run *o);
