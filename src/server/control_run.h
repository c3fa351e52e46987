/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/fail.h"

struct request;

/* Loads the languages: before the room is sealed. */
_must_check_ int control_run_start(struct fail *fail);
void control_run_stop(void);

int control_run(struct request *r);       /* POST /v1/run */
int control_languages(struct request *r); /* GET /v1/languages */
