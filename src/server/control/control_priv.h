/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane among its own files. */
#pragma once

#include "server/changes/changes.h"
#include "server/control/control.h"
#include "server/control/text.h"
#include "server/http/http.h"

#define ENVD_VERSION "0.6.13" /* what E2B's clients expect of the data plane */

#define TIMEOUT_DEFAULT_V1_S 15
#define TIMEOUT_DEFAULT_V2_S 300

/* --- templates (control/template.c) ----------------------------------------------------------- */

struct template_info {
	char id[STORE_ID_SIZE];
	char alias[NAME_PART_MAX + 1]; /* or "" */
	struct sandbox_config config;  /* template, layers and limits */
};

_must_check_ int template_find(struct server *s, const char *key_id, const char *text,
			       struct template_info *ret, struct problem *p);
/* The snapshot of that id or name; key NULL: of any, by its id or the name in its namespace. */
_must_check_ int snapshot_find(struct server *s, const char *key_id, const char *text,
			       struct store_snapshot *ret, struct problem *p);

/* --- what clients see (control/sandbox.c) ----------------------------------------------------- */

json_t *show_sandbox(struct sandbox *b);
json_t *show_listed(struct sandbox *b);
json_t *show_detail(struct sandbox *b);

#define PAGE_DEFAULT 100
#define TEMPLATES_MAX 1000 /* on the one page of GET /templates */

/* --- requests (control/request.c) ------------------------------------------------------------- */

/* The sandbox that the path names, if it is this key's; otherwise a 404 has been replied (which
 * says why one that ended lately ended) and NULL is returned. */
struct sandbox *request_sandbox(struct request *r);
/* May this key see what belongs to that one? */
bool request_owns(const struct request *r, const char *key_id);
/* Whose things a list shows: this key's, or everybody's (NULL). */
const char *request_key(const struct request *r);
/* A number of the query, which has been checked; def when it is not there. */
uint64_t request_number(const struct request *r, const char *name, uint64_t def);
/* A member of the body that is true or false, or null or not there. */
bool body_bool(const struct request *r, const char *name, bool def);
uint64_t body_number(const struct request *r, const char *name, uint64_t def);
/* The sandbox that the path names, with its change lock held; NULL after a reply. */
struct sandbox *request_begin_change(struct request *r);
void request_end_change(struct sandbox **b);
/* Network settings that we do not have are a problem. */
_must_check_ int network_check(const json_t *network, struct problem *p);
/* Seconds of the body as milliseconds. More than the settings allow is a problem; the default is
 * cut to that. */
_must_check_ int body_timeout(const struct request *r, const char *name, uint64_t default_s,
			      uint64_t *ret_ms, struct problem *p);

/* --- a key of the client's that makes a request happen once (control/idempotency.c) ------------------ */

#define ONCE_KEPT_MS 600000
#define ONCE_TEXT_MAX 128
#define ONCE_MAX 4096 /* remembered at once; the oldest of the key that has the most go first */

/*
 * 0: go ahead, and say how it went with once_done(). 1: it was done before; *ret is the reply.
 * -EBADMSG: the key was used for another request. Waits while the first one is still at it, but not
 * for ever: -EBUSY.
 */
_must_check_ int once_begin(const char *key_id, const char *text, const json_t *body, json_t **ret);
/* reply NULL: it failed, and may be tried again. */
void once_done(const char *key_id, const char *text, json_t *reply);

/* --- handlers --------------------------------------------------------------------------------- */

#define ROUTE(needs, operation, handler) int handler(struct request *r);
#include "server/control/routes.def"
#undef ROUTE
