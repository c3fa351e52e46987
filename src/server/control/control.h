/* SPDX-License-Identifier: Apache-2.0 */
/* What the other parts of the server ask of the control plane. */
#pragma once

#include "server/http/http.h"
#include "server/sandbox/sandbox.h"

extern const struct route control_routes[]; /* ends with operation == NULL */
/* openapi.json, which is part of the program. */
extern const char openapi_json[];

/* The thread that calls webhooks. */
_must_check_ int deliver_start(struct server *s);
void deliver_stop(void);
/* server.deliver() */
void webhook_deliver(struct server *s, const char *key_id, const char *type, json_t *event);

/* Forgets all idempotency keys. */
void once_stop(void);

/* A chore: samples some of the sandboxes. */
void metrics_tick(struct server *s);
void metrics_stop(void);
/* What a sandbox uses, as clients of the control plane see it; at most five seconds old. NULL:
 * nobody knows yet. */
json_t *control_newest_sample(struct sandbox *b);
