/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port 49999 and an agent that may say anything (AG-04, AG-05, AG-06): the test is the agent, at the other end of the
 * operation's socket, and the client, who gets what reply_stream() would have sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/sandbox/clock.h"
#include "server/run/run.h"
#include "server/http/exchange.h"
#include "server/interp/interp.h"
#include "sys/sock.h"
#include "server_rest.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#define ASKED_MAX 16
#define TEXT_MAX ((size_t)8 << 20)
#define FLOODS_MAX 1000 /* nobody listens for so many seconds */

static struct {
	int agent; /* the agent's end */
	enum wire_type asked[ASKED_MAX];
	size_t n_asked;
	bool (*answer)(
		size_t nth); /* what the agent says when it is asked for the nth time; false: it is not there */
	int zygote_err; /* of the warden's reply */
	unsigned forked;
	const struct stream *stream;
	void *stream_arg;
	unsigned status;
	char *text; /* what the client got */
	size_t len;
	bool client_gone;
	bool floods; /* the agent, with output, whenever it is waited for */
	unsigned n_floods;
	enum wire_type endless; /* what the agent says whenever it is listened to; 0: nothing */
	unsigned n_endless;
} world;

static struct server server;
static struct sandbox sandbox;
static struct request request;
static size_t key_results;

/* In the place of libc's: a second passes whenever the agent floods. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, clock, ret);

	ret->tv_sec += world.n_floods;
	return (int)r;
}

/* --- the rest of the server ------------------------------------------------------------------------- */

static const struct language languages[] = {
	{ .name = (char *)(uintptr_t) "python",
	  .title = (char *)(uintptr_t) "Python",
	  .file = (char *)(uintptr_t) "main.py",
	  .run = (char *)(uintptr_t) "python3 {file}",
	  .kernel = (char *)(uintptr_t) "python3 kernel.py" },
	{ .name = (char *)(uintptr_t) "c",
	  .title = (char *)(uintptr_t) "C",
	  .file = (char *)(uintptr_t) "main.c",
	  .compile = (char *)(uintptr_t) "cc {file}",
	  .run = (char *)(uintptr_t) "./a.out" },
};

const struct language *run_languages(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(languages);
	return languages;
}

int64_t clock_wall_ms(void)
{
	return 0;
}

void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
	(void)wall_ms;
	(void)snprintf(ret, CLOCK_TEXT_SIZE, "now");
}

const char *request_header(const struct request *r, const char *name)
{
	(void)r;
	(void)name;
	return NULL;
}

static int keep_text(unsigned status, const char *text)
{
	assert_false(request.replied);
	request.replied = true;
	world.status = status;
	world.len = strlen(text);
	assert_true(world.len < TEXT_MAX);
	memcpy(world.text, text, world.len + 1);
	return 0;
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
	int n = keep_text(status, text);

	(void)r;
	free(text);
	json_decref(body);
	return n;
}

int reply_error(struct request *r, unsigned status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	(void)r;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return keep_text(status, text);
}

int reply_stream(struct request *r, unsigned status, const char *type, uint64_t size,
		 const struct stream *stream, void *arg)
{
	assert_int_equal(size, UINT64_MAX);
	assert_string_equal(type, "application/x-ndjson");
	r->replied = true;
	world.status = status;
	world.stream = stream;
	world.stream_arg = arg;
	return 0;
}

/* Nobody else runs, so what is not there now does not come. */
static int wait_now(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (world.client_gone)
		return -ECONNRESET;
	if (world.floods) {
		assert_true(++world.n_floods < FLOODS_MAX);
		assert_int_equal(wire_send(world.agent, WIRE_OUT, "x", 1), 0);
	}
	return poll(&p, 1, MIN(timeout_ms, 50)) > 0 ? 1 : 0;
}

int stream_wait(struct request *r, int fd, int timeout_ms)
{
	(void)r;
	return wait_now(fd, POLLIN, timeout_ms);
}

int stream_wait_either(struct request *r, int fd, int other_fd, int timeout_ms)
{
	(void)other_fd;
	return stream_wait(r, fd, timeout_ms);
}

int stream_wait_both_ways(struct request *r, int fd, int timeout_ms)
{
	(void)r;
	return wait_now(fd, POLLIN | POLLOUT, timeout_ms);
}

void sandbox_ref(struct sandbox *b)
{
	b->refs++;
}

void sandbox_put(struct sandbox *b)
{
	b->refs--;
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

int link_ask(struct link *l, enum warden_type type, struct warden_frame *f, unsigned timeout_ms,
	     struct warden_reply *ret, int *ret_fd)
{
	(void)l;
	(void)timeout_ms;
	(void)ret_fd;
	assert_int_equal(type, WARDEN_CONTEXT);
	assert_string_equal(f->as_CONTEXT.context.language, "python");
	*ret = (struct warden_reply){ .err = world.zygote_err };
	world.forked += world.zygote_err == 0;
	return 0;
}

int op_make(struct op *ret)
{
	int pair[2];

	assert_int_equal(sock_pair(pair), 0);
	*ret = (struct op){ .sock = pair[0], .theirs = pair[1] };
	return 0;
}

int op_give(struct op *op, struct sandbox *b, enum wire_type type, const void *data, size_t len)
{
	(void)data;
	(void)len;
	assert_true(world.n_asked < ASKED_MAX);
	op->sandbox = b;
	fd_close(world.agent);
	world.agent = take_fd(&op->theirs);
	world.asked[world.n_asked++] = type;
	if (!world.answer || world.answer(world.n_asked))
		return 0;
	op_close(op);
	return -ENOTCONN;
}

int op_open(struct sandbox *b, enum wire_type type, const void *data, size_t len, struct op *ret)
{
	int r = op_make(ret);

	return r < 0 ? r : op_give(ret, b, type, data, len);
}

int __wrap_talk_recv_now(struct talk *t);
int __real_talk_recv_now(struct talk *t);

int __wrap_talk_recv_now(struct talk *t)
{
	if (world.endless) {
		assert_true(++world.n_endless < FLOODS_MAX);
		assert_int_equal(wire_send(world.agent, world.endless, "x", 1), 0);
	}
	return __real_talk_recv_now(t);
}

/* --- the test's own --------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	agent_broke_protocol = 0;
	world.agent = -EBADF;
	world.text = malloc(TEXT_MAX);
	server.config.interpreter_contexts = 4;
	server.config.interpreter_zygote = true;
	server.config.interpreter_cell_output = 1000;
	(void)snprintf(server.config.interpreter_preload, sizeof(server.config.interpreter_preload),
		       "numpy");
	sandbox = (struct sandbox){ .server = &server, .refs = 1, .key_results = &key_results };
	pthread_mutex_init(&sandbox.lock, NULL);
	(void)snprintf(sandbox.info.id, sizeof(sandbox.info.id), "i1");
	request = (struct request){ .sandbox = &sandbox, .server = &server };
	return world.text ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	if (world.stream)
		world.stream->close(world.stream_arg);
	fd_closep(&world.agent);
	json_decref(request.body);
	interp_forget(&sandbox);
	assert_int_equal(sandbox.refs, 1);
	free(world.text);
	return 0;
}

static void execute(const char *body)
{
	request.body = json_loads(body, 0, NULL);
	assert_non_null(request.body);
	assert_int_equal(interp_execute_handle(&request), 0);
}

static void run(void)
{
	execute("{\"code\":\"print(1)\"}");
}

static void say(enum wire_type type, const void *data, size_t len)
{
	assert_int_equal(wire_send(world.agent, type, data, len), 0);
}

static void say_failed(enum wire_step step, int err)
{
	const struct wire_failed failed = { .step = step, .err = err };

	say(WIRE_FAILED, &failed, sizeof(failed));
}

static void say_started(void)
{
	say(WIRE_STARTED, &(struct wire_process){ .pid = 7 }, sizeof(struct wire_process));
}

static void say_event(enum wire_event_kind kind, const char *text)
{
	const struct wire_event e = { .kind = kind };

	if (*text)
		say(WIRE_EVENT, text, strlen(text));
	say(WIRE_EVENT_END, &e, sizeof(e));
}

static void say_end(uint32_t reason, uint32_t died)
{
	const struct wire_cell_end end = {
		.reason = reason,
		.died = died,
		.exit = { .code = died ? 3 : 0 },
		.wall_us = 5000,
	};

	say(WIRE_CELL_END, &end, sizeof(end));
}

/* Reads the reply to its end (0) or to where it breaks off (an errno). */
static ssize_t read_all(void)
{
	ssize_t n;

	assert_int_equal(world.status, 200);
	world.len = 0;
	do {
		n = world.stream->read(world.stream_arg, world.text + world.len,
				       MIN(TEXT_MAX - 1 - world.len, (size_t)65536));
		if (n > 0)
			world.len += (size_t)n;
	} while (n > 0 && world.len < TEXT_MAX - 1);
	world.text[world.len] = '\0';
	return n;
}

static void expect(const char *lines)
{
	assert_int_equal(read_all(), 0);
	assert_string_equal(world.text, lines);
}

static bool has(const char *text)
{
	return strstr(world.text, text) != NULL;
}

#define COUNT "{\"type\":\"number_of_executions\",\"execution_count\":1}\n"
#define OUT(text) "{\"type\":\"stdout\",\"text\":\"" text "\",\"timestamp\":\"now\"}\n"
#define USAGE(reason)                                                                              \
	"{\"type\":\"usage\",\"cpu_ms\":0,\"wall_ms\":5,\"memory_peak_bytes\":0,"                  \
	"\"stdout_bytes\":0,\"stderr_bytes\":0,\"reason\":\"" reason "\"}\n"
#define END "{\"type\":\"end_of_execution\"}\n"
#define UNEXPECTED "{\"type\":\"unexpected_end_of_execution\"}\n"
#define ERROR(name, value)                                                                         \
	"{\"type\":\"error\",\"name\":\"" name "\",\"value\":\"" value "\",\"traceback\":\"\"}\n"

/* --- a cell -------------------------------------------------------------------------------------------- */

static bool starts(size_t nth)
{
	(void)nth;
	say_started();
	return true;
}

static void test_order(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	/* The number comes first even where the output was faster; the error comes last. */
	say(WIRE_OUT, "a\xe2\x82", 3);
	say_event(WIRE_EVENT_COUNT, "1");
	say_event(WIRE_EVENT_ERROR, "{\"name\":\"E\",\"value\":\"v\",\"traceback\":\"\"}");
	say(WIRE_OUT, "\xac", 1);
	say_event(WIRE_EVENT_RESULT, "{\"text\":\"r\"}");
	say_end(WIRE_CELL_DONE, 0);
	say(WIRE_OUT, "never read", 10);
	expect(COUNT OUT("a") OUT("\\u20AC") "{\"type\":\"result\",\"is_main_result\":false,"
					     "\"text\":\"r\",\"extra\":{}}\n" ERROR("E", "v")
						     USAGE("done") END);
	assert_int_equal(agent_broke_protocol, 0);
	assert_int_equal(world.n_asked, 1);
}

/* What the agent got of it. */
static void test_request(void **state)
{
	static const enum wire_type order[] = { WIRE_BASE, WIRE_BASE, WIRE_BASE, WIRE_BASE,
						WIRE_BASE, WIRE_BASE, WIRE_ENV,  WIRE_CWD,
						WIRE_CODE, WIRE_GO };
	struct wire_frame *f = malloc(sizeof(*f));

	(void)state;
	sandbox.info.env = json_pack("{s:s}", "A", "b");
	world.answer = starts;
	execute("{\"code\":\"x\",\"env_vars\":{\"C\":\"d\"}}");
	assert_int_equal(world.asked[0], WIRE_CELL);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		assert_int_equal(wire_recv(world.agent, f, WIRE_ON_TO_OP), 1);
		assert_int_equal(f->head.type, order[i]);
		if (i == 1)
			assert_memory_equal(f->data, "http_proxy=", 11);
		if (i == 2)
			assert_memory_equal(f->data, "A=b", 3);
		if (f->head.type == WIRE_ENV)
			assert_memory_equal(f->data, "C=d", 3);
	}
	json_decref(sandbox.info.env);
	free(f);
}

static void test_limit(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say_event(WIRE_EVENT_ERROR, "{\"name\":\"KeyboardInterrupt\"}");
	say_end(WIRE_CELL_WALL, 0);
	expect(ERROR(
		"CellTimeout",
		"the cell ran longer than its limit, 0 s; raise limits.wall_ms if it needs more")
		       USAGE("wall") END);
}

static void test_died(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say_end(WIRE_CELL_DONE, 1);
	expect(ERROR("ContextDied",
		     "the interpreter ended (exit status 3); the context was restarted, "
		     "its variables are gone") USAGE("died") UNEXPECTED END);
}

static void test_restarted(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	assert_true(interp_end(&sandbox, "python", false));
	say_end(WIRE_CELL_DONE, 1);
	expect(ERROR("ContextRestarting", "Context was restarted") USAGE("died") UNEXPECTED END);
}

static void test_spilled(void **state)
{
	static const struct {
		struct wire_spilled head;
		char path[4];
	} spilled = { { .stream = 1 }, { '/', 'f', (char)0xff, 'x' } };

	(void)state;
	world.answer = starts;
	run();
	say(WIRE_SPILLED, &spilled, sizeof(spilled));
	say_end(WIRE_CELL_DONE, 0);
	assert_int_equal(read_all(), 0);
	assert_true(has(
		"{\"type\":\"output_spilled\",\"stream\":\"stdout\",\"path\":\"/f\\uFFFDx\"}\n"));
	assert_true(has("[stdout: more than 1000 bytes; the rest is in /f\\uFFFDx]"));
}

/* --- an interpreter that has to be made ------------------------------------------------------------------ */

static bool missing_once(size_t nth)
{
	if (nth == 1)
		say_failed(WIRE_STEP_CONTEXT, ENOENT);
	else
		say_started();
	return true;
}

static void test_forked(void **state)
{
	(void)state;
	world.answer = missing_once;
	run();
	say_end(WIRE_CELL_DONE, 0);
	expect(USAGE("done") END);
	assert_int_equal(world.forked, 1);
	assert_int_equal(world.n_asked, 2);
}

/* CELL, KERNEL, CELL */
static bool missing_then_kernel(size_t nth)
{
	if (nth == 1)
		say_failed(WIRE_STEP_CONTEXT, ENOENT);
	else
		say_started();
	if (nth == 2)
		say(WIRE_DONE, NULL, 0);
	return true;
}

static void test_started(void **state)
{
	(void)state;
	world.answer = missing_then_kernel;
	world.zygote_err = EOPNOTSUPP;
	run();
	say_end(WIRE_CELL_DONE, 0);
	expect(USAGE("done") END);
	assert_int_equal(world.asked[1], WIRE_KERNEL);
	assert_int_equal(world.asked[2], WIRE_CELL);
}

/* CELL (forked), CELL, KERNEL, CELL: what the zygote made did not come up. */
static bool dies_before_ready(size_t nth)
{
	if (nth == 1 || nth == 3)
		say_failed(WIRE_STEP_CONTEXT, ENOENT);
	else if (nth == 2)
		say_failed(WIRE_STEP_CONTEXT, EPIPE);
	else
		say_started();
	if (nth == 4)
		say(WIRE_DONE, NULL, 0);
	return true;
}

static void test_fork_fails(void **state)
{
	(void)state;
	world.answer = dies_before_ready;
	run();
	say_end(WIRE_CELL_DONE, 0);
	expect(USAGE("done") END);
	assert_int_equal(world.forked, 1);
	assert_int_equal(world.asked[3], WIRE_KERNEL);
}

static bool always_missing(size_t nth)
{
	if (world.asked[nth - 1] == WIRE_KERNEL) {
		say_started();
		say(WIRE_DONE, NULL, 0);
	} else {
		say_failed(WIRE_STEP_CONTEXT, ENOENT);
	}
	return true;
}

static void test_no_end_of_trying(void **state)
{
	(void)state;
	world.answer = always_missing;
	run();
	assert_int_equal(world.status, 500);
	assert_true(world.n_asked < 12);
}

static bool cannot_start(size_t nth)
{
	say_failed(nth == 1 ? WIRE_STEP_CONTEXT : WIRE_STEP_EXEC, ENOENT);
	return true;
}

static void test_not_installed(void **state)
{
	(void)state;
	world.answer = cannot_start;
	world.zygote_err = EAGAIN;
	run();
	assert_int_equal(world.status, 500);
	assert_true(has("not installed"));
}

/* It waited, and meanwhile its interpreter died: it has not begun, so it may be sent again. */
static bool silent_once(size_t nth)
{
	if (nth == 2)
		say_started();
	return true;
}

static void test_waited(void **state)
{
	(void)state;
	world.answer = silent_once;
	run();
	say_failed(WIRE_STEP_CONTEXT, EPIPE);
	assert_true(world.stream->read(world.stream_arg, world.text, 100) >
		    0); /* a keepalive, in a while */
}

static bool refuses(size_t nth)
{
	(void)nth;
	say_failed(WIRE_STEP_CONTEXT, EBUSY);
	return true;
}

static void test_refused(void **state)
{
	(void)state;
	world.answer = refuses;
	run();
	assert_int_equal(world.status, 429);
	assert_int_equal(world.n_asked, 1);
}

/* --- AG-04, AG-05, AG-06 ---------------------------------------------------------------------------------- */

static void expect_broken(void)
{
	assert_int_equal(read_all(), 0);
	assert_int_equal(agent_broke_protocol, 1);
	assert_true(has("\"name\":\"SandboxError\""));
	assert_true(has(UNEXPECTED END));
}

static bool talks_early(size_t nth)
{
	(void)nth;
	say(WIRE_OUT, "x", 1);
	return true;
}

static void test_output_before_start(void **state)
{
	(void)state;
	world.answer = talks_early;
	run();
	expect_broken();
}

static bool fails_late(size_t nth)
{
	(void)nth;
	say_started();
	say_failed(WIRE_STEP_CONTEXT, ENOENT);
	return true;
}

/* Or a cell would run twice. */
static void test_failed_after_start(void **state)
{
	(void)state;
	world.answer = fails_late;
	run();
	expect_broken();
	assert_int_equal(world.n_asked, 1);
}

static bool starts_twice(size_t nth)
{
	(void)nth;
	say_started();
	say_started();
	return true;
}

static void test_started_twice(void **state)
{
	(void)state;
	world.answer = starts_twice;
	run();
	expect_broken();
}

static void test_not_a_message(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	assert_int_equal(send(world.agent, "nonsense", 8, 0), 8);
	expect_broken();
}

static void test_wrong_message(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say(WIRE_EXIT, &(struct wire_exit){ 0 }, sizeof(struct wire_exit));
	expect_broken();
}

static bool nonsense_failure(size_t nth)
{
	(void)nth;
	say_failed(WIRE_STEP_CONTEXT, -5);
	return true;
}

static void test_nonsense_failure(void **state)
{
	(void)state;
	world.answer = nonsense_failure;
	run();
	assert_int_equal(world.status, 500);
	assert_int_equal(agent_broke_protocol, 1);
}

static bool is_gone(size_t nth)
{
	(void)nth;
	return false;
}

static void test_gone(void **state)
{
	(void)state;
	world.answer = is_gone;
	run();
	assert_int_equal(world.status, 502);
}

static void test_hung_up(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say(WIRE_OUT, "x", 1);
	fd_closep(&world.agent);
	assert_true(read_all() < 0); /* the connection is reset: no end that could be believed */
	assert_false(has("end_of_execution"));
}

static void test_client_gone(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	world.client_gone = true;
	assert_int_equal(read_all(), -ECONNRESET);
}

static void test_bad_events(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say_event(WIRE_EVENT_RESULT, "{\"text\":");
	say_event(WIRE_EVENT_RESULT, "");
	say_event(WIRE_EVENT_ERROR, "[]");
	say_event(WIRE_EVENT_COUNT, "many");
	say_event(WIRE_EVENT_COUNT, "1");
	say_end(WIRE_CELL_DONE, 0);
	expect(COUNT USAGE("done") END);
	assert_int_equal(agent_broke_protocol,
			 0); /* an interpreter may lie; that is not the agent's doing */
}

/* What shows nothing is work all the same: a cell cannot have any number of it done. */
static void test_endless_nonsense(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	for (int i = 0; i < 101; i++)
		say_event(WIRE_EVENT_RESULT,
			  i % 2 ? "{\"text\":" : "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
	say_end(WIRE_CELL_DONE, 0);
	expect(ERROR("ContextFailed", "too much of what the interpreter said could not be shown")
		       UNEXPECTED END);
	assert_int_equal(agent_broke_protocol, 0);
}

static void test_second_error(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	say_event(WIRE_EVENT_ERROR, "{\"name\":\"first\"}");
	say_event(WIRE_EVENT_ERROR, "{\"name\":\"second\"}");
	say_end(WIRE_CELL_DONE, 0);
	expect_broken();
}

/* Pieces of an event that has no end. */
static void test_client_gone_from_flood(void **state)
{
	(void)state;
	world.answer = starts;
	run();
	world.endless = WIRE_EVENT;
	world.client_gone = true;
	assert_int_equal(read_all(), -ECONNRESET);
}

/* The client is still there, and is told that somebody is here. */
static void test_flood_keeps_alive(void **state)
{
	static const char keepalive[] = "{\"type\":\"keepalive\"}\n";

	(void)state;
	world.answer = starts;
	run();
	world.endless = WIRE_EVENT;
	world.n_floods = 10; /* seconds have passed */
	assert_int_equal(world.stream->read(world.stream_arg, world.text, 1000),
			 sizeof(keepalive) - 1);
	assert_memory_equal(world.text, keepalive, sizeof(keepalive) - 1);
}

/* One event after the other, each in pieces, read while it comes: the socket holds less than it. */
static void test_large_event(void **state)
{
	static char piece[WIRE_DATA_MAX];
	const struct wire_event e = { .kind = WIRE_EVENT_RESULT };
	struct interp_assembly a;
	size_t n = INTERP_EVENT_MAX / sizeof(piece);

	(void)state;
	memset(piece, 'x', sizeof(piece));
	interp_assembly_init(&a, &key_results);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(interp_assembly_add(&a, piece, sizeof(piece)), 0);
	assert_int_equal(interp_assembly_add(&a, piece, sizeof(piece)), -EPROTO);
	interp_assembly_reset(&a);
	interp_assembly_release(&a);
	assert_int_equal(a.charged, 0);
	assert_int_equal(key_results, 0);
	/* In a cell: an error says so, and what follows is shown. */
	world.answer = starts;
	run();
	say_event(WIRE_EVENT_RESULT,
		  "{\"json\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]"
		  "]]]]]]]]]]]]]}");
	say(WIRE_EVENT, "{\"text\":\"after\"}", 16);
	say(WIRE_EVENT_END, &e, sizeof(e));
	say_end(WIRE_CELL_DONE, 0);
	assert_int_equal(read_all(), 0);
	assert_true(has("\"name\":\"ResultTooLarge\"") && has("\"text\":\"after\""));
}

static void add_large(struct interp_assembly *a)
{
	enum { PIECES = 400 };
	static char piece[WIRE_DATA_MAX];

	for (size_t k = 0; k < PIECES; k++)
		assert_int_equal(interp_assembly_add(a, piece, sizeof(piece)), 0);
}

/* However many one key has that nobody reads, there is room for another's. */
static void test_share_of_key(void **state)
{
	enum { CELLS = 24 };
	static struct interp_assembly many[CELLS];
	struct interp_assembly other;
	size_t of_other = 0;

	(void)state;
	for (size_t i = 0; i < CELLS; i++) {
		interp_assembly_init(&many[i], &key_results);
		add_large(&many[i]);
	}
	assert_false(many[0].too_large);
	assert_true(many[CELLS - 1].too_large);
	interp_assembly_init(&other, &of_other);
	add_large(&other);
	assert_false(other.too_large);
	interp_assembly_reset(&other);
	interp_assembly_release(&other);
	for (size_t i = 0; i < CELLS; i++) {
		interp_assembly_reset(&many[i]);
		interp_assembly_release(&many[i]);
	}
	assert_int_equal(key_results, 0);
	assert_int_equal(of_other, 0);
}

/* Many that are being put together share one bound; small ones are outside of it. */
static void test_many_large_events(void **state)
{
	enum { CELLS = 24 };
	static struct interp_assembly all[CELLS];
	static size_t of_key[CELLS];
	static char piece[WIRE_DATA_MAX];
	size_t refused = 0;

	(void)state;
	for (size_t i = 0; i < CELLS; i++) {
		interp_assembly_init(&all[i], &of_key[i]);
		add_large(&all[i]);
		refused += all[i].too_large;
	}
	assert_true(refused > 0 && refused < CELLS);
	for (size_t i = 0; i < CELLS; i++) {
		interp_assembly_reset(&all[i]);
		assert_int_equal(interp_assembly_add(&all[i], piece, 1000), 0);
		assert_false(all[i].too_large);
		interp_assembly_reset(&all[i]);
		interp_assembly_release(&all[i]);
	}
}

/* --- contexts ----------------------------------------------------------------------------------------------- */

static bool lists_nothing(size_t nth)
{
	(void)nth;
	say(WIRE_DONE, NULL, 0);
	return true;
}

#define DEFAULTS                                                                                   \
	"{\"id\":\"python\",\"language\":\"python\",\"cwd\":\"/home/user\"},"                      \
	"{\"id\":\"javascript\",\"language\":\"javascript\",\"cwd\":\"/home/user\"}"

static void test_list(void **state)
{
	(void)state;
	world.answer = lists_nothing;
	assert_int_equal(interp_contexts_list(&request), 0);
	assert_string_equal(world.text, "[" DEFAULTS "]");
}

static bool lists_too_many(size_t nth)
{
	(void)nth;
	for (unsigned i = 0; i < 130; i++) {
		struct {
			struct wire_context_info info;
			char cwd[4];
		} c = { .cwd = "/tmp" };

		(void)snprintf(c.info.context.name, sizeof(c.info.context.name), "c%u", i);
		(void)snprintf(c.info.context.language, sizeof(c.info.context.language), "python");
		say(WIRE_CONTEXT, &c, sizeof(c.info) + 4);
	}
	return true;
}

static void test_list_without_end(void **state)
{
	(void)state;
	world.answer = lists_too_many;
	assert_int_equal(interp_contexts_list(&request), 0);
	assert_int_equal(world.status, 500);
	assert_int_equal(agent_broke_protocol, 1);
}

/* LIST, CELL: an interpreter that cannot go to the directory. */
static bool cannot_go(size_t nth)
{
	if (world.asked[nth - 1] != WIRE_CELL)
		return lists_nothing(nth);
	say_started();
	say_event(WIRE_EVENT_ERROR,
		  "{\"name\":\"FileNotFoundError\",\"value\":\"no such directory\"}");
	say_end(WIRE_CELL_DONE, 0);
	return true;
}

static void test_create_nowhere(void **state)
{
	(void)state;
	world.answer = cannot_go;
	request.body = json_pack("{s:s}", "cwd", "/none");
	assert_int_equal(interp_contexts_create(&request), 0);
	assert_int_equal(world.status, 400);
	assert_true(has("no such directory"));
	assert_int_equal(world.asked[world.n_asked - 1],
			 WIRE_CONTEXT_TELL); /* it is not left behind */
	request.replied = false;
	assert_int_equal(interp_contexts_list(&request), 0);
	assert_string_equal(world.text, "[" DEFAULTS "]");
}

/* LIST, CELL: its start-up file prints without an end. CONTEXT_TELL: it is removed. */
static bool prints_for_ever(size_t nth)
{
	world.floods = world.asked[nth - 1] == WIRE_CELL;
	return world.floods || lists_nothing(nth);
}

static void test_create_floods(void **state)
{
	(void)state;
	world.answer = prints_for_ever;
	request.body = json_object();
	assert_int_equal(interp_contexts_create(&request), 0);
	assert_int_equal(world.status, 504);
	assert_int_equal(world.asked[world.n_asked - 1], WIRE_CONTEXT_TELL);
}

/* --- a language without state --------------------------------------------------------------------------------- */

/* FS, EXEC, EXEC, and FS once more when it is closed. */
static bool compiles(size_t nth)
{
	static const struct {
		struct wire_fs_entry head;
		char texts[3];
	} entry = { { .type = WIRE_FS_FILE, .path_len = 1, .owner_len = 1, .group_len = 1 },
		    { '/', 'u', 'u' } };

	if (nth == 1)
		say(WIRE_ENTRY, &entry, sizeof(entry.head) + 3);
	else if (nth < 4)
		say_started();
	if (nth == 2)
		say(WIRE_EXIT, &(struct wire_exit){ 0 }, sizeof(struct wire_exit));
	return true;
}

static void test_once(void **state)
{
	(void)state;
	world.answer = compiles;
	execute("{\"code\":\"int main(void){}\",\"language\":\"C\"}");
	assert_int_equal(world.stream->read(world.stream_arg, world.text, 1000), sizeof(COUNT) - 1);
	assert_int_equal(world.n_asked, 3);
	say(WIRE_OUT, "hi", 2);
	say(WIRE_EXIT, &(struct wire_exit){ .code = 4 }, sizeof(struct wire_exit));
	assert_int_equal(read_all(), 0);
	assert_true(has(OUT("hi") ERROR("ExitStatus", "4")) && has("\"reason\":\"done\"}\n" END));
}

static void test_once_broken(void **state)
{
	(void)state;
	world.answer = compiles;
	execute("{\"code\":\"int main(void){}\",\"language\":\"C\"}");
	assert_true(world.stream->read(world.stream_arg, world.text, 1000) > 0);
	say(WIRE_EXIT, &(struct wire_exit){ .code = 300 }, sizeof(struct wire_exit));
	expect_broken();
}

/* Output beyond the limit is dropped, but not without an end. */
static void test_once_client_gone(void **state)
{
	(void)state;
	world.answer = compiles;
	execute("{\"code\":\"int main(void){}\",\"language\":\"C\"}");
	assert_true(world.stream->read(world.stream_arg, world.text, 1000) > 0);
	for (int i = 0; i < 2; i++)
		say(WIRE_OUT, (char[1000]){ 0 }, 1000); /* as much as may be shown */
	assert_true(world.stream->read(world.stream_arg, world.text, 60000) > 0);
	world.endless = WIRE_OUT;
	world.client_gone = true;
	assert_int_equal(world.stream->read(world.stream_arg, world.text, 60000), -ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),
		TEST(test_request),
		TEST(test_limit),
		TEST(test_died),
		TEST(test_restarted),
		TEST(test_spilled),
		TEST(test_forked),
		TEST(test_started),
		TEST(test_fork_fails),
		TEST(test_no_end_of_trying),
		TEST(test_not_installed),
		TEST(test_waited),
		TEST(test_refused),
		TEST(test_output_before_start),
		TEST(test_failed_after_start),
		TEST(test_started_twice),
		TEST(test_not_a_message),
		TEST(test_wrong_message),
		TEST(test_nonsense_failure),
		TEST(test_gone),
		TEST(test_hung_up),
		TEST(test_client_gone),
		TEST(test_bad_events),
		TEST(test_endless_nonsense),
		TEST(test_second_error),
		TEST(test_client_gone_from_flood),
		TEST(test_flood_keeps_alive),
		TEST(test_large_event),
		TEST(test_many_large_events),
		TEST(test_share_of_key),
		TEST(test_list),
		TEST(test_list_without_end),
		TEST(test_create_nowhere),
		TEST(test_create_floods),
		TEST(test_once),
		TEST(test_once_broken),
		TEST(test_once_client_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
