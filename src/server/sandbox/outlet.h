/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes that have a way out, and the conversation with egress about them. An outlet is one box's:
 * the rules that are to hold for it, and what it did with them. Egress may die and come again, and
 * so may its socket: the outlets are what it is told then.
 */
#pragma once

#include "run/net_log.h"
#include "server/sandbox/network.h"

#define OUTLET_LOG_MAX 500 /* connections that are remembered one by one */

struct outlet;
struct outlets;
struct server;

_must_check_ int outlets_new(struct server *s, struct outlets **ret);
/* Starts the thread that talks with egress; until the warden has told of one, it waits. */
_must_check_ int outlets_start(struct outlets *all);
void outlets_stop(struct outlets *all);
/* When no outlet is left. */
void outlets_free(struct outlets *all);
/* A new socket to egress, which is given away: the other end is told everything.
 * Never waits. */
void outlets_connect(struct outlets *all, int sock);

/*
 * The box of that id has doors. key_id is whose secrets its headers may have. NULL: no memory. It
 * is there until outlet_close(), which its owner calls once, and which accepts NULL.
 */
struct outlet *outlet_open(struct outlets *all, const char *id, const char *key_id, bool catches);
void outlet_close(struct outlet *o);
/* A box was made again, with doors of its own. */
void outlet_reopened(struct outlet *o, bool catches);

/*
 * These rules hold when this returns 0, and are then the outlet's: *n is empty. Otherwise those
 * before still hold. -ESRCH: there is no such rule set; -ENOENT: there is no such box any more;
 * -ETIMEDOUT: egress does not answer. insist: these are on record; an egress that does not answer
 * in time is told them as soon as it does. One caller at a time.
 */
_must_check_ int outlet_apply(struct outlet *o, struct network *n, bool insist);

/* Those of this key that use this secret are told again. */
void outlets_secret_changed(struct outlets *all, const char *key_id, const char *name);

/* What it did: {"catches", "totals", "connections": at most limit}. */
json_t *outlet_json(struct outlet *o, size_t limit);
/* The same as run_network_json() has it. When the box is gone: waits a moment for what is still to
 * be told. */
json_t *outlet_result(struct outlet *o);
