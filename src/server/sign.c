/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sign.h"

#include "base/parse.h"

#include <sodium.h>

#define VERSION "v1_"
#define TEXT_SIZE (sizeof(VERSION) + 44) /* 43 characters of base64 and a NUL */

static void add(crypto_hash_sha256_state *st, const char *text)
{
	crypto_hash_sha256_update(st, (const unsigned char *)text, strlen(text));
}

static void make(const struct sign_request *q, const char *token, char ret[TEXT_SIZE])
{
	crypto_hash_sha256_state st;
	unsigned char sum[crypto_hash_sha256_BYTES];

	crypto_hash_sha256_init(&st);
	add(&st, q->path);
	add(&st, ":");
	add(&st, q->operation);
	add(&st, ":");
	add(&st, q->user);
	add(&st, ":");
	add(&st, token);
	if (q->expiration) {
		add(&st, ":");
		add(&st, q->expiration);
	}
	crypto_hash_sha256_final(&st, sum);
	memcpy(ret, VERSION, sizeof(VERSION));
	sodium_bin2base64(ret + sizeof(VERSION) - 1, TEXT_SIZE - sizeof(VERSION) + 1, sum,
			  sizeof(sum), sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

/* Hashes of both are compared: the length of a secret does not show either. */
bool secret_equal(const char *a, const char *b)
{
	unsigned char x[crypto_hash_sha256_BYTES], y[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(x, (const unsigned char *)a, strlen(a));
	crypto_hash_sha256(y, (const unsigned char *)b, strlen(b));
	return sodium_memcmp(x, y, sizeof(x)) == 0;
}

bool sign_matches(const struct sign_request *q, const char *token)
{
	char right[TEXT_SIZE];

	make(q, token, right);
	return secret_equal(q->signature, right);
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
