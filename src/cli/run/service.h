/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run through the service of this machine instead of in this process. For an ordinary user that
 * is the better box: ids, device nodes and cgroups of its own, which only root can make. For root
 * it is the same box, and slower to get.
 */
#pragma once

#include "cli/run/run.h"

enum run_where {
	/* The service for an ordinary user, when one is running that this user may use. */
	RUN_WHERE_BEST,
	RUN_WHERE_LOCAL,
	RUN_WHERE_SERVICE,
};

/* Can this request go to the service, and is there one? 0; else *fail says why not. */
_must_check_ int run_service_possible(const struct run_request *q, struct fail *fail);

/* Does it? -EINVAL: it was told to and cannot. */
_must_check_ int run_service_choose(const struct run_request *q, bool *ret_service,
				    struct fail *fail);

/* Like run_in_box(). */
int run_in_service(const struct run_request *q, struct run_result *r);
