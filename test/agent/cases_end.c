/* SPDX-License-Identifier: Apache-2.0 */
/* Time-outs, signals, and who holds the pipes. */
#include "drive.h"

static struct outcome o;

static void test_timeout(void **state)
{
	uint64_t begun = now_ms(), took;
	int sock;

	(void)state;
	run_sh(&(struct spec){ .timeout_ms = 2000 }, "trap '' TERM; echo in; sleep 60 & sleep 60",
	       &o);
	took = now_ms() - begun;
	assert_string_equal(o.text, "in\n");
	assert_int_equal(o.exit.timed_out, 1);
	assert_int_equal(o.exit.signal, 9);
	assert_true(took >= 1999 && took < IN_TIME_MS);
	/* Its group went with it. */
	run_sh(&(struct spec){ 0 },
	       "for i in $(seq 200); do pgrep -x sleep || exit 0; sleep 0.05; done; exit 1", &o);
	assert_int_equal(o.exit.code, 0);
	/* One that is in time. */
	run_sh(&(struct spec){ .timeout_ms = 60000 }, "exit 1", &o);
	assert_int_equal(o.exit.timed_out, 0);
	/* Nobody needs to follow it. */
	sock = sh_start(&(struct spec){ .timeout_ms = 3000 }, "sleep 60");
	o.pid = expect_started(sock);
	fd_close(sock);
	sock = attach(o.pid);
	(void)expect_started(sock);
	follow(sock, &o);
	assert_int_equal(o.exit.timed_out, 1);
}

/* A straggler outside the group holds the pipe: a time-out does not wait for it. */
static void test_timeout_straggler(void **state)
{
	uint64_t begun = now_ms();

	(void)state;
	run_sh(&(struct spec){ .timeout_ms = 300 }, "setsid sleep 50 & sleep 60", &o);
	assert_int_equal(o.exit.timed_out, 1);
	assert_true(now_ms() - begun < IN_TIME_MS);
	/* Nor when the command itself has ended in time and only the straggler is left. */
	begun = now_ms();
	run_sh(&(struct spec){ .timeout_ms = 3000 }, "setsid sleep 50 & exit 0", &o);
	assert_int_equal(o.exit.timed_out, 1);
	assert_int_equal(o.exit.code, 0);
	assert_true(now_ms() - begun < IN_TIME_MS);
}

/* A background child that holds the pipe is part of what was asked for. */
static void test_background(void **state)
{
	uint64_t begun = now_ms();

	(void)state;
	run_sh(&(struct spec){ 0 }, "(sleep 1; echo late) & echo early", &o);
	assert_string_equal(o.text, "early\nlate\n");
	assert_int_equal(o.exit.code, 0);
	assert_true(now_ms() - begun >= 900);
	/* Not when it gave its pipes up. */
	begun = now_ms();
	run_sh(&(struct spec){ 0 }, "sleep 50 >/dev/null 2>&1 & echo early", &o);
	assert_true(now_ms() - begun < IN_TIME_MS);
}

static void test_signal(void **state)
{
	int sock = sh_start(&(struct spec){ 0 }, "sleep 60 & echo up; wait"), r;
	uint32_t pid = expect_started(sock);
	uint64_t begun;

	(void)state;
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 15, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_int_equal(o.exit.signal, 15);

	/* Each process of the group gets it, and once. */
	sock = sh_start(
		&(struct spec){ 0 },
		"n=0; trap 'n=$((n+1))' USR1; echo up; for i in 1 2 3 4 5; do sleep 1; done; echo $n");
	pid = expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 10, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_non_null(strstr(o.text, "1\n"));

	/* KILL does not wait for a straggler with the pipes. */
	sock = sh_start(&(struct spec){ 0 }, "setsid sleep 50 & echo up; sleep 60");
	pid = expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	begun = now_ms();
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_int_equal(o.exit.signal, 9);
	assert_true(now_ms() - begun < IN_TIME_MS);
	r = op_open(&box, WIRE_TELL,
		    &(struct wire_tell){ .pid = 4000000, .what = WIRE_TELL_SIGNAL, .signal = 9 },
		    sizeof(struct wire_tell));
	expect_failed(r, WIRE_STEP_PROCESS, ESRCH);
}

/* Many with the same deadline: all of them end near it. */
static void test_deadlines(void **state)
{
	int socks[50];
	uint64_t begun = now_ms();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(socks); i++)
		socks[i] = exec_start(&(struct spec){ .timeout_ms = 1500 },
				      (const char *const[]){ "/usr/bin/sleep", "60", NULL });
	for (size_t i = 0; i < ARRAY_SIZE(socks); i++) {
		(void)expect_started(socks[i]);
		follow(socks[i], &o);
		assert_int_equal(o.exit.timed_out, 1);
	}
	assert_true(now_ms() - begun < IN_TIME_MS);
}

/* What a follower does not read keeps an ended command's pipes open: the agent sleeps until then. */
static void test_unread_end(void **state)
{
	int sock = sh_start(&(struct spec){ 0 }, "yes");
	uint32_t pid = expect_started(sock);
	uint64_t before;

	(void)state;
	(void)sleep(1);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	(void)sleep(1);
	before = agent_cpu_ms();
	(void)sleep(1);
	assert_in_range(agent_cpu_ms() - before, 0, 100);
	follow(sock, &o);
	assert_int_equal(o.exit.signal, 9);
}

int cases_end(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeout),    cmocka_unit_test(test_timeout_straggler),
		cmocka_unit_test(test_background), cmocka_unit_test(test_signal),
		cmocka_unit_test(test_deadlines),  cmocka_unit_test(test_unread_end),
	};

	return cmocka_run_group_tests_name("end", tests, drive_open, drive_close);
}
