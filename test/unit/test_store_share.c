/* SPDX-License-Identifier: Apache-2.0 */
/* AP-06: what one key does with the store is not at the cost of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/schema.h"
#include "store/store_priv.h"
#include "store_lib.h"

/* --- the lock ------------------------------------------------------------------------------------- */

static struct store *watched;
static int dumped, parsed;

static void check_unlocked(void)
{
	if (!watched)
		return;
	assert_int_equal(pthread_mutex_trylock(&watched->lock), 0);
	(void)pthread_mutex_unlock(&watched->lock);
}

/* These in the place of the library's, where the store calls them (the linker's --wrap). */
char *__real_json_dumps(const json_t *json, size_t flags);
char *__wrap_json_dumps(const json_t *json, size_t flags);
json_t *__real_json_loadb(const char *text, size_t len, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags, json_error_t *error);

char *__wrap_json_dumps(const json_t *json, size_t flags)
{
	check_unlocked();
	dumped++;
	return __real_json_dumps(json, flags);
}

json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags, json_error_t *error)
{
	check_unlocked();
	parsed++;
	return __real_json_loadb(text, len, flags, error);
}

static void add_event(struct store *s, const char *key_id, int number)
{
	_cleanup_(store_event_done) struct store_event e = { .at_ms = number };

	(void)snprintf(e.id, sizeof(e.id), "e%d", number);
	(void)snprintf(e.key_id, sizeof(e.key_id), "%s", key_id);
	(void)snprintf(e.sandbox_id, sizeof(e.sandbox_id), "i1");
	(void)snprintf(e.type, sizeof(e.type), "updated");
	e.data = json_pack("{si}", "number", number);
	assert_int_equal(store_event_add(s, &e), 0);
}

static size_t count_events(struct store *s, const char *key_id, int64_t *ret_oldest)
{
	struct store_event *list = NULL;
	size_t n;

	assert_int_equal(store_event_list(s, key_id, NULL, NULL, true, 0, 10000, &list, &n), 0);
	*ret_oldest = n ? list[0].at_ms : -1;
	for (size_t i = 0; i < n; i++)
		store_event_done(&list[i]);
	free(list);
	return n;
}

static void use_secret(struct store *s)
{
	_cleanup_(store_secret_done) struct store_secret secret = { .id = "x1",
								    .name = "n",
								    .version = 1 },
							 got = { 0 };
	struct store_secret *list = NULL;
	size_t n;

	(void)snprintf(secret.key_id, sizeof(secret.key_id), "%s", test_key.id);
	secret.metadata = json_object();
	secret.sealed = (unsigned char *)strdup("sealed");
	secret.sealed_len = 6;
	assert_int_equal(store_secret_add(s, &secret, 1), 0);
	secret.version = 2;
	assert_int_equal(store_secret_update(s, &secret), 0);
	assert_int_equal(store_secret_get(s, test_key.id, "n", &got), 0);
	assert_true(json_is_object(got.metadata));
	assert_int_equal(store_secret_list(s, test_key.id, NULL, 9, &list, &n), 0);
	assert_true(n == 1 && json_is_object(list[0].metadata));
	store_secret_done(&list[0]);
	free(list);
}

static int see_live(struct store_sandbox *b, void *arg)
{
	(void)arg;
	return json_is_object(b->config) && json_is_object(b->env) ? 0 : -EUCLEAN;
}

/* Clients decide how long it takes to read and write JSON; nobody waits for that. */
static void test_json_without_lock(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 }, got = { 0 };
	int64_t oldest;

	make_key(s);
	make_sandbox(&b, "i1");
	watched = s;
	assert_int_equal(store_sandbox_add(s, &b), 0);
	assert_int_equal(store_sandbox_update(s, &b), 0);
	assert_int_equal(store_sandbox_get(s, "i1", &got), 0);
	assert_true(json_equal(got.metadata, b.metadata));
	assert_int_equal(store_sandbox_each_live(s, see_live, NULL), 0);
	add_event(s, "key_a", 1);
	assert_int_equal(count_events(s, "key_a", &oldest), 1);
	use_secret(s);
	watched = NULL;
	assert_true(dumped >= 7 && parsed >= 8);
}

/* Who has asked a moment ago does not wait for the database. */
static void test_known_key_without_lock(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	struct fail fail;

	assert_int_equal(store_key_create(s, "me", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail), 0);
	assert_int_equal(store_key_check(s, text, 44, &key), 0);
	(void)pthread_mutex_lock(&s->lock);
	(void)alarm(20); /* otherwise for ever */
	assert_int_equal(store_key_check(s, text, 44, &key), 0);
	(void)alarm(0);
	(void)pthread_mutex_unlock(&s->lock);
}

/* --- what is kept --------------------------------------------------------------------------------- */

/* The limit is for all; those who have little keep it. */
static void test_events_fair(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	int64_t oldest;

	for (int i = 0; i < 10; i++)
		add_event(s, "key_quiet", i);
	for (int i = 10; i < 1010; i++)
		add_event(s, "key_loud", i);
	for (int i = 1010; i < 1310; i++)
		add_event(s, "key_louder", i);
	assert_int_equal(store_event_prune(s, 1310), 0);
	assert_int_equal(count_events(s, NULL, &oldest), 1310);
	assert_int_equal(store_event_prune(s, 410), 0);
	assert_int_equal(count_events(s, "key_quiet", &oldest), 10);
	assert_int_equal(count_events(s, "key_loud", &oldest), 200);
	assert_int_equal(oldest, 810);
	assert_int_equal(count_events(s, "key_louder", &oldest), 200);
	assert_int_equal(oldest, 1110);
	assert_int_equal(store_event_prune(s, 0), 0);
	assert_int_equal(count_events(s, NULL, &oldest), 0);
}

/* The one statement, of those that were made, that has this in it. */
static sqlite3_stmt *statement(struct store *s, const char *part)
{
	sqlite3_stmt *found = NULL;

	for (size_t i = 0; s->statements[i].sql; i++)
		if (strstr(s->statements[i].sql, part)) {
			assert_null(found);
			found = s->statements[i].stmt;
		}
	assert_non_null(found);
	return found;
}

/* However many events are kept, finding out whether there are too many does not go through them. */
static void test_events_counted(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	const int events = 1000;

	for (int i = 0; i < events; i++)
		add_event(s, i % 2 ? "key_a" : "key_b", i);
	assert_int_equal(store_event_prune(s, 999), 0);
	assert_true(sqlite3_stmt_status(statement(s, "FROM event_counts"),
					SQLITE_STMTSTATUS_VM_STEP, 0) < events);
}

static void test_sandboxes_fair(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_sandbox got = { 0 };

	make_key(s);
	for (int i = 0; i < 5; i++)
		add_sandbox(s, i, STORE_ENDED);
	make_key(s);
	for (int i = 5; i < 305; i++)
		add_sandbox(s, i, STORE_ENDED);
	add_sandbox(s, 305, STORE_PAUSED);
	assert_int_equal(store_sandbox_prune(s, 10), 0);
	assert_int_equal(count_rows(s), 11);
	for (int i = 0; i < 306; i++) {
		char id[STORE_ID_SIZE];
		bool stays = i < 5 || i >= 300;

		(void)snprintf(id, sizeof(id), "i%d", i);
		assert_int_equal(store_sandbox_get(s, id, &got), stays ? 0 : -ENOENT);
		store_sandbox_done(&got);
	}
}

/* --- snapshots and layers ------------------------------------------------------------------------- */

static int add_snapshot(struct store *s, const char *id, const char *name, size_t max)
{
	_cleanup_(store_snapshot_done) struct store_snapshot n = { .sandbox_id = "i1" };

	(void)snprintf(n.id, sizeof(n.id), "%s", id);
	(void)snprintf(n.key_id, sizeof(n.key_id), "%s", test_key.id);
	n.name = name ? strdup(name) : NULL;
	n.config = json_pack("{s[s, s]}", "layers", "low", id);
	return store_snapshot_add(s, &n, max);
}

/* A new one with a name takes an older one's place, which goes a moment later. */
static void test_snapshots_share(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);

	make_key(s);
	assert_int_equal(add_snapshot(s, "l1", "name", 2), 0);
	assert_int_equal(store_snapshot_fits(s, test_key.id, NULL, 2), 0);
	assert_int_equal(add_snapshot(s, "l2", NULL, 2), 0);
	assert_int_equal(store_snapshot_fits(s, test_key.id, NULL, 2), -EDQUOT);
	assert_int_equal(add_snapshot(s, "l3", NULL, 2), -EDQUOT);
	assert_int_equal(add_snapshot(s, "l3", "other", 2), -EDQUOT);
	assert_int_equal(store_snapshot_fits(s, test_key.id, "name", 2), 0);
	assert_int_equal(add_snapshot(s, "l3", "name", 2), 0);
	assert_int_equal(store_snapshot_remove(s, test_key.id, "l1"), 0);
	assert_int_equal(add_snapshot(s, "l4", NULL, 2), -EDQUOT);
	make_key(s);
	assert_int_equal(add_snapshot(s, "l4", "name", 2), 0);
}

static size_t users(struct store *s, const char *layer)
{
	size_t n;

	assert_int_equal(store_layer_users(s, layer, &n), 0);
	return n;
}

static void set_layers(struct store *s, struct store_sandbox *b, json_t *layers)
{
	assert_int_equal(json_object_set_new(b->config, "layers", layers), 0);
	assert_int_equal(store_sandbox_update(s, b), 0);
}

/* Whoever stands on a layer is known through all that happens to him. */
static void test_layer_users(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };

	make_key(s);
	make_sandbox(&b, "i1");
	assert_int_equal(store_sandbox_add(s, &b), 0);
	assert_int_equal(users(s, "low"), 1);
	set_layers(s, &b, json_pack("[s, s, s]", "low", "high", "low"));
	assert_true(users(s, "low") == 1 && users(s, "high") == 1);
	b.state = STORE_PAUSED;
	set_layers(s, &b, json_pack("[s]", "high"));
	assert_true(users(s, "low") == 0 && users(s, "high") == 1);
	b.state = STORE_ENDED;
	assert_int_equal(store_sandbox_update(s, &b), 0);
	assert_int_equal(users(s, "high"), 0);
	set_layers(s, &b, json_pack("[s]", "low"));
	assert_int_equal(users(s, "low"), 0);
	assert_int_equal(add_snapshot(s, "l1", NULL, 9), 0);
	assert_true(users(s, "low") == 1 && users(s, "l1") == 1);
	assert_int_equal(store_snapshot_remove(s, NULL, "l1"), 0);
	assert_true(users(s, "low") == 0 && users(s, "l1") == 0);
}

static void no_scan(struct store *s, const char *part)
{
	assert_int_equal(
		sqlite3_stmt_status(statement(s, part), SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
}

/* However many snapshots others have: nothing here goes through all of them. */
static void test_no_scans(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct store_snapshot n = { 0 }, *list = NULL;
	size_t count;

	make_key(s);
	assert_int_equal(add_snapshot(s, "l1", "name", 9), 0);
	assert_int_equal(add_snapshot(s, "l2", "name", 9), 0);
	assert_int_equal(store_snapshot_get(s, test_key.id, "name", &n), 0);
	assert_string_equal(n.id, "l2");
	store_snapshot_done(&n);
	assert_int_equal(store_snapshot_list(s, test_key.id, NULL, NULL, "l2", 9, &list, &count),
			 0);
	assert_true(count == 1 && strcmp(list[0].id, "l1") == 0);
	store_snapshot_done(&list[0]);
	free(list);
	assert_int_equal(users(s, "low"), 2);
	no_scan(s, "INSERT INTO snapshots");
	no_scan(s, "max(seq)");
	no_scan(s, "ORDER BY seq DESC");
	no_scan(s, "FROM layer_users");
}

static void run_sql(sqlite3 *db, const char *sql)
{
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* A database as an earlier glovebox has left it. */
static void make_old(const char *dir, int version)
{
	sqlite3 *db = NULL;
	char text[256];

	(void)snprintf(text, sizeof(text), "%s/" STORE_FILE, dir);
	assert_int_equal(sqlite3_open(text, &db), SQLITE_OK);
	for (int i = 0; i < version; i++)
		run_sql(db, schema_versions[i]);
	(void)snprintf(text, sizeof(text), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		       SCHEMA_APPLICATION, version);
	run_sql(db, text);
	run_sql(db, "INSERT INTO keys VALUES ('key_a', '', 1, x'00', 1, 1, 0, 0, 0);"
		    "INSERT INTO sandboxes VALUES ('i1', 'key_a', 'base', NULL, '{}', '{}',"
		    " '{\"layers\":[\"low\",\"high\"]}', NULL, NULL, 2, 1, 2, 0, NULL);"
		    "INSERT INTO sandboxes VALUES ('i2', 'key_a', 'base', NULL, '{}', '{}',"
		    " '{\"layers\":[\"low\"]}', NULL, NULL, 3, 1, 2, 0, NULL);"
		    "INSERT INTO sandboxes VALUES ('i3', 'key_a', 'base', NULL, '{}', '{}',"
		    " NULL, NULL, NULL, 1, 1, 2, 0, NULL);"
		    "INSERT INTO snapshots VALUES (1, 'l1', 'key_a', 'i1', 'name',"
		    " '{\"layers\":[\"low\",\"l1\"]}', 1);"
		    "INSERT INTO events VALUES (1, 'e1', 'key_a', 'i1', 'created', '{}', 1);");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_upgrade(void **state)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
	struct store_snapshot n = { 0 };
	int64_t oldest;

	make_old(*state, 2);
	s = open_store(*state);
	assert_true(users(s, "low") == 2 && users(s, "high") == 1 && users(s, "l1") == 1);
	assert_int_equal(store_snapshot_get(s, "key_a", "name", &n), 0);
	store_snapshot_done(&n);
	assert_int_equal(count_events(s, "key_a", &oldest), 1);
	assert_int_equal(store_sandbox_get(s, "i1", &b), 0);
	b.state = STORE_ENDED;
	assert_int_equal(store_sandbox_update(s, &b), 0);
	assert_true(users(s, "low") == 1 && users(s, "high") == 0);
	assert_int_equal(store_sandbox_prune(s, 0), 0);
	assert_int_equal(count_rows(s), 1);
	assert_int_equal(store_event_prune(s, 0), 0);
	assert_int_equal(count_events(s, "key_a", &oldest), 0);
}

/* `glovebox key` of this version brings the database to our form while the server of an earlier one still runs, which
 * knows nothing of the lists of layers. */
static void test_old_server(void **state)
{
	_cleanup_(store_closep) struct store *s = NULL;

	make_old(*state, 2);
	s = open_store(*state);
	run_sql(s->db, "UPDATE sandboxes SET config = '{\"layers\":[\"higher\"]}' WHERE id = 'i1';"
		       "UPDATE sandboxes SET config = '{\"layers\":[\"ended\"]}' WHERE id = 'i2';"
		       "UPDATE sandboxes SET state = 2, config = '{\"layers\":[\"paused\"]}'"
		       " WHERE id = 'i3';"
		       "INSERT INTO snapshots (id, key_id, sandbox_id, config, created_ms)"
		       " VALUES ('l2', 'key_a', 'i1', '{\"layers\":[\"under\",\"l2\"]}', 1);");
	store_closep(&s);
	s = open_store(*state);
	assert_int_equal(store_layers_renew(s), 0);
	assert_true(users(s, "paused") == 1 && users(s, "higher") == 1);
	assert_true(users(s, "under") == 1 && users(s, "l2") == 1);
	assert_true(users(s, "low") == 1 && users(s, "l1") == 1);
	assert_true(users(s, "high") == 0 && users(s, "ended") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_json_without_lock), STORE_TEST(test_known_key_without_lock),
		STORE_TEST(test_events_fair),       STORE_TEST(test_events_counted),
		STORE_TEST(test_sandboxes_fair),    STORE_TEST(test_snapshots_share),
		STORE_TEST(test_layer_users),       STORE_TEST(test_no_scans),
		STORE_TEST(test_upgrade),           STORE_TEST(test_old_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
