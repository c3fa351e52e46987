/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input and terminals. */
#include "drive.h"

#include <signal.h>

static struct outcome o;

static void test_own_input(void **state)
{
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "cat; echo end");

	(void)state;
	(void)expect_started(sock);
	assert_int_equal(wire_send(sock, WIRE_IN, "abc\n", 4), 0);
	assert_int_equal(wire_send(sock, WIRE_IN_END, NULL, 0), 0);
	follow(sock, &o);
	assert_string_equal(o.text, "abc\nend\n");
	/* Without it the input is empty. */
	run_sh(&(struct spec){ 0 }, "cat; echo end", &o);
	assert_string_equal(o.text, "end\n");
}

static void test_writers(void **state)
{
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "cat"), a, b;
	uint32_t pid = expect_started(sock);

	(void)state;
	/* Two at once: each frame arrives whole. */
	a = input_open(pid);
	b = input_open(pid);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(wire_send(a, WIRE_IN, "aaaaaaa\n", 8), 0);
		assert_int_equal(wire_send(b, WIRE_IN, "bbbbbbb\n", 8), 0);
	}
	assert_int_equal(wire_send(a, WIRE_IN_END, NULL, 0), 0);
	assert_int_equal(wire_send(b, WIRE_IN_END, NULL, 0), 0);
	expect_done(a);
	expect_done(b);
	assert_int_equal(tell(pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_int_equal(o.len, 800);
	for (size_t i = 0; i < o.len; i += 8)
		assert_true(!memcmp(o.text + i, "aaaaaaa\n", 8) ||
			    !memcmp(o.text + i, "bbbbbbb\n", 8));
}

/* What a command does not read waits with its writer; others are not held up. */
static void test_unread_input(void **state)
{
	static unsigned char big[WIRE_DATA_MAX];
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "sleep 3; wc -c"), in;
	uint32_t pid = expect_started(sock);
	size_t sent = 0;

	(void)state;
	in = input_open(pid);
	for (; sent < 3; sent++)
		assert_int_equal(wire_send(in, WIRE_IN, big, sizeof(big)), 0);
	assert_int_equal(wire_send(in, WIRE_IN_END, NULL, 0), 0);
	assert_true(quiet(in, 200));
	run_sh(&(struct spec){ 0 }, "echo free", &o);
	assert_string_equal(o.text, "free\n");
	/* Closing comes after what was queued. */
	expect_done(in);
	assert_int_equal(tell(pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_string_equal(o.text, "196584\n");
}

/* A command ends and another begins in the same round of the agent: what the poll said of the one's input is not
 * meant for the other's. It comes before cases that leave places free below, where the other would go first. */
static void test_stale_writer(void **state)
{
	static unsigned char big[WIRE_DATA_MAX];
	const struct spec s = { .flags = WIRE_EXEC_STDIN, .not_kept = true };
	int ends = sh_start(&s, "cat"), begins;

	(void)state;
	(void)expect_started(ends);
	begins = exec_prepare(&s,
			      (const char *const[]){ "/bin/bash", "-c", "sleep 4; wc -c", NULL });
	run_sh(&(struct spec){ 0 }, "true",
	       &o); /* so the agent has started the other, up to its GO */
	assert_int_equal(kill(box.pid, SIGSTOP), 0);
	assert_int_equal(wire_send(begins, WIRE_GO, NULL, 0), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(wire_send(begins, WIRE_IN, big, sizeof(big)), 0);
	assert_int_equal(wire_send(begins, WIRE_IN_END, NULL, 0), 0);
	fd_close(ends);
	(void)sleep(1); /* in which the other executes */
	assert_int_equal(kill(box.pid, SIGCONT), 0);
	(void)expect_started(begins);
	follow(begins, &o);
	assert_string_equal(o.text, "131056\n");
}

static void test_no_input(void **state)
{
	int sock = sh_start(&(struct spec){ 0 }, "sleep 60"), closed;
	uint32_t pid = expect_started(sock);

	(void)state;
	expect_failed(input_open(pid), WIRE_STEP_PROCESS, EPIPE);
	assert_int_equal(tell(pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_FAILED);
	assert_int_equal(tell(pid, WIRE_TELL_RESIZE, 0, 10, 10), WIRE_FAILED);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
	expect_failed(input_open(pid), WIRE_STEP_PROCESS, ESRCH);

	/* One that closes its own. */
	sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN },
			"exec <&-; echo closed; sleep 60");
	pid = expect_started(sock);
	assert_int_equal(next_frame(sock), WIRE_OUT);
	closed = input_open(pid);
	assert_int_equal(wire_send(closed, WIRE_IN, "x", 1), 0);
	expect_failed(closed, WIRE_STEP_PROCESS, EPIPE);
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
}

/* A writer that talks nonsense loses its socket; the command does not notice. */
static void test_bad_writer(void **state)
{
	int sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "cat"), bad;
	uint32_t pid = expect_started(sock);

	(void)state;
	bad = input_open(pid);
	assert_int_equal(wire_send(bad, WIRE_GO, NULL, 0), 0);
	expect_end(bad);
	bad = input_open(pid);
	fd_close(bad);
	send_input(pid, "good\n");
	assert_int_equal(tell(pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_string_equal(o.text, "good\n");
}

static void test_pty(void **state)
{
	const struct spec s = { .flags = WIRE_EXEC_PTY, .rows = 24, .cols = 80 };
	int sock = exec_start(&s, (const char *const[]){ "/bin/bash", "-i", "-l", NULL }), closing;
	uint32_t pid = expect_started(sock);
	const struct wire_tell close_input = { .pid = pid, .what = WIRE_TELL_CLOSE_INPUT };

	(void)state;
	send_input(pid,
		   "PS1='READY> '; stty size; tty; echo $TERM; ls -l $(tty); id -un </dev/tty\n");
	await_text(sock, "24 80\r\n");
	await_text(sock, "user\r\n");
	assert_int_equal(tell(pid, WIRE_TELL_RESIZE, 0, 50, 132), WIRE_DONE);
	send_input(pid, "stty size\n");
	await_text(sock, "50 132\r\n");
	/* Job control: ^C ends what runs in front and not the shell. */
	send_input(pid, "echo n''ow; sleep 300\n");
	await_text(sock, "now\r\n");
	assert_true(quiet(sock, 300)); /* the shell has to start it first */
	send_input(pid, "\003");
	await_text(sock, "READY> ");
	send_input(pid, "echo status $?\n");
	await_text(sock, "status 130\r\n");
	closing = op_open(&box, WIRE_TELL, &close_input, sizeof(close_input));
	expect_failed(closing, WIRE_STEP_PROCESS, ENOTTY);
	send_input(pid, "exit 7\n");
	follow(sock, &o);
	assert_int_equal(o.exit.code, 7);
}

static void test_pty_kill(void **state)
{
	const struct spec s = { .flags = WIRE_EXEC_PTY, .rows = 24, .cols = 80 };
	int sock = exec_start(&s, (const char *const[]){ "/bin/bash", "-i", NULL });
	uint32_t pid = expect_started(sock);
	uint64_t begun;

	(void)state;
	send_input(pid, "trap '' HUP; bash -c 'trap \"\" HUP TERM; echo in''ner; sleep 300'\n");
	await_text(sock, "inner\r\n");
	begun = now_ms();
	assert_int_equal(tell(pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(sock, &o);
	assert_int_equal(o.exit.signal, 9);
	assert_true(now_ms() - begun < IN_TIME_MS);
	run_sh(&(struct spec){ 0 },
	       "for i in $(seq 200); do pgrep -f 'sleep 30[0]' >/dev/null || exit 0; sleep 0.05; done;"
	       " pgrep -af 'sleep 30[0]'; exit 1",
	       &o);
	if (o.exit.code != 0)
		fail_msg("code %d, signal %d: %s", o.exit.code, o.exit.signal, o.text);
}

static void expect_refused(uint32_t pid, enum wire_input_kind kind)
{
	const struct wire_input q = { .pid = pid, .kind = kind };

	expect_failed(op_open(&box, WIRE_INPUT, &q, sizeof(q)), WIRE_STEP_PROCESS, ENOTTY);
}

/* Who means a terminal must not write into a pipe, and the other way round. */
static void test_input_kind(void **state)
{
	const struct spec terminal = { .flags = WIRE_EXEC_PTY, .rows = 24, .cols = 80 };
	int pipe_sock = sh_start(&(struct spec){ .flags = WIRE_EXEC_STDIN }, "cat");
	int pty_sock = exec_start(&terminal, (const char *const[]){ "/bin/cat", NULL });
	uint32_t pipe_pid = expect_started(pipe_sock), pty_pid = expect_started(pty_sock);

	(void)state;
	expect_refused(pipe_pid, WIRE_INPUT_PTY);
	expect_refused(pty_pid, WIRE_INPUT_PIPE);
	send_input(pipe_pid, "any\n");
	assert_int_equal(tell(pipe_pid, WIRE_TELL_CLOSE_INPUT, 0, 0, 0), WIRE_DONE);
	follow(pipe_sock, &o);
	assert_string_equal(o.text, "any\n");
	assert_int_equal(tell(pty_pid, WIRE_TELL_SIGNAL, 9, 0, 0), WIRE_DONE);
	follow(pty_sock, &o);
}

/* Arguments and variables longer than a frame. */
static void test_more(void **state)
{
	static const char script[] = "echo ${#1} ${#LONG}";
	static char text[60000];
	const struct wire_exec q = { .uid = 1000,
				     .gid = 1000,
				     .flags = WIRE_EXEC_KEEP,
				     .fsize_max = 1 << 20,
				     .nofile_max = 256 };
	const char *const args[] = { "sh", "-c", script, "sh" };
	int sock = op_open(&box, WIRE_EXEC, &q, sizeof(q));

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(wire_send(sock, WIRE_USER, "user", 4), 0);
	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		assert_int_equal(wire_send(sock, WIRE_ARG, args[i], strlen(args[i])), 0);
	assert_int_equal(wire_send(sock, WIRE_ARG, text, sizeof(text)), 0);
	assert_int_equal(wire_send(sock, WIRE_MORE, text, sizeof(text)), 0);
	assert_int_equal(wire_send(sock, WIRE_MORE, text, 100), 0);
	assert_int_equal(wire_send2(sock, WIRE_ENV, "LONG=", 5, text, 50000), 0);
	assert_int_equal(wire_send(sock, WIRE_MORE, text, sizeof(text)), 0);
	assert_int_equal(wire_send(sock, WIRE_ENV, "PATH=/bin", 9), 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	(void)expect_started(sock);
	follow(sock, &o);
	assert_string_equal(o.text, "120100 110000\n");
}

/* There is nothing that it could go on with. */
static void test_more_first(void **state)
{
	const struct wire_exec q = { .uid = 1000, .gid = 1000, .nofile_max = 256 };
	int sock = op_open(&box, WIRE_EXEC, &q, sizeof(q));

	(void)state;
	assert_int_equal(wire_send(sock, WIRE_MORE, "x", 1), 0);
	expect_failed(sock, WIRE_STEP_REQUEST, EINVAL);
}

int cases_input(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_input),    cmocka_unit_test(test_writers),
		cmocka_unit_test(test_unread_input), cmocka_unit_test(test_stale_writer),
		cmocka_unit_test(test_no_input),     cmocka_unit_test(test_bad_writer),
		cmocka_unit_test(test_pty),          cmocka_unit_test(test_pty_kill),
		cmocka_unit_test(test_input_kind),   cmocka_unit_test(test_more),
		cmocka_unit_test(test_more_first),
	};

	return cmocka_run_group_tests_name("input", tests, drive_open, drive_close);
}
