/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection whose descriptor was closed without a word (the HTTP library does so when it has no memory for one): its
 * number is somebody else's by then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/http/connection.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HANG_S 20
#define LATER_S (2 * CONNECTION_IDLE_MS / 1000)

static _Atomic int later_s;
static struct connections *all;
static struct connection *record;
static int ours[2];  /* a connection, */
static int other[2]; /* and who has its number then */

/* In the place of libc's: the clock of connections is moved on. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	ret->tv_sec += later_s;
	return (int)r;
}

static int begin(void **state)
{
	(void)state;
	(void)alarm(HANG_S);
	later_s = 0;
	assert_int_equal(connections_start(1, 1, &all), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ours), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
	assert_int_equal(connection_add(all, ours[0], NULL, &record), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	connections_stop(all);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(ours[i]), 0);
		assert_int_equal(close(other[i]), 0);
	}
	(void)alarm(0);
	return 0;
}

static bool is_shut_down(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The number becomes that of another socket. */
static void replace(void)
{
	assert_int_equal(dup2(other[0], ours[0]), ours[0]);
}

static void test_too_late(void **state)
{
	struct pollfd p = { .fd = ours[1], .events = POLLIN };

	(void)state;
	later_s = LATER_S;
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_ptr_equal(connection_find(all, ours[0]), record);
}

static void test_another(void **state)
{
	struct pollfd p = { .fd = connections_space_fd(all), .events = POLLIN };
	struct connection *more;

	(void)state;
	replace();
	assert_int_equal(connection_add(all, other[1], NULL, &more), -EAGAIN);
	later_s = LATER_S;
	assert_int_equal(poll(&p, 1, -1), 1); /* there is room again, so it was looked at */
	assert_null(connection_find(all, ours[0]));
	assert_false(is_shut_down(other[1]));
}

static void test_closed(void **state)
{
	struct pollfd p = { .fd = connections_space_fd(all), .events = POLLIN };
	struct connection *more;
	int fd = ours[0];

	(void)state;
	assert_int_equal(connection_add(all, other[1], NULL, &more), -EAGAIN);
	assert_int_equal(close(fd), 0);
	later_s = LATER_S;
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_null(connection_find(all, fd));
	assert_int_equal(dup2(other[0], fd), fd); /* for the end */
}

static void test_cut(void **state)
{
	(void)state;
	replace();
	connections_cut(all);
	assert_false(is_shut_down(other[1]));
}

/* The number is a new connection's: what was counted for the old one is given back. */
static void test_number_again(void **state)
{
	uint64_t cookie = connection_cookie(record), new_cookie;

	(void)state;
	replace();
	assert_int_equal(connection_add(all, ours[0], NULL, &record), 0);
	assert_ptr_equal(connection_find(all, ours[0]), record);
	new_cookie = connection_cookie(record);
	connection_forget(all, ours[0], cookie); /* by somebody who learns it late */
	assert_ptr_equal(connection_find(all, ours[0]), record);
	connection_forget(all, ours[0], new_cookie);
	assert_null(connection_find(all, ours[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_too_late, begin, end),
		cmocka_unit_test_setup_teardown(test_another, begin, end),
		cmocka_unit_test_setup_teardown(test_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_cut, begin, end),
		cmocka_unit_test_setup_teardown(test_number_again, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
