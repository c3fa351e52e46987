/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control/text.h"

#include <sodium.h>

void signature_text(const char *secret, const char *body, size_t len,
		    char ret[static SIGNATURE_SIZE])
{
	crypto_hash_sha256_state state;
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256_init(&state);
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)secret, strlen(secret));
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)body, len);
	(void)crypto_hash_sha256_final(&state, hash);
	(void)sodium_bin2base64(ret, SIGNATURE_SIZE, hash, sizeof(hash),
				sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}
