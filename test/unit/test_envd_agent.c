/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port 49983 and an agent that may say anything (AG-04, AG-05, AG-06): the test is the agent, at the other end of the
 * operation's socket, and the client, who gets what reply_stream() would have sent.
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

#include <malloc.h>
#include <poll.h>

#define HEADERS_MAX 4

static struct {
	int agent; /* the agent's end */
	const char *headers[HEADERS_MAX][2];
	const struct stream *stream;
	void *stream_arg;
	uint64_t stream_size;
	unsigned status;
	char text[131072]; /* what the client got */
	size_t len;
	bool client_gone;
	void (*answers)(void); /* what the agent says as soon as it is asked */
	bool reads_late; /* the agent reads nothing until it is waited for, and is done with the end of input */
	size_t input;  /* what it read of that */
	int waited_ms; /* for how long it would have been waited for, the last time */
} world;

static struct sandbox sandbox;
static struct request request;

/* --- the rest of the server ------------------------------------------------------------------------- */

const char *request_header(const struct request *r, const char *name)
{
	(void)r;
	for (size_t i = 0; i < HEADERS_MAX; i++)
		if (world.headers[i][0] && strcmp(world.headers[i][0], name) == 0)
			return world.headers[i][1];
	return NULL;
}

const char *request_query(const struct request *r, const char *name)
{
	(void)r;
	return strcmp(name, "path") == 0 ? "/home/user/file" : NULL;
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	assert_non_null(body);
	assert_false(r->replied);
	r->replied = true;
	world.status = status;
	world.len = json_dumpb(body, world.text, sizeof(world.text) - 1, JSON_COMPACT);
	world.text[world.len] = '\0';
	json_decref(body);
	return 0;
}

int reply_text(struct request *r, unsigned status, const char *type, const char *text)
{
	assert_string_equal(type, "application/json");
	assert_false(r->replied);
	r->replied = true;
	world.status = status;
	world.len = strlen(text);
	assert_true(world.len < sizeof(world.text));
	memcpy(world.text, text, world.len + 1);
	return 0;
}

int reply_error(struct request *r, unsigned status, const char *fmt, ...)
{
	(void)fmt;
	return reply_json(r, status, json_pack("{s:i}", "code", (int)status));
}

int reply_empty(struct request *r, unsigned status)
{
	return reply_json(r, status, json_object());
}

int reply_stream(struct request *r, unsigned status, const char *type, uint64_t size,
		 const struct stream *stream, void *arg)
{
	(void)type;
	assert_false(r->replied);
	r->replied = true;
	world.status = status;
	world.stream = stream;
	world.stream_arg = arg;
	world.stream_size = size;
	return 0;
}

/* All that was sent to it so far. */
static void read_input(void)
{
	struct pollfd p = { .fd = world.agent, .events = POLLIN };
	struct wire_frame frame;

	while (poll(&p, 1, 0) > 0 && wire_recv(world.agent, &frame, WIRE_ON_TO_OP) > 0) {
		if (frame.head.type == WIRE_IN)
			world.input += wire_len(&frame);
		else
			assert_int_equal(wire_send(world.agent, WIRE_DONE, NULL, 0), 0);
	}
}

/* Nobody else runs, so what is not there now does not come. */
static int wait_for(int fd, short events, int other_fd, int timeout_ms)
{
	struct pollfd p[] = { { .fd = fd, .events = events },
			      { .fd = other_fd, .events = POLLIN } };

	if (world.client_gone)
		return -ECONNRESET;
	world.waited_ms = timeout_ms;
	if (world.reads_late)
		read_input();
	return poll(p, ARRAY_SIZE(p), timeout_ms < 0 ? 50 : MIN(timeout_ms, 50)) > 0 ? 1 : 0;
}

int stream_wait_either(struct request *r, int fd, int other_fd, int timeout_ms)
{
	(void)r;
	return wait_for(fd, POLLIN, other_fd, timeout_ms);
}

int stream_wait_both_ways(struct request *r, int fd, int timeout_ms)
{
	(void)r;
	return wait_for(fd, POLLIN | POLLOUT, -EBADF, timeout_ms);
}

int stream_wait(struct request *r, int fd, int timeout_ms)
{
	return stream_wait_either(r, fd, -EBADF, timeout_ms);
}

int op_open(struct sandbox *b, enum wire_type type, const void *data, size_t len, struct op *ret)
{
	const struct timeval patience = { .tv_usec = 50000 };
	int pair[2];

	(void)type;
	(void)data;
	(void)len;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)),
			 0);
	*ret = (struct op){ .sock = pair[0], .theirs = -EBADF, .sandbox = b };
	fd_close(world.agent);
	world.agent = pair[1];
	if (world.answers)
		world.answers();
	return 0;
}

int sandbox_network_variables(struct sandbox *b, const json_t *given,
			      int (*add)(void *arg, const char *name, const char *value), void *arg)
{
	(void)b;
	(void)given;
	return add(arg, "http_proxy", "http://proxy.test");
}

void sandbox_exec_limits(struct sandbox *b, struct wire_exec *q)
{
	(void)b;
	(void)q;
}

/* --- the test's own --------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	agent_broke_protocol = 0;
	world.agent = -EBADF;
	request = (struct request){ .sandbox = &sandbox };
	(void)snprintf(sandbox.info.id, sizeof(sandbox.info.id), "i1");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (world.stream)
		world.stream->close(world.stream_arg);
	rpc_done(&request);
	fd_closep(&world.agent);
	return 0;
}

static void header(const char *name, const char *value)
{
	for (size_t i = 0; i < HEADERS_MAX; i++)
		if (!world.headers[i][0]) {
			world.headers[i][0] = name;
			world.headers[i][1] = value;
			return;
		}
}

static void call_stream(int (*handle)(struct request *r), const char *message)
{
	struct buf body = BUF_INIT(10000);

	header("Content-Type", "application/connect+json");
	assert_int_equal(rpc_envelope_add(&body, 0, message, strlen(message)), 0);
	assert_int_equal(rpc_begin_stream(&request), 0);
	assert_int_equal(rpc_data(&request, (const char *)body.data, body.len), 0);
	assert_int_equal(handle(&request), 0);
	buf_done(&body);
}

static void call_unary(int (*handle)(struct request *r), const char *message, void (*answers)(void))
{
	world.answers = answers;
	header("Content-Type", "application/json");
	assert_int_equal(rpc_begin_unary(&request), 0);
	assert_int_equal(rpc_data(&request, message, strlen(message)), 0);
	assert_int_equal(handle(&request), 0);
}

static void start(void)
{
	call_stream(envd_process_start, "{\"process\":{\"cmd\":\"x\"}}");
}

static void say(enum wire_type type, const void *data, size_t len)
{
	assert_int_equal(wire_send(world.agent, type, data, len), 0);
}

static void say_started(uint32_t pid)
{
	say(WIRE_STARTED, &(struct wire_process){ .pid = pid }, sizeof(struct wire_process));
}

static void say_exit(int code, int signal_number)
{
	const struct wire_exit end = { .code = code, .signal = signal_number };

	say(WIRE_EXIT, &end, sizeof(end));
}

static void hang_up(void)
{
	fd_closep(&world.agent);
}

/* Reads the reply to its end (0) or to where it breaks off (an errno). */
static ssize_t read_all(void)
{
	ssize_t n;

	assert_non_null(world.stream);
	world.len = 0;
	do {
		n = world.stream->read(world.stream_arg, world.text + world.len,
				       MIN(sizeof(world.text) - world.len, (size_t)100));
		if (n > 0)
			world.len += (size_t)n;
	} while (n > 0 && world.len < sizeof(world.text));
	return n;
}

/* The messages of the stream, without their heads; the last must be the one that ends it. */
static void expect_messages(const char *const *messages, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(messages[i]);

		assert_true(at + RPC_ENVELOPE_HEAD + len <= world.len);
		assert_int_equal(world.text[at], i == n - 1 ? RPC_FLAG_END : 0);
		assert_int_equal((unsigned char)world.text[at + 4], len);
		assert_memory_equal(world.text + at + RPC_ENVELOPE_HEAD, messages[i], len);
		at += RPC_ENVELOPE_HEAD + len;
	}
	assert_int_equal(at, world.len);
}

#define EXPECT(...)                                                                                \
	expect_messages((const char *const[]){ __VA_ARGS__ },                                      \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* The stream ended with an error and the log says why; nothing else went to the client. */
static void expect_broken(void)
{
	static const char end[] = "{\"error\":{\"code\":\"internal\"";

	assert_int_equal(read_all(), 0);
	assert_int_equal(agent_broke_protocol, 1);
	assert_non_null(memmem(world.text, world.len, end, sizeof(end) - 1));
}

#define START "{\"event\":{\"start\":{\"pid\":7}}}"
#define OUT_HI "{\"event\":{\"data\":{\"stdout\":\"aGk=\"}}}"
#define END_0 "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}"

/* --- commands ---------------------------------------------------------------------------------------- */

static void test_order(void **state)
{
	(void)state;
	start();
	say_started(7);
	say(WIRE_OUT, "hi", 2);
	say_exit(0, 0);
	assert_int_equal(read_all(), 0);
	EXPECT(START, OUT_HI, END_0, "{}");
	assert_int_equal(agent_broke_protocol, 0);
}

/* AG-04: what comes after EXIT is not even read. */
static void test_after_exit(void **state)
{
	(void)state;
	start();
	say_started(7);
	say_exit(0, 0);
	say(WIRE_OUT, "hi", 2);
	say_exit(1, 0);
	assert_int_equal(read_all(), 0);
	EXPECT(START, END_0, "{}");
}

static void test_hang_up(void **state)
{
	(void)state;
	start();
	say_started(7);
	hang_up();
	assert_true(read_all() < 0); /* the connection is reset: no end that could be believed */
	assert_null(memmem(world.text, world.len, "\"end\"", 5));
}

static void test_hang_up_at_once(void **state)
{
	(void)state;
	start();
	hang_up();
	assert_int_equal(read_all(), -ENOTCONN);
	assert_int_equal(world.len, 0);
}

static void test_client_gone(void **state)
{
	(void)state;
	start();
	say_started(7);
	world.client_gone = true;
	assert_int_equal(read_all(), -ECONNRESET);
}

static void output_first(void)
{
	say(WIRE_OUT, "hi", 2);
}

static void exit_first(void)
{
	say_exit(0, 0);
}

static void started_twice(void)
{
	say_started(7);
	say_started(7);
}

static void pid_zero(void)
{
	say_started(0);
}

static void pid_huge(void)
{
	say_started(0x80000000u);
}

static void failed_late(void)
{
	say_started(7);
	say(WIRE_FAILED, &(struct wire_failed){ .step = WIRE_STEP_EXEC, .err = 2 },
	    sizeof(struct wire_failed));
}

static void failed_step(void)
{
	say(WIRE_FAILED, &(struct wire_failed){ .step = 999, .err = 2 },
	    sizeof(struct wire_failed));
}

static void failed_errno(void)
{
	say(WIRE_FAILED, &(struct wire_failed){ .step = WIRE_STEP_EXEC, .err = -2 },
	    sizeof(struct wire_failed));
}

static void exit_nonsense(void)
{
	say_started(7);
	say_exit(300, 0);
}

static void exit_both(void)
{
	say_started(7);
	say_exit(1, 9);
}

static void other_answer(void)
{
	say(WIRE_DONE, NULL, 0);
}

static void terminal_output(void)
{
	say_started(7);
	say(WIRE_PTY, "hi", 2);
}

static void wrong_direction(void)
{
	say_started(7);
	say(WIRE_IN, "hi", 2);
}

static void random_bytes(void)
{
	assert_int_equal(write(world.agent, "nonsense!", 9), 9);
}

static void test_broken(void **state)
{
	static void (*const lies[])(void) = {
		output_first, exit_first,      started_twice,   pid_zero,      pid_huge,
		failed_late,  failed_step,     failed_errno,    exit_nonsense, exit_both,
		other_answer, terminal_output, wrong_direction, random_bytes,
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		start();
		lies[i]();
		expect_broken();
		teardown(state);
		setup(state);
	}
}

static void test_failed(void **state)
{
	static const struct {
		uint32_t step;
		int err;
		const char *code, *text;
	} cases[] = {
		{ WIRE_STEP_USER, ENOENT, "unauthenticated", "invalid username: 'user'" },
		{ WIRE_STEP_CWD, ENOENT, "invalid_argument", "cwd '/nowhere' does not exist" },
		{ WIRE_STEP_EXEC, ENOENT, "invalid_argument", "cannot execute 'x'" },
		{ WIRE_STEP_REQUEST, EAGAIN, "resource_exhausted", "too many commands" },
		{ WIRE_STEP_DROP, EPERM, "permission_denied", "user" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct wire_failed failed = { .step = cases[i].step, .err = cases[i].err };

		call_stream(envd_process_start,
			    "{\"process\":{\"cmd\":\"x\",\"cwd\":\"/nowhere\"}}");
		say(WIRE_FAILED, &failed, sizeof(failed));
		assert_int_equal(read_all(), 0);
		assert_int_equal(world.text[0], RPC_FLAG_END);
		assert_non_null(
			memmem(world.text, world.len, cases[i].code, strlen(cases[i].code)));
		assert_non_null(
			memmem(world.text, world.len, cases[i].text, strlen(cases[i].text)));
		assert_int_equal(agent_broke_protocol, 0);
		teardown(state);
		setup(state);
	}
}

/* Of a command's own time-out the client hears as one; others who follow it see it killed. */
static void test_timed_out(void **state)
{
	const struct wire_exit end = { .code = -1, .signal = 9, .timed_out = 1 };

	(void)state;
	start();
	say_started(7);
	say(WIRE_EXIT, &end, sizeof(end));
	assert_int_equal(read_all(), 0);
	assert_non_null(memmem(world.text, world.len, "deadline_exceeded", 17));
	teardown(state);
	setup(state);
	call_stream(envd_process_connect, "{\"process\":{\"pid\":7}}");
	say_started(7);
	say(WIRE_EXIT, &end, sizeof(end));
	assert_int_equal(read_all(), 0);
	assert_non_null(memmem(world.text, world.len, "signal: killed", 14));
}

/* Where the sandbox's memory was used up, a command that was killed says so. */
static void test_out_of_memory(void **state)
{
	const struct wire_exit end = { .code = -1, .signal = 9 };
	static const char says[] = "\"error\":\"signal: killed; the sandbox used more memory than";

	(void)state;
	judged_limit = RUN_LIMIT_MEMORY;
	start();
	say_started(7);
	say(WIRE_EXIT, &end, sizeof(end));
	assert_int_equal(read_all(), 0);
	assert_non_null(memmem(world.text, world.len, says, sizeof(says) - 1));
	judged_limit = RUN_LIMIT_NONE;
}

#define INPUT "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"aGk=\"}}"

/* A command that does not read keeps its input waiting for as long as the client waits, and says. */
static void test_input_waits(void **state)
{
	static const struct {
		const char *header;
		int least_ms, most_ms;
	} cases[] = {
		{ NULL, -1, -1 },
		{ "0", -1, -1 },
		{ "600000", 300000, 600000 },
		{ "9999999999", INT_MAX, INT_MAX }, /* as long as can be waited at once */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		world.reads_late = true;
		if (cases[i].header)
			header("Connect-Timeout-Ms", cases[i].header);
		call_unary(envd_process_send_input, INPUT, NULL);
		assert_int_equal(world.status, 200);
		assert_true(world.waited_ms >= cases[i].least_ms);
		assert_true(world.waited_ms <= cases[i].most_ms);
		teardown(state);
		setup(state);
	}
	header("Connect-Timeout-Ms", "20");
	call_unary(envd_process_send_input, INPUT, NULL);
	assert_int_equal(world.status, 504);
}

#define LARGE_INPUT 600000 /* bytes: many frames, more than a socket holds */

static void send_large_input(void (*answers)(void))
{
	static const char begin[] = "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"",
			  end[] = "\"}}";
	const size_t len = LARGE_INPUT / 3 * 4; /* in base64 */
	static char message[sizeof(begin) + LARGE_INPUT / 3 * 4 + sizeof(end)];
	char *data = message + sizeof(begin) - 1;

	memcpy(message, begin, sizeof(begin) - 1);
	memset(data, 'A', len);
	memcpy(data + len, end, sizeof(end));
	call_unary(envd_process_send_input, message, answers);
}

static void say_no_input(void)
{
	const struct wire_failed failed = { .step = WIRE_STEP_PROCESS, .err = EPIPE };

	say(WIRE_FAILED, &failed, sizeof(failed));
}

/* The same for more than fits into the socket; who has answered before he took it all is heard. */
static void test_large_input_waits(void **state)
{
	world.reads_late = true;
	send_large_input(NULL);
	assert_int_equal(world.status, 200);
	assert_int_equal(world.input, LARGE_INPUT);
	teardown(state);
	setup(state);
	send_large_input(say_no_input);
	assert_int_equal(world.status, 500);
	assert_non_null(strstr(world.text, "has no open input"));
	teardown(state);
	setup(state);
	header("Connect-Timeout-Ms", "20");
	send_large_input(NULL);
	assert_int_equal(world.status, 504);
}

static void test_other_pid(void **state)
{
	(void)state;
	call_stream(envd_process_connect, "{\"process\":{\"pid\":7}}");
	say_started(8);
	expect_broken();
}

static void test_deadline(void **state)
{
	(void)state;
	header("Connect-Timeout-Ms", "20");
	call_stream(envd_process_connect, "{\"process\":{\"pid\":7}}");
	say_started(7);
	assert_int_equal(read_all(), 0);
	assert_non_null(memmem(world.text, world.len, "deadline_exceeded", 17));
}

/* --- headers ------------------------------------------------------------------------------------------ */

static void test_user(void **state)
{
	static const struct {
		const char *header, *user; /* NULL: refused */
	} cases[] = {
		{ NULL, "user" },
		{ "Bearer abc", "user" },
		{ "Basic cm9vdDo=", "root" },
		{ "basic cm9vdDo=", "root" },
		{ "Basic cm9vdA==", NULL },       /* no colon */
		{ "Basic Og==", NULL },           /* no name */
		{ "Basic cm9vdDpwYXNz", "root" }, /* a password, which nobody asks for */
		{ "Basic ***", NULL },
		{ "Basic ", NULL },
		{ "Basic YSBiOg==", NULL }, /* "a b:" */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rpc_error e = { 0 };
		char user[RPC_USER_SIZE] = "";
		int r = rpc_user_parse(cases[i].header, user, &e);

		assert_int_equal(r, cases[i].user ? 0 : -EREMOTEIO);
		if (cases[i].user)
			assert_string_equal(user, cases[i].user);
		else
			assert_int_equal(e.code, RPC_UNAUTHENTICATED);
	}
}

static void test_type(void **state)
{
	(void)state;
	assert_true(rpc_type_is("application/json", "application/json"));
	assert_true(rpc_type_is("Application/JSON; charset=utf-8", "application/json"));
	assert_false(rpc_type_is("application/jsonp", "application/json"));
	assert_false(rpc_type_is("application/connect+json", "application/json"));
	assert_false(rpc_type_is(NULL, "application/json"));
}

/* A request that is too large is read to its end, and then answered. */
static void test_too_large(void **state)
{
	static char piece[1 << 20];
	struct rpc_error e = { 0 };
	json_t *message;

	(void)state;
	header("Content-Type", "application/connect+json");
	assert_int_equal(rpc_begin_stream(&request), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rpc_data(&request, piece, sizeof(piece)), 0);
	assert_int_equal(rpc_stream_message(&request, &message, &e), -EREMOTEIO);
	assert_int_equal(e.code, RPC_RESOURCE_EXHAUSTED);
	for (int i = 0; i < 62; i++)
		assert_int_equal(rpc_data(&request, piece, sizeof(piece)), 0);
	assert_int_equal(rpc_data(&request, piece, sizeof(piece)), -EFBIG);
}

/* --- questions with one answer ------------------------------------------------------------------------ */

static void say_process(uint32_t pid, const char *label)
{
	const struct wire_process process = { .pid = pid };

	assert_int_equal(wire_send2(world.agent, WIRE_PROCESS, &process, sizeof(process), label,
				    strlen(label)),
			 0);
}

static void list_good(void)
{
	say_process(7, "{\"config\":{\"cmd\":\"x\"},\"tag\":\"t\"}");
	say_process(8, "");
	say(WIRE_DONE, NULL, 0);
}

static void list_pid(void)
{
	say_process(0, "");
	say(WIRE_DONE, NULL, 0);
}

static void list_output(void)
{
	say(WIRE_OUT, "x", 1);
}

static void list_breaks_off(void)
{
	say_process(7, "");
	hang_up();
}

static void test_list(void **state)
{
	static const struct {
		void (*answers)(void);
		unsigned status, broken;
	} cases[] = {
		{ list_good, 200, 0 },       { list_pid, 500, 1 }, { list_output, 500, 1 },
		{ list_breaks_off, 502, 0 }, { NULL, 504, 0 }, /* says nothing */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		call_unary(envd_process_list, "{}", cases[i].answers);
		assert_int_equal(world.status, cases[i].status);
		assert_int_equal(agent_broke_protocol, cases[i].broken);
		if (i == 0)
			assert_string_equal(world.text,
					    "{\"processes\":[{\"config\":{\"cmd\":\"x\"},\"pid\":7,"
					    "\"tag\":\"t\"},{\"config\":{},\"pid\":8}]}");
		teardown(state);
		setup(state);
	}
}

/* --- what a list takes --- */

static size_t values_size, values_peak;

static void *count_malloc(size_t size)
{
	void *p = malloc(size);

	values_size += malloc_usable_size(p);
	values_peak = MAX(values_peak, values_size);
	return p;
}

static void count_free(void *data)
{
	values_size -= malloc_usable_size(data);
	free(data);
}

enum { LABELS = 10 };

/* Each is some 2700 values. */
static void list_of_many_values(void)
{
	static char label[ENVD_LABEL_MAX + 1];
	size_t at = (size_t)snprintf(label, sizeof(label), "{\"config\":{\"args\":[\"\"");

	while (at + 7 < sizeof(label))
		at += (size_t)snprintf(label + at, sizeof(label) - at, ",\"\"");
	(void)snprintf(label + at, sizeof(label) - at, "]}}");
	for (uint32_t i = 0; i < LABELS; i++)
		say_process(i + 1, label);
	say(WIRE_DONE, NULL, 0);
}

/* Whoever lists has the values of one command in memory, not those of all. */
static void test_list_of_many_values(void **state)
{
	json_malloc_t old_malloc;
	json_free_t old_free;

	(void)state;
	json_get_alloc_funcs(&old_malloc, &old_free);
	json_set_alloc_funcs(count_malloc, count_free);
	call_unary(envd_process_list, "{}", list_of_many_values);
	json_set_alloc_funcs(old_malloc, old_free);
	assert_int_equal(world.status, 200);
	assert_true(values_peak > 0 && values_peak < (size_t)1 << 20);
}

static void say_esrch(void)
{
	say(WIRE_FAILED, &(struct wire_failed){ .step = WIRE_STEP_PROCESS, .err = ESRCH },
	    sizeof(struct wire_failed));
}

static void test_no_such_process(void **state)
{
	(void)state;
	call_unary(envd_process_send_signal, "{\"process\":{\"pid\":7},\"signal\":9}", say_esrch);
	assert_int_equal(world.status, 404);
	assert_string_equal(
		world.text,
		"{\"code\":\"not_found\",\"message\":\"process with pid 7 not found\"}");
}

/* --- files ------------------------------------------------------------------------------------------- */

static const struct {
	struct wire_fs_entry head;
	char path[5];
} __attribute__((packed))
entry = { { .size = 10, .type = WIRE_FS_FILE, .path_len = 5 }, { '/', 'f', 'i', 'l', 'e' } };

static void say_file(void)
{
	say(WIRE_ENTRY, &entry, sizeof(entry));
}

/* The pipe that came with GO. */
static int take_pipe(void)
{
	static struct wire_frame f;
	int fd = -EBADF;

	do {
		size_t n_fds = 1;

		assert_int_equal(wire_recv_fds(world.agent, &f, WIRE_ON_TO_OP, &fd, &n_fds), 1);
	} while (f.head.type != WIRE_GO);
	assert_true(fd >= 0);
	return fd;
}

static void file_done(void)
{
	say(WIRE_DONE, NULL, 0);
}

static void file_failed(void)
{
	say(WIRE_FAILED, &(struct wire_failed){ .step = WIRE_STEP_FILE, .err = ENODATA },
	    sizeof(struct wire_failed));
}

static void file_nonsense(void)
{
	say(WIRE_DATA, "x", 1);
}

static void test_download(void **state)
{
	static const struct {
		size_t sent;
		void (*then)(void);
		bool keeps_pipe; /* as a box does that was frozen meanwhile */
		ssize_t result;
		size_t len;
		unsigned broken;
	} cases[] = {
		{ 10, file_done, false, 0, 10, 0 },       { 4, hang_up, false, -ENODATA, 4, 0 },
		{ 4, hang_up, true, -ENOTCONN, 4, 0 },    { 4, file_done, false, -ENODATA, 4, 0 },
		{ 4, file_failed, true, -ENODATA, 4, 0 }, { 4, file_nonsense, true, -EPROTO, 4, 1 },
		{ 16, file_done, false, 0, 10, 0 }, /* more than promised: nobody reads it */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd;

		world.answers = say_file;
		assert_int_equal(envd_files_read(&request), 0);
		assert_int_equal(world.status, 200);
		assert_int_equal(world.stream_size, 10);
		fd = take_pipe();
		assert_int_equal(write(fd, "0123456789abcdef", cases[i].sent), cases[i].sent);
		cases[i].then();
		if (!cases[i].keeps_pipe)
			fd_closep(&fd);
		assert_int_equal(read_all(), cases[i].result);
		assert_int_equal(world.len, cases[i].len);
		assert_int_equal(agent_broke_protocol, cases[i].broken);
		fd_close(fd);
		teardown(state);
		setup(state);
	}
}

static void entry_not_absolute(void)
{
	typeof(entry) bad = entry;
	char data[sizeof(entry)];

	memcpy(data, &bad, sizeof(bad));
	data[sizeof(struct wire_fs_entry)] = 'x';
	say(WIRE_ENTRY, data, sizeof(data));
}

static void test_stat_nonsense(void **state)
{
	(void)state;
	call_unary(envd_fs_stat, "{\"path\":\"/file\"}", entry_not_absolute);
	assert_int_equal(world.status, 500);
	assert_int_equal(agent_broke_protocol, 1);
}

static void say_change(uint32_t what, uint32_t has_entry, const char *name, size_t len)
{
	const struct wire_fs_change change = { .what = what, .has_entry = has_entry };

	assert_int_equal(wire_send2(world.agent, WIRE_CHANGE, &change, sizeof(change), name, len),
			 0);
}

static void watching(void)
{
	say(WIRE_DONE, NULL, 0);
}

static void watch(void)
{
	world.answers = watching;
	call_stream(envd_fs_watch_dir, "{\"path\":\"~\"}");
}

static void test_watch(void **state)
{
	(void)state;
	watch();
	say_change(WIRE_FS_CREATED, 0, "a", 1);
	say_change(WIRE_FS_OVERFLOW, 0, ".", 1);
	assert_int_equal(read_all(), 0);
	EXPECT("{\"start\":{}}", "{\"filesystem\":{\"name\":\"a\",\"type\":\"EVENT_TYPE_CREATE\"}}",
	       "{\"error\":{\"code\":\"internal\",\"message\":\"watcher error: "
	       "changes came too fast and some were lost\"}}");
	assert_int_equal(agent_broke_protocol, 0);
}

static void test_watch_broken(void **state)
{
	static const struct {
		uint32_t what, has_entry;
		const char *name;
		size_t len;
	} cases[] = {
		{ 0, 0, "a", 1 },
		{ 99, 0, "a", 1 },
		{ WIRE_FS_CREATED, 2, "a", 1 },
		{ WIRE_FS_CREATED, 0, "a\0b", 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		watch();
		say_change(cases[i].what, cases[i].has_entry, cases[i].name, cases[i].len);
		expect_broken();
		teardown(state);
		setup(state);
	}
	watch();
	say_change(WIRE_FS_CREATED, 1, "a", 1);
	say_change(WIRE_FS_CREATED, 0, "b", 1); /* instead of its entry */
	expect_broken();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang_up_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_client_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timed_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_type, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_of_many_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_such_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stat_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_input_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_input_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_download, setup, teardown),
	};

	return cmocka_run_group_tests_name("envd-agent", tests, NULL, NULL);
}
