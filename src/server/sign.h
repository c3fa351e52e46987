/* SPDX-License-Identifier: Apache-2.0 */
/* Signed URLs of /files, as E2B's clients make them. */
#pragma once

#include "base/util.h"

struct sign_request {
	const char *path;       /* as the client wrote it; "" when there is none */
	const char *operation;  /* "read" or "write" */
	const char *user;       /* "" when there is none */
	const char *signature;  /* of the query */
	const char *expiration; /* of the query, or NULL */
};

/* Was the signature made with this token? Takes the same time whether or not. */
bool sign_matches(const struct sign_request *q, const char *token);

/* Is it over by then? False when there is no expiration; true for one that is not a number. */
bool sign_expired(const struct sign_request *q, int64_t now_s);

/* Two secrets, in a time that does not depend on where they differ. */
bool secret_equal(const char *a, const char *b);
