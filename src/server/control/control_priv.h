/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane among its own files.
 *
 * A sandbox changes (is paused, resumed, killed, kept as a snapshot) under its change lock, which
 * is held while the warden is asked; its plain lock (sandbox/sandbox.h) only ever guards memory. What the
 * store says is written before what it promises is done, so that a server that dies in between is
 * corrected by the next one.
 */
#pragma once

#include "server/sandbox/clock.h"
#include "server/control/control.h"
#include "server/control/text.h"
#include "server/http/http.h"
#include "server/sandbox/network.h"
#include "server/server.h"

#define ENVD_VERSION "0.6.13" /* what E2B's clients expect of the data plane */

#define CREATE_TIMEOUT_MS 30000 /* how long the warden may take */
#define SHORT_TIMEOUT_MS 10000
#define SNAPSHOT_TIMEOUT_MS 120000

#define TIMEOUT_DEFAULT_V1_S 15
#define TIMEOUT_DEFAULT_V2_S 300
#define AUTO_RESUME_MIN_MS 300000 /* a sandbox that traffic woke lives at least this long */

/* --- what is wrong with a request (control/problem.c) ----------------------------------------- */

struct problem {
	unsigned status;
	const char *code; /* error_code, or NULL */
	char message[512];
};

/*
 * These fill it and are -EBADMSG, for `return problem_…`; macros, so that compilers see that.
 *
 *	problem_set(p, status, code, fmt, …)
 *	problem_warden(p, reply, what)   what the warden could not do, in words for the client
 *	problem_internal(p, r, what)     the store or the way to the warden failed
 */
#define problem_set(...) (problem_fill(__VA_ARGS__), -EBADMSG)
#define problem_warden(p, reply, what) (problem_fill_warden((p), (reply), (what)), -EBADMSG)
#define problem_internal(p, r, what) (problem_fill_internal((p), (r), (what)), -EBADMSG)

void problem_fill(struct problem *p, unsigned status, const char *code, const char *fmt, ...)
	_printf_(4, 5);
void problem_fill_warden(struct problem *p, const struct warden_reply *reply, const char *what);
void problem_fill_internal(struct problem *p, int r, const char *what);
int problem_reply(struct request *r, const struct problem *p);
json_t *problem_json(const struct problem *p);

/* --- what a sandbox was made with (changes/config.c) ------------------------------------------ */

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

/* --- one sandbox and its changes (changes/state.c, changes/pause.c) --------------------------- */

struct sample;

/* sandbox->control. */
struct sandbox_control {
	pthread_mutex_t change;
	/* A ring of what it used (control/metrics.c), guarded by sandbox->lock. */
	struct sample *samples;
	size_t n_samples, n_room, first_sample;
	uint64_t last_cpu_us;
	uint64_t last_ms; /* of the boot clock; 0: there is none yet */
};

/* NULL: no memory. */
struct sandbox_control *control_of(struct sandbox *b);
/* Takes the change lock. -ENOENT: it has ended (the lock is not held then); -ENOMEM. */
_must_check_ int change_begin(struct sandbox *b);
void change_end(struct sandbox *b);

enum store_state sandbox_state(struct sandbox *b);

/* These want the change lock held. */
_must_check_ int change_pause(struct sandbox *b, bool memory, struct problem *p);
_must_check_ int change_resume(struct sandbox *b, uint64_t timeout_ms, bool memory,
			       struct problem *p);
_must_check_ int change_deadline(struct sandbox *b, uint64_t timeout_ms, bool only_later,
				 struct problem *p);
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
/* Before a layer is made: it is not to be taken for one that nobody knows of (changes/orphans.c). */
_must_check_ int orphans_spare(const char layer[static WARDEN_ID_SIZE]);

/* At start: what the last server was at when it died. */
_must_check_ int finish_changes(struct server *s);

/* --- making one (changes/make.c) -------------------------------------------------------------- */

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

/* --- network (control/network.c) -------------------------------------------------------------- */

struct outlet;

/* Settings as they are kept: a client's network (may be NULL) and its allow_internet_access. NULL: no memory. */
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
/* A sandbox's box, which nobody has yet, gets what its settings say: nothing, or doors and rules. */
_must_check_ int network_attach(struct sandbox *b, struct problem *p);
/* In the worker's thread, at start: the box of a sandbox that has one gets it again. */
void network_take_up(struct sandbox *b);
/* allowInternetAccess and network of a sandbox's description. */
void network_show(struct sandbox *b, json_t *to);

/* --- templates (control/template.c) ----------------------------------------------------------- */

struct template_info {
	char id[STORE_ID_SIZE];
	char alias[NAME_PART_MAX + 1]; /* or "" */
	struct sandbox_config config;  /* template, layers and limits */
};

_must_check_ int template_find(struct server *s, const char *key_id, const char *text,
			       struct template_info *ret, struct problem *p);
/* The snapshot of that id or name; key NULL: whoever's, by its id or the name in its namespace. */
_must_check_ int snapshot_find(struct server *s, const char *key_id, const char *text,
			       struct store_snapshot *ret, struct problem *p);
/* The limits of new sandboxes, from the settings. */
void template_limits(const struct config *c, struct warden_limits *ret);

/* --- what clients see (control/show.c) -------------------------------------------------------- */

json_t *show_sandbox(struct sandbox *b);
json_t *show_listed(struct sandbox *b);
json_t *show_detail(struct sandbox *b);
int64_t show_cpus(const struct warden_limits *l);
int64_t show_mb(uint64_t bytes);

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

/* --- a key of the client's that makes a request happen once (control/once.c) ------------------ */

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
void once_stop(void);

/* --- events (changes/event.c, changes/deliver.c) ---------------------------------------------- */

/* What has happened to b, for /events and webhooks: type is the last word of
 * sandbox.lifecycle.TYPE. data (may be NULL) is taken over. */
void event_add(struct sandbox *b, const char *type, json_t *data);
/* With what it used: for killed and paused. */
void event_add_execution(struct sandbox *b, const char *type, json_t *data);
/* The same for one of which only the record is left. */
void event_add_lost(struct server *s, const struct store_sandbox *info, json_t *data);

_must_check_ int deliver_start(struct server *s);
void deliver_stop(void);
/* An event for the webhooks of this key; takes over the reference. Never waits. */
void deliver(struct server *s, const char *key_id, const char *type, json_t *event);

/* --- work that nobody waits for (changes/worker.c, changes/slow.c) ----------------------------- */

_must_check_ int worker_start(struct server *s);
void worker_stop(void);
/* Runs job(b), which may take its time, in a worker's thread, one after the other of those of a key; takes a reference of
 * its own. */
void worker_add(struct sandbox *b, void (*job)(struct sandbox *b));
_must_check_ int slow_start(void);
void slow_stop(void);
/* Has these layers released, in the thread that does everybody's housekeeping. */
void worker_add_layers(const struct sandbox_config *c);
/* Something may have become superfluous in the store. */
void worker_prune(void);
/* In the worker's thread, now and then: layers that could not be dropped at once; those that nobody
 * knows of; samples some of the sandboxes. */
void layers_tick(struct server *s);
void layers_stop(void);
void orphans_tick(struct server *s);
void orphans_stop(void);
void metrics_tick(struct server *s);
void metrics_stop(void);

/* --- handlers --------------------------------------------------------------------------------- */

int handle_create_v1(struct request *r);
int handle_create_v2(struct request *r);
int handle_list_v1(struct request *r);
int handle_list_v2(struct request *r);
int handle_get(struct request *r);
int handle_kill(struct request *r);
int handle_timeout(struct request *r);
int handle_connect_v1(struct request *r);
int handle_connect_v2(struct request *r);
int handle_resume(struct request *r);
int handle_pause(struct request *r);
int handle_refresh(struct request *r);
int handle_network(struct request *r);
int handle_connections(struct request *r);
int handle_metrics(struct request *r);
int handle_metrics_many(struct request *r);
int handle_logs_v1(struct request *r);
int handle_logs_v2(struct request *r);
int handle_snapshot(struct request *r);
int handle_snapshots(struct request *r);
int handle_fork(struct request *r);
int handle_templates(struct request *r);
int handle_templates_v2(struct request *r);
int handle_template_alias(struct request *r);
int handle_template_delete(struct request *r);
int handle_teams(struct request *r);
int handle_events(struct request *r);
int handle_sandbox_events(struct request *r);
int handle_webhooks(struct request *r);
int handle_webhook_create(struct request *r);
int handle_webhook_get(struct request *r);
int handle_webhook_update(struct request *r);
int handle_webhook_delete(struct request *r);
int handle_secrets(struct request *r);
int handle_secret_create(struct request *r);
int handle_secret_get(struct request *r);
int handle_secret_update(struct request *r);
int handle_secret_delete(struct request *r);
