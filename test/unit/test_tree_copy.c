/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that a box has made, as a snapshot copies them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "warden/tree.h"

#define LEVELS 17 /* of names of 255 bytes: longer than a path can be */

static char top[] = "/tmp/glovebox-copy-XXXXXX";
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
	_cleanup_(fd_closep) int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	fd_closep(&from_fd);
	fd_closep(&to_fd);
	return tree_remove(fd, top + sizeof("/tmp/") - 1);
}

/* One file by two names in that directory. */
static void put_link(int dir_fd)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(linkat(dir_fd, "a", dir_fd, "b", 0), 0);
}

/* Goes down to where no path leads any more. */
static int descend(int fd, bool make)
{
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < LEVELS; i++) {
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
	_cleanup_(fd_closep) int in = descend(from_fd, true);
	_cleanup_(fd_closep) int out = -EBADF;

	(void)state;
	put_link(in);
	copy();
	out = descend(to_fd, false);
	assert_int_equal(names_of(out, "a"), 1);
	assert_int_equal(names_of(out, "b"), 1);
}

/* That is so there and nowhere else, in whichever order the directories come. */
static void test_link_beside_it(void **state)
{
	_cleanup_(fd_closep) int in = descend(from_fd, true);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_link),
		TEST(test_link_without_path),
		TEST(test_link_beside_it),
	};

	return cmocka_run_group_tests_name("tree_copy", tests, NULL, NULL);
}
