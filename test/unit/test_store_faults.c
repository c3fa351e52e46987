/* SPDX-License-Identifier: Apache-2.0 */
/* The store when things go wrong: killed processes, damaged files, full disks, wrong owners (CR-04, CR-05). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dir.h"
#include "store_lib.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define NOBODY 65534

/* Runs f in a child and returns its exit status, or 128 and the signal. */
static int in_child(int (*f)(const char *dir, int arg), const char *dir, int arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(f(dir, arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* store_open() in a child: the errno. */
static int try_open(const char *dir, int arg)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(fd_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fail fail = { 0 };
	int r;

	if (arg && setresuid((uid_t)arg, (uid_t)arg, (uid_t)arg) < 0)
		return 255;
	r = store_open(fd, &s, &fail);
	if (r < 0 && !fail.msg[0])
		return 254;
	return -r;
}

/* --- processes ---------------------------------------------------------------------------------- */

#define PROCESSES 4
#define ROWS 100

static int add_rows(const char *dir, int number)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(fd_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fail fail;

	if (store_open(fd, &s, &fail) < 0)
		return 1;
	for (int i = 0; i < ROWS; i++) {
		_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
		char id[STORE_ID_SIZE];

		(void)snprintf(id, sizeof(id), "i%dx%d", number, i);
		make_sandbox(&b, id);
		if (store_sandbox_add(s, &b) < 0 || store_sandbox_update(s, &b) < 0)
			return 2;
	}
	return 0;
}

static int open_first(const char *dir, int arg)
{
	(void)arg;
	return try_open(dir, 0);
}

/* All make the database at once, then all write. */
static void test_processes(void **state)
{
	pid_t pids[PROCESSES];
	int status;

	for (int round = 0; round < 2; round++) {
		if (round == 1) {
			_cleanup_(store_closep) struct store *s = open_store(*state);

			make_key(s);
		}
		for (int i = 0; i < PROCESSES; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0)
				_exit(round ? add_rows(*state, i) : open_first(*state, i));
		}
		for (int i = 0; i < PROCESSES; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0);
		}
	}
	_cleanup_(store_closep) struct store *s = open_store(*state);

	assert_int_equal(count_rows(s), PROCESSES * ROWS);
}

/* Adds rows for ever and says the number of each that was accepted. */
static _noreturn_ void add_and_tell(const char *dir, int first, int to)
{
	struct store *s = open_store(dir);

	for (int i = first;; i++) {
		add_sandbox(s, i, STORE_RUNNING);
		if (write(to, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

/* CR-04: whenever the process is killed, what it was told is kept is there. */
static void test_killed(void **state)
{
	int told = -1;

	{
		_cleanup_(store_closep) struct store *s = open_store(*state);

		make_key(s);
	}
	for (int round = 0; round < 25; round++) {
		struct timespec t = { .tv_nsec = round * 7919 % 40 * 500000 };
		struct store_sandbox b = { 0 };
		int ends[2], number, status;
		pid_t pid;

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			add_and_tell(*state, told + 1000, ends[1]);
		fd_close(ends[1]);
		assert_int_equal(read(ends[0], &number, sizeof(number)), sizeof(number));
		told = number;
		(void)nanosleep(&t, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));

		_cleanup_(store_closep) struct store *s = open_store(*state);

		while (read(ends[0], &number, sizeof(number)) == sizeof(number)) {
			char id[STORE_ID_SIZE];

			(void)snprintf(id, sizeof(id), "i%d", number);
			assert_int_equal(store_sandbox_get(s, id, &b), 0);
			store_sandbox_done(&b);
			told = number;
		}
		fd_close(ends[0]);
	}
}

/* Killed while the database is made: it is made again, and nothing is taken for it. */
static void test_killed_at_birth(void **state)
{
	for (int round = 0; round < 40; round++) {
		struct timespec t = { .tv_nsec = round * 100000 };
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(try_open(*state, 0));
		(void)nanosleep(&t, NULL);
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(in_child(try_open, *state, 0), 0);

		_cleanup_(fd_closep) int fd = open_dir(*state);

		assert_int_equal(faccessat(fd, "glovebox.db-new", F_OK, 0), -1);
		(void)unlinkat(fd, "glovebox.db", 0);
		(void)unlinkat(fd, "glovebox.db-wal", 0);
		(void)unlinkat(fd, "glovebox.db-shm", 0);
	}
}

/* --- files -------------------------------------------------------------------------------------- */

/* A key, and then the end, before the log was written into the database. */
static int make_key_and_die(const char *dir, int arg)
{
	(void)arg;
	make_key(open_store(dir));
	return 0;
}

/* Who moves the database away but not its log begins with nothing all the same, and the log is not lost. */
static void test_moved_away(void **state)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(fd_closep) int fd = open_dir(*state);
	size_t n;

	assert_int_equal(in_child(make_key_and_die, *state, 0), 0);
	assert_int_equal(faccessat(fd, "glovebox.db-wal", F_OK, 0), 0);
	assert_int_equal(renameat(fd, "glovebox.db", fd, "elsewhere"), 0);
	s = open_store(*state);
	assert_int_equal(store_key_count(s, &n), 0);
	assert_int_equal(n, 0);
	make_key(s);
	store_closep(&s);
	assert_int_equal(renameat(fd, "elsewhere", fd, "glovebox.db"), 0);
	assert_int_equal(renameat(fd, "glovebox.db-wal-old", fd, "glovebox.db-wal"), 0);
	s = open_store(*state);
	assert_int_equal(store_key_count(s, &n), 0);
	assert_int_equal(n, 1);
}

static void overwrite(const char *dir, const char *data, size_t len, off_t at)
{
	_cleanup_(fd_closep) int dir_fd = open_dir(dir);
	_cleanup_(fd_closep) int fd = openat(dir_fd, "glovebox.db", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, at), (ssize_t)len);
}

static void fill_and_close(const char *dir)
{
	_cleanup_(store_closep) struct store *s = open_store(dir);

	make_key(s);
	for (int i = 0; i < 200; i++)
		add_sandbox(s, i, STORE_RUNNING);
}

static void file_stat(const char *dir, struct stat *ret)
{
	_cleanup_(fd_closep) int dir_fd = open_dir(dir);

	assert_int_equal(fstatat(dir_fd, "glovebox.db", ret, AT_SYMLINK_NOFOLLOW), 0);
}

/* Refused as damaged, and left as it is: the same file, of the same size. */
static void is_refused(const char *dir)
{
	struct stat before, after;

	file_stat(dir, &before);
	assert_int_equal(in_child(try_open, dir, 0), EUCLEAN);
	file_stat(dir, &after);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
}

static void test_damaged(void **state)
{
	static const char noise[8192] = "this is not a database";
	_cleanup_(fd_closep) int fd = open_dir(*state);
	char path[128];

	fill_and_close(*state);
	overwrite(*state, noise, 100, 0);
	is_refused(*state);
	assert_int_equal(unlinkat(fd, "glovebox.db", 0), 0);

	fill_and_close(*state);
	overwrite(*state, noise, sizeof(noise), 3 * 4096);
	is_refused(*state);

	(void)snprintf(path, sizeof(path), "%s/glovebox.db", (const char *)*state);
	assert_int_equal(truncate(path, 0), 0);
	is_refused(*state);
	assert_int_equal(unlinkat(fd, "glovebox.db", 0), 0);

	assert_int_equal(mkdirat(fd, "glovebox.db", 0700), 0);
	is_refused(*state);
	assert_int_equal(unlinkat(fd, "glovebox.db", AT_REMOVEDIR), 0);

	fill_and_close(*state);
	assert_int_equal(renameat(fd, "glovebox.db", fd, "elsewhere"), 0);
	assert_int_equal(symlinkat("elsewhere", fd, "glovebox.db"), 0);
	is_refused(*state);
}

/* Another program's database, and one of a later glovebox. */
static void test_foreign(void **state)
{
	const unsigned char newer[4] = { 0, 0, 0, 99 }, other[4] = { 1, 2, 3, 4 };

	fill_and_close(*state);
	overwrite(*state, (const char *)newer, sizeof(newer), 60); /* user_version */
	assert_int_equal(in_child(try_open, *state, 0), EPROTO);
	overwrite(*state, (const char *)other, sizeof(other), 68); /* application_id */
	is_refused(*state);
}

static void test_modes(void **state)
{
	_cleanup_(store_closep) struct store *s = NULL;
	_cleanup_(dir_closep) DIR *d = NULL;
	mode_t before = umask(0);
	struct dirent *e;
	int n = 0;

	s = open_store(*state);
	make_key(s);
	(void)umask(before);
	d = opendir(*state);
	assert_non_null(d);
	while ((e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		n++;
	}
	assert_int_equal(n, 3); /* the database, its log, the index of the log */
}

static void test_owners(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(*state, NOBODY, NOBODY), 0);
	assert_int_equal(in_child(try_open, *state, 0), EPERM);
	assert_int_equal(in_child(try_open, *state, NOBODY), 0);
	assert_int_equal(chmod(*state, 0500), 0);
	{
		_cleanup_(fd_closep) int fd = open_dir(*state);

		assert_int_equal(unlinkat(fd, "glovebox.db", 0), 0);
	}
	assert_int_equal(in_child(try_open, *state, NOBODY), EACCES);
}

static void test_read_only_file(void **state)
{
	char path[128];

	if (geteuid() != 0)
		skip();
	(void)snprintf(path, sizeof(path), "%s/glovebox.db", (const char *)*state);
	assert_int_equal(chown(*state, NOBODY, NOBODY), 0);
	assert_int_equal(in_child(try_open, *state, NOBODY), 0);
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(in_child(try_open, *state, NOBODY), EROFS);
}

/* --- disks -------------------------------------------------------------------------------------- */

/* CR-05: no space is an error that changes nothing; with space again, it goes on. */
static int fill_disk(const char *dir, int arg)
{
	struct store *s;
	int n = 0, r;

	(void)arg;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=1M,mode=700") < 0)
		return 77;
	s = open_store(dir);
	make_key(s);
	do {
		_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
		char id[STORE_ID_SIZE];

		(void)snprintf(id, sizeof(id), "i%d", n);
		make_sandbox(&b, id);
		r = store_sandbox_add(s, &b);
		n += r == 0;
	} while (r == 0 && n < 100000);
	if (r != -ENOSPC || count_rows(s) != (size_t)n)
		return 1;
	store_close(s);
	s = open_store(dir);
	if (count_rows(s) != (size_t)n)
		return 2;
	if (mount("none", dir, "tmpfs", MS_REMOUNT, "size=8M") < 0)
		return 3;
	for (int i = 0; i < 100; i++)
		add_sandbox(s, 1000000 + i, STORE_RUNNING);
	store_close(s);
	return 0;
}

static int full_at_birth(const char *dir, int arg)
{
	(void)arg;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=16K,mode=700") < 0)
		return 77;
	return try_open(dir, 0);
}

static void test_full_disk(void **state)
{
	int status = in_child(fill_disk, *state, 0);

	if (status == 77)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(in_child(full_at_birth, *state, 0), ENOSPC);
}

static off_t log_size(const char *dir)
{
	_cleanup_(fd_closep) int dir_fd = open_dir(dir);
	struct stat st;

	assert_int_equal(fstatat(dir_fd, "glovebox.db-wal", &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_size;
}

/* CR-07: what comes and goes leaves the files as large as they were. */
static void test_flat(void **state)
{
	_cleanup_(store_closep) struct store *s = open_store(*state);
	struct stat after_some, after_all;

	make_key(s);
	for (int i = 0; i < 6000; i++) {
		_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
		struct store_event e = { .id = "e", .key_id = "k", .sandbox_id = "i", .type = "t" };
		char id[STORE_ID_SIZE];

		(void)snprintf(id, sizeof(id), "i%d", i);
		make_sandbox(&b, id);
		assert_int_equal(store_sandbox_add(s, &b), 0);
		b.state = STORE_ENDED;
		b.end_ms = i;
		assert_int_equal(store_sandbox_update(s, &b), 0);
		assert_int_equal(store_event_add(s, &e), 0);
		if (i % 50 == 49) {
			assert_int_equal(store_sandbox_prune(s, 100), 0);
			assert_int_equal(store_event_prune(s, 100), 0);
		}
		if (i == 1999) { /* closing writes all that is in the log */
			store_closep(&s);
			file_stat(*state, &after_some);
			s = open_store(*state);
		}
	}
	assert_int_equal(count_rows(s), 100);
	assert_true(log_size(*state) < 20 << 20);
	store_closep(&s);
	file_stat(*state, &after_all);
	assert_true(after_all.st_size <= after_some.st_size + 4 * 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_processes),       STORE_TEST(test_killed),
		STORE_TEST(test_killed_at_birth), STORE_TEST(test_damaged),
		STORE_TEST(test_foreign),         STORE_TEST(test_modes),
		STORE_TEST(test_owners),          STORE_TEST(test_read_only_file),
		STORE_TEST(test_full_disk),       STORE_TEST(test_flat),
		STORE_TEST(test_moved_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
