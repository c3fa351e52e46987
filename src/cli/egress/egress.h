/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox egress, among its files. */
#pragma once

#include "service/sets.h"

#define EGRESS_WORDS_MAX POLICY_RULES_MAX

struct egress_request {
	struct config config;
	const char *config_file; /* or NULL: the usual one */
	bool json;
	bool force;
	bool help;
	const char *words[EGRESS_WORDS_MAX]; /* all that is no option, in order */
	size_t n_words;
	const char *allow[POLICY_RULES_MAX];
	size_t n_allow;
	const char *allow_set[POLICY_USES_MAX];
	size_t n_allow_set;
};

/* words[0] is "set", words[1] what to do with it. Each returns an exit status. */
int egress_set_ls(struct egress_request *q);
int egress_set_show(struct egress_request *q);
int egress_set_save(struct egress_request *q);
int egress_set_rm(struct egress_request *q);
/* words[0] is "check". */
int egress_check_target(struct egress_request *q);
