/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a local run: what was asked for, and the egress program that gives it while the
 * run lasts. Here we are the warden and the server to it. It ends when its socket closes, so
 * whatever ends us ends it.
 */
#pragma once

#include "cli/run/learn.h"
#include "service/config.h"

struct box;
struct run_args;
struct run_request;
struct run_result;

/* What was asked for; all zero: no network. */
struct run_net_wish {
	bool learn;           /* everything is let through, and told */
	const char *learn_to; /* a file for what was learned; NULL: standard error */
	int learn_fd;         /* which is open by then; -EBADF */
	struct rule *rules;
	size_t n_rules;
	char use[POLICY_USES_MAX][POLICY_SET_NAME_SIZE];
	size_t n_uses;
	char open
		/* Special ranges that the rules may reach, with blanks between. */
		[CONFIG_TEXT_SIZE];
	bool none;               /* --net none */
	struct config *settings; /* of the machine; filled by run_net_settings() */
};

/* The options for it, as they were typed. */
_must_check_ int run_net_options(struct run_net_wish *w, const struct run_args *a,
				 struct fail *fail);
/* Does all of it go together? */
_must_check_ int run_net_wish_check(const struct run_net_wish *w, struct fail *fail);
/* For a local run with network: reads the settings of this machine. Does it have those sets, and
 * are its certificates some? */
_must_check_ int run_net_settings(struct run_net_wish *w, struct fail *fail);
bool run_net_wanted(const struct run_net_wish *w);

/* The certificates to be put into the box: a path or "". */
const char *run_net_ca_bundle(const struct run_net_wish *w);

struct run_net;

/* Starts egress, which comes up while the box is made. NULL in *ret where no network is wanted. */
_must_check_ int run_net_start(const struct run_request *q, struct run_net **ret,
			       struct fail *fail);
/* The box is up: opens its doors, and waits until its rules hold. */
_must_check_ int run_net_open(struct run_net *n, const struct run_net_wish *w, const struct box *b,
			      struct fail *fail);
void run_net_free(struct run_net *n);

/* --- what egress says ------------------------------------------------------------------------ */

/* To be waited for, POLLIN; -EBADF: there is nothing to come. */
int run_net_fd(const struct run_net *n);
/* Takes what has come. q: with -v, refusals are told as they happen; NULL: they are not. */
void run_net_read(struct run_net *n, const struct run_request *q);
/* The run is over: waits a moment for the last of it, puts it into *r. */
void run_net_finish(struct run_net *n, const struct run_request *q, struct run_result *r);
/* What a person should know: what was learned, or that refusals may be why it failed. */
void run_net_notes(const struct run_request *q, const struct run_result *r);
/* Writes what was learned to the file that was named for it. */
_must_check_ int run_net_save(const struct run_request *q, const struct run_result *r,
			      struct fail *fail);
