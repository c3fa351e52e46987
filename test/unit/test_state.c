/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: who owns what, and what root does not let itself be talked into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/state.h"

#include <fcntl.h>
#include <sys/stat.h>

#define OLD_OWNER 60599 /* an id that nobody has */
#define FILE_NAME "db/glovebox.db"

static char top[64], dir[80];
static struct config config;
static struct fail fail;

static int start(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/glovebox-state.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(dir, sizeof(dir), "%s/state", top);
	config_init(&config);
	fail = (struct fail){ 0 };
	return config_set(&config, "server.state", dir, &fail);
}

static void path_of(const char *name, char ret[160])
{
	(void)snprintf(ret, 160, "%s/%s", dir, name);
}

static int end(void **state)
{
	static const char *const names[] = { FILE_NAME, "db/elsewhere", "db", "" };
	char path[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		path_of(names[i], path);
		(void)remove(path);
	}
	return rmdir(top);
}

static int open_state(enum state_how how, struct state *ret)
{
	*ret = (struct state)STATE_INIT;
	return state_open(&config, how, ret, &fail);
}

static void make_file(const char *name, uid_t owner)
{
	char path[160];
	int fd;

	path_of(name, path);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
	fd_close(fd);
}

static uid_t owner_of(const char *name)
{
	struct stat st;
	char path[160];

	path_of(name, path);
	assert_int_equal(lstat(path, &st), 0);
	return st.st_uid;
}

static void test_looking(void **state)
{
	_cleanup_(state_done) struct state s = STATE_INIT;

	(void)state;
	assert_int_equal(open_state(STATE_LOOK, &s), -ENOENT);
	assert_non_null(strstr(fail.msg, dir));
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(open_state(STATE_LOOK, &s), -ENOENT);
	assert_int_equal(rmdir(dir), 0); /* and it has made nothing in it */
}

static void test_making(void **state)
{
	_cleanup_(state_done) struct state s = STATE_INIT, again = STATE_INIT;
	mode_t before = umask(0777);
	struct stat st;
	int r;

	(void)state;
	r = open_state(STATE_MAKE, &s);
	(void)umask(before);
	assert_int_equal(r,
			 geteuid() == 0 ? 0 : -EACCES); /* without any rights, only root gets in */
	if (r < 0) {
		assert_int_equal(chmod(dir, 0711), 0);
		assert_int_equal(open_state(STATE_MAKE, &s), 0);
	}
	assert_int_equal(fstat(s.dir_fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(fstat(s.db_fd, &st), 0);
	assert_int_equal(st.st_uid, s.uid);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(s.uid == 0, false);
	assert_int_equal(open_state(STATE_LOOK, &again), 0);
	assert_int_equal(again.uid, s.uid);
}

static void test_refused(void **state)
{
	_cleanup_(state_done) struct state s = STATE_INIT;

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(open_state(STATE_MAKE, &s), -EPERM);
	assert_int_equal(chmod(dir, 0702), 0);
	assert_int_equal(open_state(STATE_MAKE, &s), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, OLD_OWNER, OLD_OWNER), 0);
		assert_int_equal(open_state(STATE_MAKE, &s), -EPERM);
		assert_int_equal(config_set(&config, "server.user", "root", &fail), 0);
		assert_int_equal(chown(dir, 0, 0), 0);
		assert_int_equal(open_state(STATE_MAKE, &s), -EPERM);
		assert_non_null(strstr(fail.msg, "root"));
	}
}

/* Only the warden moves a database to another user, with all its files. */
static void test_claiming(void **state)
{
	_cleanup_(state_done) struct state s = STATE_INIT, made = STATE_INIT, claimed = STATE_INIT;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(config_set(&config, "server.user", "nobody", &fail), 0);
	assert_int_equal(open_state(STATE_MAKE, &s), 0);
	make_file(FILE_NAME, OLD_OWNER);
	assert_int_equal(fchown(s.db_fd, OLD_OWNER, OLD_OWNER), 0);
	assert_int_equal(open_state(STATE_MAKE, &made), 0);
	assert_int_equal(made.uid, OLD_OWNER);
	assert_int_equal(open_state(STATE_CLAIM, &claimed), 0);
	assert_int_equal(claimed.uid, s.uid);
	assert_int_equal(owner_of("db"), s.uid);
	assert_int_equal(owner_of(FILE_NAME), s.uid);
}

/* The old owner, who may have been taken over, has put something there that is not his. */
static void test_planted(void **state)
{
	_cleanup_(state_done) struct state s = STATE_INIT, claimed = STATE_INIT;
	char path[160];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(config_set(&config, "server.user", "nobody", &fail), 0);
	assert_int_equal(open_state(STATE_MAKE, &s), 0);
	assert_int_equal(fchown(s.db_fd, OLD_OWNER, OLD_OWNER), 0);

	make_file(FILE_NAME, 0);
	assert_int_equal(open_state(STATE_CLAIM, &claimed), -EPERM);
	assert_int_equal(owner_of(FILE_NAME), 0);

	make_file("db/elsewhere", OLD_OWNER);
	path_of(FILE_NAME, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(open_state(STATE_CLAIM, &claimed), -ELOOP);
	assert_int_equal(owner_of("db/elsewhere"), OLD_OWNER);

	assert_int_equal(unlink(path), 0);
	assert_int_equal(linkat(s.db_fd, "elsewhere", s.db_fd, "glovebox.db", 0), 0);
	assert_int_equal(open_state(STATE_CLAIM, &claimed), -EPERM);
	assert_int_equal(owner_of("db"), OLD_OWNER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_looking, start, end),
		cmocka_unit_test_setup_teardown(test_making, start, end),
		cmocka_unit_test_setup_teardown(test_refused, start, end),
		cmocka_unit_test_setup_teardown(test_claiming, start, end),
		cmocka_unit_test_setup_teardown(test_planted, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
