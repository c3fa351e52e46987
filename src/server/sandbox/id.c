/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/id.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

#define LETTERS (sizeof(alphabet) - 1)
#define FAIR (256 / LETTERS * LETTERS) /* bytes from here on would make some letters likelier */

/* In one go: the kernel is asked once for all letters, not once for each. */
static void random_text(char *ret, size_t n)
{
	unsigned char bytes[64];
	size_t left = 0, i = 0;

	while (i < n) {
		if (left == 0) {
			randombytes_buf(bytes, sizeof(bytes));
			left = sizeof(bytes);
		}
		left--;
		if (bytes[left] < FAIR)
			ret[i++] = alphabet[bytes[left] % LETTERS];
	}
	sodium_memzero(bytes, sizeof(bytes));
}

void id_new(char first, char ret[static ID_SIZE])
{
	memset(ret, 0, ID_SIZE);
	ret[0] = first;
	random_text(ret + 1, ID_LEN - 1);
}

void token_new(char ret[static TOKEN_LEN + 1])
{
	random_text(ret, TOKEN_LEN);
	ret[TOKEN_LEN] = '\0';
}

static void uuid_text(unsigned char bytes[static 16], unsigned version, char ret[static UUID_SIZE])
{
	char hex[33];

	bytes[6] = (unsigned char)((bytes[6] & 0x0f) | version << 4);
	bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
	(void)sodium_bin2hex(hex, sizeof(hex), bytes, 16);
	(void)snprintf(ret, UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		       hex + 16, hex + 20);
}

void uuid_new(char ret[static UUID_SIZE])
{
	unsigned char bytes[16];

	randombytes_buf(bytes, sizeof(bytes));
	uuid_text(bytes, 4, ret);
}

void uuid_of(const char *text, char ret[static UUID_SIZE])
{
	unsigned char bytes[16];

	(void)crypto_generichash(bytes, sizeof(bytes), (const unsigned char *)text, strlen(text),
				 NULL, 0);
	uuid_text(bytes, 8, ret);
}

void token_digest(const char *token, unsigned char ret[static TOKEN_DIGEST_SIZE])
{
	crypto_hash_sha256(ret, (const unsigned char *)token, strlen(token));
}

bool token_digest_equal(const unsigned char *a, const unsigned char *b)
{
	return sodium_memcmp(a, b, TOKEN_DIGEST_SIZE) == 0;
}

/* Hashes of both are compared: the length of a token does not show either. */
bool token_equal(const char *a, const char *b)
{
	unsigned char x[TOKEN_DIGEST_SIZE], y[TOKEN_DIGEST_SIZE];

	token_digest(a, x);
	token_digest(b, y);
	return token_digest_equal(x, y);
}
