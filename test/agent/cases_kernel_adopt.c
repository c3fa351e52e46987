/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that the agent did not start: we are one, byte by byte. The pid we tell is that of a command in
 * the box, which so gets the signals.
 */
#include "kernel.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

static int ends[_WIRE_ADOPT_MAX]; /* ours */
static struct story s;
static char list[4096], text[4096];

static const struct cell_spec test = { .context = "adopted" };

static void adopt(const char *name)
{
	struct wire_context q = { .language = "python" };
	int theirs[_WIRE_ADOPT_MAX];

	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++) {
		int fds[2];
		bool writes = i == WIRE_ADOPT_REQUESTS; /* the agent */

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		theirs[i] = fds[writes ? 1 : 0];
		ends[i] = fds[writes ? 0 : 1];
	}
	assert_int_equal(wire_send_fds(box.control_fd, WIRE_ADOPT, &q, sizeof(q), theirs,
				       _WIRE_ADOPT_MAX),
			 0);
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		fd_close(theirs[i]);
}

static void leave(void)
{
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		fd_closep(&ends[i]);
}

/* And waits until the agent has noticed: the name is free again. */
static void leave_for_good(void)
{
	leave();
	for (int i = 0; i < 1000 && contexts(list, sizeof(list)); i++)
		(void)quiet(box.control_fd, 10);
	assert_int_equal(contexts(list, sizeof(list)), 0);
}

static void print(enum wire_adopt_fd where, const char *bytes)
{
	assert_int_equal(write(ends[where], bytes, strlen(bytes)), strlen(bytes));
}

static void say(const char *bytes)
{
	print(WIRE_ADOPT_EVENTS, bytes);
}

static void say_ready(uint32_t pid)
{
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%u", pid);
	(void)snprintf(text, sizeof(text), "ready %zu\n%s", strlen(digits), digits);
	say(text);
}

/* The whole of what comes as the next cell. */
static void expect_request(const char *bytes)
{
	size_t len = 0;

	memset(text, 0, sizeof(text));
	while (len < strlen(bytes)) {
		ssize_t n;

		assert_false(quiet(ends[WIRE_ADOPT_REQUESTS], WAIT_MS));
		n = read(ends[WIRE_ADOPT_REQUESTS], text + len, sizeof(text) - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_string_equal(text, bytes);
}

static void expect_eof(void)
{
	assert_false(quiet(ends[WIRE_ADOPT_REQUESTS], WAIT_MS));
	assert_int_equal(read(ends[WIRE_ADOPT_REQUESTS], text, sizeof(text)), 0);
}

static void end_with(int code, int signal)
{
	const struct wire_exit e = { .code = code, .signal = signal };

	assert_int_equal(write(ends[WIRE_ADOPT_STATUS], &e, sizeof(e)), sizeof(e));
}

static void test_bytes(void **state)
{
	const struct cell_spec all = {
		.context = "adopted", .base = "A=1", .env = "B=22", .cwd = "/tmp"
	};
	int sock;

	(void)state;
	adopt("adopted");
	sock = cell_start(&all, "code");
	assert_true(quiet(sock, 100)); /* it is not ready */
	say_ready(4000);
	expect_request("base 3\nA=1env 4\nB=22cwd 4\n/tmpcode 4\ncoderun 0\n");
	/* A byte at a time; the output is in its place all the same. */
	for (const char *at = "count 1\n1result 2\n{}"; *at; at++) {
		if (*at == 'r')
			print(WIRE_ADOPT_OUT, "before");
		say((const char[]){ *at, '\0' });
		(void)quiet(ends[WIRE_ADOPT_REQUESTS], 2);
	}
	print(WIRE_ADOPT_ERR, "after");
	say("end 0\n");
	cell_follow(sock, &s);
	assert_string_equal(s.text, "count(1)out(before)result({})err(after)");
	assert_int_equal(contexts(list, sizeof(list)), 1);
	assert_string_equal(list, "adopted=/tmp ");
	assert_true(quiet(ends[WIRE_ADOPT_REQUESTS], 50));
	leave_for_good();
}

static void swap_ends(int other[_WIRE_ADOPT_MAX])
{
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++) {
		int fd = ends[i];

		ends[i] = other[i];
		other[i] = fd;
	}
}

/* A name that is taken, by one that has a cell: who comes second finds the end of its requests. */
static void test_taken(void **state)
{
	int first[_WIRE_ADOPT_MAX], sock;

	(void)state;
	adopt("adopted");
	sock = cell_start(&test, "x"); /* which waits: it is not ready */
	memcpy(first, ends, sizeof(ends));
	adopt("adopted");
	expect_eof();
	leave();
	swap_ends(first);
	say_ready(4000);
	expect_request("code 1\nxrun 0\n");
	say("count 1\n1end 0\n");
	cell_follow(sock, &s);
	assert_int_equal(s.end.died, 0);
	/* And after it, too. */
	memcpy(first, ends, sizeof(ends));
	adopt("adopted");
	expect_eof();
	leave();
	swap_ends(first);
	assert_true(quiet(ends[WIRE_ADOPT_REQUESTS], 50));
	leave_for_good();
}

/* One that nobody has used makes way. */
static void test_replaced(void **state)
{
	static struct outcome killed;
	int command = sh_start(&(struct spec){ 0 }, "sleep 60"), first[_WIRE_ADOPT_MAX], sock;
	uint32_t pid = expect_started(command);

	(void)state;
	adopt("adopted");
	say_ready(pid);
	(void)quiet(ends[WIRE_ADOPT_REQUESTS], 500);
	memcpy(first, ends, sizeof(ends));
	adopt("adopted");
	follow(command, &killed);
	assert_int_equal(killed.exit.signal, SIGKILL);
	assert_int_equal(contexts(list, sizeof(list)), 1);
	sock = cell_start(&test, "y");
	say_ready(4000);
	expect_request("code 1\nyrun 0\n");
	say("count 1\n1end 0\n");
	cell_follow(sock, &s);
	assert_string_equal(s.text, "count(1)");
	leave();
	swap_ends(first);
	leave_for_good();
}

static void test_end(void **state)
{
	int sock, next;

	(void)state;
	adopt("adopted");
	say_ready(4000);
	sock = cell_start(&test, "x");
	next = cell_start(&test, "y");
	expect_request("code 1\nxrun 0\n");
	say("count 1\n1");
	print(WIRE_ADOPT_OUT, "last");
	end_with(5, 0);
	cell_follow(sock, &s);
	assert_string_equal(s.text, "count(1)out(last)");
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.code, 5);
	expect_failed(next, WIRE_STEP_CONTEXT, EPIPE);
	leave();
	/* Nobody knows how. */
	adopt("adopted");
	say_ready(4000);
	sock = cell_start(&test, "x");
	expect_request("code 1\nxrun 0\n");
	fd_closep(&ends[WIRE_ADOPT_STATUS]);
	cell_follow(sock, &s);
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.code, -1);
	assert_int_equal(s.end.exit.signal, 0);
	leave();
	/* Before it was ready. */
	adopt("adopted");
	sock = cell_start(&test, "x");
	fd_closep(&ends[WIRE_ADOPT_STATUS]);
	expect_failed(sock, WIRE_STEP_CONTEXT, EPIPE);
	leave();
}

/* Whoever would tell of its end is gone, but it is not. */
static void test_orphan(void **state)
{
	int command = sh_start(&(struct spec){ 0 }, "sleep 60"), sock;
	uint32_t pid = expect_started(command);

	(void)state;
	adopt("adopted");
	say_ready(pid);
	sock = cell_start(&test, "x");
	expect_request("code 1\nxrun 0\n");
	fd_closep(&ends[WIRE_ADOPT_STATUS]);
	(void)expect_started(sock);
	assert_true(quiet(sock, 300));
	say("count 1\n1end 0\n");
	while (next_frame(sock) != WIRE_CELL_END)
		;
	assert_int_equal(((const struct wire_cell_end *)got.data)->died, 0);
	expect_end(sock);
	/* Its end is noticed, although its pipes stay open. */
	sock = cell_start(&test, "y");
	expect_request("code 1\nyrun 0\n");
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, SIGKILL, 0, 0), WIRE_DONE);
	cell_follow(sock, &s);
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.code, -1);
	fd_close(command);
	leave();
}

/* The number it told is the one that is signalled. */
static void test_signals(void **state)
{
	int command = sh_start(&(struct spec){ 0 }, "trap 'echo interrupted' INT; echo up; "
						    "while :; do sleep 0.1; done"),
	    sock;
	uint32_t pid = expect_started(command);

	(void)state;
	assert_int_equal(next_frame(command), WIRE_OUT);
	adopt("adopted");
	say_ready(pid);
	sock = cell_start(&test, "x");
	expect_request("code 1\nxrun 0\n");
	fd_close(sock);
	assert_true(quiet(command, 200)); /* it has not begun */
	say("count 1\n1");
	assert_int_equal(next_frame(command), WIRE_OUT);
	assert_memory_equal(got.data, "interrupted\n", 12);
	say("end 0\n");
	/* It is killed, and believed to be gone when nobody says so. */
	assert_int_equal(context_tell("adopted", SIGKILL), 0);
	assert_int_equal(next_frame(command), WIRE_EXIT);
	assert_int_equal(((const struct wire_exit *)got.data)->signal, SIGKILL);
	expect_end(command);
	leave();
}

/* What would make the agent signal everybody, or itself, is not a number. */
static void test_bad_numbers(void **state)
{
	static const char *const bad[] = { "ready 1\n1",  "ready 1\n0", "ready 2\n-1",
					   "ready 2\n07", "ready 0\n",  "count 1\n1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int sock;

		adopt("adopted");
		sock = cell_start(&test, "x");
		say(bad[i]);
		expect_failed(sock, WIRE_STEP_CONTEXT, EPIPE);
		leave();
	}
}

int cases_kernel_adopt(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),    cmocka_unit_test(test_taken),
		cmocka_unit_test(test_replaced), cmocka_unit_test(test_end),
		cmocka_unit_test(test_signals),  cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_orphan),
	};

	return cmocka_run_group_tests_name("kernel-adopt", tests, drive_open, drive_close);
}
