/* SPDX-License-Identifier: Apache-2.0 */
/* The store, in a directory of its own for each test: what it keeps, and what it answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_lib.h"

#include <pthread.h>
#include <time.h>

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* --- keys --------------------------------------------------------------------------------------- */

static void test_key_form(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_key key, again;
	char text[STORE_KEY_TEXT_SIZE], other[STORE_KEY_TEXT_SIZE];
	struct fail fail;

	assert_int_equal(store_key_create(s, "me", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail), 0);
	assert_int_equal(strlen(text), 44);
	assert_memory_equal(text, "e2b_", 4);
	assert_int_equal(strspn(text + 4, "0123456789abcdef"), 40);
	assert_int_equal(store_key_create(s, "", STORE_SCOPE_READ, 0, &again, other, &fail), 0);
	assert_string_not_equal(text, other);
	assert_string_not_equal(key.id, again.id);
	assert_int_equal(store_key_check(s, text, 44, &again), 0);
	assert_string_equal(again.id, key.id);
	assert_string_equal(again.name, "me");
	assert_int_equal(again.scopes, STORE_SCOPE_SANDBOXES);
	assert_true(again.last_used_ms > 0);
	assert_int_equal(store_key_check(s, other, 44, &again), 0);
	assert_string_equal(again.name, "");
}

static void test_key_refused(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_key key, untouched = { .id = "untouched" };
	char text[STORE_KEY_TEXT_SIZE], longer[1000];
	struct fail fail;

	assert_int_equal(store_key_create(s, "me", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail), 0);
	memset(longer, 'a', sizeof(longer));
	memcpy(longer, text, 44);
	assert_int_equal(store_key_check(s, text, 43, &untouched), -EACCES);
	assert_int_equal(store_key_check(s, longer, 45, &untouched), -EACCES);
	assert_int_equal(store_key_check(s, longer, sizeof(longer), &untouched), -EACCES);
	assert_int_equal(store_key_check(s, "", 0, &untouched), -EACCES);
	assert_int_equal(store_key_check(s, key.id, strlen(key.id), &untouched), -EACCES);
	text[43] ^= 1;
	assert_int_equal(store_key_check(s, text, 44, &untouched), -EACCES);
	assert_string_equal(untouched.id, "untouched");
}

static void test_key_expires(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct timespec now;
	struct store_key key;
	char text[STORE_KEY_TEXT_SIZE];
	struct fail fail;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(store_key_create(s, "short", STORE_SCOPE_SANDBOXES,
					  now.tv_sec * 1000 + now.tv_nsec / 1000000 + 3000, &key,
					  text, &fail),
			 0);
	assert_int_equal(store_key_check(s, text, 44, &key), 0);
	assert_int_equal(store_key_count(s, &n), 0);
	assert_int_equal(n, 1);
	pause_ms(3050); /* the answer is still in memory, and no longer good */
	assert_int_equal(store_key_check(s, text, 44, &key), -EACCES);
	assert_int_equal(store_key_count(s, &n), 0);
	assert_int_equal(n, 0);
}

static void test_key_revoke(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_closep) struct store *other = open_store(*state);
	struct store_key key, second;
	char text[STORE_KEY_TEXT_SIZE], text2[STORE_KEY_TEXT_SIZE];
	struct fail fail;
	int i = 0;

	assert_int_equal(store_key_create(s, "a", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_create(s, "b", STORE_SCOPE_SANDBOXES, 0, &second, text2, &fail),
			 0);
	assert_int_equal(store_key_check(other, text, 44, &key), 0);
	assert_int_equal(store_key_revoke(s, "a", &fail), 0);
	assert_int_equal(store_key_check(s, text, 44, &key), -EACCES);
	while (store_key_check(other, text, 44, &key) == 0 && i++ < 30)
		pause_ms(100);
	assert_true(i < 30); /* another process learns of it, soon */
	assert_int_equal(store_key_check(other, text2, 44, &key), 0);
	assert_int_equal(store_key_revoke(s, "a", &fail), -ENOENT);
	assert_int_equal(store_key_revoke(s, "", &fail), -ENOENT);
	assert_int_equal(store_key_revoke(s, "nobody", &fail), -ENOENT);
	assert_int_equal(store_key_revoke(s, second.id, &fail), 0);
	assert_int_equal(store_key_check(s, text2, 44, &key), -EACCES);
	/* The name is free again. */
	assert_int_equal(store_key_create(s, "a", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail), 0);
}

static void test_key_rotate(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_key key, rotated;
	char text[STORE_KEY_TEXT_SIZE], fresh[STORE_KEY_TEXT_SIZE];
	struct fail fail;

	assert_int_equal(store_key_create(s, "me", STORE_SCOPE_ADMIN, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_check(s, text, 44, &key), 0);
	assert_int_equal(store_key_rotate(s, "me", &rotated, fresh, &fail), 0);
	assert_string_equal(rotated.id, key.id);
	assert_string_equal(rotated.name, "me");
	assert_int_equal(rotated.scopes, STORE_SCOPE_ADMIN);
	assert_int_equal(store_key_check(s, text, 44, &key), -EACCES);
	assert_int_equal(store_key_check(s, fresh, 44, &key), 0);
	assert_string_equal(rotated.id, key.id);
	assert_int_equal(store_key_rotate(s, "nobody", &rotated, fresh, &fail), -ENOENT);
	assert_int_equal(store_key_rotate(s, "", &rotated, fresh, &fail), -ENOENT);
}

static void test_key_names(void **state)
{
	static const char *const bad[] = { "a b", "-x", "key_1", "a\nb", "ä", "a/b", "%", "'" };
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(freep) struct store_key *keys = NULL;
	char text[STORE_KEY_TEXT_SIZE], name[70];
	struct store_key key;
	struct fail fail;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(store_key_create(s, bad[i], 1, 0, &key, text, &fail), -EINVAL);
	memset(name, 'n', sizeof(name));
	name[64] = '\0';
	assert_int_equal(store_key_create(s, name, 1, 0, &key, text, &fail), -EINVAL);
	name[63] = '\0';
	assert_int_equal(store_key_create(s, name, 1, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_create(s, name, 1, 0, &key, text, &fail), -EEXIST);
	assert_int_equal(store_key_create(s, "", 1, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_create(s, "", 1, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_list(s, &keys, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(keys[0].name, name);
}

/* Neither the database nor its log has a key's text in it. */
static void test_key_not_kept(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	struct fail fail;

	assert_int_equal(store_key_create(s, "findme", 1, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_check(s, text, 44, &key), 0);
	assert_true(files_contain(*state, "findme"));
	assert_false(files_contain(*state, text));
	assert_false(files_contain(*state, text + 4));
}

/* --- sandboxes ---------------------------------------------------------------------------------- */

static void test_sandbox_whole(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 }, got = { 0 };

	make_key(s);
	make_sandbox(&b, "i1");
	assert_int_equal(store_sandbox_add(s, &b), 0);
	assert_int_equal(store_sandbox_add(s, &b), -EEXIST);
	assert_int_equal(store_sandbox_get(s, "i1", &got), 0);
	assert_string_equal(got.key_id, b.key_id);
	assert_string_equal(got.template_id, "base");
	assert_null(got.alias);
	assert_true(json_equal(got.metadata, b.metadata));
	assert_true(json_equal(got.env, b.env));
	assert_true(json_equal(got.config, b.config));
	assert_string_equal(got.envd_token, "token-of-i1");
	assert_null(got.traffic_token);
	assert_int_equal(got.state, STORE_RUNNING);
	assert_int_equal(got.started_ms, 1000);
	assert_int_equal(got.end_ms, 2000);
	assert_null(got.detail);
	store_sandbox_done(&got);
	assert_int_equal(store_sandbox_get(s, "i2", &got), -ENOENT);
}

static void test_sandbox_update(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 }, got = { 0 };

	make_key(s);
	make_sandbox(&b, "i1");
	assert_int_equal(store_sandbox_update(s, &b), -ENOENT);
	assert_int_equal(store_sandbox_add(s, &b), 0);
	b.state = STORE_PAUSED;
	b.end_ms = 5000;
	assert_int_equal(json_object_set_new(b.config, "more", json_true()), 0);
	assert_int_equal(store_sandbox_update(s, &b), 0);
	assert_int_equal(store_sandbox_get(s, "i1", &got), 0);
	assert_int_equal(got.state, STORE_PAUSED);
	assert_true(json_is_true(json_object_get(got.config, "more")));
	assert_string_equal(got.envd_token, "token-of-i1");
	store_sandbox_done(&got);
	b.state = STORE_ENDED;
	b.reason = 2;
	b.detail = strdup("its time was over");
	assert_int_equal(store_sandbox_update(s, &b), 0);
	assert_int_equal(store_sandbox_get(s, "i1", &got), 0);
	assert_int_equal(got.reason, 2);
	assert_string_equal(got.detail, "its time was over");
	assert_null(got.envd_token); /* secrets end with it */
	assert_null(got.env);
	store_closep(&s); /* writes everything into the one file */
	assert_true(files_contain(*state, "its time was over"));
	assert_false(files_contain(*state, "token-of-i1"));
}

static void test_sandbox_foreign_key(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };

	make_sandbox(&b, "i1");
	(void)snprintf(b.key_id, sizeof(b.key_id), "key_of_nobody");
	assert_int_equal(store_sandbox_add(s, &b), -EINVAL);
	assert_int_equal(store_sandbox_get(s, "i1", &b), -ENOENT);
}

static int count_live(struct store_sandbox *b, void *arg)
{
	size_t *n = arg;

	assert_int_not_equal(b->state, STORE_ENDED);
	return ++*n == 3 ? -ECANCELED : 0;
}

static void test_sandbox_lists(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_sandbox got = { 0 };
	size_t n = 0;

	make_key(s);
	for (int i = 0; i < 20; i++)
		add_sandbox(s, i, i < 2 ? STORE_RUNNING : STORE_ENDED);
	assert_int_equal(store_sandbox_each_live(s, count_live, &n), 0);
	assert_int_equal(n, 2);
	add_sandbox(s, 20, STORE_PAUSED);
	add_sandbox(s, 21, STORE_PAUSED);
	n = 0;
	assert_int_equal(store_sandbox_each_live(s, count_live, &n), -ECANCELED);
	assert_int_equal(n, 3);
	/* The newest by their end stay, and all that live. */
	assert_int_equal(store_sandbox_prune(s, 5), 0);
	for (int i = 0; i < 22; i++) {
		char id[STORE_ID_SIZE];
		bool stays = i < 2 || i >= 15;

		(void)snprintf(id, sizeof(id), "i%d", i);
		assert_int_equal(store_sandbox_get(s, id, &got), stays ? 0 : -ENOENT);
		store_sandbox_done(&got);
	}
	assert_int_equal(store_sandbox_prune(s, 0), 0);
	n = 0;
	assert_int_equal(store_sandbox_each_live(s, count_live, &n), -ECANCELED);
}

/* --- snapshots, events, webhooks ------------------------------------------------------------------ */

static void add_snapshot(struct store *s, const char *id, const char *name, const char *layer)
{
	_cleanup_(store_snapshot_done) struct store_snapshot n = { .created_ms = 1 };

	(void)snprintf(n.id, sizeof(n.id), "%s", id);
	(void)snprintf(n.key_id, sizeof(n.key_id), "%s", test_key.id);
	(void)snprintf(n.sandbox_id, sizeof(n.sandbox_id), "i1");
	n.name = name ? strdup(name) : NULL;
	n.config = json_pack("{s[s]}", "layers", layer);
	assert_int_equal(store_snapshot_add(s, &n, 100), 0);
}

static void test_snapshots(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_snapshot n = { 0 }, *list = NULL;
	size_t count;

	make_key(s);
	add_snapshot(s, "s1", "name", "low");
	add_snapshot(s, "s2", "name", "low");
	add_snapshot(s, "s3", NULL, "other");
	assert_int_equal(store_snapshot_get(s, test_key.id, "name", &n), 0);
	assert_string_equal(n.id, "s2");
	store_snapshot_done(&n);
	assert_int_equal(store_snapshot_get(s, test_key.id, "s1", &n), 0);
	store_snapshot_done(&n);
	assert_int_equal(store_snapshot_get(s, "key_other", "s1", &n), -ENOENT);
	assert_int_equal(store_snapshot_get(s, NULL, "s1", &n), 0);
	store_snapshot_done(&n);
	assert_int_equal(store_snapshot_list(s, test_key.id, NULL, NULL, "s3", 1, &list, &count),
			 0);
	assert_int_equal(count, 1);
	assert_string_equal(list[0].id, "s2");
	store_snapshot_done(&list[0]);
	free(list);
	assert_int_equal(store_snapshot_list(s, test_key.id, "i2", NULL, NULL, 9, &list, &count),
			 0);
	assert_int_equal(count, 0);
	free(list);
	assert_int_equal(store_layer_users(s, "low", &count), 0);
	assert_int_equal(count, 2);
	add_sandbox(s, 1, STORE_RUNNING); /* stands on "low" too */
	add_sandbox(s, 2, STORE_ENDED);
	assert_int_equal(store_layer_users(s, "low", &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(store_layer_users(s, "s3", &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(store_snapshot_remove(s, "key_other", "s1"), -ENOENT);
	assert_int_equal(store_snapshot_remove(s, test_key.id, "s1"), 0);
	assert_int_equal(store_snapshot_remove(s, test_key.id, "s1"), -ENOENT);
}

static void add_event(struct store *s, int number, const char *sandbox, const char *type)
{
	_cleanup_(store_event_done) struct store_event e = { .at_ms = number };

	(void)snprintf(e.id, sizeof(e.id), "e%d", number);
	(void)snprintf(e.key_id, sizeof(e.key_id), number % 2 ? "key_odd" : "key_even");
	(void)snprintf(e.sandbox_id, sizeof(e.sandbox_id), "%s", sandbox);
	(void)snprintf(e.type, sizeof(e.type), "%s", type);
	e.data = json_pack("{si}", "number", number);
	assert_int_equal(store_event_add(s, &e), 0);
}

/* The numbers of the events that a list has, as digits. */
static void check_events(struct store *s, const char *key, const char *sandbox, const char *type,
			 bool ascending, size_t offset, size_t limit, const char *want)
{
	json_t *types = type ? json_pack("[s, s]", "none", type) : NULL;
	struct store_event *list = NULL;
	char got[32] = "";
	size_t n;

	assert_int_equal(
		store_event_list(s, key, sandbox, types, ascending, offset, limit, &list, &n), 0);
	json_decref(types);
	for (size_t i = 0; i < n; i++) {
		got[i] = (char)('0' + json_integer_value(json_object_get(list[i].data, "number")));
		store_event_done(&list[i]);
	}
	free(list);
	assert_string_equal(got, want);
}

static void test_events(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);

	for (int i = 0; i < 10; i++)
		add_event(s, i, i < 5 ? "i1" : "i2", i % 3 ? "created" : "killed");
	check_events(s, NULL, NULL, NULL, true, 0, 100, "0123456789");
	check_events(s, NULL, NULL, NULL, false, 2, 3, "765");
	check_events(s, NULL, NULL, "killed", false, 1, 2, "63");
	check_events(s, "key_odd", NULL, NULL, true, 0, 100, "13579");
	check_events(s, "key_odd", "i2", NULL, false, 0, 100, "975");
	check_events(s, "key_odd", "i2", "killed", true, 0, 100, "9");
	check_events(s, NULL, "i1", "killed", true, 0, 100, "03");
	check_events(s, "key_none", NULL, NULL, true, 0, 100, "");
	assert_int_equal(store_event_prune(s, 4), 0);
	check_events(s, NULL, NULL, NULL, true, 0, 100, "6789");
	assert_int_equal(store_event_prune(s, 100), 0);
	check_events(s, NULL, NULL, NULL, true, 0, 100, "6789");
	assert_int_equal(store_event_prune(s, 0), 0);
	check_events(s, NULL, NULL, NULL, true, 0, 100, "");
}

static void test_webhooks(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_webhook_done) struct store_webhook w = { .id = "w1", .enabled = true };
	struct store_webhook got = { 0 }, *list = NULL;
	size_t n;

	make_key(s);
	(void)snprintf(w.key_id, sizeof(w.key_id), "%s", test_key.id);
	w.name = strdup("hook");
	w.url = strdup("http://127.0.0.1/");
	w.secret = strdup("secret");
	w.types = json_pack("[s]", "created");
	assert_int_equal(store_webhook_add(s, &w, 0), -EDQUOT);
	assert_int_equal(store_webhook_add(s, &w, 1), 0);
	assert_int_equal(store_webhook_add(s, &w, 1), -EDQUOT);
	assert_int_equal(store_webhook_add(s, &w, 2), -EEXIST);
	w.enabled = false;
	assert_int_equal(store_webhook_update(s, &w), 0);
	assert_int_equal(store_webhook_get(s, test_key.id, "w1", &got), 0);
	assert_false(got.enabled);
	assert_string_equal(got.secret, "secret");
	assert_true(json_equal(got.types, w.types));
	store_webhook_done(&got);
	assert_int_equal(store_webhook_get(s, "key_other", "w1", &got), -ENOENT);
	assert_int_equal(store_webhook_list(s, test_key.id, &list, &n), 0);
	assert_int_equal(n, 1);
	store_webhook_done(&list[0]);
	free(list);
	assert_int_equal(store_webhook_remove(s, "key_other", "w1"), -ENOENT);
	assert_int_equal(store_webhook_remove(s, test_key.id, "w1"), 0);
	assert_int_equal(store_webhook_update(s, &w), -ENOENT);
}

/* --- many at once ------------------------------------------------------------------------------- */

#define THREADS 8
#define EACH 100

struct worker {
	pthread_t thread;
	struct store *store;
	const char *text;
	int number;
	int failures;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < EACH; i++) {
		_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
		struct store_key key;
		char id[STORE_ID_SIZE];

		(void)snprintf(id, sizeof(id), "i%dx%d", w->number, i);
		make_sandbox(&b, id);
		w->failures += store_sandbox_add(w->store, &b) != 0;
		w->failures += store_key_check(w->store, w->text, 44, &key) != 0;
		b.state = STORE_ENDED;
		w->failures += store_sandbox_update(w->store, &b) != 0;
		w->failures += i % 10 == 0 && store_sandbox_prune(w->store, 100000) != 0;
	}
	return NULL;
}

static void test_threads(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct worker workers[THREADS];
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	struct fail fail;

	make_key(s);
	assert_int_equal(store_key_create(s, "t", 1, 0, &key, text, &fail), 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .store = s, .text = text, .number = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
	assert_int_equal(count_rows(s), THREADS * EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_key_form),       STORE_TEST(test_key_refused),
		STORE_TEST(test_key_expires),    STORE_TEST(test_key_revoke),
		STORE_TEST(test_key_rotate),     STORE_TEST(test_key_names),
		STORE_TEST(test_key_not_kept),   STORE_TEST(test_sandbox_whole),
		STORE_TEST(test_sandbox_update), STORE_TEST(test_sandbox_foreign_key),
		STORE_TEST(test_sandbox_lists),  STORE_TEST(test_snapshots),
		STORE_TEST(test_events),         STORE_TEST(test_webhooks),
		STORE_TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
