/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "drive.h"

extern const struct CMUnitTest cases_request[], cases_names[], cases_bytes[], cases_pipe[],
	cases_watch[], cases_box[];
extern const size_t n_cases_request, n_cases_names, n_cases_bytes, n_cases_pipe, n_cases_watch,
	n_cases_box;

/* Empties the home directory. */
int case_setup(void **state);

/* One plan for several lists of cases: runs them all and returns how many failed. */
struct case_list {
	const struct CMUnitTest *cases;
	size_t n;
};
int cases_run(const struct case_list *lists, size_t n_lists);
