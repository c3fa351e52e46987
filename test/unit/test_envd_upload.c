/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A large upload and an agent that may do anything with the pipe it is given (AG-05, AG-09): the test is the agent, which
 * acts when the server waits for it, and the client, of whom world.coming bytes are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/envd/envd.h"
#include "server/http/exchange.h"
#include "sys/sock.h"
#include "server_rest.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#define SIZE (UINT64_C(3) << 20) /* of the body: three times what the pipe holds */
#define FIRST 1000               /* of it through the library */
#define FLOODS_MAX 100           /* nobody listens for so many seconds */

static struct {
	int agent;     /* the agent's end, */
	int pipe_fd;   /* and what it was given */
	uint64_t told; /* how many bytes it is to read from that */
	uint64_t got;  /* how many it has read, of both ways */
	bool ended;    /* FILE_END came */
	uint64_t rest; /* of the body */
	uint64_t coming;
	bool client_gone;
	bool stuck;       /* what is coming cannot be moved */
	unsigned splices; /* how often it was tried */
	unsigned status;
	unsigned floods;    /* frames that nobody asked for */
	void (*acts)(void); /* the agent, whenever it is waited for */
} world;

static struct sandbox sandbox;
static struct request request;

/* In the place of libc's: a second passes whenever the agent floods. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	ret->tv_sec += world.floods;
	return (int)r;
}

/* --- the rest of the server ------------------------------------------------------------------------- */

const char *request_header(const struct request *r, const char *name)
{
	(void)r;
	return strcmp(name, "Content-Type") == 0 ? "application/octet-stream" : NULL;
}

const char *request_query(const struct request *r, const char *name)
{
	(void)r;
	return strcmp(name, "path") == 0 ? "file" : NULL;
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	assert_non_null(body);
	assert_false(r->replied);
	r->replied = true;
	world.status = status;
	json_decref(body);
	return 0;
}

int reply_error(struct request *r, unsigned status, const char *fmt, ...)
{
	(void)fmt;
	return reply_json(r, status, json_object());
}

int op_open(struct sandbox *b, enum wire_type type, const void *data, size_t len, struct op *ret)
{
	int pair[2];

	(void)data;
	(void)len;
	assert_int_equal(type, WIRE_FS);
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	*ret = (struct op){ .sock = pair[0], .theirs = -EBADF, .sandbox = b };
	world.agent = pair[1];
	return 0;
}

/* The agent acts, and what it has not done by then does not come. */
static int wait_for(int fd, short events, int other_fd)
{
	struct pollfd p[] = { { .fd = fd, .events = events },
			      { .fd = other_fd, .events = POLLIN } };

	if (world.acts)
		world.acts();
	if (poll(p, ARRAY_SIZE(p), 50) > 0)
		return 1;
	return world.client_gone ? -ECONNRESET : 0;
}

int stream_wait(struct request *r, int fd, int timeout_ms)
{
	(void)r;
	(void)timeout_ms;
	return wait_for(fd, POLLIN, -EBADF);
}

int stream_wait_space(struct request *r, int fd, int other_fd, int timeout_ms)
{
	(void)r;
	assert_true(timeout_ms > 0); /* AG-09 */
	return wait_for(fd, POLLOUT, other_fd);
}

uint64_t body_rest(const struct request *r)
{
	(void)r;
	return world.rest;
}

ssize_t body_splice(struct request *r, int pipe_fd)
{
	static const char zeros[65536];
	ssize_t n;

	(void)r;
	world.splices++;
	if (world.stuck)
		return -EAGAIN;
	if (world.coming == 0)
		return world.client_gone ? -ECONNRESET : -EAGAIN;
	n = write(pipe_fd, zeros, MIN(MIN(world.coming, world.rest), sizeof(zeros)));
	if (n < 0)
		return -errno;
	world.coming -= (uint64_t)n;
	world.rest -= (uint64_t)n;
	return n;
}

int body_wait(struct request *r, int other_fd)
{
	struct pollfd p = { .fd = other_fd, .events = POLLIN };

	(void)r;
	if (poll(&p, 1, 0) > 0 || world.coming)
		return 1;
	world.client_gone = true; /* nobody else runs */
	return -ECONNRESET;
}

/* --- the agent ---------------------------------------------------------------------------------------- */

static void say_failed(uint32_t step, int err)
{
	const struct wire_failed failed = { .step = step, .err = err };

	assert_int_equal(wire_send(world.agent, WIRE_FAILED, &failed, sizeof(failed)), 0);
}

static void say_entry(void)
{
	const struct {
		struct wire_fs_entry head;
		char texts[17]; /* path, owner, group */
	} entry = {
		.head = { .type = WIRE_FS_FILE,
			  .size = world.got,
			  .path_len = sizeof(entry.texts) - 2,
			  .owner_len = 1,
			  .group_len = 1 },
		.texts = "/home/user/fileug",
	};

	assert_int_equal(wire_send(world.agent, WIRE_ENTRY, &entry,
				   offsetof(__typeof__(entry), texts) + sizeof(entry.texts)),
			 0);
}

/* Takes the next frame: false when there is none. */
static bool take_frame(void)
{
	static struct wire_frame f;
	int fd = -EBADF;
	size_t n_fds = 1;

	if (world.agent < 0 || wire_recv_fds(world.agent, &f, WIRE_ON_TO_OP, &fd, &n_fds) <= 0)
		return false;
	assert_int_equal(n_fds, f.head.type == WIRE_PIPE);
	if (f.head.type == WIRE_DATA)
		world.got += wire_len(&f);
	world.ended |= f.head.type == WIRE_FILE_END;
	if (f.head.type == WIRE_PIPE) {
		world.pipe_fd = fd;
		world.told = ((const struct wire_pipe *)(const void *)f.data)->bytes;
		assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	}
	return true;
}

static void take_frames(void)
{
	while (take_frame())
		;
}

static void behave(void)
{
	static char data[65536];
	ssize_t n;

	take_frames();
	while (world.pipe_fd >= 0 && (n = read(world.pipe_fd, data, sizeof(data))) > 0)
		world.got += (uint64_t)n;
	if (world.ended)
		say_entry();
}

static void close_without_a_word(void)
{
	take_frames();
	fd_closep(&world.pipe_fd);
	fd_closep(&world.agent);
}

static void close_only_the_pipe(void)
{
	take_frames();
	fd_closep(&world.pipe_fd);
}

static void be_full(void)
{
	take_frames();
	if (world.pipe_fd < 0)
		return;
	fd_closep(&world.pipe_fd);
	say_failed(WIRE_STEP_FILE, ENOSPC);
}

/* Says so, but keeps the pipe. */
static void be_full_and_keep(void)
{
	int before = world.pipe_fd;

	take_frames();
	if (before < 0 && world.pipe_fd >= 0)
		say_failed(WIRE_STEP_FILE, ENOSPC);
}

static void fail_with_nonsense(void)
{
	take_frames();
	if (world.pipe_fd < 0)
		return;
	fd_closep(&world.pipe_fd);
	say_failed(77, -1);
}

static void claim_to_have_it(void)
{
	int before = world.pipe_fd;

	take_frames();
	if (before < 0 && world.pipe_fd >= 0)
		say_entry();
}

static void flood(void)
{
	assert_true(++world.floods < FLOODS_MAX);
	assert_int_equal(wire_send(world.agent, WIRE_DATA, "x", 1), 0);
}

/* --- the test's own ----------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	agent_broke_protocol = 0;
	world.agent = world.pipe_fd = -EBADF;
	world.rest = SIZE;
	world.coming = SIZE;
	request = (struct request){ .sandbox = &sandbox };
	(void)snprintf(sandbox.info.id, sizeof(sandbox.info.id), "i1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	envd_upload_done(&request);
	fd_closep(&world.pipe_fd);
	fd_closep(&world.agent);
	return 0;
}

/* Runs the upload up to its reply. What the server leaves of the body comes to it as pieces. */
static void upload(int want)
{
	static const char piece[65536];

	assert_int_equal(envd_upload_begin(&request), 0);
	assert_int_equal(envd_upload_data(&request, piece, FIRST), want);
	while (want == 0 && world.rest > 0) {
		size_t n = MIN(world.rest, sizeof(piece));

		world.rest -= n;
		assert_int_equal(envd_upload_data(&request, piece, n), 0);
	}
}

static void expect(void (*acts)(void), unsigned status, unsigned broken)
{
	world.acts = acts;
	upload(0);
	assert_int_equal(envd_upload_handle(&request), 0);
	assert_int_equal(world.status, status);
	assert_int_equal(agent_broke_protocol, broken);
}

/* Nothing holds the write end any more: whoever reads the pipe finds its end. */
static void expect_pipe_ended(void)
{
	struct pollfd p = { .fd = world.pipe_fd };

	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true(p.revents & POLLHUP);
}

static void test_whole(void **state)
{
	(void)state;
	expect(behave, 200, 0);
	assert_int_equal(world.told, SIZE);
	assert_int_equal(world.got, FIRST + SIZE);
	assert_true(world.ended);
	expect_pipe_ended();
}

static void test_hangs_up(void **state)
{
	(void)state;
	expect(close_without_a_word, 502, 0);
}

static void test_closes_the_pipe(void **state)
{
	(void)state;
	expect(close_only_the_pipe, 504, 0); /* it is waited for, and does not come */
}

static void test_full(void **state)
{
	(void)state;
	expect(be_full, 507, 0);
}

static void test_full_and_keeps(void **state)
{
	(void)state;
	expect(be_full_and_keep, 507, 0);
	expect_pipe_ended();
}

static void test_does_not_read(void **state)
{
	(void)state;
	expect(take_frames, 504, 0);
	expect_pipe_ended();
	assert_false(world.ended);
}

static void test_nonsense(void **state)
{
	(void)state;
	expect(fail_with_nonsense, 500, 1);
}

static void test_too_early(void **state)
{
	(void)state;
	expect(claim_to_have_it, 500, 1);
	assert_false(world.ended);
}

static void test_client_gone(void **state)
{
	(void)state;
	world.acts = behave;
	world.coming = SIZE / 2;
	upload(-ECONNRESET);
	assert_false(world.ended);
	expect_pipe_ended();
}

/* An agent that talks on after the upload was given up is not listened to for ever. */
static void test_floods(void **state)
{
	(void)state;
	expect(flood, 500, 1);
}

/* Bytes that are there and cannot be moved are not waited for again and again. */
static void test_stuck(void **state)
{
	(void)state;
	world.acts = behave;
	world.stuck = true;
	upload(-ECONNRESET);
	assert_int_equal(world.splices, 2);
	expect_pipe_ended();
}

/* Too little for a pipe. */
static void test_small(void **state)
{
	(void)state;
	world.rest = world.coming = UINT64_C(1) << 10;
	expect(behave, 200, 0);
	assert_int_equal(world.pipe_fd, -EBADF);
	assert_int_equal(world.got, FIRST + (1 << 10));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_whole),    CASE(test_hangs_up),       CASE(test_closes_the_pipe),
		CASE(test_full),     CASE(test_full_and_keeps), CASE(test_does_not_read),
		CASE(test_nonsense), CASE(test_too_early),      CASE(test_client_gone),
		CASE(test_stuck),    CASE(test_small),          CASE(test_floods),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* the server blocks it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
