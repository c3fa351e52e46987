/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that keep their state, cells in line, and the order of what they print and say. */
#include "kernel.h"

#include <fcntl.h>
#include <signal.h>

#define CODE_MAX (4u << 20)

static struct story s, s2;
static struct outcome o;
static char list[65536];

static const struct cell_spec test = { 0 };

static void test_start(void **state)
{
	const char *const missing[] = { "/no/such/program", NULL };
	const char *const ends[] = { "/bin/sh", "-c", "exit 3", NULL };
	const char *const silent[] = { "/bin/sh", "-c", "echo nothing of the kind >&4; sleep 60",
				       NULL };
	int sock;

	(void)state;
	assert_int_equal(contexts(list, sizeof(list)), 0);
	assert_true(kernel_make("test") > 1);
	expect_failed(kernel_start(&box, "test", NULL), WIRE_STEP_CONTEXT, EEXIST);
	expect_failed(kernel_start(&box, "other", missing), WIRE_STEP_EXEC, ENOENT);
	sock = kernel_start(&box, "other", ends);
	(void)expect_started(sock);
	expect_failed(sock, WIRE_STEP_CONTEXT, EPIPE);
	sock = kernel_start(&box, "other", silent);
	(void)expect_started(sock);
	expect_failed(sock, WIRE_STEP_CONTEXT, EPIPE);
	assert_int_equal(contexts(list, sizeof(list)), 1);
	assert_string_equal(list, "test=/home/user ");
	expect_failed(cell_start(&(struct cell_spec){ .context = "none" }, "1"), WIRE_STEP_CONTEXT,
		      ENOENT);
}

static void test_cell(void **state)
{
	(void)state;
	cell_run(&test, "x = 1; print('one')", &s);
	assert_string_equal(s.text, "count(1)out(one\n)");
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	assert_int_equal(s.end.died, 0);
	assert_int_equal(s.end.out_bytes, 4);
	assert_true(s.end.wall_us > 0 && s.end.wall_us < 5000000);
	cell_run(&test, "x += 1; say('result', str({'x': x}))", &s);
	assert_string_equal(s.text, "count(2)result({'x': 2})");
	cell_run(&test, "1/0", &s);
	assert_string_equal(s.text, "count(3)error({\"name\":\"ZeroDivisionError\"})");
	/* One that only prepares. */
	cell_run(&test, NULL, &s);
	assert_string_equal(s.text, "");
	/* A piece at a time is the same. */
	int sock = cell_open(&test);

	assert_int_equal(wire_send(sock, WIRE_CODE, "print(x", 7), 0);
	assert_true(quiet(sock, 50));
	assert_int_equal(wire_send(sock, WIRE_CODE, " + 40)", 6), 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	cell_follow(sock, &s);
	assert_string_equal(s.text, "count(4)out(42\n)");
}

/* What was written before an event comes before it, however fast both were. */
static void test_order(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		cell_run(&test,
			 "os.write(1, b'a'); say('result', '{}'); os.write(2, b'b')\n"
			 "say('result', '[]'); os.write(1, b'c')",
			 &s);
		const char *a = strstr(s.text, "out(a"), *first = strstr(s.text, "result({})"),
			   *b = strstr(s.text, "err(b)"), *second = strstr(s.text, "result([])");

		assert_true(a && first && b && second && a < first && b < second && first < second);
		assert_int_equal(s.n_out, 2); /* and the c before the end */
		assert_int_equal(s.n_err, 1);
	}
}

/* As it comes, not at the end. */
static void test_stream(void **state)
{
	int sock = cell_start(&test, "print('now', flush=True); time.sleep(30)");

	(void)state;
	(void)expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_EVENT);
	assert_int_equal(next_frame(sock), WIRE_EVENT_END);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	fd_close(sock);
}

static void test_environment(void **state)
{
	const struct cell_spec first = {
		.context = "env", .base = "A=1", .env = "B=2", .cwd = "/tmp"
	};
	const struct cell_spec second = { .context = "env", .cwd = "/usr" };

	(void)state;
	(void)kernel_make("env");
	cell_run(&first, "print(asked)", &s);
	assert_string_equal(s.text, "count(1)out(['base A=1', 'env B=2', 'cwd /tmp']\n)");
	/* The first cell's directory is the context's. */
	cell_run(&second, "print(asked)", &s);
	assert_int_equal(contexts(list, sizeof(list)), 2);
	assert_string_equal(list, "test=/home/user env=/tmp ");
	assert_int_equal(context_tell("env", SIGKILL), 0);
}

static void expect_refused(enum wire_type type, const char *data, size_t len, int err)
{
	int sock = cell_open(&test);

	assert_int_equal(wire_send(sock, WIRE_CWD, "/", 1), 0);
	assert_int_equal(wire_send(sock, type, data, len), 0);
	expect_failed(sock, WIRE_STEP_REQUEST, err);
}

static void test_bad_cells(void **state)
{
	int sock = cell_open(&test);

	(void)state;
	assert_int_equal(wire_send(sock, WIRE_ENV, "=x", 2), 0);
	expect_failed(sock, WIRE_STEP_REQUEST, EINVAL);
	sock = cell_open(&test);
	assert_int_equal(wire_send(sock, WIRE_BASE, "A\0=x", 4), 0);
	expect_failed(sock, WIRE_STEP_REQUEST, EINVAL);
	sock = cell_open(&test);
	assert_int_equal(wire_send(sock, WIRE_CWD, "tmp", 3), 0);
	expect_failed(sock, WIRE_STEP_REQUEST, EINVAL);
	expect_refused(WIRE_CWD, "/", 1, EPROTO);
	expect_refused(WIRE_ENV, "A=1", 3, EPROTO);
	expect_refused(WIRE_BASE, "A=1", 3, EPROTO);
	expect_refused(WIRE_ARG, "x", 1, EPROTO);
	/* Who leaves half-way leaves nothing behind. */
	sock = cell_open(&test);
	assert_int_equal(wire_send(sock, WIRE_CODE, "x = 'half'", 10), 0);
	fd_close(sock);
	cell_run(&test, "print(x)", &s);
	assert_non_null(strstr(s.text, "out(2\n)"));
}

static void send_code(int sock, size_t bytes)
{
	static char piece[60000];

	memset(piece, '#', sizeof(piece));
	for (size_t n; bytes; bytes -= n) {
		n = MIN(bytes, sizeof(piece));
		if (wire_send(sock, WIRE_CODE, piece, n) < 0)
			return; /* refused already */
	}
}

static void test_large_cells(void **state)
{
	int sock = cell_open(&test), other;

	(void)state;
	send_code(sock, CODE_MAX - 4096);
	assert_int_equal(wire_send(sock, WIRE_CODE, "\nprint('large')", 15), 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	cell_follow(sock, &s);
	assert_non_null(strstr(s.text, "out(large\n)"));
	sock = cell_open(&test);
	send_code(sock, CODE_MAX + 1);
	expect_failed(sock, WIRE_STEP_REQUEST, E2BIG);
	/* Only one at a time may have much of the agent's memory; the other waits, and then has its turn. */
	(void)kernel_make("env");
	sock = cell_open(&test);
	send_code(sock, 1 << 20);
	other = cell_start(&(struct cell_spec){ .context = "env" }, "print('small')");
	cell_follow(other, &s);
	other = cell_open(&(struct cell_spec){ .context = "env" });
	assert_int_equal(fcntl(other, F_SETFL, O_NONBLOCK), 0);
	send_code(other, 1 << 20);
	assert_true(quiet(other, 100));
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	cell_follow(sock, &s);
	fd_close(other);
	assert_int_equal(context_tell("env", SIGKILL), 0);
}

/* Who does not say what to run does not keep others waiting for ever. */
static void test_slow_sender(void **state)
{
	uint64_t begun = now_ms();
	int sock = cell_open(&test), next;

	(void)state;
	assert_int_equal(wire_send(sock, WIRE_CODE, "print(1)", 8), 0);
	next = cell_start(&test, "print('next')");
	assert_true(quiet(next, 6000));
	expect_failed(sock, WIRE_STEP_REQUEST, ETIMEDOUT);
	cell_follow(next, &s);
	assert_non_null(strstr(s.text, "out(next\n)"));
	assert_true(now_ms() - begun >= 10000);
}

static void test_large_events(void **state)
{
	(void)state;
	cell_run(&test, "say('result', 'x' * 60000); say('result', 'y' * 3000000)", &s);
	assert_non_null(strstr(s.text, "result(xxxx"));
	cell_run(&test, "print('alive')", &s);
	assert_non_null(strstr(s.text, "out(alive\n)"));
}

/* Code that waits for a file. */
#define UNTIL(path) "while not os.path.exists('" path "'): time.sleep(0.01)\n"

/* In line; who waits may leave. */
static void test_queue(void **state)
{
	int first = cell_start(&test, UNTIL("/tmp/first") "turns = ['first']"),
	    gone = cell_start(&test, "turns.append('gone')"),
	    last = cell_start(&test, "print(turns)");
	int many[64];

	(void)state;
	(void)expect_started(first);
	fd_close(gone);
	assert_true(quiet(last, 100));
	run_sh(&(struct spec){ 0 }, "touch /tmp/first", &o);
	cell_follow(last, &s);
	assert_non_null(strstr(s.text, "out(['first']\n)"));
	fd_close(first);
	/* The line has an end. */
	first = cell_start(&test, UNTIL("/tmp/many"));
	(void)expect_started(first);
	for (size_t i = 0; i < 63; i++)
		many[i] = cell_start(&test, NULL);
	expect_failed(cell_open(&test), WIRE_STEP_CONTEXT, EBUSY);
	run_sh(&(struct spec){ 0 }, "touch /tmp/many", &o);
	for (size_t i = 0; i < 63; i++)
		cell_follow(many[i], &s);
	fd_close(first);
}

/* Contexts run beside each other. */
static void test_parallel(void **state)
{
	int slow = cell_start(&test, "time.sleep(1)");

	(void)state;
	(void)kernel_make("env");
	cell_run(&(struct cell_spec){ .context = "env" }, "print('beside')", &s2);
	assert_string_equal(s2.text, "count(1)out(beside\n)");
	cell_follow(slow, &s);
	assert_int_equal(context_tell("env", SIGKILL), 0);
}

/* Who does not read slows its own cell, loses nothing, and can be left. */
static void test_slow_reader(void **state)
{
	int sock = cell_start(&test,
			      "os.write(1, b'x' * 2000000); say('result', '{}'); print('done')");

	(void)state;
	run_sh(&(struct spec){ 0 }, "echo free", &o);
	assert_string_equal(o.text, "free\n");
	(void)quiet(sock, 300);
	cell_follow(sock, &s);
	assert_int_equal(s.n_out, 2000005);
	assert_int_equal(s.end.out_bytes, 2000005);
	sock = cell_start(&test, "os.write(1, b'x' * 20000000)");
	(void)expect_started(sock);
	(void)quiet(sock, 100);
	fd_close(sock);
	cell_run(&test, "print('next')", &s);
	assert_non_null(strstr(s.text, "next\n"));
}

/* What a cell left running belongs to no cell, but what it prints to the next. */
static void test_background(void **state)
{
	(void)state;
	cell_run(
		&test,
		"def late():\n    time.sleep(1); say('result', '{late}'); print('late', flush=True)\n"
		"threading.Thread(target=late).start()",
		&s);
	assert_null(strstr(s.text, "late"));
	assert_true(quiet(box.control_fd, 2500));
	cell_run(&test, "print('next')", &s);
	assert_null(strstr(s.text, "{late}"));
	assert_non_null(strstr(s.text, "out(late\nnext\n)"));
}

/* Nothing but 0 to 4, also with other kernels and commands about. */
static void test_descriptors(void **state)
{
	size_t before = agent_fds();

	(void)state;
	(void)kernel_make("env");
	cell_run(&(struct cell_spec){ .context = "env" },
		 "print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1])", &s);
	assert_string_equal(s.text, "count(1)out([0, 1, 2, 3, 4]\n)");
	cell_run(&(struct cell_spec){ .context = "env" },
		 "print(subprocess.run(['ls', '/proc/self/fd'], capture_output=True).stdout)", &s);
	assert_non_null(strstr(s.text, "b'0\\n1\\n2\\n3\\n'")); /* 3 is the directory */
	assert_int_equal(context_tell("env", SIGKILL), 0);
	for (int i = 0; i < 1000 && agent_fds() != before; i++)
		(void)quiet(box.control_fd, 10);
	assert_int_equal(agent_fds(), before);
}

static void test_many(void **state)
{
	static int socks[64];
	char name[16];

	(void)state;
	for (int i = 0; i < 63; i++) {
		(void)snprintf(name, sizeof(name), "many-%d", i);
		socks[i] = kernel_start(&box, name, NULL);
	}
	for (int i = 0; i < 63; i++) {
		(void)expect_started(socks[i]);
		expect_done(socks[i]);
	}
	expect_failed(kernel_start(&box, "one-too-many", NULL), WIRE_STEP_CONTEXT, EAGAIN);
	assert_int_equal(contexts(list, sizeof(list)), 64);
	assert_memory_equal(list, "test=/home/user many-0=/home/user many-1=", 40);
	for (int i = 0; i < 63; i++) {
		(void)snprintf(name, sizeof(name), "many-%d", i);
		assert_int_equal(context_tell(name, SIGKILL), 0);
	}
	assert_int_equal(contexts(list, sizeof(list)), 1);
}

int cases_kernel(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),        cmocka_unit_test(test_cell),
		cmocka_unit_test(test_order),        cmocka_unit_test(test_stream),
		cmocka_unit_test(test_environment),  cmocka_unit_test(test_bad_cells),
		cmocka_unit_test(test_large_cells),  cmocka_unit_test(test_slow_sender),
		cmocka_unit_test(test_large_events), cmocka_unit_test(test_queue),
		cmocka_unit_test(test_parallel),     cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_background),   cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("kernel", tests, drive_open, drive_close);
}
