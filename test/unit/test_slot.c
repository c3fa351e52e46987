/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sys/slot.h"

#define COUNT 5u

static char dir_path[] = "/tmp/glovebox-slot-XXXXXX";
static int dir_fd = -EBADF;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir_path))
		return -1;
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(dir_fd, "slots", 0);
	(void)unlinkat(dir_fd, "link", 0);
	fd_close(dir_fd);
	return rmdir(dir_path);
}

/* A second opening of the file stands for another process: locks belong to the description. */
static void open_both(struct slots *a, struct slots *b)
{
	assert_int_equal(slots_open(dir_fd, "slots", COUNT, a), 0);
	assert_int_equal(slots_open(dir_fd, "slots", COUNT, b), 0);
}

/* Each number once, in rotation, from both sides; then none. */
static void test_take_all(void **state)
{
	struct slots a = SLOTS_INIT, b = SLOTS_INIT;
	bool seen[COUNT] = { false };
	int fds[COUNT];
	uint32_t number = 99;

	(void)state;
	open_both(&a, &b);
	for (uint32_t i = 0; i < COUNT; i++) {
		fds[i] = slots_take(i % 2 ? &a : &b, &number);
		assert_true(fds[i] >= 0 && number < COUNT && !seen[number]);
		seen[number] = true;
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
	}
	number = 99;
	assert_int_equal(slots_take(&a, &number), -EUSERS);
	assert_int_equal(slots_take(&b, &number), -EUSERS);
	assert_int_equal(number, 99);
	for (uint32_t i = 0; i < COUNT; i++)
		fd_close(fds[i]);
	slots_close(&a);
	slots_close(&b);
	assert_int_equal(a.fd, -EBADF);
}

/* A number that was given back rests until all others had their turn. */
static void test_rotation(void **state)
{
	struct slots a = SLOTS_INIT, b = SLOTS_INIT;
	uint32_t first, number;
	int fd;

	(void)state;
	open_both(&a, &b);
	fd = slots_take(&a, &first);
	assert_true(fd >= 0);
	fd_close(fd);
	for (uint32_t i = 1; i <= COUNT; i++) {
		fd = slots_take(i % 2 ? &b : &a, &number);
		assert_true(fd >= 0);
		assert_int_equal(number, (first + i) % COUNT);
		fd_close(fd);
	}
	slots_close(&a);
	slots_close(&b);
}

static void test_take_number(void **state)
{
	struct slots a = SLOTS_INIT, b = SLOTS_INIT;
	int fd, other;

	(void)state;
	open_both(&a, &b);
	fd = slots_take_number(&a, 3);
	assert_true(fd >= 0);
	assert_int_equal(slots_take_number(&b, 3), -EBUSY);
	assert_int_equal(slots_take_number(&a, 3), -EBUSY);
	other = slots_take_number(&b, 2);
	assert_true(other >= 0);
	fd_close(other);
	assert_int_equal(slots_take_number(&a, COUNT), -EINVAL);
	assert_int_equal(slots_take_number(&a, UINT32_MAX), -EINVAL);
	fd_close(fd);
	fd = slots_take_number(&b, 3);
	assert_true(fd >= 0);
	fd_close(fd);
	/* Closing the file itself gives nothing back that is held by a number's own descriptor. */
	fd = slots_take_number(&a, 1);
	slots_close(&a);
	assert_int_equal(slots_take_number(&b, 1), -EBUSY);
	fd_close(fd);
	slots_close(&b);
}

/* A number cannot be leaked: the kernel gives it back however its owner dies. */
static void test_death_frees(void **state)
{
	struct slots a = SLOTS_INIT, b = SLOTS_INIT;
	int ready[2], status, fd;
	char c;
	pid_t pid;

	(void)state;
	open_both(&a, &b);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (slots_take_number(&a, 4) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(slots_take_number(&b, 4), -EBUSY);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd = slots_take_number(&b, 4);
	assert_true(fd >= 0);
	fd_close(fd);
	fd_close(ready[0]);
	fd_close(ready[1]);
	slots_close(&a);
	slots_close(&b);
}

/* The hint is only a hint: an empty, short or absurd one costs nothing but the rotation. */
static void test_bad_hint(void **state)
{
	static const unsigned char hints[][4] = { { 0xff, 0xff, 0xff, 0xff },
						  { 5 },
						  { 0, 0, 0, 0x80 } };
	struct slots a = SLOTS_INIT;

	(void)state;
	assert_int_equal(slots_open(dir_fd, "slots", COUNT, &a), 0);
	for (size_t len = 0; len <= 4; len++) {
		for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
			uint32_t number = 99;
			int fd;

			assert_int_equal(ftruncate(a.fd, 0), 0);
			assert_int_equal(pwrite(a.fd, hints[i], len, 0), len);
			fd = slots_take(&a, &number);
			assert_true(fd >= 0 && number < COUNT);
			fd_close(fd);
		}
	}
	slots_close(&a);
}

static void test_open_refuses(void **state)
{
	struct slots a = SLOTS_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(symlinkat("slots", dir_fd, "link"), 0);
	assert_int_equal(slots_open(dir_fd, "link", COUNT, &a), -ELOOP);
	assert_int_equal(slots_open(-EBADF, "slots", COUNT, &a), -EBADF);
	assert_int_equal(a.fd, -EBADF);
	assert_int_equal(fstatat(dir_fd, "slots", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_all),    cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_take_number), cmocka_unit_test(test_death_frees),
		cmocka_unit_test(test_bad_hint),    cmocka_unit_test(test_open_refuses),
	};

	return cmocka_run_group_tests_name("slot", tests, set_up, tear_down);
}
