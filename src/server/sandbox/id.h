/* SPDX-License-Identifier: Apache-2.0 */
/* Names that nobody can guess, and whether two of them are the same. */
#pragma once

#include "base/util.h"

#include <sodium.h>

#define ID_LEN 20 /* of a sandbox, a layer, a webhook: a letter, then 19 of [a-z0-9], 98 bits */
#define ID_SIZE 32
#define TOKEN_LEN 40 /* [a-z0-9]: 206 bits */
#define UUID_SIZE 37

void id_new(char first, char ret[static ID_SIZE]); /* the rest of ret is NULs */
void token_new(char ret[static TOKEN_LEN + 1]);
void uuid_new(char ret[static UUID_SIZE]);
/* Always the same one for the same text. */
void uuid_of(const char *text, char ret[static UUID_SIZE]);

#define TOKEN_DIGEST_SIZE crypto_hash_sha256_BYTES

void token_digest(const char *token, unsigned char ret[static TOKEN_DIGEST_SIZE]);
bool token_digest_equal(const unsigned char *a, const unsigned char *b);
/* In a time that does not depend on where they differ. */
bool token_equal(const char *a, const char *b);
