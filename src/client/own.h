/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that exists for one session: made with it, kept for as long as it lasts, removed with
 * it. */
#pragma once

#include "client/api/api.h"

struct own_sandbox {
	struct api *api;
	struct api_sandbox *sandbox;
	uint64_t put_off_us; /* when its end was last put off */
};

/* Makes it, of the kind that body (taken) says; api and sandbox are set, and the sandbox is filled.
 */
_must_check_ int own_make(struct own_sandbox *o, json_t *body, struct fail *fail);
/* To be called often while the session lasts, whatever else happens in it: puts the end off when it
 * is time. */
void own_keep(struct own_sandbox *o);
void own_remove(const struct own_sandbox *o);
