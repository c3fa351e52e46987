/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fail.h"

struct language;
struct request;

/* Loads the languages: before the room is sealed. */
_must_check_ int control_run_start(struct fail *fail);
void control_run_stop(void);
/* Those that were loaded. */
const struct language *control_run_languages(size_t *ret_n);

int control_run(struct request *r);       /* POST /v1/run */
int control_languages(struct request *r); /* GET /v1/languages */
