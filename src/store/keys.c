/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys. What is kept of a key's text is its SHA-256: the text has 160 random bits, so there is
 * nothing to gain from a slow hash. A key is looked up by the first bytes of the hash, which say
 * nothing about the text, and the whole hash is then compared in constant time (AP-01).
 */
#include "store/store_priv.h"

#include "base/clock.h"

#include <sodium.h>

#define KEY_PREFIX "e2b_"
#define KEY_RANDOM ((size_t)20) /* bytes */
#define ID_PREFIX "key_"
#define ID_RANDOM ((size_t)8)
#define TEXT_LOOKED_AT 256 /* more than any key has */
#define CACHE_US 1000000
#define USED_EVERY_MS 60000

#define ROW struct store_key

static const struct column columns[] = {
	COLUMN(NAME, id),
	COLUMN(NAME, name),
	COLUMN(NUMBER, scopes),
	COLUMN(NUMBER, created_ms),
	COLUMN(NUMBER, expires_ms),
	COLUMN(NUMBER, revoked_ms),
	COLUMN(NUMBER, last_used_ms),
};
static const struct row_type key_row = ROW_TYPE(columns);

static_assert(STORE_HASH_SIZE == crypto_hash_sha256_BYTES, "SHA-256");
static_assert(sizeof(KEY_PREFIX) + 2 * KEY_RANDOM == STORE_KEY_TEXT_SIZE, "e2b_ and hexadecimal");

static void hash_text(const char *text, size_t len, unsigned char ret[STORE_HASH_SIZE])
{
	(void)crypto_hash_sha256(ret, (const unsigned char *)text,
				 MIN(len, (size_t)TEXT_LOOKED_AT));
}

static int64_t hash_prefix(const unsigned char hash[STORE_HASH_SIZE])
{
	int64_t prefix;

	memcpy(&prefix, hash, sizeof(prefix));
	return prefix;
}

/* prefix and random hexadecimal digits. */
static void make_random(const char *prefix, size_t bytes, char *ret, size_t size)
{
	unsigned char random[KEY_RANDOM];
	char hex[2 * KEY_RANDOM + 1];

	randombytes_buf(random, bytes);
	(void)sodium_bin2hex(hex, sizeof(hex), random, bytes);
	(void)snprintf(ret, size, "%s%s", prefix, hex);
	sodium_memzero(random, sizeof(random));
	sodium_memzero(hex, sizeof(hex));
}

/* Names are typed and printed: no blanks, no controls, nothing that looks like an option or an
 * id. */
static bool is_key_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < sizeof(((struct store_key *)0)->name) && name[0] != '-' &&
	       strncmp(name, ID_PREFIX, strlen(ID_PREFIX)) != 0 &&
	       strspn(name,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@+-") == len;
}

static int explain_key(int err, const char *what, struct fail *fail)
{
	if (err == ENOSPC)
		return fail_set(fail, err, "key",
				"no space is left for the database; nothing was changed");
	return fail_set(fail, err, "key", "cannot %s: %s", what, strerror(err));
}

int store_key_create(struct store *s, const char *name, unsigned scopes, int64_t expires_ms,
		     struct store_key *ret, char ret_text[STORE_KEY_TEXT_SIZE], struct fail *fail)
{
	struct store_key key = { .scopes = scopes, .expires_ms = expires_ms };
	unsigned char hash[STORE_HASH_SIZE];
	char text[STORE_KEY_TEXT_SIZE];
	struct query q;
	int r;

	if (*name && !is_key_name(name))
		return fail_set(
			fail, EINVAL, "key",
			"a key's name has 1 to %zu of A-Z a-z 0-9 . _ @ + -, does not begin with - "
			"or " ID_PREFIX,
			sizeof(key.name) - 1);
	(void)snprintf(key.name, sizeof(key.name), "%s", name);
	key.created_ms = store_now_ms();
	make_random(ID_PREFIX, ID_RANDOM, key.id, sizeof(key.id));
	make_random(KEY_PREFIX, KEY_RANDOM, text, sizeof(text));
	hash_text(text, strlen(text), hash);
	q = query_open_row(s, "INSERT INTO keys ({columns}, prefix, hash) VALUES ({values}, ?, ?)",
			   &key_row, &key);
	query_put_int(&q, hash_prefix(hash));
	query_put_blob(&q, hash, sizeof(hash));
	r = query_run(&q);
	if (r == -EEXIST)
		return fail_set(
			fail, EEXIST, "key",
			"there is a key with the name '%s' already; take another, or 'glovebox key "
			"rotate %s'",
			key.name, key.name);
	if (r < 0)
		return explain_key(-r, "make a key", fail);
	*ret = key;
	memcpy(ret_text, text, sizeof(text));
	sodium_memzero(text, sizeof(text));
	return 0;
}

static bool is_good(const struct store_key *key, int64_t now_ms)
{
	return key->revoked_ms == 0 && (key->expires_ms == 0 || now_ms < key->expires_ms);
}

static struct cached_key *cache_place(struct store *s, const unsigned char hash[STORE_HASH_SIZE])
{
	return &s->cache[(uint64_t)hash_prefix(hash) % STORE_CACHE_SIZE];
}

static bool cache_find(struct store *s, const unsigned char hash[STORE_HASH_SIZE],
		       struct store_key *ret)
{
	struct cached_key *c = cache_place(s, hash);
	bool found;

	(void)pthread_mutex_lock(&s->cache_lock);
	found = clock_boot_us() < c->until_us && sodium_memcmp(c->hash, hash, STORE_HASH_SIZE) == 0;
	if (found)
		*ret = c->key;
	(void)pthread_mutex_unlock(&s->cache_lock);
	return found;
}

static void cache_keep(struct store *s, const unsigned char hash[STORE_HASH_SIZE],
		       const struct store_key *key)
{
	struct cached_key *c = cache_place(s, hash);

	(void)pthread_mutex_lock(&s->cache_lock);
	memcpy(c->hash, hash, STORE_HASH_SIZE);
	c->key = *key;
	c->until_us = clock_boot_us() + CACHE_US;
	(void)pthread_mutex_unlock(&s->cache_lock);
}

static void cache_drop(struct store *s)
{
	(void)pthread_mutex_lock(&s->cache_lock);
	explicit_bzero(s->cache, sizeof(s->cache));
	(void)pthread_mutex_unlock(&s->cache_lock);
}

/* One comparison whether there is a row or not. */
static int find_by_hash(struct store *s, const unsigned char hash[STORE_HASH_SIZE],
			struct store_key *ret)
{
	unsigned char stored[STORE_HASH_SIZE] = { 0 };
	struct store_key key = { 0 };
	bool same;
	struct query q = query_open(s, "SELECT {columns}, hash FROM keys WHERE prefix = ? LIMIT 1",
				    &key_row);
	int r;

	query_put_int(&q, hash_prefix(hash));
	r = query_step(&q);
	if (r > 0) {
		query_get_row(&q, &key);
		query_get_blob(&q, stored, sizeof(stored));
	}
	r = query_close(&q, r);
	same = sodium_memcmp(stored, hash, STORE_HASH_SIZE) == 0;
	if (r < 0)
		return r;
	if (!same || !*key.id || !is_good(&key, store_now_ms()))
		return -EACCES;
	*ret = key;
	return 0;
}

/* To the minute, so that reading costs no writing. That it cannot be noted is nobody's problem. */
static void note_used(struct store *s, struct store_key *key)
{
	int64_t now = store_now_ms();
	struct query q;

	if (now - key->last_used_ms < USED_EVERY_MS && now >= key->last_used_ms)
		return;
	q = query_open(s, "UPDATE keys SET last_used_ms = ? WHERE id = ?", NULL);
	query_put_int(&q, now);
	query_put_text(&q, key->id);
	if (query_run(&q) > 0)
		key->last_used_ms = now;
}

int store_key_check(struct store *s, const char *text, size_t len, struct store_key *ret)
{
	unsigned char hash[STORE_HASH_SIZE];
	struct store_key key;
	int r;

	hash_text(text, len, hash);
	if (cache_find(s, hash, &key)) {
		if (!is_good(&key, store_now_ms()))
			return -EACCES;
		*ret = key;
		return 0;
	}
	r = find_by_hash(s, hash, &key);
	if (r < 0)
		return r;
	note_used(s, &key);
	cache_keep(s, hash, &key);
	*ret = key;
	return 0;
}

static int no_such_key(const char *id_or_name, struct fail *fail)
{
	return fail_set(fail, ENOENT, "key", "there is no key '%.60s'; see 'glovebox key ls'",
			id_or_name);
}

int store_key_revoke(struct store *s, const char *id_or_name, struct fail *fail)
{
	struct query q = query_open(
		s, "UPDATE keys SET revoked_ms = ? WHERE revoked_ms = 0 AND (id = ? OR name = ?)",
		NULL);
	int r;

	query_put_int(&q, store_now_ms());
	query_put_text(&q, id_or_name);
	query_put_text(&q, id_or_name);
	r = *id_or_name ? query_run(&q) : query_close(&q, 0);
	if (r < 0)
		return explain_key(-r, "revoke the key", fail);
	if (r == 0)
		return no_such_key(id_or_name, fail);
	cache_drop(s);
	return 0;
}

static int put_new_hash(struct query *q, const unsigned char hash[STORE_HASH_SIZE],
			const char *id_or_name, struct store_key *ret)
{
	int r;

	query_put_int(q, hash_prefix(hash));
	query_put_blob(q, hash, STORE_HASH_SIZE);
	query_put_text(q, id_or_name);
	query_put_text(q, id_or_name);
	r = query_step(q);
	if (r == 0)
		return query_close(q, -ENOENT);
	if (r > 0) {
		query_get_row(q, ret);
		r = query_step(q); /* the change is made when the statement has ended */
	}
	return query_close(q, r);
}

int store_key_rotate(struct store *s, const char *id_or_name, struct store_key *ret,
		     char ret_text[STORE_KEY_TEXT_SIZE], struct fail *fail)
{
	unsigned char hash[STORE_HASH_SIZE];
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key = { 0 };
	struct query q;
	int r;

	if (!*id_or_name)
		return no_such_key(id_or_name, fail);
	make_random(KEY_PREFIX, KEY_RANDOM, text, sizeof(text));
	hash_text(text, strlen(text), hash);
	q = query_open(s,
		       "UPDATE keys SET prefix = ?, hash = ?, last_used_ms = 0"
		       " WHERE revoked_ms = 0 AND (id = ? OR name = ?) RETURNING {columns}",
		       &key_row);
	r = put_new_hash(&q, hash, id_or_name, &key);
	if (r == -ENOENT)
		return no_such_key(id_or_name, fail);
	if (r < 0)
		return explain_key(-r, "rotate the key", fail);
	cache_drop(s);
	*ret = key;
	memcpy(ret_text, text, sizeof(text));
	sodium_memzero(text, sizeof(text));
	return 0;
}

int store_key_list(struct store *s, struct store_key **ret, size_t *ret_n)
{
	struct query q =
		query_open(s, "SELECT {columns} FROM keys ORDER BY created_ms, rowid", &key_row);

	return query_all(&q, (void **)ret, ret_n);
}

int store_key_count(struct store *s, size_t *ret_n)
{
	struct query q = query_open(s,
				    "SELECT count(*) FROM keys"
				    " WHERE revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > ?)",
				    NULL);

	query_put_int(&q, store_now_ms());
	return query_number(&q, ret_n);
}
