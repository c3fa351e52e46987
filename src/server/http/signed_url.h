/* SPDX-License-Identifier: Apache-2.0 */
/* Signed URLs of /files, as E2B's clients make them. */
#pragma once

#include "base/util.h"

#include <sodium.h>

struct sign_request {
	const char *path;       /* as the client wrote it; "" when there is none */
	const char *operation;  /* "read" or "write" */
	const char *user;       /* "" when there is none */
	const char *signature;  /* of the query */
	const char *expiration; /* of the query, or NULL */
};

/* Was the signature made with this token? Takes the same time whether or not. */
bool sign_matches(const struct sign_request *q, const char *token);

/* What of that does not depend on the token, for callers that have many to try: the client chooses
 * how long its path is. */
struct sign_search {
	crypto_hash_sha256_state before; /* everything up to the token is in it */
	unsigned char wanted[crypto_hash_sha256_BYTES];
	const char *expiration;
};

/* -EINVAL: no token makes such a signature. */
_must_check_ int sign_prepare(const struct sign_request *q, struct sign_search *ret);
bool sign_made_with(const struct sign_search *s, const char *token);

/* Is it over by then? False when there is no expiration; true for one that is not a number. */
bool sign_expired(const struct sign_request *q, int64_t now_s);
