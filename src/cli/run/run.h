/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of untrusted code: what was asked for, what came of it. run/args.c reads the command
 * line, run/box.c drives the box, run/output.c tells people of it. That much is in the front as
 * well (front.c).
 *
 * Only the whole program has the rest: run/local.c gives a box network (run/net.h) and fetches its
 * outputs, run/service.c goes to a service, run/run.c is the verb.
 */
#pragma once

#include "base/fail.h"
#include "base/termsafe.h"
#include "box/box.h"
#include "cli/run/net.h"
#include "run/result.h"
#include "template/template.h"

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
	uint64_t begun_us;
	struct run_input *inputs;
	size_t n_inputs;
	const char *out_dir;     /* NULL: nothing is copied out */
	char **env;              /* "NAME=value", NULL-terminated */
	char *language;          /* its name, for the service; NULL for a command */
	struct run_limits given; /* what was asked for, 0 where nothing was */
	char **given_env;        /* likewise; the strings are the caller's */
	struct run_net_wish net;
	int where;       /* enum run_where */
	bool no_zygote;  /* in a service: nothing is forked from a loaded interpreter */
	bool in_service; /* what came of it */
	bool json;
	bool raw; /* do not defuse control characters on a terminal */
	int verbose;
};

/* What a run may have besides a box, its inputs and its commands; each may be NULL. */
struct run_extras {
	void *arg;
	/* The box is up, and waits for its first command. */
	int (*up)(void *arg, const struct box *b, struct fail *fail);
	/* To be waited for while a command runs, POLLIN; -EBADF: nothing is. */
	int (*fd)(void *arg);
	void (*read)(void *arg);
	/* The commands are over, the box is still there. */
	void (*over)(void *arg, struct box *b, struct run_result *r);
};

/* From here on it counts: the clock runs, and signals arrive where the box is watched. */
void run_begin(struct run_request *q);

/* Does it all; the result is complete whatever it returns. Negative: r->status is
 * RUN_SETUP_ERROR. extras may be NULL. */
int run_in_box(const struct run_request *q, const struct template *t,
	       const struct run_extras *extras, struct run_result *r);

/* The same in the whole program: finds the template, and gives whatever was asked for. */
int run_local(const struct run_request *q, struct run_result *r);

/* It came to nothing. */
void run_failed(const struct run_request *q, struct run_result *r, const struct fail *fail);

#define RUN_TRANSFER_US (UINT64_C(60) * 1000000) /* for all inputs, and for all outputs */
int run_send_inputs(const struct run_request *q, struct box *b, struct fail *fail);

/* Hands the program's output on: to the terminal or pipe, or into the result. */
int run_emit(const struct run_request *q, struct run_result *r, bool is_err, const void *data,
	     size_t len);
int run_emit_end(const struct run_request *q);
void run_emit_break(void);

/* What a person should know that the program's own output does not say; then, with -v, what was
 * used. */
void run_tell(const struct run_request *q, const struct run_result *r);
void run_tell_usage(const struct run_request *q, const struct run_result *r);
/* For the shell. */
int run_exit_status(const struct run_result *r);
