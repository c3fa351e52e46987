/* SPDX-License-Identifier: Apache-2.0 */
/* Values under a key, their place in the store, and their place in a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/sandbox/secret.h"
#include "store_lib.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>

#define VALUE "a value that nobody sees again"

static struct secret_key *open_key(const char *dir)
{
	_cleanup_(fd_closep) int fd = open_dir(dir);
	struct secret_key *k = NULL;
	struct fail fail = { 0 };

	if (secret_key_open(fd, &k, &fail) < 0)
		fail_msg("secret_key_open: %s", fail.msg);
	return k;
}

static int try_key(const char *dir, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = open_dir(dir);
	struct secret_key *k = NULL;
	int r = secret_key_open(fd, &k, fail);

	secret_key_close(k);
	return r;
}

static void test_key_file(void **state)
{
	char path[128], other[128];
	struct fail fail = { 0 };
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/" SECRET_KEY_FILE, (char *)*state);
	(void)snprintf(other, sizeof(other), "%s/other", (char *)*state);
	secret_key_close(open_key(*state));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 32);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(try_key(*state, &fail), 0);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(try_key(*state, &fail), -EPERM);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 33), 0);
	assert_int_equal(try_key(*state, &fail), -EUCLEAN);
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(try_key(*state, &fail), -EUCLEAN);
	assert_non_null(strstr(fail.msg, SECRET_KEY_FILE));
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(try_key(*state, &fail), -EUCLEAN);
	/* a link is nobody's key */
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("other", path), 0);
	assert_int_equal(try_key(*state, &fail), -ELOOP);
}

/* One that was killed while it made the key left half of it. */
static void test_key_half_made(void **state)
{
	char path[128];
	_cleanup_(fd_closep) int fd = -EBADF;

	(void)snprintf(path, sizeof(path), "%s/" SECRET_KEY_FILE "-new", (char *)*state);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "half", 4), 4);
	secret_key_close(open_key(*state));
	assert_int_equal(access(path, F_OK), -1);
}

static void test_seal(void **state)
{
	struct secret_key *k = open_key(*state), *again = open_key(*state);
	_cleanup_(store_secret_done) struct store_secret s = {
		.id = "sec_1", .key_id = "key_1", .name = "n", .version = 1
	};
	char value[64];

	assert_int_equal(secret_seal(k, &s, VALUE, strlen(VALUE)), 0);
	assert_int_equal(s.sealed_len, 24 + strlen(VALUE) + 16);
	assert_int_equal(secret_unseal(again, &s, value, sizeof(value)), 0);
	assert_string_equal(value, VALUE);
	assert_int_equal(secret_unseal(k, &s, value, strlen(VALUE)), -ENOBUFS);
	assert_int_equal(secret_unseal(k, &s, value, strlen(VALUE) + 1), 0);
#define REFUSED(change, undo)                                                                      \
	do {                                                                                       \
		change;                                                                            \
		assert_int_equal(secret_unseal(k, &s, value, sizeof(value)), -EKEYREJECTED);       \
		undo;                                                                              \
		assert_int_equal(secret_unseal(k, &s, value, sizeof(value)), 0);                   \
	} while (0)
	REFUSED(s.version = 2, s.version = 1);
	REFUSED(s.id[4] = '2', s.id[4] = '1');
	REFUSED(s.key_id[4] = '2', s.key_id[4] = '1');
	REFUSED(s.sealed_len--, s.sealed_len++);
	REFUSED(s.sealed_len = 39, s.sealed_len = 24 + strlen(VALUE) + 16);
	for (size_t i = 0; i < s.sealed_len; i++)
		REFUSED(s.sealed[i] ^= 1, s.sealed[i] ^= 1);
	assert_int_equal(secret_seal(k, &s, VALUE, SECRET_VALUE_MAX + 1), -E2BIG);
	secret_key_close(k);
	secret_key_close(again);
}

static void test_another_key(void **state)
{
	_cleanup_(store_secret_done) struct store_secret s = { .id = "sec_1", .version = 1 };
	struct secret_key *k = open_key(*state), *other;
	char path[128], value[64];

	assert_int_equal(secret_seal(k, &s, VALUE, strlen(VALUE)), 0);
	(void)snprintf(path, sizeof(path), "%s/" SECRET_KEY_FILE, (char *)*state);
	assert_int_equal(unlink(path), 0);
	other = open_key(*state);
	assert_int_equal(secret_unseal(other, &s, value, sizeof(value)), -EKEYREJECTED);
	assert_string_equal(value, "");
	secret_key_close(k);
	secret_key_close(other);
}

/* --- the store ---------------------------------------------------------------------------------- */

static void fill(struct store_secret *s, const char *id, const char *name)
{
	*s = (struct store_secret){ .version = 1, .created_ms = 7, .updated_ms = 7 };
	(void)snprintf(s->id, sizeof(s->id), "%s", id);
	(void)snprintf(s->key_id, sizeof(s->key_id), "%s", test_key.id);
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	s->metadata = json_pack("{ss}", "a", "b");
	s->sealed = malloc(3);
	assert_non_null(s->sealed);
	memcpy(s->sealed, "a\0b", 3);
	s->sealed_len = 3;
}

static void test_store(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_secret_done) struct store_secret one = { 0 }, two = { 0 }, got = { 0 };
	struct store_secret *list;
	size_t n;

	make_key(s);
	fill(&one, "sec_1", "first");
	fill(&two, "sec_2", "first");
	assert_int_equal(store_secret_add(s, &one, 2), 0);
	assert_int_equal(store_secret_add(s, &two, 2), -EEXIST);
	(void)snprintf(two.name, sizeof(two.name), "second");
	assert_int_equal(store_secret_add(s, &two, 1), -EDQUOT);
	assert_int_equal(store_secret_add(s, &two, 2), 0);
	assert_int_equal(store_secret_get(s, test_key.id, "first", &got), 0);
	assert_string_equal(got.id, "sec_1");
	assert_int_equal(got.sealed_len, 3);
	assert_memory_equal(got.sealed, "a\0b", 3);
	assert_true(json_equal(got.metadata, one.metadata));
	store_secret_done(&got);
	assert_int_equal(store_secret_get(s, "key_other", "sec_1", &got), -ENOENT);
	assert_int_equal(store_secret_get(s, test_key.id, "sec_3", &got), -ENOENT);
	one.version = 3; /* somebody was faster */
	assert_int_equal(store_secret_update(s, &one), -ESTALE);
	one.version = 2;
	assert_int_equal(store_secret_update(s, &one), 0);
	assert_int_equal(store_secret_update(s, &one), -ESTALE);
	assert_int_equal(store_secret_list(s, test_key.id, NULL, 1, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(list[0].id, "sec_1");
	assert_int_equal(list[0].version, 2);
	store_secret_done(&list[0]);
	free(list);
	assert_int_equal(store_secret_list(s, test_key.id, "sec_1", 5, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(list[0].id, "sec_2");
	store_secret_done(&list[0]);
	free(list);
	assert_int_equal(store_secret_remove(s, "key_other", "sec_1"), -ENOENT);
	assert_int_equal(store_secret_remove(s, test_key.id, "sec_1"), 0);
	assert_int_equal(store_secret_remove(s, test_key.id, "sec_1"), -ENOENT);
}

/* --- texts ------------------------------------------------------------------------------------------ */

static void test_names(void **state)
{
	static const char *const good[][2] = {
		{ "a", "a" },
		{ "_", "_" },
		{ "OpenAI-Key_2", "openai-key_2" },
		{ "sec", "sec" },
	};
	static const char *const bad[] = { "",      "1",     "-a",  "a.b",     "a b",
					   "sec_x", "SEC_x", "a\n", "\xc3\xa4" };
	char name[STORE_SECRET_NAME_SIZE], text[70];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(secret_name_parse(good[i][0], strlen(good[i][0]), name), 0);
		assert_string_equal(name, good[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(secret_name_parse(bad[i], strlen(bad[i]), name), -EINVAL);
	memset(text, 'a', sizeof(text));
	assert_int_equal(secret_name_parse(text, 64, name), 0);
	assert_int_equal(secret_name_parse(text, 65, name), -EINVAL);
	assert_int_equal(secret_name_parse("a\0b", 3, name), -EINVAL);
}

static int look_up(void *arg, const char *name, char *ret, size_t size, struct fail *fail)
{
	(void)arg;
	if (strcmp(name, "token") == 0)
		return (size_t)snprintf(ret, size, "%s", "${secrets.other}$1") < size ? 0 :
											-ENOBUFS;
	if (strcmp(name, "empty") == 0)
		return 0;
	return fail_set(fail, ENOENT, "test", "there is no secret %s", name);
}

static void test_expand(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: an error */
		int err;
	} rows[] = {
		{ "", "", 0 },
		{ "plain", "plain", 0 },
		{ "$ {secrets.token} $x $", "$ {secrets.token} $x $", 0 },
		/* what a value has in it is not read again */
		{ "Bearer ${secrets.token}", "Bearer ${secrets.other}$1", 0 },
		{ "${e2b.secrets.TOKEN}", "${secrets.other}$1", 0 },
		{ "a${secrets.token}b${secrets.token}c", "a${secrets.other}$1b${secrets.other}$1c",
		  0 },
		{ "x${secrets.empty}y", "xy", 0 },
		{ "${secrets.nothing}", NULL, -ENOENT },
		{ "ok ${secrets.token} ${secrets.nothing}", NULL, -ENOENT },
		{ "${", NULL, -EINVAL },
		{ "${}", NULL, -EINVAL },
		{ "${secrets.}", NULL, -EINVAL },
		{ "${secrets.token", NULL, -EINVAL },
		{ "${secrets.a b}", NULL, -EINVAL },
		{ "${secrets.a${secrets.token}}", NULL, -EINVAL },
		{ "${Secrets.token}", NULL, -EINVAL },
		{ "${secretsXtoken}", NULL, -EINVAL },
		{ "${e2b.identity.tokens.aws}", NULL, -EINVAL },
		{ "${env.HOME}", NULL, -EINVAL },
		{ "0123456789012345678901234567890123456789012345678901234567890123", NULL,
		  -ENOBUFS },
		{ "01234567890123456789012345678901234567890123456789${secrets.token}", NULL,
		  -ENOBUFS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static const char zero[64];
		struct fail fail = { 0 };
		char got[64];
		int r = secret_expand_with(rows[i].text, look_up, NULL, got, sizeof(got), &fail);

		if (r != rows[i].err || (rows[i].want && strcmp(got, rows[i].want) != 0))
			fail_msg("'%s': %d, '%s'", rows[i].text, r, got);
		if (r < 0) /* nothing of a value is left */
			assert_memory_equal(got, zero, sizeof(got));
		assert_null(strstr(fail.msg, "$1"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_key_file),     STORE_TEST(test_key_half_made),
		STORE_TEST(test_seal),         STORE_TEST(test_another_key),
		STORE_TEST(test_store),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_expand),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
