/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `glovebox key`. */
#pragma once

#include "client/client.h"
#include "service/state.h"
#include "store/store.h"

/* --- the local key's file: STATE/local.key (key/local.c) ------------------------------------------- */

/* Opened before root is given up for the store's owner, so that it can still be written afterwards.
 * -ENOENT. */
_must_check_ int local_key_open(const struct state *s, int *ret_fd, struct fail *fail);
/* Is the key with this id the one in the file? */
bool local_key_is(int fd, struct store *store, const char *id);
/* text is NULL when there is none any more. */
_must_check_ int local_key_write(int fd, const char *text, struct fail *fail);

/* A new file, of whoever is behind sudo, in place of what was there. */
_must_check_ int local_key_replace(const struct state *s, const char *text, struct fail *fail);

/* --- the first key (key/bootstrap.c) ------------------------------------------------------------------ */

/* Makes it if there is no key that is good. Returns a status. */
int key_bootstrap(const struct state *state);

/* --- lists (key/list.c) ------------------------------------------------------------------------------- */

int key_print_list(const struct store_key *keys, size_t n, bool json, bool all);

/* "read,admin": 0 when there is nothing in it that is a scope. */
unsigned key_read_scopes(const char *text);
