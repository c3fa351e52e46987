/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that a box has made, as a snapshot copies them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "warden/layers/tree.h"
#include "warden/layers/layers.h"

#define LEVELS 17 /* of names of 255 bytes: longer than a path can be */
#define PATIENCE_MS 60000
#define MANY 20000 /* files with long paths */
#define MEMORY_KIB (40 << 10)

#define PLACE "/dev/shm" /* in memory, as the files of a box are */

static char top[] = PLACE "/glovebox-copy-XXXXXX";
static char level[256];
static int from_fd = -EBADF, to_fd = -EBADF; /* two empty directories, new for each test */

static int dir_make(int at_fd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(at_fd, name, 0755), 0);
	fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	_cleanup_(fd_closep) int fd = -EBADF;

	(void)state;
	memset(level, 'd', sizeof(level) - 1);
	memcpy(top + sizeof(top) - 7, "XXXXXX", 7);
	if (!mkdtemp(top))
		return -1;
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	from_fd = dir_make(fd, "from");
	to_fd = dir_make(fd, "to");
	return 0;
}

static int tear_down(void **state)
{
	_cleanup_(fd_closep) int fd = open(PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	fd_closep(&from_fd);
	fd_closep(&to_fd);
	return tree_remove(fd, top + sizeof(PLACE "/") - 1);
}

/* One file by two names in that directory. */
static void put_link(int dir_fd)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(linkat(dir_fd, "a", dir_fd, "b", 0), 0);
}

/* So many directories down; at LEVELS no path leads there any more. */
static int descend(int fd, int levels, bool make)
{
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < levels; i++) {
		int next = make ? dir_make(fd, level) :
				  openat(fd, level, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		fd_close(fd);
		fd = next;
	}
	return fd;
}

static void copy(void)
{
	static struct tree_copy c;

	c = (struct tree_copy){ .bytes_left = 1 << 20, .files_left = 1000 };
	assert_int_equal(tree_copy(&c, from_fd, to_fd), 0);
}

static nlink_t names_of(int dir_fd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_size, 4);
	return st.st_nlink;
}

static void test_link(void **state)
{
	(void)state;
	put_link(from_fd);
	copy();
	assert_int_equal(names_of(to_fd, "a"), 2);
	assert_int_equal(names_of(to_fd, "b"), 2);
}

/* A name that no path leads to cannot be linked to: it is a file of its own. */
static void test_link_without_path(void **state)
{
	_cleanup_(fd_closep) int in = descend(from_fd, LEVELS, true);
	_cleanup_(fd_closep) int out = -EBADF;

	(void)state;
	put_link(in);
	copy();
	out = descend(to_fd, LEVELS, false);
	assert_int_equal(names_of(out, "a"), 1);
	assert_int_equal(names_of(out, "b"), 1);
}

/* That is so there and nowhere else, in whichever order the directories come. */
static void test_link_beside_it(void **state)
{
	_cleanup_(fd_closep) int in = descend(from_fd, LEVELS, true);
	char name[] = "0";

	(void)state;
	put_link(in);
	for (; *name <= '9'; (*name)++) {
		_cleanup_(fd_closep) int fd = dir_make(from_fd, name);

		put_link(fd);
	}
	copy();
	for (*name = '0'; *name <= '9'; (*name)++) {
		_cleanup_(fd_closep) int fd =
			openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_int_equal(names_of(fd, "a"), 2);
		assert_int_equal(names_of(fd, "b"), 2);
	}
}

/* In a process of its own, as in the service: what it took of memory at most, in KiB. */
static long copy_apart(void)
{
	struct rusage used = { 0 };
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		static struct tree_copy c = { .bytes_left = 1 << 20, .files_left = 1000000 };

		_exit(tree_copy(&c, from_fd, to_fd) < 0);
	}
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	assert_int_equal(status, 0);
	return used.ru_maxrss;
}

/* Names are remembered in memory that is nobody's: only so many of them. */
static void test_many_links(void **state)
{
	_cleanup_(fd_closep) int in = -EBADF;
	_cleanup_(fd_closep) int out = -EBADF;
	long before = copy_apart();
	char name[16], other[16];
	nlink_t names = 0;

	(void)state;
	in = descend(from_fd, LEVELS - 2, true);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		(void)snprintf(other, sizeof(other), "%d.", i);
		assert_int_equal(mknodat(in, name, S_IFREG | 0644, 0), 0);
		assert_int_equal(linkat(in, name, in, other, 0), 0);
	}
	assert_in_range(copy_apart() - before, 0, MEMORY_KIB);
	/* All are there, and some of them still by two names. */
	out = descend(to_fd, LEVELS - 2, false);
	for (int i = 0; i < MANY; i++) {
		struct stat st;

		(void)snprintf(name, sizeof(name), "%d.", i);
		assert_int_equal(fstatat(out, name, &st, 0), 0);
		names = MAX(names, st.st_nlink);
	}
	assert_int_equal(names, 2);
}

/* Neither data nor names are written where that much would not be left. */
static void test_leaves_room(void **state)
{
	static struct tree_copy c;
	_cleanup_(fd_closep) int fd = openat(from_fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	static const char data[8 << 20] = { 1 };
	char name[16];

	(void)state;
	assert_int_equal(write(fd, data, sizeof(data)), sizeof(data));
	c = (struct tree_copy){ .bytes_left = 1 << 30, .files_left = 10000, .leave_bytes = 1 };
	assert_int_equal(tree_copy(&c, from_fd, to_fd), 0);
	assert_int_equal(unlinkat(to_fd, "f", 0), 0);
	c = (struct tree_copy){ .bytes_left = 1 << 30,
				.files_left = 10000,
				.leave_bytes = INT64_MAX };
	assert_int_equal(tree_copy(&c, from_fd, to_fd), -ENOSPC);
	assert_int_equal(unlinkat(to_fd, "f", 0), 0);
	assert_int_equal(unlinkat(from_fd, "f", 0), 0);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdirat(from_fd, name, 0755), 0);
	}
	c = (struct tree_copy){ .bytes_left = 1 << 30,
				.files_left = 10000,
				.leave_bytes = INT64_MAX };
	assert_int_equal(tree_copy(&c, from_fd, to_fd), -ENOSPC);
}

/* In place of a warden: starts a helper, which copies, says so and waits. */
static _noreturn_ void begin_copy(int say_fd, int wait_fd)
{
	const int fds[] = { from_fd, to_fd, say_fd, wait_fd };
	static struct tree_copy c = { .bytes_left = 1 << 20, .files_left = 1000 };
	pid_t parent = getpid();
	pid_t pid = fork();
	char byte = 'c';
	int first;

	if (pid != 0) {
		fd_close(say_fd);
		(void)pause();
		_exit(1);
	}
	first = helper_begin(fds, ARRAY_SIZE(fds), parent);
	c.parent = parent;
	if (first >= 0 && tree_copy(&c, first, first + 1) == 0 && write(first + 2, &byte, 1) == 1)
		(void)!read(first + 3, &byte, 1);
	_exit(0);
}

static bool can_read(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, PATIENCE_MS) == 1;
}

/* Acting as other owners, a process forgets with whom it is to end. */
static void test_ends_with_parent(void **state)
{
	int said[2], hold[2];
	char byte = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root may become others */
	put_link(from_fd);
	assert_int_equal(fchownat(from_fd, "a", 1000, 1000, 0), 0);
	assert_return_code(pipe2(said, O_CLOEXEC), errno);
	assert_return_code(pipe2(hold, O_CLOEXEC), errno);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fd_close(hold[1]);
		begin_copy(said[1], hold[0]);
	}
	fd_close(said[1]);
	assert_true(can_read(said[0]));
	assert_int_equal(read(said[0], &byte, 1), 1);
	assert_int_equal(byte, 'c');
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(can_read(said[0])); /* the end: nobody has the other side any more */
	assert_int_equal(read(said[0], &byte, 1), 0);
	assert_int_equal(names_of(to_fd, "a"), 2);
	fd_close(said[0]);
	fd_close(hold[0]);
	fd_close(hold[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_link),       TEST(test_link_without_path), TEST(test_link_beside_it),
		TEST(test_many_links), TEST(test_leaves_room),       TEST(test_ends_with_parent),
	};

	return cmocka_run_group_tests_name("tree_copy", tests, NULL, NULL);
}
