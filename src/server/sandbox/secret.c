/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/secret.h"

#include "base/io.h"
#include "server/server.h"

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

/* --- the file of the key ---------------------------------------------------------------------- */

static int secret_key_read(int fd, struct secret_key *k, struct fail *fail)
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

/* Whole or not at all, whenever we are killed; a second process uses the first one's. */
static int secret_key_make(int dir_fd, struct secret_key *k)
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

static int secret_key_load(int dir_fd, struct secret_key *k, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = openat(
		dir_fd, SECRET_KEY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd >= 0)
		return secret_key_read(fd, k, fail);
	if (errno != ENOENT)
		return fail_set(fail, errno, "secrets", "cannot open " SECRET_KEY_FILE ": %s",
				strerror(errno));
	r = secret_key_make(dir_fd, k);
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
	r = secret_key_load(dir_fd, k, fail);
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

/* --- values: a nonce, then the value and its tag ---------------------------------------------- */

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

/* --- texts ------------------------------------------------------------------------------------ */

int secret_name_parse(const char *text, size_t len, char ret[static STORE_SECRET_NAME_SIZE])
{
	char name[STORE_SECRET_NAME_SIZE] = "";

	if (len == 0 || len > SECRET_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		char c = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
		bool inside = (c >= '0' && c <= '9') || c == '-';

		if (!((c >= 'a' && c <= 'z') || c == '_' || (i > 0 && inside)))
			return -EINVAL;
		name[i] = c;
	}
	if (strncmp(name, SECRET_ID_PREFIX, strlen(SECRET_ID_PREFIX)) == 0)
		return -EINVAL;
	memcpy(ret, name, sizeof(name));
	return 0;
}

struct expansion {
	char *text;
	size_t size, len;
};

static int expansion_add(struct expansion *o, const char *text, size_t len, struct fail *fail)
{
	if (len >= o->size - o->len)
		return fail_set(fail, ENOBUFS, "secrets",
				"with its secrets it is longer than %zu bytes", o->size - 1);
	memcpy(o->text + o->len, text, len);
	o->len += len;
	o->text[o->len] = '\0';
	return 0;
}

/* at: behind "${". Gives back the name's begin, and *ret_len, or NULL. */
static const char *name_in(const char *at, size_t *ret_len)
{
	static const char *const prefixes[] = { "secrets.", "e2b.secrets." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);
		const char *end = strchr(at, '}');

		if (!end || strncmp(at, prefixes[i], n) != 0)
			continue;
		*ret_len = (size_t)(end - at) - n;
		return at + n;
	}
	return NULL;
}

/* What stands at "${…}" is replaced; *at is behind it then. */
static int expansion_add_secret(struct expansion *o, const char **at, secret_lookup *value,
				void *arg, struct fail *fail)
{
	char name[STORE_SECRET_NAME_SIZE];
	size_t len = 0;
	const char *begin = name_in(*at + 2, &len);
	int r;

	if (!begin || secret_name_parse(begin, len, name) < 0)
		return fail_set(
			fail, EINVAL, "secrets",
			"behind ${ only secrets.NAME} and e2b.secrets.NAME} are understood");
	r = value(arg, name, o->text + o->len, o->size - o->len, fail);
	if (r < 0)
		return r;
	o->len += strlen(o->text + o->len);
	*at = begin + len + 1;
	return 0;
}

int secret_expand_with(const char *text, secret_lookup *value, void *arg, char *ret, size_t size,
		       struct fail *fail)
{
	struct expansion o = { ret, size, 0 };
	int r = 0;

	ret[0] = '\0';
	while (r == 0 && *text) {
		const char *dollar = strstr(text, "${");
		size_t len = dollar ? (size_t)(dollar - text) : strlen(text);

		r = expansion_add(&o, text, len, fail);
		text += len;
		if (r == 0 && dollar)
			r = expansion_add_secret(&o, &text, value, arg, fail);
	}
	if (r < 0)
		explicit_bzero(ret, size);
	return r;
}

/* --- for others ------------------------------------------------------------------------------- */

int secret_value(struct server *s, const char *key_id, const char *name, char *ret, size_t size)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	char canonical[STORE_SECRET_NAME_SIZE];
	int r = secret_name_parse(name, strlen(name), canonical);

	if (r < 0)
		return -ENOENT;
	r = store_secret_get(s->store, key_id, canonical, &secret);
	return r < 0 ? r : secret_unseal(s->secret_key, &secret, ret, size);
}

struct secret_owner {
	struct server *server;
	const char *key_id;
};

static int secret_look_up(void *arg, const char *name, char *ret, size_t size, struct fail *fail)
{
	const struct secret_owner *o = arg;
	int r = secret_value(o->server, o->key_id, name, ret, size);

	if (r == -ENOENT)
		return fail_set(fail, ENOENT, "secrets", "there is no secret %s", name);
	if (r == -EKEYREJECTED)
		return fail_set(
			fail, EKEYREJECTED, "secrets",
			"the secret %s cannot be read with this service's key: set it again", name);
	if (r == -ENOBUFS)
		return fail_set(fail, ENOBUFS, "secrets", "with the secret %s it is too long",
				name);
	return r < 0 ? fail_set(fail, -r, "secrets", "cannot read the secret %s: %s", name,
				strerror(-r)) :
		       0;
}

int secret_expand(struct server *s, const char *key_id, const char *text, char *ret, size_t size,
		  struct fail *fail)
{
	struct secret_owner o = { s, key_id };

	return secret_expand_with(text, secret_look_up, &o, ret, size, fail);
}
