/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/signed_url.h"

#include "base/parse.h"
#include "server/sandbox/id.h"

#define VERSION "v1_"
#define VERSION_LEN (sizeof(VERSION) - 1)
#define TEXT_LEN (VERSION_LEN + 43) /* base64 without padding */
#define EXPIRATION_LEN_MAX 20       /* no number of seconds is longer */

static void sign_add(crypto_hash_sha256_state *st, const char *text)
{
	crypto_hash_sha256_update(st, (const unsigned char *)text, strlen(text));
}

/* The hash that the signature is the text of. */
static int read_signature(const char *text, unsigned char ret[crypto_hash_sha256_BYTES])
{
	size_t len;

	if (strlen(text) != TEXT_LEN || strncmp(text, VERSION, VERSION_LEN) != 0 ||
	    sodium_base642bin(ret, crypto_hash_sha256_BYTES, text + VERSION_LEN,
			      TEXT_LEN - VERSION_LEN, NULL, &len, NULL,
			      sodium_base64_VARIANT_ORIGINAL_NO_PADDING) < 0)
		return -EINVAL;
	return len == crypto_hash_sha256_BYTES ? 0 : -EINVAL;
}

int sign_prepare(const struct sign_request *q, struct sign_search *ret)
{
	/* It is hashed behind the token, so for each anew. */
	if (q->expiration && strlen(q->expiration) > EXPIRATION_LEN_MAX)
		return -EINVAL;
	ret->expiration = q->expiration;
	crypto_hash_sha256_init(&ret->before);
	sign_add(&ret->before, q->path);
	sign_add(&ret->before, ":");
	sign_add(&ret->before, q->operation);
	sign_add(&ret->before, ":");
	sign_add(&ret->before, q->user);
	sign_add(&ret->before, ":");
	return read_signature(q->signature, ret->wanted);
}

bool sign_made_with(const struct sign_search *s, const char *token)
{
	crypto_hash_sha256_state st = s->before;
	unsigned char sum[crypto_hash_sha256_BYTES];

	sign_add(&st, token);
	if (s->expiration) {
		sign_add(&st, ":");
		sign_add(&st, s->expiration);
	}
	crypto_hash_sha256_final(&st, sum);
	return token_digest_equal(sum, s->wanted);
}

bool sign_matches(const struct sign_request *q, const char *token)
{
	struct sign_search s;

	return sign_prepare(q, &s) == 0 && sign_made_with(&s, token);
}

bool sign_expired(const struct sign_request *q, int64_t now_s)
{
	uint64_t until;

	if (!q->expiration)
		return false;
	if (parse_u64(q->expiration, &until) < 0 || now_s < 0)
		return true;
	return until < (uint64_t)now_s;
}
