/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sandboxes change: they are made, paused, resumed, kept as snapshots and ended.
 *
 * A sandbox changes under its change lock, which is held while the warden is asked; its plain lock
 * (sandbox/sandbox.h) only ever guards memory. What the store says is written before what it
 * promises is done, so that a server that dies in between is corrected by the next one.
 */
#pragma once

#include "server/changes/problem.h"
#include "server/sandbox/clock.h"
#include "server/sandbox/id.h"
#include "server/sandbox/link.h"
#include "server/sandbox/log.h"
#include "server/sandbox/network.h"
#include "server/sandbox/sandbox.h"
#include "server/server.h"

#define CREATE_TIMEOUT_MS 30000 /* how long the warden may take */
#define SHORT_TIMEOUT_MS 10000
#define SNAPSHOT_TIMEOUT_MS 120000

/* --- what a sandbox was made with (config.c) -------------------------------------------------- */

/* info->config, read. */
struct sandbox_config {
	enum warden_template template;
	char layer[WARDEN_LAYERS_MAX][WARDEN_ID_SIZE]; /* the lowest first */
	size_t n_layers;
	char pending[WARDEN_ID_SIZE]; /* a layer that is being made, or "" */
	struct warden_limits limits;
	uint64_t timeout_ms; /* that it was created with */
	bool cold; /* paused without memory: its files are the topmost layer, there is no box */
	bool auto_pause;
	bool auto_pause_memory;
	bool auto_resume;
	char execution[UUID_SIZE]; /* new whenever it is started or resumed */
	const json_t *network;     /* borrowed; or NULL */
};

void sandbox_config_read(const json_t *json, struct sandbox_config *ret);
json_t *sandbox_config_json(const struct sandbox_config *c); /* NULL: no memory */
/* Reads b's under its lock; network is left out. */
void sandbox_config_of(struct sandbox *b, struct sandbox_config *ret);
/* Replaces b's, all but the network, and does not save it. */
_must_check_ int sandbox_config_replace(struct sandbox *b, const struct sandbox_config *c);
/* Replaces the network alone (NULL: none); takes over the reference. */
_must_check_ int sandbox_config_replace_network(struct sandbox *b, json_t *network);

/* The limits of new sandboxes, from the settings. */
void limits_default(const struct config *c, struct warden_limits *ret);
/* As E2B counts them: whole CPUs, and megabytes. */
int64_t limits_cpus(const struct warden_limits *l);
int64_t limits_mb(uint64_t bytes);

/* --- one sandbox and its changes (state.c, pause.c, layers.c) --------------------------------- */

/* Takes the change lock. -ENOENT: it has ended (the lock is not held then). */
_must_check_ int change_begin(struct sandbox *b);
void change_end(struct sandbox *b);

enum store_state sandbox_state(struct sandbox *b);

/* These want the change lock held. */
_must_check_ int change_pause(struct sandbox *b, bool memory, struct problem *p);
_must_check_ int change_resume(struct sandbox *b, uint64_t timeout_ms, bool memory,
			       struct problem *p);
_must_check_ int change_deadline(struct sandbox *b, uint64_t timeout_ms, bool only_later,
				 struct problem *p);
/* Replaces what it may reach by these settings, which are taken over. */
_must_check_ int change_network(struct sandbox *b, json_t *settings, struct problem *p);
_must_check_ int change_kill(struct sandbox *b, const char *detail, struct problem *p);
/*
 * Keeps the files as a new layer, whose name is returned. It is on record as pending before it is
 * made, so that one that nobody comes to stand on is dropped in the end. Once it is on record
 * otherwise: change_snapshot_done().
 */
_must_check_ int change_snapshot(struct sandbox *b, char ret_layer[static WARDEN_ID_SIZE],
				 struct problem *p);
_must_check_ int change_snapshot_done(struct sandbox *b);

/* Asks the warden to kill the box; 0 also when there is none left. */
_must_check_ int kill_box(struct sandbox *b);

/* Drops a layer ("": none) that nobody stands on; later, if a box still does. */
void layer_release(struct server *s, const char *layer);
/* Drops those of the layers, and of the pending one, that nobody stands on. */
void layers_release(struct server *s, const struct sandbox_config *c);
/* Before a layer is made: it is not to be taken for one that nobody knows of (orphans.c). */
_must_check_ int orphans_spare(const char layer[static WARDEN_ID_SIZE]);

/* server.wake(): takes the change lock itself. */
_must_check_ int change_wake(struct sandbox *b);

/* Asks the worker to kill the box: that of a sandbox that has ended, or that is to have none. */
void kill_box_later(struct sandbox *b);

/* The warden said that a box is gone. The sandbox has been ended and saved: info has the reason. */
void box_ended(struct sandbox *b);
/* The warden said that a sandbox was paused because its time was over. Its operations were hung up
 * and its state saved. */
void box_paused(struct sandbox *b);

/* --- making one (make.c) ---------------------------------------------------------------------- */

struct sandbox_plan {
	const char *key_id;
	const char *template_id;
	const char *alias;            /* or NULL */
	const json_t *metadata;       /* or NULL */
	const json_t *env;            /* or NULL */
	struct sandbox_config config; /* execution is filled in */
	bool secure;
	bool private_traffic;
};

/* It runs when this returns 0; otherwise nothing is left of it. */
_must_check_ int sandbox_make(struct server *s, const struct sandbox_plan *plan,
			      struct sandbox **ret, struct problem *p);
/* A box for a sandbox that is in the table, as its config says. */
_must_check_ int sandbox_make_box(struct sandbox *b, const struct sandbox_config *c,
				  uint64_t timeout_ms, struct problem *p);

/* --- network (network.c) ---------------------------------------------------------------------- */

struct outlet;

/* Settings as they are kept: a client's network (may be NULL) and its allow_internet_access. NULL:
 * no memory. */
json_t *network_settings(const json_t *network, const json_t *internet);
/* A copy of a sandbox's, or NULL. */
json_t *network_settings_of(struct sandbox *b);
/* Can these be had, and are their secrets there? */
_must_check_ int network_settings_check(struct server *s, const char *key_id,
					const json_t *settings, struct problem *p);
/* The same, and the rules they are. */
_must_check_ int network_compile(struct server *s, const char *key_id, const json_t *settings,
				 struct network *ret, struct problem *p);
/* The box has doors to egress when this returns 0. */
_must_check_ int network_open_doors(struct server *s, const char *id, bool *ret_catches,
				    struct problem *p);
/* outlet_apply(), with its errors in words. */
_must_check_ int network_apply(struct outlet *o, struct network *n, bool insist, struct problem *p);
/* A sandbox's box, which nobody has yet, gets what its settings say: nothing, or doors and
 * rules. */
_must_check_ int network_attach(struct sandbox *b, struct problem *p);
/* In the worker's thread, at start: the box of a sandbox that has one gets it again. */
void network_take_up(struct sandbox *b);
/* allowInternetAccess and network of a sandbox's description. */
void network_show(struct sandbox *b, json_t *to);

/* --- events (event.c) ------------------------------------------------------------------------- */

/* What has happened to b, for /events and webhooks: type is the last word of
 * sandbox.lifecycle.TYPE. data (may be NULL) is taken over. */
void event_add(struct sandbox *b, const char *type, json_t *data);
/* With what it used: for killed and paused. */
void event_add_execution(struct sandbox *b, const char *type, json_t *data);
/* The same for one of which only the record is left. */
void event_add_lost(struct server *s, const struct store_sandbox *info, json_t *data);

/* --- work that nobody waits for (worker.c) ---------------------------------------------------- */

/* What other parts have done now and then in the thread that does everybody's housekeeping:
 * soon. */
struct chore {
	void (*tick)(struct server *s);
	void (*stop)(void);
};

_must_check_ int worker_start(struct server *s, const struct chore *chores /* the last is empty */);
void worker_stop(void);
/* Runs job(b), which may take its time, in a worker's thread, one after the other of those of a
 * key; takes a reference of its own. */
void worker_add(struct sandbox *b, void (*job)(struct sandbox *b));
/* Has these layers released, in the thread that does everybody's housekeeping. */
void worker_add_layers(const struct sandbox_config *c);
/* Something may have become superfluous in the store. */
void worker_prune(void);

/* Chores: layers that could not be dropped at once, and those that nobody knows of. */
void layers_tick(struct server *s);
void layers_stop(void);
void orphans_tick(struct server *s);
void orphans_stop(void);
