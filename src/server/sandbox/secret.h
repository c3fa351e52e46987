/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets: values that a client gives once, and that only ever leave again in requests which egress
 * makes. In the database they are encrypted; the key lies in a file of its own beside it, so that a
 * copy of the database alone gives nothing away. control/secret.c has the requests about them.
 */
#pragma once

#include "base/fail.h"
#include "store/store.h"

#define SECRET_VALUE_MAX 8000 /* bytes: with what stands around it, it must fit a header */
#define SECRET_NAME_MAX (STORE_SECRET_NAME_SIZE - 1)
#define SECRET_ID_PREFIX "sec_" /* no name begins with it */

struct server;
struct secret_key;

/* --- values under the key --------------------------------------------------------------------- */

#define SECRET_KEY_FILE "secrets.key"

/* Reads the key from the directory, or makes one if there is none. A file of another form is an
 * error: it is somebody's key. */
_must_check_ int secret_key_open(int dir_fd, struct secret_key **ret, struct fail *fail);
void secret_key_close(struct secret_key *k); /* wipes it */

/* Fills in sealed and sealed_len; owner, id and version are bound to the value. */
_must_check_ int secret_seal(const struct secret_key *k, struct store_secret *secret,
			     const char *value, size_t len);
/* The value and a NUL. -EKEYREJECTED: it was sealed with another key, or is not this secret's;
 * -ENOBUFS. */
_must_check_ int secret_unseal(const struct secret_key *k, const struct store_secret *secret,
			       char *ret, size_t size);

/* --- texts ------------------------------------------------------------------------------------ */

/* The canonical form: [a-z_][a-z0-9_-]*, at most 64; capitals become small. -EINVAL. */
_must_check_ int secret_name_parse(const char *text, size_t len,
				   char ret[static STORE_SECRET_NAME_SIZE]);

/* Puts values into a text: for each ${secrets.NAME} or ${e2b.secrets.NAME} value() adds its own.
 * Any other ${…} is an error, -EINVAL. */
typedef int secret_lookup(void *arg, const char *name, char *ret, size_t size, struct fail *fail);
_must_check_ int secret_expand_with(const char *text, secret_lookup *value, void *arg, char *ret,
				    size_t size, struct fail *fail);

/* --- for others ------------------------------------------------------------------------------- */

/* -ENOENT, -EKEYREJECTED, -ENOBUFS. Wipe it after use. */
_must_check_ int secret_value(struct server *s, const char *key_id, const char *name, char *ret,
			      size_t size);
/* fail never has a value in it. */
_must_check_ int secret_expand(struct server *s, const char *key_id, const char *text, char *ret,
			       size_t size, struct fail *fail);
