/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, following, listing, and how many at once. */
#include "drive.h"

#include "agent/agent.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct outcome o, o2;

static void test_run(void **state)
{
	int sock;

	(void)state;
	run_sh(&(struct spec){ 0 }, "echo out; echo err >&2; exit 3", &o);
	assert_int_equal(o.exit.code, 3);
	assert_int_equal(o.exit.signal, 0);
	assert_int_equal(o.len, 8);
	assert_true(o.pid > 1);
	run_sh(&(struct spec){ 0 }, "kill -SEGV $$", &o);
	assert_int_equal(o.exit.code, -1);
	assert_int_equal(o.exit.signal, 11);
	sock = exec_start(&(struct spec){ 0 }, (const char *const[]){ "no-such-program", NULL });
	expect_failed(sock, WIRE_STEP_EXEC, ENOENT);
	sock = sh_start(&(struct spec){ .cwd = "/no/such/place" }, "true");
	expect_failed(sock, WIRE_STEP_CWD, ENOENT);
}

/* Two followers from the start on, a third from the middle; each gets every byte after its STARTED. */
static void test_followers(void **state)
{
	int first = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN },
			     "echo one; read x; echo $x; exit 4"),
	    second;
	uint32_t pid = expect_started(first);

	(void)state;
	assert_int_equal(next_frame(first), WIRE_OUT);
	assert_memory_equal(got.data, "one\n", 4);
	second = attach(pid);
	assert_int_equal(expect_started(second), pid);
	send_input(pid, "two\n");
	follow(first, &o);
	follow(second, &o2);
	assert_string_equal(o.text, "two\n");
	assert_string_equal(o2.text, "two\n");
	assert_int_equal(o.exit.code, 4);
	assert_int_equal(o2.exit.code, 4);
}

/* Whoever hangs up stops following; the command goes on, and can be followed again. */
static void test_detach(void **state)
{
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN },
			    "while read x; do echo got $x; done; echo over");
	uint32_t pid = expect_started(sock);

	(void)state;
	fd_close(sock);
	send_input(pid, "nobody listens\n");
	sock = attach(pid);
	assert_int_equal(expect_started(sock), pid);
	send_input(pid, "again\n");
	do
		assert_int_equal(next_frame(sock), WIRE_OUT);
	while (!memmem(got.data, wire_len(&got), "again", 5));
	assert_int_equal(tell(pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_string_equal(o.text, "over\n");
	assert_int_equal(o.exit.code, 0);
}

/* Without followers 10 MB are read and dropped, and the command is not held up. */
static void test_unfollowed_output(void **state)
{
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN },
			    "read x; head -c 10000000 /dev/zero; echo x >/tmp/unfollowed");
	uint32_t pid = expect_started(sock);

	(void)state;
	fd_close(sock);
	send_input(pid, "go\n");
	run_sh(&(struct spec){ 0 },
	       "for i in $(seq 1000); do [ -s /tmp/unfollowed ] && exit 0; sleep 0.05; done; exit 1",
	       &o);
	assert_int_equal(o.exit.code, 0);
}

/* A follower that does not read holds its command back, and nobody else. */
static void test_slow_follower(void **state)
{
	int slow = sh_start(&(struct spec){ 0 }, "head -c 3000000 /dev/zero; exit 5"), other;
	uint32_t pid = expect_started(slow);

	(void)state;
	other = attach(pid);
	assert_int_equal(expect_started(other), pid);
	run_sh(&(struct spec){ 0 }, "echo free", &o);
	assert_string_equal(o.text, "free\n");
	/* The other one gets what fits into the slow one's socket, then waits with it. */
	while (!quiet(other, 300))
		assert_int_equal(next_frame(other), WIRE_OUT);
	fd_close(other);
	follow(slow, &o);
	assert_int_equal(o.len, 3000000);
	assert_int_equal(o.exit.code, 5);

	/* Hanging up lets go at once. */
	slow = sh_start(&(struct spec){ 0 }, "head -c 3000000 /dev/zero; exit 6");
	pid = expect_started(slow);
	other = attach(pid);
	(void)expect_started(other);
	while (!quiet(other, 300))
		assert_int_equal(next_frame(other), WIRE_OUT);
	fd_close(slow);
	follow(other, &o);
	assert_int_equal(o.exit.code, 6);
}

static void test_follower_bound(void **state)
{
	int sock = sh_start(&(struct spec){ 0 }, "sleep 60"), more[7], beyond;
	uint32_t pid = expect_started(sock);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = attach(pid);
		assert_int_equal(expect_started(more[i]), pid);
	}
	beyond = attach(pid);
	expect_failed(beyond, WIRE_STEP_PROCESS, EAGAIN);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		follow(more[i], &o2);
		assert_int_equal(o2.exit.signal, 9);
	}
}

static void test_late_attach(void **state)
{
	int sock;

	(void)state;
	run_sh(&(struct spec){ 0 }, "exit 42", &o);
	sock = attach(o.pid);
	assert_int_equal(expect_started(sock), o.pid);
	follow(sock, &o2);
	assert_int_equal(o2.exit.code, 42);
	assert_int_equal(o2.len, 0);
	expect_failed(attach(99999), WIRE_STEP_PROCESS, ESRCH);
	assert_int_equal(tell(o.pid, WIRE_TELL_SIGNAL, 15, 0, 0), WIRE_FAILED);
}

/* A command that was not to be kept ends with its only follower. */
static void test_not_kept(void **state)
{
	int sock = sh_start(&(struct spec){ .not_kept = true },
			    "echo $$; trap '' TERM HUP; while :; do sleep 0.1; done");
	uint32_t pid = expect_started(sock);
	char script[96];

	(void)state;
	fd_close(sock);
	(void)snprintf(
		script, sizeof(script),
		"for i in $(seq 1000); do kill -0 %u 2>/dev/null || exit 0; sleep 0.05; done; exit 1",
		pid);
	run_sh(&(struct spec){ 0 }, script, &o);
	assert_int_equal(o.exit.code, 0);
	expect_failed(attach(pid), WIRE_STEP_PROCESS, ESRCH);
}

/* Counts what LIST tells; finds one with its label. */
static size_t list(uint32_t pid, const char *label)
{
	int sock = op_open(&box, WIRE_LIST, NULL, 0);
	size_t n = 0;
	bool found = !label;

	while (next_frame(sock) == WIRE_PROCESS) {
		const struct wire_process *p = (const struct wire_process *)got.data;
		size_t len = wire_len(&got) - sizeof(*p);

		n++;
		if (label && p->pid == pid)
			found = len == strlen(label) && memcmp(p + 1, label, len) == 0;
	}
	assert_int_equal(got.head.type, WIRE_DONE);
	expect_end(sock);
	assert_true(found);
	return n;
}

static void test_list(void **state)
{
	static char long_label[60001];
	int one = sh_start(&(struct spec){ .label = "{\"tag\":\"x\"}" }, "sleep 60"), two;
	uint32_t pid = expect_started(one), pid2;
	size_t n = list(pid, "{\"tag\":\"x\"}");

	(void)state;
	assert_true(n >= 1);
	memset(long_label, 'l', sizeof(long_label) - 1);
	two = sh_start(&(struct spec){ .label = long_label }, "sleep 60");
	pid2 = expect_started(two);
	assert_int_equal(list(pid2, long_label), n + 1);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	assert_int_equal(tell(pid2, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(one, &o);
	follow(two, &o);
	assert_int_equal(list(0, NULL), n - 1);
}

#define AT_ONCE 256

/* As many as there is room for, then one too many; ended ones make room. */
static void test_full_table(void **state)
{
	static int socks[AT_ONCE];
	const struct wire_exec beyond = { .flags = WIRE_EXEC_KEEP };
	size_t running = list(0, NULL), n = 0;

	(void)state;
	while (n < AT_ONCE - running) {
		socks[n] = exec_start(&(struct spec){ 0 },
				      (const char *const[]){ "/usr/bin/sleep", "300", NULL });
		(void)expect_started(socks[n++]);
	}
	assert_int_equal(list(0, NULL), AT_ONCE);
	expect_failed(op_open(&box, WIRE_EXEC, &beyond, sizeof(beyond)), WIRE_STEP_REQUEST, EAGAIN);
	for (size_t i = 0; i < n; i++)
		fd_close(socks[i]);
	/* All of them are remembered for a while, and make room for who comes. */
	run_sh(&(struct spec){ .box = &plain_box }, "true", &o);
	for (size_t i = 0; i < 3; i++) {
		int sock = op_open(&box, WIRE_LIST, NULL, 0);
		uint32_t pid;

		assert_int_equal(next_frame(sock), WIRE_PROCESS);
		pid = ((const struct wire_process *)got.data)->pid;
		fd_close(sock);
		assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
		sock = attach(pid);
		(void)expect_started(sock);
		follow(sock, &o);
		run_sh(&(struct spec){ 0 }, "echo room", &o);
		assert_string_equal(o.text, "room\n");
	}
}

static void kill_all(void)
{
	int sock = op_open(&box, WIRE_LIST, NULL, 0);
	static uint32_t pids[AT_ONCE];
	size_t n = 0;

	while (next_frame(sock) == WIRE_PROCESS)
		pids[n++] = ((const struct wire_process *)got.data)->pid;
	expect_end(sock);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(tell(pids[i], WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
}

/* Three hundred, one after the other, over a table full of ended ones. */
static void test_300(void **state)
{
	size_t before = 0;

	(void)state;
	kill_all();
	for (int i = 0; i == 0 || (i < 40 && list(0, NULL) > 0); i++)
		run_sh(&(struct spec){ 0 }, "sleep 0.5", &o); /* until all of them are gone */
	before = agent_fds();
	for (int i = 0; i < 300; i++) {
		int sock = exec_start(&(struct spec){ 0 },
				      (const char *const[]){ "/bin/echo", "hello", NULL });

		(void)expect_started(sock);
		follow(sock, &o);
		assert_string_equal(o.text, "hello\n");
	}
	assert_int_equal(list(0, NULL), 0);
	assert_int_equal(agent_fds(), before);
}

/* No number is free for a request's descriptors: that request is over, and not the box. */
static void test_no_number_free(void **state)
{
	struct rlimit full, before;

	(void)state;
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, NULL, &before), 0);
	full = before;
	full.rlim_cur = AGENT_CONTROL_FD + 1; /* what it polls is not more than that */
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &full, NULL), 0);
	expect_end(op_open(&box, WIRE_LIST, NULL, 0));
	assert_int_equal(prlimit(box.pid, RLIMIT_NOFILE, &before, NULL), 0);
	run_sh(&(struct spec){ 0 }, "echo lives", &o);
	assert_string_equal(o.text, "lives\n");
}

int cases_life(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_no_number_free),
		cmocka_unit_test(test_followers),
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_unfollowed_output),
		cmocka_unit_test(test_slow_follower),
		cmocka_unit_test(test_follower_bound),
		cmocka_unit_test(test_late_attach),
		cmocka_unit_test(test_not_kept),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_300),
	};

	return cmocka_run_group_tests_name("life", tests, drive_open, drive_close);
}
