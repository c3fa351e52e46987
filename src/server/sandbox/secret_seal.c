/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/secret.h"

#include "base/io.h"

#include <assert.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>

#define KEY_SIZE crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_SIZE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_SIZE crypto_aead_xchacha20poly1305_ietf_ABYTES
#define NEW_FILE SECRET_KEY_FILE "-new" /* until all of it is on the disk */

struct secret_key {
	unsigned char bytes[KEY_SIZE];
};

/* What a value is bound to: moved to another secret, owner or version, it cannot be read. */
struct binding {
	char key_id[STORE_ID_SIZE];
	char id[STORE_ID_SIZE];
	int64_t version;
};

static_assert(sizeof(struct binding) == (size_t)2 * STORE_ID_SIZE + sizeof(int64_t), "no gaps");

static struct binding binding_of(const struct store_secret *s)
{
	struct binding b = { .version = s->version };

	(void)snprintf(b.key_id, sizeof(b.key_id), "%s", s->key_id);
	(void)snprintf(b.id, sizeof(b.id), "%s", s->id);
	return b;
}

/* --- the file --------------------------------------------------------------------------------------- */

static int read_key(int fd, struct secret_key *k, struct fail *fail)
{
	unsigned char more;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return fail_set(fail, errno, "secrets", SECRET_KEY_FILE ": %s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)))
		return fail_set(fail, EPERM, "secrets",
				SECRET_KEY_FILE " beside the database must be a file that only the "
						"server's user can read (mode 0600)");
	n = read(fd, k->bytes, sizeof(k->bytes));
	if (n != (ssize_t)sizeof(k->bytes) || read(fd, &more, 1) != 0)
		return fail_set(
			fail, EUCLEAN, "secrets",
			SECRET_KEY_FILE
			" beside the database must have %zu bytes: put the right one back, or "
			"remove it and set all secrets again",
			sizeof(k->bytes));
	return 0;
}

/* Whole or not at all, whenever we are killed; whoever comes second uses the first one's. */
static int make_key(int dir_fd, struct secret_key *k)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	if (unlinkat(dir_fd, NEW_FILE, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir_fd, NEW_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	randombytes_buf(k->bytes, sizeof(k->bytes));
	r = io_write_all(fd, k->bytes, sizeof(k->bytes));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && (renameat2(dir_fd, NEW_FILE, dir_fd, SECRET_KEY_FILE, RENAME_NOREPLACE) < 0 ||
		       fsync(dir_fd) < 0))
		r = -errno;
	return r;
}

static int load(int dir_fd, struct secret_key *k, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = openat(
		dir_fd, SECRET_KEY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd >= 0)
		return read_key(fd, k, fail);
	if (errno != ENOENT)
		return fail_set(fail, errno, "secrets", "cannot open " SECRET_KEY_FILE ": %s",
				strerror(errno));
	r = make_key(dir_fd, k);
	return r < 0 ? fail_set(fail, -r, "secrets", "cannot make " SECRET_KEY_FILE ": %s",
				strerror(-r)) :
		       0;
}

int secret_key_open(int dir_fd, struct secret_key **ret, struct fail *fail)
{
	struct secret_key *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return fail_set(fail, ENOMEM, "secrets", "out of memory");
	r = load(dir_fd, k, fail);
	if (r < 0) {
		secret_key_close(k);
		return r;
	}
	*ret = k;
	return 0;
}

void secret_key_close(struct secret_key *k)
{
	if (k)
		sodium_memzero(k, sizeof(*k));
	free(k);
}

/* --- values: a nonce, then the value and its tag ------------------------------------------------------ */

int secret_seal(const struct secret_key *k, struct store_secret *secret, const char *value,
		size_t len)
{
	struct binding b = binding_of(secret);
	unsigned char *sealed;

	if (len > SECRET_VALUE_MAX)
		return -E2BIG;
	sealed = malloc(NONCE_SIZE + len + TAG_SIZE);
	if (!sealed)
		return -ENOMEM;
	randombytes_buf(sealed, NONCE_SIZE); /* 192 bits: never the same twice */
	(void)crypto_aead_xchacha20poly1305_ietf_encrypt(sealed + NONCE_SIZE, NULL,
							 (const unsigned char *)value, len,
							 (const unsigned char *)&b, sizeof(b), NULL,
							 sealed, k->bytes);
	free(secret->sealed);
	secret->sealed = sealed;
	secret->sealed_len = NONCE_SIZE + len + TAG_SIZE;
	return 0;
}

int secret_unseal(const struct secret_key *k, const struct store_secret *secret, char *ret,
		  size_t size)
{
	struct binding b = binding_of(secret);
	size_t len;

	if (!secret->sealed || secret->sealed_len < NONCE_SIZE + TAG_SIZE)
		return -EKEYREJECTED;
	len = secret->sealed_len - NONCE_SIZE - TAG_SIZE;
	if (len >= size)
		return -ENOBUFS;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(
		    (unsigned char *)ret, NULL, NULL, secret->sealed + NONCE_SIZE, len + TAG_SIZE,
		    (const unsigned char *)&b, sizeof(b), secret->sealed, k->bytes) < 0) {
		ret[0] = '\0';
		return -EKEYREJECTED;
	}
	ret[len] = '\0';
	return 0;
}
