/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who came from outside to become a command: we are that one, or seem to be. The pid we tell is that of a
 * command in the box, a child of the agent as a real one is, whose end is then that of the command.
 */
#include "drive.h"

#include "sys/sock.h"

#include <poll.h>

static struct outcome o;
static int ours = -EBADF;

static const struct spec spec = { .flags = WIRE_EXEC_RUNNER };

static void send_runner(void)
{
	int pair[2];

	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(wire_send_fds(box.control_fd, WIRE_RUNNER, NULL, 0, &pair[1], 1), 0);
	fd_close(pair[1]);
	ours = pair[0];
}

static void say_started(int sock, uint32_t pid, uint32_t forked)
{
	const struct wire_process me = { .pid = pid, .forked = forked };

	assert_int_equal(wire_send(sock, WIRE_STARTED, &me, sizeof(me)), 0);
}

/* The agent has lost interest. */
static void expect_hangup(void)
{
	assert_false(quiet(ours, WAIT_MS));
	assert_true(wire_recv(ours, &got, WIRE_ON_CONTROL) <= 0);
	fd_closep(&ours);
}

static void expect_executed(const char *script, const char *output)
{
	int sock = sh_start(&spec, script);

	(void)expect_started(sock);
	assert_int_equal(((const struct wire_process *)got.data)->forked, 0);
	follow(sock, &o);
	assert_string_equal(o.text, output);
	assert_int_equal(o.exit.code, 0);
}

static void test_none(void **state)
{
	(void)state;
	expect_executed("echo no runner", "no runner\n");
}

static void test_gone(void **state)
{
	(void)state;
	send_runner();
	fd_closep(&ours);
	expect_executed("echo gone", "gone\n");
}

static void test_late(void **state)
{
	(void)state;
	send_runner();
	expect_executed("echo late", "late\n");
	expect_hangup();
}

static void test_nonsense(void **state)
{
	static const uint32_t pids[] = { 0, 1, 0x80000000u };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		send_runner();
		say_started(ours, pids[i], 1);
		expect_executed("echo nonsense", "nonsense\n");
		expect_hangup();
	}
	send_runner();
	assert_int_equal(wire_send(ours, WIRE_DONE, NULL, 0), 0);
	expect_executed("echo nonsense", "nonsense\n");
	expect_hangup();
}

/* There is one at most, the last. */
static void test_second(void **state)
{
	int first;

	(void)state;
	send_runner();
	first = ours;
	send_runner();
	fd_closep(&ours);
	ours = first;
	expect_hangup();
	expect_executed("echo second", "second\n");
}

/* Who does not ask for it does not get it. */
static void test_not_asked(void **state)
{
	(void)state;
	send_runner();
	run_sh(&(struct spec){ 0 }, "echo mine", &o);
	assert_string_equal(o.text, "mine\n");
	assert_true(quiet(ours, 50));
	fd_closep(&ours);
	expect_executed("echo gone", "gone\n");
}

static void take_over(int fds[_WIRE_RUNNER_MAX])
{
	size_t n = _WIRE_RUNNER_MAX;

	assert_false(quiet(ours, WAIT_MS));
	assert_int_equal(wire_recv_fds(ours, &got, WIRE_ON_CONTROL, fds, &n), 1);
	assert_int_equal(got.head.type, WIRE_EXEC);
	assert_int_equal(n, WIRE_RUNNER_IN);
	fds[WIRE_RUNNER_IN] = -EBADF;
}

/* What it says, prints and how it ends is the command's. */
static void test_becomes(void **state)
{
	int fds[_WIRE_RUNNER_MAX], sock, other = sh_start(&(struct spec){ 0 }, "sleep 3; exit 7");
	uint32_t pid = expect_started(other);

	(void)state;
	send_runner();
	say_started(ours, pid, 1);
	sock = sh_start(&spec, "echo not this");
	take_over(fds);
	say_started(fds[WIRE_RUNNER_STATUS], pid, 1);
	assert_int_equal(write(fds[WIRE_RUNNER_OUT], "this", 4), 4);
	for (size_t i = 0; i < _WIRE_RUNNER_MAX; i++)
		fd_closep(&fds[i]);
	assert_int_equal(expect_started(sock), pid);
	assert_int_equal(((const struct wire_process *)got.data)->forked, 1);
	follow(sock, &o);
	assert_string_equal(o.text, "this");
	assert_int_equal(o.exit.code, 7);
	expect_hangup();
	fd_close(other);
}

/* One that cannot says why. */
static void test_fails(void **state)
{
	const struct wire_failed failed = { .step = WIRE_STEP_CWD, .err = ENOTDIR };
	int fds[_WIRE_RUNNER_MAX], sock, other = sh_start(&(struct spec){ 0 }, "sleep 3");
	uint32_t pid = expect_started(other);

	(void)state;
	send_runner();
	say_started(ours, pid, 1);
	sock = sh_start(&spec, "true");
	take_over(fds);
	assert_int_equal(wire_send(fds[WIRE_RUNNER_STATUS], WIRE_FAILED, &failed, sizeof(failed)),
			 0);
	for (size_t i = 0; i < _WIRE_RUNNER_MAX; i++)
		fd_closep(&fds[i]);
	expect_failed(sock, WIRE_STEP_CWD, ENOTDIR);
	expect_hangup();
	fd_close(other);
}

int cases_runner(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),    cmocka_unit_test(test_gone),
		cmocka_unit_test(test_late),    cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_second),  cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_becomes), cmocka_unit_test(test_fails),
	};

	return cmocka_run_group_tests_name("runner", tests, drive_open, drive_close);
}
