/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the seal that a process needs which comes into a box from outside, as well as the
 * first one in it: one list of what is allowed, for both.
 */
#pragma once

#include "base/util.h"

/* Who may do what with files. root: the box has one, so its file modes decide. entered:
 * interpreters come into the box from outside, in a Landlock domain of their own; scoping would
 * keep them and the agent from each other. */
struct seal_files {
	bool root;
	bool entered;
	const int *pids_fd; /* what the agent alone can look at; NULL: nothing */
};

/* All of them add what they switched on to *features (enum setup_feature). */
_must_check_ int seal_no_new_privs(uint32_t *features);
_must_check_ int seal_landlock(const struct seal_files *files, int32_t *ret_abi,
			       uint32_t *features);
_must_check_ int seal_keyring(uint32_t *features);
_must_check_ int seal_filter(uint32_t *features);
void seal_core_scheduling(uint32_t *features);
