/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What outlives the service: keys, sandboxes, snapshots, events, webhooks and secrets, in one
 * SQLite database in the state directory. Used by the server from many threads at once (each call
 * takes a connection's lock for a moment and never waits for anything slow) and by `glovebox key`
 * beside a running service.
 *
 * Text that comes back belongs to the caller, who frees it with the struct's _done function.
 */
#pragma once

#include "base/fail.h"

#include <jansson.h>

#define STORE_ID_SIZE 32
#define STORE_KEY_TEXT_SIZE 45 /* "e2b_", 40 hexadecimal digits, NUL */

struct store;

/*
 * Opens (making it if need be) glovebox.db in dir_fd, STATE/db, which must belong to our user. A
 * database that is damaged, somebody else's or newer than we are is an error, and left as it is.
 */
_must_check_ int store_open(int dir_fd, struct store **ret, struct fail *fail);
void store_close(struct store *s);
void store_closep(struct store **s);

/* --- keys (keys.c) ---------------------------------------------------------------------------- */

/* A scope says what a key is good for. */
enum store_scope {
	STORE_SCOPE_SANDBOXES = 1 << 0, /* everything about its own sandboxes */
	STORE_SCOPE_READ = 1 << 1,      /* only looking at them */
	STORE_SCOPE_ADMIN = 1 << 2,     /* other people's too, and keys */
};

struct store_key {
	char id[STORE_ID_SIZE]; /* public: what lists and logs show */
	char name[64];
	unsigned scopes;
	int64_t created_ms;
	int64_t expires_ms;   /* 0: never */
	int64_t revoked_ms;   /* 0: not */
	int64_t last_used_ms; /* to the minute; 0: never */
};

/* Makes a key; its text is given out here and nowhere else (only a hash of it is kept). */
_must_check_ int store_key_create(struct store *s, const char *name, unsigned scopes,
				  int64_t expires_ms, struct store_key *ret,
				  char ret_text[STORE_KEY_TEXT_SIZE], struct fail *fail);

/*
 * Who is it? -EACCES for a key that is unknown, revoked or expired; the work done is the same for
 * all of them, and hashes are compared in constant time. Cheap enough for every request: answers
 * are kept in memory for a second, in which a revoked key may still be good.
 */
_must_check_ int store_key_check(struct store *s, const char *text, size_t len,
				 struct store_key *ret);

/* id or name; -ENOENT. A rotated key's text is replaced; its sandboxes stay its own. */
_must_check_ int store_key_revoke(struct store *s, const char *id_or_name, struct fail *fail);
_must_check_ int store_key_rotate(struct store *s, const char *id_or_name, struct store_key *ret,
				  char ret_text[STORE_KEY_TEXT_SIZE], struct fail *fail);
_must_check_ int store_key_list(struct store *s, struct store_key **ret, size_t *ret_n);
_must_check_ int store_key_count(struct store *s, size_t *ret_n); /* that are good now */

/* --- sandboxes (sandboxes.c) ------------------------------------------------------------------ */

enum store_state { STORE_RUNNING = 1, STORE_PAUSED = 2, STORE_ENDED = 3 };

/* Everything the service must know again after it was restarted. */
struct store_sandbox {
	char id[STORE_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	char *template_id; /* as the client named it */
	char *alias;       /* or NULL */
	json_t *metadata;  /* object of strings */
	json_t *env;       /* object of strings */
	json_t *config;   /* the rest of what it was created with: changes/config.c in the server */
	char *envd_token; /* or NULL: not secured */
	char *traffic_token;
	enum store_state state;
	int64_t started_ms;
	int64_t end_ms;  /* its deadline, or when it ended */
	uint32_t reason; /* when ended: enum warden_reason, as a number */
	char *detail;    /* when ended: for people, e.g. which key killed it */
};

void store_sandbox_done(struct store_sandbox *b);

_must_check_ int store_sandbox_add(struct store *s, const struct store_sandbox *b);
/* Saves state, end_ms, reason, detail and config of a sandbox that was added. Once it has ended,
 * its env and tokens are forgotten. -ENOENT. */
_must_check_ int store_sandbox_update(struct store *s, const struct store_sandbox *b);
/* -ENOENT. Finds ended ones too, for as long as they are kept. */
_must_check_ int store_sandbox_get(struct store *s, const char *id, struct store_sandbox *ret);
/* All that are running or paused: at start. Stops with each()'s error, if any. */
_must_check_ int store_sandbox_each_live(struct store *s,
					 int (*each)(struct store_sandbox *b, void *arg),
					 void *arg);
/* Keeps so many ended ones in all; the oldest go, of those keys that have the most. Cheap; called
 * now and then. */
_must_check_ int store_sandbox_prune(struct store *s, size_t keep);

/* --- snapshots (snapshots.c) ------------------------------------------------------------------ */

struct store_snapshot {
	char id[STORE_ID_SIZE]; /* also the name of its newest layer */
	char key_id[STORE_ID_SIZE];
	char sandbox_id[STORE_ID_SIZE]; /* what it was made from */
	char *name;                     /* or NULL */
	json_t *config; /* template, layers, limits … for sandboxes made from it */
	int64_t created_ms;
};

void store_snapshot_done(struct store_snapshot *n);
/* -EDQUOT: the key has max of them, not counting any of the same name. */
_must_check_ int store_snapshot_add(struct store *s, const struct store_snapshot *n, size_t max);
/* Could one be added now? 0 or -EDQUOT; name may be NULL. */
_must_check_ int store_snapshot_fits(struct store *s, const char *key_id, const char *name,
				     size_t max);
/* By id or name, of this key (here and below: of any key when it is NULL, and then by id: a name is
 * a key's own). -ENOENT. */
_must_check_ int store_snapshot_get(struct store *s, const char *key_id, const char *id_or_name,
				    struct store_snapshot *ret);
/* Newest first; those of this key, filtered where a filter is not NULL, after the one with id
 * `after`. */
_must_check_ int store_snapshot_list(struct store *s, const char *key_id, const char *sandbox_id,
				     const char *name, const char *after, size_t limit,
				     struct store_snapshot **ret, size_t *ret_n);
_must_check_ int store_snapshot_remove(struct store *s, const char *key_id, const char *id);
/* How many sandboxes (not ended) and snapshots stand on this layer: it is in the array
 * config.layers, or the snapshot's id. */
_must_check_ int store_layer_users(struct store *s, const char *layer, size_t *ret_n);
/* For a server, before it asks that: an earlier one may have used the database when it had our form
 * already. */
_must_check_ int store_layers_renew(struct store *s);

/* --- events and webhooks (events.c) ----------------------------------------------------------- */

struct store_event {
	char id[STORE_ID_SIZE + 8];
	char key_id[STORE_ID_SIZE];
	char sandbox_id[STORE_ID_SIZE];
	char type[48]; /* "sandbox.lifecycle.created", … */
	json_t *data;  /* the whole event as clients see it */
	int64_t at_ms;
};

void store_event_done(struct store_event *e);
_must_check_ int store_event_add(struct store *s, const struct store_event *e);
/* Of these types (an array of texts; NULL or empty: of all). */
_must_check_ int store_event_list(struct store *s, const char *key_id, const char *sandbox_id,
				  const json_t *types, bool ascending, size_t offset, size_t limit,
				  struct store_event **ret, size_t *ret_n);
/* Keeps so many in all; the oldest go, of those keys that have the most. */
_must_check_ int store_event_prune(struct store *s, size_t keep);

struct store_webhook {
	char id[STORE_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	char *name;
	char *url;
	char *secret;  /* signs deliveries */
	json_t *types; /* array of event types, empty: all */
	bool enabled;
	int64_t created_ms;
};

void store_webhook_done(struct store_webhook *w);
/* -EDQUOT: the key has max of them. */
_must_check_ int store_webhook_add(struct store *s, const struct store_webhook *w, size_t max);
_must_check_ int store_webhook_update(struct store *s, const struct store_webhook *w);
_must_check_ int store_webhook_get(struct store *s, const char *key_id, const char *id,
				   struct store_webhook *ret);
_must_check_ int store_webhook_list(struct store *s, const char *key_id, struct store_webhook **ret,
				    size_t *ret_n);
_must_check_ int store_webhook_remove(struct store *s, const char *key_id, const char *id);

/* --- secrets (secrets.c) ---------------------------------------------------------------------- */

#define STORE_SECRET_NAME_SIZE 65

struct store_secret {
	char id[STORE_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	char name[STORE_SECRET_NAME_SIZE]; /* unique among those of its key */
	int64_t version;                   /* from 1 */
	json_t *metadata;                  /* object of strings */
	unsigned char *sealed;             /* the value, encrypted: the store never sees it */
	size_t sealed_len;
	int64_t created_ms;
	int64_t updated_ms;
};

void store_secret_done(struct store_secret *s);
/* -EEXIST: the name is taken; -EDQUOT: the key has max of them. */
_must_check_ int store_secret_add(struct store *s, const struct store_secret *secret, size_t max);
/* Saves version, metadata, sealed and updated_ms, if the version there is the one before. -ESTALE:
 * it is not. */
_must_check_ int store_secret_update(struct store *s, const struct store_secret *secret);
_must_check_ int store_secret_get(struct store *s, const char *key_id, const char *id_or_name,
				  struct store_secret *ret);
/* Oldest first, after the one with id `after` (NULL: from the first). */
_must_check_ int store_secret_list(struct store *s, const char *key_id, const char *after,
				   size_t limit, struct store_secret **ret, size_t *ret_n);
_must_check_ int store_secret_remove(struct store *s, const char *key_id, const char *id);
