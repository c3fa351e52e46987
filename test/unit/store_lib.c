/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/dir.h"
#include "store/store_priv.h"
#include "store_lib.h"

#include <fcntl.h>
#include <sys/stat.h>

struct store_key test_key;

int store_test_begin(void **state)
{
	char *dir = strdup("/tmp/glovebox-store.XXXXXX");

	*state = dir;
	return dir && mkdtemp(dir) ? 0 : -1;
}

static void remove_files(const char *path)
{
	_cleanup_(dir_closep) DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (unlinkat(dirfd(d), e->d_name, 0) < 0)
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
}

int store_test_end(void **state)
{
	_cleanup_(freep) char *dir = *state;

	remove_files(dir);
	return rmdir(dir);
}

int open_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct store *open_store(const char *dir)
{
	_cleanup_(fd_closep) int fd = open_dir(dir);
	struct store *s = NULL;
	struct fail fail = { 0 };

	if (store_open(fd, &s, &fail) < 0)
		fail_msg("store_open: %s", fail.msg);
	return s;
}

void make_key(struct store *s)
{
	char text[STORE_KEY_TEXT_SIZE];
	struct fail fail;

	assert_int_equal(store_key_create(s, "", STORE_SCOPE_SANDBOXES, 0, &test_key, text, &fail),
			 0);
}

void make_sandbox(struct store_sandbox *b, const char *id)
{
	char token[64];

	*b = (struct store_sandbox){ .state = STORE_RUNNING, .started_ms = 1000, .end_ms = 2000 };
	(void)snprintf(b->id, sizeof(b->id), "%s", id);
	(void)snprintf(b->key_id, sizeof(b->key_id), "%s", test_key.id);
	(void)snprintf(token, sizeof(token), "token-of-%s", id);
	b->template_id = strdup("base");
	b->metadata = json_pack("{ss}", "who", "'; DROP TABLE sandboxes; -- ü");
	b->env = json_pack("{ss}", "SECRET", "x");
	b->config = json_pack("{s[s] si}", "layers", "low", "cpus", 2);
	b->envd_token = strdup(token);
}

void add_sandbox(struct store *s, int i, enum store_state state)
{
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
	char id[STORE_ID_SIZE];

	(void)snprintf(id, sizeof(id), "i%d", i);
	make_sandbox(&b, id);
	b.state = state;
	b.end_ms = i;
	assert_int_equal(store_sandbox_add(s, &b), 0);
}

size_t count_rows(struct store *s)
{
	sqlite3_stmt *stmt = NULL;
	size_t n;

	assert_int_equal(sqlite3_prepare_v2(s->db, "SELECT count(*) FROM sandboxes", -1, &stmt,
					    NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = (size_t)sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return n;
}

static bool file_contains(const char *dir, const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT((size_t)64 << 20);
	_cleanup_(fd_closep) int dir_fd = open_dir(dir);
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	return memmem(b.data, b.len, text, strlen(text)) != NULL;
}

bool files_contain(const char *dir, const char *text)
{
	_cleanup_(dir_closep) DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	assert_non_null(d);
	while (!found && (e = readdir(d)))
		found = e->d_name[0] != '.' && file_contains(dir, e->d_name, text);
	return found;
}
