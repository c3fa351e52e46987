/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "sys/sock.h"
#include "wire/wire.h"

#define CONTROL WIRE_ON_CONTROL
#define TO_OP WIRE_ON_TO_OP
#define FROM_OP WIRE_ON_FROM_OP
#define BOTH_OP (WIRE_ON_TO_OP | WIRE_ON_FROM_OP)
#define SUDO WIRE_ON_SUDO

static const struct {
	unsigned type;
	unsigned where;
	size_t min;
	size_t max;
} messages[] = {
#define MESSAGE(name, number, socket, smallest, largest)                                           \
	{ (number), (socket), (smallest), (largest) },
#include "wire/agent.def"
#undef MESSAGE
};

static const enum wire_socket sockets[] = { CONTROL, TO_OP, FROM_OP, SUDO };

static struct wire_frame frame;

static const struct wire_context python = { .name = "c-1", .language = "python" };

/* Those about interpreters. */
static void fill_kernel(unsigned type, size_t len)
{
	if (type == WIRE_KERNEL)
		((struct wire_kernel *)frame.data)->context = python;
	if (type == WIRE_ADOPT || type == WIRE_CELL || type == WIRE_CONTEXT_TELL ||
	    type == WIRE_CONTEXT)
		memcpy(frame.data,
		       type == WIRE_ADOPT || type == WIRE_CONTEXT ? (const void *)&python : "c-1",
		       type == WIRE_ADOPT || type == WIRE_CONTEXT ? sizeof(python) : 3);
	if (type == WIRE_CONTEXT_TELL)
		((struct wire_context_tell *)frame.data)->signal = SIGKILL;
	if (type == WIRE_EVENT_END || type == WIRE_SPILLED)
		frame.data[0] = 1; /* kind, stream */
	if (type == WIRE_SPILLED && len > sizeof(struct wire_spilled))
		memset(frame.data + sizeof(struct wire_spilled), 'x',
		       len - sizeof(struct wire_spilled));
	if (type == WIRE_CONTEXT && len > sizeof(struct wire_context_info))
		memset(frame.data + sizeof(struct wire_context_info), 'x',
		       len - sizeof(struct wire_context_info));
}

/* Numbers that a message of this type and size may have; most may have zeros. */
static void fill(unsigned type, size_t len)
{
	struct wire_fs_entry *e = (struct wire_fs_entry *)frame.data;

	memset(frame.data, 0, sizeof(frame.data));
	fill_kernel(type, len);
	if (type == WIRE_TELL)
		*(struct wire_tell *)frame.data =
			(struct wire_tell){ .what = WIRE_TELL_SIGNAL, .signal = 1 };
	if (type == WIRE_FS || type == WIRE_CHANGE || type == WIRE_SIGNAL || type == WIRE_PIPE)
		frame.data[0] = 1; /* op, what, signal, bytes */
	if (type == WIRE_ENTRY && len > sizeof(*e)) {
		size_t left = len - sizeof(*e), attrs = left > 4 ? left - 1 : 0;

		/* A path of what is left, or of one byte and one attribute of the rest. */
		e->path_len = (uint16_t)(left - attrs);
		e->attrs_len = (uint32_t)attrs;
		memset(e + 1, 'x', left);
		if (attrs)
			frame.data[len - 1] = frame.data[len - 3] = '\0';
	}
}

static int check(unsigned type, size_t len, enum wire_socket where)
{
	size_t n = sizeof(frame.head) + len;

	fill(type, MIN(len, sizeof(frame.data)));
	frame.head = (struct wire_head){ .type = (uint16_t)type, .len = (uint32_t)n };
	return wire_check(&frame, n, where);
}

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* Every message on its own socket within its size, and nowhere else, and not a byte more. */
static void test_bounds(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		for (size_t s = 0; s < ARRAY_SIZE(sockets); s++) {
			int want = messages[i].where & sockets[s] ? 0 : -EPROTO;

			assert_int_equal(check(messages[i].type, messages[i].min, sockets[s]),
					 want);
			assert_int_equal(check(messages[i].type, messages[i].max, sockets[s]),
					 want);
			if (messages[i].min)
				assert_int_equal(check(messages[i].type, messages[i].min - 1,
						       sockets[s]),
						 -EPROTO);
			assert_int_equal(check(messages[i].type, messages[i].max + 1, sockets[s]),
					 -EPROTO);
		}
	}
}

/* What a hostile agent may say is this and no more: written out here, not taken from the table. */
static void test_hostile_side(void **state)
{
	static const struct {
		unsigned type;
		size_t len;
	} allowed[] = {
		{ 20, 8 }, { 21, 8 },  { 22, 1 },  { 23, 1 },  { 24, 16 }, { 25, 1 },
		{ 26, 8 }, { 27, 0 },  { 31, 17 }, { 32, 0 },  { 33, 17 }, { 34, 1 },
		{ 35, 0 }, { 37, 17 }, { 38, 0 },  { 42, 58 }, { 43, 9 },  { 67, 1 },
		{ 68, 8 }, { 69, 9 },  { 70, 64 }, { 71, 73 },
	};

	(void)state;
	for (unsigned type = 0; type <= UINT16_MAX; type++) {
		bool any = false, want = false;

		for (size_t len = 0; len < 80; len++)
			any |= check(type, len, FROM_OP) == 0;
		for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
			if (allowed[i].type != type)
				continue;
			want = true;
			assert_int_equal(check(type, allowed[i].len, FROM_OP), 0);
		}
		assert_true(any == want);
	}
}

/* How a process can have ended, and how not. */
static void test_exit(void **state)
{
	static const struct {
		struct wire_exit end;
		bool ok;
	} cases[] = {
		{ { 0 }, true },
		{ { .code = 255 }, true },
		{ { .code = 256 }, false },
		{ { .code = -2 }, false },
		{ { .code = -1 }, false },
		{ { .code = -1, .signal = 9 }, true },
		{ { .code = -1, .signal = 64, .core = 1, .timed_out = 1 }, true },
		{ { .code = -1, .signal = 65 }, false },
		{ { .code = -1, .signal = -1 }, false },
		{ { .code = 1, .signal = 9 }, false },
		{ { .code = 1, .core = 1 }, false },
		{ { .code = -1, .signal = 9, .core = 2 }, false },
		{ { .code = 1, .timed_out = 2 }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_true(wire_exit_ok(&cases[i].end) == cases[i].ok);
}

static void test_header(void **state)
{
	(void)state;
	frame.head = (struct wire_head){ .type = WIRE_DONE, .len = sizeof(frame.head) };
	assert_int_equal(wire_check(&frame, 8, FROM_OP), 0);
	for (size_t n = 0; n < 8; n++)
		assert_int_equal(wire_check(&frame, n, FROM_OP), -EPROTO);
	assert_int_equal(wire_check(&frame, 9, FROM_OP), -EPROTO);
	frame.head.zero = 1;
	assert_int_equal(wire_check(&frame, 8, FROM_OP), -EPROTO);
	frame.head = (struct wire_head){ .type = WIRE_OUT, .len = UINT32_MAX };
	assert_int_equal(wire_check(&frame, 9, FROM_OP), -EPROTO);
	frame.head.len = 0;
	assert_int_equal(wire_check(&frame, 9, FROM_OP), -EPROTO);
	frame.head.len = WIRE_MAX + 1;
	assert_int_equal(wire_check(&frame, WIRE_MAX + 1, FROM_OP), -EPROTO);
	frame.head.len = WIRE_MAX;
	assert_int_equal(wire_check(&frame, WIRE_MAX, FROM_OP), 0);
}

/* Is a payload of this type with these bytes a message? */
static int check_bytes(unsigned type, const void *data, size_t len, enum wire_socket where)
{
	size_t n = sizeof(frame.head) + len;

	memcpy(frame.data, data, len);
	frame.head = (struct wire_head){ .type = (uint16_t)type, .len = (uint32_t)n };
	return wire_check(&frame, n, where);
}

#define GOOD(where, type, what, ...)                                                               \
	assert_int_equal(check_bytes(WIRE_##type, &(struct what){ __VA_ARGS__ },                   \
				     sizeof(struct what), where),                                  \
			 0)
#define BAD(where, type, what, ...)                                                                \
	assert_int_equal(check_bytes(WIRE_##type, &(struct what){ __VA_ARGS__ },                   \
				     sizeof(struct what), where),                                  \
			 -EPROTO)

static void test_values(void **state)
{
	(void)state;
	GOOD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_KEEP | WIRE_EXEC_PTY);
	GOOD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_ALONE | WIRE_EXEC_LAST);
	GOOD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_ALONE | WIRE_EXEC_RUNNER);
	BAD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_PTY | WIRE_EXEC_RUNNER);
	BAD(CONTROL, EXEC, wire_exec, .flags = 64);
	BAD(CONTROL, EXEC, wire_exec, .zero = 1);
	BAD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_KEEP | WIRE_EXEC_ALONE);
	BAD(CONTROL, EXEC, wire_exec, .flags = WIRE_EXEC_KEEP | WIRE_EXEC_LAST);
	GOOD(CONTROL, ATTACH, wire_process, .pid = 2);
	BAD(CONTROL, ATTACH, wire_process, .forked = 1);
	GOOD(CONTROL, INPUT, wire_input, .pid = 2, .kind = WIRE_INPUT_PTY);
	BAD(CONTROL, INPUT, wire_input, .pid = 2, .kind = _WIRE_INPUT_KIND_MAX);
	GOOD(FROM_OP, STARTED, wire_process, .pid = 2, .forked = 1);
	BAD(FROM_OP, STARTED, wire_process, .forked = 2);
	BAD(FROM_OP, PROCESS, wire_process, .forked = 1);
	GOOD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_SIGNAL, .signal = 64);
	BAD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_SIGNAL);
	BAD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_SIGNAL, .signal = 65);
	BAD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_SIGNAL, .signal = 9, .rows = 1);
	GOOD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_RESIZE, .rows = 1, .cols = 65535);
	BAD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_RESIZE, .signal = 1);
	GOOD(CONTROL, TELL, wire_tell, .what = WIRE_TELL_CLOSE_INPUT);
	BAD(CONTROL, TELL, wire_tell, .what = 0);
	BAD(CONTROL, TELL, wire_tell, .what = 4);
	GOOD(CONTROL, FS, wire_fs, .op = WIRE_FS_JOIN);
	BAD(CONTROL, FS, wire_fs, .op = 0);
	BAD(CONTROL, FS, wire_fs, .op = _WIRE_FS_MAX);
	BAD(CONTROL, FS, wire_fs, .op = 1, .flags = 1u << 31);
	BAD(CONTROL, FS, wire_fs, .op = 1, .zero = 1);
	GOOD(CONTROL, KERNEL, wire_kernel, .context = python);
	BAD(CONTROL, KERNEL, wire_kernel, .context = { .name = "c" });
	BAD(CONTROL, KERNEL, wire_kernel, .context = { .name = "C", .language = "python" });
	BAD(CONTROL, KERNEL, wire_kernel, .context = python, .exec = { .flags = WIRE_EXEC_KEEP });
	BAD(CONTROL, KERNEL, wire_kernel, .context = python, .exec = { .timeout_ms = 1 });
	BAD(CONTROL, ADOPT, wire_context, .name = "a\0b", .language = "python");
	BAD(CONTROL, ADOPT, wire_context, .name = "a/b", .language = "python");
	BAD(CONTROL, CELL, wire_cell, .context = "");
	GOOD(CONTROL, CONTEXT_TELL, wire_context_tell, .context = "c", .signal = SIGINT);
	BAD(CONTROL, CONTEXT_TELL, wire_context_tell, .context = "c", .signal = SIGTERM);
	BAD(CONTROL, CONTEXT_TELL, wire_context_tell, .context = "c", .signal = SIGINT, .zero = 1);
	BAD(FROM_OP, EVENT_END, wire_event, .kind = 0);
	BAD(FROM_OP, EVENT_END, wire_event, .kind = _WIRE_EVENT_MAX);
	BAD(FROM_OP, EVENT_END, wire_event, .kind = 1, .zero = 1);
	GOOD(FROM_OP, CELL_END, wire_cell_end, .died = 1, .exit = { .code = -1, .signal = 9 });
	BAD(FROM_OP, CELL_END, wire_cell_end, .died = 2);
	BAD(FROM_OP, CELL_END, wire_cell_end, .exit = { .code = 1 });
	BAD(FROM_OP, CELL_END, wire_cell_end, .reason = _WIRE_CELL_MAX);
	GOOD(SUDO, SUDO, wire_sudo, .flags = WIRE_SUDO_TTY);
	BAD(SUDO, SUDO, wire_sudo, .flags = 2);
	BAD(SUDO, SUDO, wire_sudo, .zero = 1);
	GOOD(SUDO, SIGNAL, wire_signal, .signal = 64);
	BAD(SUDO, SIGNAL, wire_signal, .signal = 0);
	BAD(SUDO, SIGNAL, wire_signal, .signal = 65);
	BAD(SUDO, SIGNAL, wire_signal, .signal = 1, .zero = 1);
}

/* What a file is: texts of the lengths it says, and nothing beside them. */
static void test_entries(void **state)
{
	struct {
		struct wire_fs_entry e;
		char text[16];
	} m = { { .mode = 07777,
		  .path_len = 2,
		  .owner_len = 1,
		  .group_len = 1,
		  .target_len = 1,
		  .attrs_len = 8 },
		"/aug"
		"t"
		"k\0v\0"
		"k2\0" };

	(void)state;
#define ENTRY(len) check_bytes(WIRE_ENTRY, &m, sizeof(m.e) + (len), FROM_OP)
	assert_int_equal(ENTRY(13), 0);
	assert_int_equal(ENTRY(12), -EPROTO);
	assert_int_equal(ENTRY(14), -EPROTO);
	m.text[11] = 'x'; /* the second key has no end */
	assert_int_equal(ENTRY(13), -EPROTO);
	m.text[11] = '\0';
	m.text[5] = '\0'; /* the first key is empty */
	assert_int_equal(ENTRY(13), -EPROTO);
	m.text[5] = 'k';
	m.text[1] = '\0'; /* a path with a NUL in it */
	assert_int_equal(ENTRY(13), -EPROTO);
	m.text[1] = 'a';
	m.e.attrs_len = 0;
	assert_int_equal(ENTRY(5), 0);
	m.e.path_len = 0;
	assert_int_equal(ENTRY(3), -EPROTO);
	m.e.path_len = UINT16_MAX;
	assert_int_equal(ENTRY(5), -EPROTO);
	m.e.path_len = 2;
	m.e.mode = 010000;
	assert_int_equal(ENTRY(5), -EPROTO);
	m.e.mode = 0;
	m.e.type = WIRE_FS_DIR + 1;
	assert_int_equal(ENTRY(5), -EPROTO);
	m.e.type = WIRE_FS_DIR;
	m.e.is_link = 2;
	assert_int_equal(ENTRY(5), -EPROTO);
	m.e.is_link = 1;
	m.e.mtime_ns = 1000000000;
	assert_int_equal(ENTRY(5), -EPROTO);
	m.e.mtime_ns = 999999999;
	assert_int_equal(ENTRY(5), 0);
#undef ENTRY
}

#define NAME_OK(text) wire_name_ok((const unsigned char *)(text), sizeof(text) - 1)

static void test_names(void **state)
{
	unsigned char name[WIRE_NAME_MAX + 1];

	(void)state;
	assert_true(NAME_OK("a") && NAME_OK("...") && NAME_OK(".a") && NAME_OK("..a"));
	assert_true(NAME_OK("\n") && NAME_OK("\xff\xfe") && NAME_OK("a\\b") && NAME_OK("%2e%2e"));
	assert_false(NAME_OK("") || NAME_OK(".") || NAME_OK("..") || NAME_OK("/") ||
		     NAME_OK("a/b"));
	assert_false(NAME_OK("a\0b") || NAME_OK("\0") || NAME_OK("../x") || NAME_OK("x/"));
	memset(name, 'a', sizeof(name));
	assert_true(wire_name_ok(name, WIRE_NAME_MAX));
	assert_false(wire_name_ok(name, WIRE_NAME_MAX + 1));
}

static void test_round_trip(void **state)
{
	static unsigned char data[WIRE_DATA_MAX + 1];
	int pair[2];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(wire_send(pair[0], WIRE_OUT, data, WIRE_DATA_MAX), 0);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), 1);
	assert_int_equal(frame.head.type, WIRE_OUT);
	assert_int_equal(wire_len(&frame), WIRE_DATA_MAX);
	assert_memory_equal(frame.data, data, WIRE_DATA_MAX);
	assert_int_equal(wire_send2(pair[0], WIRE_DATA, data, 3, data + 3, 4), 0);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), 1);
	assert_int_equal(wire_len(&frame), 7);
	assert_memory_equal(frame.data, data, 7);
	assert_int_equal(wire_send(pair[0], WIRE_OUT, data, sizeof(data)), -EMSGSIZE);
	assert_int_equal(wire_send2(pair[0], WIRE_OUT, data, WIRE_DATA_MAX, data, 1), -EMSGSIZE);
	assert_int_equal(wire_send2(pair[0], WIRE_OUT, data, 1, data, SIZE_MAX), -EMSGSIZE);
	(void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EAGAIN);
	fd_close(pair[0]);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), 0);
	assert_int_equal(wire_send(pair[1], WIRE_DONE, NULL, 0), -EPIPE);
	fd_close(pair[1]);
}

/* What is no frame is -EPROTO, also when it is longer than a frame can be. */
static void test_garbage(void **state)
{
	static const unsigned char big[WIRE_MAX + 1] = { WIRE_OUT, 0, 0, 0, 0, 0, 1, 0 };
	int pair[2];

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	for (size_t n = 1; n < 8; n++) {
		assert_int_equal(send(pair[0], big, n, 0), n);
		assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EPROTO);
	}
	assert_int_equal(send(pair[0], big, WIRE_MAX, 0), WIRE_MAX);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), 1);
	assert_int_equal(send(pair[0], big, WIRE_MAX + 1, 0), WIRE_MAX + 1);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EPROTO);
	assert_int_equal(send(pair[0], "", 0, 0), 0);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

/* AG-10: descriptors that nobody asked for are closed, and the message is refused. */
static void test_unwanted_fds(void **state)
{
	int fds[SOCK_FDS_MAX], pair[2], got[2];
	size_t n_got = ARRAY_SIZE(got), before;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = pair[0];
	before = open_fds();
	assert_int_equal(wire_send_fds(pair[0], WIRE_DONE, NULL, 0, fds, 1), 0);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EPROTO);
	assert_int_equal(wire_send_fds(pair[0], WIRE_OUT, "x", 1, fds, ARRAY_SIZE(fds)), 0);
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EPROTO);
	/* More than there is room for. */
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "12345678", 8, fds, 3), 0);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), -EPROTO);
	/* With a message that is refused. */
	n_got = ARRAY_SIZE(got);
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "1234567", 7, fds, 2), 0);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), -EPROTO);
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "", 0, fds, SOCK_FDS_MAX + 1), -EINVAL);
	assert_int_equal(open_fds(), before);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

/* As many as there is room for, but no free number for one of them: that is our own trouble, not the sender's. */
static void test_no_number_free(void **state)
{
	struct rlimit full, before;
	int pair[2], got[2], fds[2], pipes[2];
	size_t n_got = ARRAY_SIZE(got), n_open;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(pipe(pipes), 0);
	fds[0] = fds[1] = pair[0];
	n_open = open_fds();
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "12345678", 8, fds, 2), 0);
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "12345678", 8, fds, 2), 0);
	assert_int_equal(wire_send_fds(pair[0], WIRE_DONE, NULL, 0, fds, 1), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = before;
	full.rlim_cur = (rlim_t)pipes[1] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), -EMFILE);
	assert_int_equal(frame.head.type, WIRE_GET);
	/* One of two. */
	fd_close(pipes[1]);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), -EMFILE);
	/* Where none may come it is the sender's all the same. */
	assert_int_equal(wire_recv(pair[1], &frame, FROM_OP), -EPROTO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(open_fds(), n_open - 1);
	fd_close(pipes[0]);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void test_wanted_fds(void **state)
{
	int pipes[2], pair[2], got[4];
	size_t n_got = ARRAY_SIZE(got), before = open_fds();
	char c = 0;

	(void)state;
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(wire_send_fds(pair[0], WIRE_GET, "12345678", 8, pipes, 2), 0);
	fd_close(pipes[0]);
	fd_close(pipes[1]);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), 1);
	assert_int_equal(n_got, 2);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(got[0], &c, 1), 1);
	assert_int_equal(c, 'x');
	fd_close(got[0]);
	fd_close(got[1]);
	/* No descriptors is no mistake here: whoever needs them counts them. */
	assert_int_equal(wire_send(pair[0], WIRE_GET, "12345678", 8), 0);
	assert_int_equal(wire_recv_fds(pair[1], &frame, CONTROL, got, &n_got), 1);
	assert_int_equal(n_got, 0);
	fd_close(pair[0]);
	fd_close(pair[1]);
	assert_int_equal(open_fds(), before);
}

static void test_step_names(void **state)
{
	(void)state;
	for (uint32_t step = 0; step < _WIRE_STEP_MAX; step++)
		assert_true(wire_step_name(step) && wire_step_name(step)[0]);
	assert_string_equal(wire_step_name(_WIRE_STEP_MAX), "unknown step");
	assert_string_equal(wire_step_name(UINT32_MAX), "unknown step");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),     cmocka_unit_test(test_hostile_side),
		cmocka_unit_test(test_header),     cmocka_unit_test(test_exit),
		cmocka_unit_test(test_values),     cmocka_unit_test(test_entries),
		cmocka_unit_test(test_names),      cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_garbage),    cmocka_unit_test(test_unwanted_fds),
		cmocka_unit_test(test_wanted_fds), cmocka_unit_test(test_no_number_free),
		cmocka_unit_test(test_step_names),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
