/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file whose bytes come through a pipe of the host's. */
#include "cases.h"

#include <fcntl.h>
#include <poll.h>

#define PIECE 30011 /* of no size that means anything to a pipe or a file system */

static struct seen_entry e;
static char text[1 << 20], back[sizeof(text)];

static void fill(size_t size)
{
	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + (i * 7 + i / 4096) % 26);
	text[size] = '\0';
}

/* Announces so many bytes. Returns the end of the pipe to write to. */
static int send_pipe(int sock, uint64_t bytes)
{
	const struct wire_pipe message = { .bytes = bytes };
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(wire_send_fds(sock, WIRE_PIPE, &message, sizeof(message), &fds[0], 1), 0);
	fd_close(fds[0]);
	return fds[1];
}

static int begin_piped(const char *path, uint64_t bytes, int *ret_pipe)
{
	int sock = begin(WIRE_FS_WRITE, 0, 0, path, NULL);

	*ret_pipe = send_pipe(sock, bytes);
	return sock;
}

static void write_pipe(int pipe_fd, const char *data, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = MIN(len - at, (size_t)PIECE);
		assert_int_equal(write(pipe_fd, data + at, n), n);
	}
}

static void want_file(int sock, const char *path, const char *content)
{
	want_entry(sock, &e);
	assert_int_equal(e.head.size, strlen(content));
	want_done(sock);
	assert_int_equal(do_read(path, back, sizeof(back)), 0);
	assert_string_equal(back, content);
}

static void wait_for_names(int n)
{
	char script[128];

	(void)snprintf(
		script, sizeof(script),
		"for i in $(seq 1000); do test $(ls -A | wc -l) = %d && exit; sleep 0.02; done; exit 1",
		n);
	drive->sh(script);
}

/* However it is cut into pieces; the last byte of the pipe alone is not the end of the file. */
static void piped(void **state)
{
	static const size_t sizes[] = { 1, 4096, 1 << 18, (1 << 18) + 1, sizeof(text) - 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int pipe_fd, sock = begin_piped("f", sizes[i], &pipe_fd);

		fill(sizes[i]);
		write_pipe(pipe_fd, text, sizes[i]);
		fd_close(pipe_fd);
		want_silence(sock);
		assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
		want_file(sock, "f", text);
	}
}

/* Frames before it, behind it, and another pipe: in the order in which they were announced. */
static void piped_among_frames(void **state)
{
	int sock = begin(WIRE_FS_WRITE, 0, 0, "f", NULL), first, second;

	(void)state;
	assert_int_equal(wire_send(sock, WIRE_DATA, "one ", 4), 0);
	first = send_pipe(sock, 4);
	assert_int_equal(wire_send(sock, WIRE_DATA, "three ", 6), 0);
	second = send_pipe(sock, 5);
	assert_int_equal(wire_send(sock, WIRE_DATA, "five", 4), 0);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	write_pipe(second, "four ", 5);
	write_pipe(first, "two ", 4);
	want_file(sock, "f", "one two three four five");
	fd_close(first);
	fd_close(second);
}

/* What is in the pipe behind the bytes that were announced is nobody's. */
static void piped_too_much(void **state)
{
	int pipe_fd, sock = begin_piped("f", 4, &pipe_fd);

	(void)state;
	write_pipe(pipe_fd, "file, and more", 14);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	want_file(sock, "f", "file");
	fd_close(pipe_fd);
}

/* FI-18: a pipe that ends too soon is a host that has given up; so is a socket, once the pipe has ended. */
static void piped_cut_off(void **state)
{
	struct wire_frame f;
	int pipe_fd, sock;

	(void)state;
	drive->sh("echo old >f");
	sock = begin_piped("f", 5, &pipe_fd);
	write_pipe(pipe_fd, "half", 4);
	wait_for_names(2);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	fd_close(pipe_fd);
	assert_false(next_frame(sock, &f));
	fd_close(sock);
	wait_for_names(1);

	sock = begin_piped("f", 4, &pipe_fd);
	write_pipe(pipe_fd, "full", 4);
	wait_for_names(2);
	fd_close(sock);
	fd_close(pipe_fd);
	wait_for_names(1);
	assert_int_equal(do_read("f", back, sizeof(back)), 0);
	assert_string_equal(back, "old\n");
}

static void want_closed(int pipe_fd)
{
	struct pollfd p = { .fd = pipe_fd };

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(p.revents & POLLERR);
	fd_close(pipe_fd);
}

/* What failed closes the pipe, so that its writer notices, and says why. */
static void piped_refused(void **state)
{
	int pipe_fd, sock = begin_piped("/", 100, &pipe_fd);

	(void)state;
	want_closed(pipe_fd);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	want_failed(sock, WIRE_STEP_FILE, EISDIR);
	if (!drive->in_box)
		return;
	sock = begin_piped("/etc/new/file", 100, &pipe_fd);
	want_closed(pipe_fd);
	want_failed(sock, WIRE_STEP_FILE, EACCES);
}

/* Descriptors come with PIPE and with nothing else, and PIPE never without. */
static void misplaced(void **state)
{
	const struct wire_pipe message = { .bytes = 1 };
	const struct wire_fs stat = { .op = WIRE_FS_STAT };
	int pipe_fd, fds[2], sock = begin(WIRE_FS_WRITE, 0, 0, "f", NULL);

	(void)state;
	assert_int_equal(wire_send(sock, WIRE_PIPE, &message, sizeof(message)), 0);
	want_failed(sock, WIRE_STEP_FILE, EPROTO);

	sock = begin(WIRE_FS_WRITE, 0, 0, "f", NULL);
	assert_int_equal(pipe2(fds, O_CLOEXEC),
			 0); /* not before: what is forked must not have it too */
	assert_int_equal(wire_send_fds(sock, WIRE_DATA, "x", 1, &fds[0], 1), 0);
	fd_close(fds[0]);
	want_closed(fds[1]);
	want_failed(sock, WIRE_STEP_FILE, EPROTO);

	sock = drive->open(&stat);
	pipe_fd = send_pipe(sock, 1);
	want_closed(pipe_fd);
	want_failed(sock, WIRE_STEP_REQUEST, EPROTO);
	wait_for_names(0);
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_pipe[] = {
	CASE(piped),         CASE(piped_among_frames), CASE(piped_too_much),
	CASE(piped_cut_off), CASE(piped_refused),      CASE(misplaced),
};
const size_t n_cases_pipe = ARRAY_SIZE(cases_pipe);
