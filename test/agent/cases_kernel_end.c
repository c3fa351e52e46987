/* SPDX-License-Identifier: Apache-2.0 */
/* How cells and contexts end: interrupts, kills, deaths, limits, too much output, broken protocol. */
#include "kernel.h"

#include <signal.h>

static struct story s;
static struct outcome o;
static char list[4096];

static const struct cell_spec test = { 0 };

static int setup(void **state)
{
	(void)state;
	(void)kernel_make("test");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)context_tell("test", SIGKILL);
	return 0;
}

static void await_gone(const char *name)
{
	for (int i = 0; i < 500; i++) {
		(void)contexts(list, sizeof(list));
		if (!strstr(list, name))
			return;
		(void)quiet(box.control_fd, 20);
	}
	fail_msg("%s is still there", name);
}

/* Until the cell has begun. */
static void await_count(int sock)
{
	(void)expect_started(sock);
	while (next_frame(sock) != WIRE_EVENT_END)
		;
}

static void test_hang_up(void **state)
{
	uint64_t begun = now_ms();
	int sock;

	(void)state;
	cell_run(&test, "x = 1", &s);
	/* When it runs, and before it has begun. */
	sock = cell_start(&test, "time.sleep(60)");
	await_count(sock);
	fd_close(sock);
	cell_run(&test, "print(x)", &s);
	assert_non_null(strstr(s.text, "out(1\n)"));
	for (int i = 0; i < 20; i++)
		fd_close(cell_start(&test, "time.sleep(60)"));
	cell_run(&test, "print(x)", &s);
	assert_non_null(strstr(s.text, "out(1\n)"));
	assert_true(now_ms() - begun < IN_TIME_MS);
}

static void test_tell_interrupt(void **state)
{
	int sock = cell_start(&test, "time.sleep(60)");

	(void)state;
	await_count(sock);
	assert_int_equal(context_tell("test", SIGINT), 0);
	while (next_frame(sock) != WIRE_CELL_END)
		;
	memcpy(&s.end, got.data, sizeof(s.end));
	assert_int_equal(s.end.reason, WIRE_CELL_INTERRUPTED);
	assert_int_equal(s.end.died, 0);
	expect_end(sock);
	/* Between cells it means nothing. */
	assert_int_equal(context_tell("test", SIGINT), 0);
	cell_run(&test, "print('on')", &s);
	assert_non_null(strstr(s.text, "out(on\n)"));
	assert_int_equal(context_tell("none", SIGINT), ENOENT);
	assert_int_equal(context_tell("none", SIGKILL), ENOENT);
}

/* Who does not want to hear is killed, and whoever waited is told. */
static void test_deaf(void **state)
{
	uint64_t begun = now_ms();
	int sock = cell_start(&test, "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
				     "print('deaf', flush=True); time.sleep(60)"),
	    next;

	(void)state;
	await_count(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	next = cell_start(&test, "print(1)");
	fd_close(sock);
	expect_failed(next, WIRE_STEP_CONTEXT, EPIPE);
	assert_true(now_ms() - begun >= 5000 && now_ms() - begun < IN_TIME_MS);
	expect_failed(cell_start(&test, "1"), WIRE_STEP_CONTEXT, ENOENT);
}

static void test_kill(void **state)
{
	int sock = cell_start(
		    &test,
		    "subprocess.Popen(['sleep', '301'], preexec_fn=lambda: os.setpgid(0, 0))\n"
		    "print('in', flush=True); time.sleep(60)"),
	    next;

	(void)state;
	await_count(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	next = cell_start(&test, "print(1)");
	assert_int_equal(context_tell("test", SIGKILL), 0);
	assert_int_equal(next_frame(sock), WIRE_CELL_END);
	memcpy(&s.end, got.data, sizeof(s.end));
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.signal, SIGKILL);
	assert_int_equal(s.end.reason, WIRE_CELL_INTERRUPTED);
	expect_end(sock);
	expect_failed(next, WIRE_STEP_CONTEXT, EPIPE);
	/* What it had left in its session went with it, and the name is free. */
	run_sh(&(struct spec){ 0 },
	       "for i in $(seq 200); do pgrep -fx 'sleep 301' || exit 0; sleep 0.05; done; exit 1",
	       &o);
	assert_int_equal(o.exit.code, 0);
	(void)kernel_make("test");
	cell_run(&test, "print('new')", &s);
	assert_string_equal(s.text, "count(1)out(new\n)");
}

static void died(const char *code, const char *text, int exit_code, int signal)
{
	(void)kernel_make("death");
	cell_run(&(struct cell_spec){ .context = "death" }, code, &s);
	assert_string_equal(s.text, text);
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.code, exit_code);
	assert_int_equal(s.end.exit.signal, signal);
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	await_gone("death");
}

static void test_death(void **state)
{
	(void)state;
	died("os.write(1, b'last words'); say('result', '{}'); os._exit(7)",
	     "count(1)out(last words)result({})", 7, 0);
	died("os.write(1, b'1'); os.write(2, b'2'); os._exit(0)", "count(1)out(1)err(2)", 0, 0);
	died("os.kill(os.getpid(), 9)", "count(1)", -1, SIGKILL);
	/* A child that holds its pipes is not waited for. */
	died("os.fork() or time.sleep(3)\nos.write(1, b'x'); os._exit(3)", "count(1)out(x)", 3, 0);
	/* Between cells. */
	(void)kernel_make("death");
	cell_run(&(struct cell_spec){ .context = "death" },
		 "threading.Timer(0.1, os._exit, [0]).start()", &s);
	await_gone("death");
}

/* What it said is told and no more, though others go on saying things in its name, faster than they are read. */
static void test_death_with_heirs(void **state)
{
	enum { FRAMES_MAX = 5000 };
	unsigned n = 0;
	int sock;

	(void)state;
	(void)kernel_make("death");
	sock = cell_start(
		&(struct cell_spec){ .context = "death" },
		"import fcntl\n"
		"fcntl.fcntl(4, 1031, 1 << 20)\n"
		"for _ in range(4):\n"
		"    if os.fork() == 0:\n"
		"        os.setsid()\n"
		"        while True: os.write(4, b'result 4000\\n' + b'x' * 4000)\n"
		"while int.from_bytes(fcntl.ioctl(4, 0x541b, bytes(4)), 'little') < 900000: pass\n"
		"os._exit(7)");
	await_count(sock);
	await_gone("death"); /* with its pipe full, as nobody reads here */
	while (next_frame(sock) != WIRE_CELL_END) {
		assert_true(++n < FRAMES_MAX);
		if (n % 8 == 0)
			(void)quiet(box.control_fd, 1); /* slower than they write */
	}
	memcpy(&s.end, got.data, sizeof(s.end));
	assert_int_equal(s.end.died, 1);
	assert_int_equal(s.end.exit.code, 7);
	expect_end(sock);
}

static void test_second_error(void **state)
{
	(void)state;
	cell_run(&test, "say('error', '{}'); say('error', '[1]'); say('result', '[2]')", &s);
	assert_string_equal(s.text, "count(1)error({})result([2])");
	/* The next cell may have one again. */
	cell_run(&test, "say('error', '{}')", &s);
	assert_string_equal(s.text, "count(2)error({})");
}

static void test_broken_protocol(void **state)
{
	(void)state;
	died("os.write(4, b'nonsense\\n'); time.sleep(60)", "count(1)", -1, SIGKILL);
	died("os.write(4, b'x' * 40); time.sleep(60)", "count(1)", -1, SIGKILL);
	died("say('ready', '12'); time.sleep(60)", "count(1)", -1, SIGKILL);
	died("os.write(4, b'result 99999999\\n'); time.sleep(60)", "count(1)", -1, SIGKILL);
	died("os.write(4, b'result 007\\n{}'); time.sleep(60)", "count(1)", -1, SIGKILL);
	died("os.close(4); time.sleep(60)", "count(1)", -1, SIGKILL);
	/* An end too many. */
	(void)kernel_make("death");
	cell_run(&(struct cell_spec){ .context = "death" }, "say('end')", &s);
	assert_int_equal(s.end.died, 0);
	await_gone("death");
	/* Nobody reads the next cell. */
	(void)kernel_make("death");
	cell_run(&(struct cell_spec){ .context = "death" },
		 "os.dup2(os.open('/dev/zero', os.O_RDONLY), 3)", &s);
	cell_run(&(struct cell_spec){ .context = "death" }, "print(1)", &s);
	assert_string_equal(s.text, "");
	assert_int_equal(s.end.died, 1);
	await_gone("death");
}

static void test_wall(void **state)
{
	const struct cell_spec wall = { .wall_ms = 2000 };
	uint64_t begun = now_ms();

	(void)state;
	cell_run(&wall, "time.sleep(60)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_WALL);
	assert_int_equal(s.end.died, 0);
	assert_true(s.end.wall_us >= 2000000 && s.end.wall_us < IN_TIME_MS * 1000);
	assert_non_null(strstr(s.text, "KeyboardInterrupt"));
	assert_true(now_ms() - begun < IN_TIME_MS);
	cell_run(&(struct cell_spec){ .wall_ms = 20000 }, "print('in time')", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	/* Who does not listen has two seconds. */
	begun = now_ms();
	cell_run(&wall, "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_WALL);
	assert_int_equal(s.end.died, 1);
	assert_true(now_ms() - begun >= 4000 && now_ms() - begun < IN_TIME_MS);
}

/* A box that is paused is not in a hurry. */
static void test_pause(void **state)
{
	int sock = cell_start(&(struct cell_spec){ .wall_ms = 5000 },
			      "time.sleep(3); print('rested')");

	(void)state;
	await_count(sock);
	if (cgroup_box_freeze(&box.cgroup, true) < 0)
		skip(); /* no freezer here */
	assert_true(quiet(sock, 6500));
	assert_int_equal(cgroup_box_freeze(&box.cgroup, false), 0);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(next_frame(sock), WIRE_CELL_END);
	memcpy(&s.end, got.data, sizeof(s.end));
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	assert_true(s.end.wall_us < 6000000);
	expect_end(sock);
}

static void test_cpu(void **state)
{
	(void)state;
	cell_run(&(struct cell_spec){ .cpu_ms = 300 }, "while True: pass", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_CPU);
	assert_true(s.end.cpu_us >= 300000 && s.end.cpu_us < 5000000);
	/* Of children too, once they have been reaped. */
	cell_run(
		&(struct cell_spec){ .cpu_ms = 200 },
		"subprocess.run(['sh', '-c', 'i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done'])\n"
		"time.sleep(10)",
		&s);
	assert_int_equal(s.end.reason, WIRE_CELL_CPU);
	/* Sleeping uses none. */
	cell_run(&(struct cell_spec){ .cpu_ms = 300 }, "time.sleep(0.6)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	assert_true(s.end.cpu_us < 100000);
	/* It is told without a limit, also of one that died. */
	cell_run(&test, "t = time.process_time() + 0.2\nwhile time.process_time() < t: pass", &s);
	assert_true(s.end.cpu_us >= 190000 && s.end.cpu_us < 1000000);
	cell_run(&test,
		 "t = time.process_time() + 0.2\nwhile time.process_time() < t: pass\nos._exit(0)",
		 &s);
	assert_true(s.end.died && s.end.cpu_us >= 190000 && s.end.cpu_us < 1000000);
}

static void test_memory(void **state)
{
	const struct cell_spec limited = { .memory_bytes = 32 << 20 };

	(void)state;
	cell_run(&limited, "x = []\nwhile True: x.append(b'x' * (1 << 20)); time.sleep(0.02)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_MEMORY);
	assert_true(s.end.memory_peak > 32 << 20 && s.end.memory_peak < 128 << 20);
	/* Who hides from others does not hide from the agent. */
	cell_run(&limited,
		 "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
		 "x = []\nwhile True: x.append(b'x' * (1 << 20)); time.sleep(0.02)",
		 &s);
	assert_int_equal(s.end.reason, WIRE_CELL_MEMORY);
	(void)context_tell("test", SIGKILL);
	(void)kernel_make("test");
	cell_run(&test, "x = b'x' * (80 << 20); del x", &s);
	assert_in_range(s.end.memory_peak, 80 << 20, (160 << 20) - 1);
	/* The peak is the first one's. */
	cell_run(&test, "1", &s);
	assert_true(s.end.memory_peak < 80 << 20);
}

static void test_spill(void **state)
{
	const struct cell_spec limited = { .output_bytes = 1000 };
	char script[512];

	(void)state;
	cell_run(&limited, "os.write(1, b'y' * 1000)", &s);
	assert_int_equal(s.n_out, 1000);
	assert_string_equal(s.spilled[0], "");
	cell_run(&limited,
		 "os.write(1, b'a' * 999)\nos.write(2, b'e' * 1001)\nos.write(1, b'b' * 300000)\n"
		 "say('result', '{}')\nos.write(1, b'c')",
		 &s);
	assert_int_equal(s.n_out, 1000);
	assert_int_equal(s.n_err, 1000);
	assert_int_equal(s.end.out_bytes, 301000);
	assert_int_equal(s.end.err_bytes, 1001);
	assert_string_equal(s.spilled[0], "/tmp/cell-test-2.stdout");
	assert_string_equal(s.spilled[1], "/tmp/cell-test-2.stderr");
	assert_non_null(strstr(s.text, "result({})"));
	/* It is the user's, and whole when the cell has ended. */
	run_sh(&(struct spec){ 0 },
	       "cd /tmp; stat -c '%U %a %s %N' cell-test-2.stdout; tr -d b <cell-test-2.stdout; "
	       "cat cell-test-2.stderr",
	       &o);
	assert_string_equal(o.text, "user 644 300000 'cell-test-2.stdout'\n"
				    "ce");
	/* A link in its place is not followed, and another name is taken. */
	(void)snprintf(script, sizeof(script),
		       "ln -s /home/user/victim /tmp/cell-test-3.stdout; echo ok");
	run_sh(&(struct spec){ 0 }, script, &o);
	cell_run(&limited, "os.write(1, b'z' * 5000)", &s);
	assert_string_equal(s.spilled[0], "/tmp/cell-test-3-2.stdout");
	run_sh(&(struct spec){ 0 }, "test -e /home/user/victim && exit 1; exit 0", &o);
	assert_int_equal(o.exit.code, 0);
}

/* Without a disk the rest is counted and dropped; without an end the file has one. */
static void test_spill_lost(void **state)
{
	const struct cell_spec limited = { .output_bytes = 1000, .wall_ms = 1500 };

	(void)state;
	cell_run(&limited, "while True: os.write(1, b'z' * 65536)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_WALL);
	assert_int_equal(s.n_out, 1000);
	run_sh(&(struct spec){ 0 },
	       "[ $(stat -c %s /tmp/cell-test-1.stdout) -le 67108864 ]; echo $?; "
	       "rm /tmp/cell-test-1.stdout; head -c 300M /dev/zero >/tmp/full",
	       &o);
	assert_memory_equal(o.text, "0\n", 2);
	cell_run(&(struct cell_spec){ .output_bytes = 1000 }, "os.write(1, b'z' * 1000000)", &s);
	assert_int_equal(s.end.reason, WIRE_CELL_DONE);
	assert_int_equal(s.end.out_bytes, 1000000);
	run_sh(&(struct spec){ 0 }, "rm -f /tmp/full /tmp/cell-*; echo ok", &o);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int cases_kernel_end(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hang_up),
		TEST(test_tell_interrupt),
		TEST(test_deaf),
		TEST(test_kill),
		TEST(test_death),
		TEST(test_broken_protocol),
		TEST(test_wall),
		TEST(test_pause),
		TEST(test_cpu),
		TEST(test_memory),
		TEST(test_spill),
		TEST(test_spill_lost),
		TEST(test_death_with_heirs),
		TEST(test_second_error),
	};

	return cmocka_run_group_tests_name("kernel-end", tests, drive_open, drive_close);
}
