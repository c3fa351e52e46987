/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing, joining. */
#include "cases.h"

static struct seen_entry e;
static struct wire_frame f;
static char text[1 << 20];

static int begin_range(const char *path, uint64_t offset, uint64_t length)
{
	const struct wire_fs fs = { .op = WIRE_FS_READ, .offset = offset, .length = length };
	const char *const paths[] = { path, NULL };

	return begin_request(&fs, NULL, paths);
}

/* FI-05: nothing but a regular file is read, and nothing is waited for. */
static void read_files(void **state)
{
	(void)state;
	drive->sh("printf 0123456789 >f; ln -s f l; : >empty; mkdir d; mkfifo p; ln -s p lp");
	assert_int_equal(do_read("f", text, sizeof(text)), 0);
	assert_string_equal(text, "0123456789");
	assert_int_equal(do_read("l", text, sizeof(text)), 0);
	assert_string_equal(text, "0123456789");
	assert_int_equal(do_read("empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(do_read("d", text, sizeof(text)), EISDIR);
	assert_int_equal(do_read("p", text, sizeof(text)), EINVAL);
	assert_int_equal(do_read("lp", text, sizeof(text)), EINVAL);
	assert_int_equal(do_read("/dev/zero", text, sizeof(text)), EINVAL);
	assert_int_equal(do_read("/dev/tty", text, sizeof(text)), EINVAL);
	assert_int_equal(do_read("none", text, sizeof(text)), ENOENT);
	assert_int_equal(do_read("f/x", text, sizeof(text)), ENOTDIR);
	if (drive->in_box) {
		drive->sh("chmod 0 f");
		assert_int_equal(do_read("f", text, sizeof(text)), EACCES);
	}
}

static void read_ranges(void **state)
{
	static const struct {
		uint64_t offset, length;
		const char *want;
	} cases[] = {
		{ 0, UINT64_MAX, "0123456789" },
		{ 3, 4, "3456" },
		{ 9, 100, "9" },
		{ 10, 5, "" },
		{ UINT64_MAX, UINT64_MAX, "" },
		{ 0, 0, "" },
		{ 2, UINT64_MAX, "23456789" },
	};
	static const char *const files[] = { "f", "/proc/version" };
	char version[512];

	(void)state;
	drive->sh("printf 0123456789 >f");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int sock = begin_range(files[0], cases[i].offset, cases[i].length);

		want_entry(sock, &e);
		assert_int_equal(e.head.size, 10);
		assert_string_equal(e.path, at_home("f"));
		if (cases[i].want[0]) {
			assert_true(next_frame(sock, &f));
			assert_int_equal(f.head.type, WIRE_DATA);
			assert_int_equal(wire_len(&f), strlen(cases[i].want));
			assert_memory_equal(f.data, cases[i].want, wire_len(&f));
		}
		want_done(sock);
	}
	/* A file without a size has the one it turned out to have. */
	assert_int_equal(do_read(files[1], version, sizeof(version)), 0);
	{
		int sock = begin_range(files[1], 3, 4);

		want_entry(sock, &e);
		assert_int_equal(e.head.size, strlen(version));
		assert_true(next_frame(sock, &f));
		assert_int_equal(wire_len(&f), 4);
		assert_memory_equal(f.data, version + 3, 4);
		want_done(sock);
	}
}

/* FI-06 */
static void read_pseudo(void **state)
{
	(void)state;
	assert_int_equal(do_read("/proc/cpuinfo", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "processor"));
}

/* FI-07: a file that becomes shorter while it is read is not filled up with anything. */
static void read_shrinking(void **state)
{
	uint64_t got = 0;
	int sock;

	(void)state;
	drive->sh("truncate -s 64M big");
	sock = begin_range("big", 0, UINT64_MAX);
	want_entry(sock, &e);
	assert_int_equal(e.head.size, 64 << 20);
	drive->sh("truncate -s 1M big");
	while (next_frame(sock, &f) && f.head.type == WIRE_DATA)
		got += wire_len(&f);
	assert_int_equal(f.head.type, WIRE_FAILED);
	assert_int_equal(((const struct wire_failed *)f.data)->err, ENODATA);
	assert_true(got >= 1 << 20 && got < 64 << 20);
	fd_close(sock);
	/* One that grows is as long as it was. */
	drive->sh("truncate -s 4M big");
	sock = begin_range("big", 0, UINT64_MAX);
	want_entry(sock, &e);
	drive->sh("truncate -s 64M big");
	for (got = 0; next_frame(sock, &f) && f.head.type == WIRE_DATA;)
		got += wire_len(&f);
	assert_int_equal(f.head.type, WIRE_DONE);
	assert_int_equal(got, 4 << 20);
	fd_close(sock);
}

static void write_files(void **state)
{
	(void)state;
	assert_int_equal(do_write("new", "one"), 0);
	assert_int_equal(do_stat("new", &e), 0);
	assert_int_equal(e.head.mode, 0644);
	assert_int_equal(do_write("a/b/c", "deep"), 0);
	assert_int_equal(do_stat("a/b", &e), 0);
	assert_int_equal(e.head.mode, 0755);
	assert_int_equal(do_write("empty", ""), 0);
	assert_int_equal(do_read("empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	drive->sh("chmod 4751 new");
	assert_int_equal(do_write("new", "two"), 0);
	assert_int_equal(do_read("new", text, sizeof(text)), 0);
	assert_string_equal(text, "two");
	assert_int_equal(do_stat("new", &e), 0);
	assert_int_equal(e.head.mode, 0751);
	drive->sh("mkdir d; mkfifo p; ln -s p lp; ln -s d ld");
	assert_int_equal(do_write("d", "x"), EISDIR);
	assert_int_equal(do_write("ld", "x"), EISDIR);
	assert_int_equal(do_write("/", "x"), EISDIR);
	assert_int_equal(do_write("p", "x"), EINVAL);
	assert_int_equal(do_write("lp", "x"), EINVAL);
	assert_int_equal(do_write("/dev/null", "x"), EINVAL);
	assert_int_equal(do_write("new/x", "x"), ENOTDIR);
	drive->sh("test $(ls -A | wc -l) = 7");
	if (drive->in_box)
		assert_int_equal(do_write("/etc/new/file", "x"), EACCES);
}

/* FI-04: what a link leads to is written, in the box; a ring of links is not followed for ever. */
static void write_through_links(void **state)
{
	(void)state;
	drive->sh(
		"mkdir d; echo old >d/f; chmod 600 d/f; ln -s d/f l; ln -s l ll; ln -s made/later new; "
		"ln -s ring1 ring2; ln -s ring2 ring1");
	assert_int_equal(do_write("ll", "through"), 0);
	assert_int_equal(do_read("d/f", text, sizeof(text)), 0);
	assert_string_equal(text, "through");
	assert_int_equal(do_stat("d/f", &e), 0);
	assert_int_equal(e.head.mode, 0600);
	assert_int_equal(do_stat("l", &e), 0);
	assert_int_equal(e.head.is_link, 1);
	assert_int_equal(do_write("new", "made"), 0);
	assert_int_equal(do_read("made/later", text, sizeof(text)), 0);
	assert_string_equal(text, "made");
	assert_int_equal(do_write("ring1", "x"), ELOOP);
}

/* FI-18 */
static void write_aborted(void **state)
{
	int sock;

	(void)state;
	drive->sh("echo old >f");
	sock = begin(WIRE_FS_WRITE, 0, 0, "f", NULL);
	assert_int_equal(wire_send(sock, WIRE_DATA, "half", 4), 0);
	drive->sh(
		"for i in $(seq 1000); do test $(ls -A | wc -l) = 2 && exit; sleep 0.02; done; exit 1");
	assert_int_equal(do_list(drive->home, 1, text, sizeof(text)), 0);
	assert_string_equal(text, "f\n"); /* not what is not there yet */
	fd_close(sock);
	drive->sh(
		"for i in $(seq 1000); do test $(ls -A | wc -l) = 1 && exit; sleep 0.02; done; exit 1");
	assert_int_equal(do_read("f", text, sizeof(text)), 0);
	assert_string_equal(text, "old\n");

	sock = begin(WIRE_FS_WRITE, 0, 0, "x/y/z", NULL);
	assert_int_equal(wire_send(sock, WIRE_DATA, "half", 4), 0);
	drive->sh("for i in $(seq 1000); do test -d x/y && exit; sleep 0.02; done; exit 1");
	fd_close(sock);
	drive->sh("for i in $(seq 1000); do test ! -e x && exit; sleep 0.02; done; exit 1");

	/* A frame that does not belong there is as bad. */
	sock = begin(WIRE_FS_WRITE, 0, 0, "g", NULL);
	assert_int_equal(wire_send(sock, WIRE_DATA, "half", 4), 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	want_failed(sock, WIRE_STEP_FILE, EPROTO);
	drive->sh(
		"for i in $(seq 1000); do test $(ls -A | wc -l) = 1 && exit; sleep 0.02; done; exit 1");
}

/* The reason comes behind everything that was sent, however much that is. */
static void write_refused_late(void **state)
{
	int sock = begin(WIRE_FS_WRITE, 0, 0, "/", NULL);

	(void)state;
	for (int i = 0; i < 200; i++)
		assert_int_equal(wire_send(sock, WIRE_DATA, text, 60000), 0);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	want_failed(sock, WIRE_STEP_FILE, EISDIR);
}

static int write_with_attrs(const char *path, const char *const *attrs)
{
	const struct wire_fs fs = { .op = WIRE_FS_WRITE };
	int sock = drive->open(&fs);

	assert_int_equal(wire_send(sock, WIRE_PATH, path, strlen(path)), 0);
	for (; *attrs; attrs += 2)
		assert_int_equal(wire_send2(sock, WIRE_ATTR, attrs[0], strlen(attrs[0]) + 1,
					    attrs[1], strlen(attrs[1])),
				 0);
	assert_int_equal(wire_send(sock, WIRE_GO, NULL, 0), 0);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	return sock;
}

static void attributes(void **state)
{
	static const char *const two[] = { "author", "me", "note", "a b=c", NULL };
	static const char *const one[] = { "author", "you", NULL };
	int sock = write_with_attrs("f", two);

	(void)state;
	assert_true(next_frame(sock, &f));
	if (f.head.type == WIRE_FAILED) {
		/* A kernel before 6.6, whose tmpfs keeps none. */
		assert_int_equal(((const struct wire_failed *)f.data)->err, EOPNOTSUPP);
		fd_close(sock);
		assert_int_equal(do_stat("f", &e), ENOENT);
		return;
	}
	assert_int_equal(f.head.type, WIRE_ENTRY);
	want_done(sock);
	assert_int_equal(do_stat("f", &e), 0);
	assert_non_null(strstr(e.attrs, "author=me\n"));
	assert_non_null(strstr(e.attrs, "note=a b=c\n"));
	sock = write_with_attrs("f", one);
	want_entry(sock, &e);
	assert_string_equal(e.attrs, "author=you\n");
	want_done(sock);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "f", "g"), 0);
	assert_int_equal(do_stat("g", &e), 0);
	assert_string_equal(e.attrs, "author=you\n");
	/* Set by other means they are told too; those that are not ours, or cannot be told, are
	 * not. */
	drive->sh(
		"python3 -c 'import os\nos.setxattr(\"g\", \"user.e2b.other\", b\"set\")\n"
		"os.setxattr(\"g\", \"user.foreign\", b\"x\")\nos.setxattr(\"g\", \"user.e2b.nul\", b\"a\\0b\")'");
	assert_int_equal(do_stat("g", &e), 0);
	assert_non_null(strstr(e.attrs, "other=set\n"));
	assert_null(strstr(e.attrs, "foreign"));
	assert_null(strstr(e.attrs, "nul="));
	assert_int_equal(do_write("g", "no attributes"), 0);
	assert_int_equal(do_stat("g", &e), 0);
	assert_string_equal(e.attrs, "");
}

static void join_files(void **state)
{
	int sock;

	(void)state;
	drive->sh("printf a >1; printf b >2; : >3; printf c >4; mkdir d; mkfifo p");
	sock = begin(WIRE_FS_JOIN, 0, 0, "new/all", "1", "2", "3", "4", NULL);
	want_entry(sock, &e);
	assert_int_equal(e.head.size, 3);
	assert_string_equal(e.path, at_home("new/all"));
	want_done(sock);
	assert_int_equal(do_read("new/all", text, sizeof(text)), 0);
	assert_string_equal(text, "abc");
	assert_int_equal(do_list(drive->home, 1, text, sizeof(text)), 0);
	assert_string_equal(text, "d\nnew\np\n");
	/* Onto itself. */
	drive->sh("printf x >more");
	sock = begin(WIRE_FS_JOIN, 0, 0, "new/all", "new/all", "more", NULL);
	want_entry(sock, &e);
	want_done(sock);
	assert_int_equal(do_read("new/all", text, sizeof(text)), 0);
	assert_string_equal(text, "abcx");
	/* All or nothing. */
	drive->sh("printf y >y");
	assert_int_equal(do_simple(WIRE_FS_JOIN, "other/out", "none"), ENOENT);
	want_failed(begin(WIRE_FS_JOIN, 0, 0, "other/out", "y", "none", NULL), WIRE_STEP_FILE,
		    ENOENT);
	want_failed(begin(WIRE_FS_JOIN, 0, 0, "out", "y", "d", NULL), WIRE_STEP_FILE, EISDIR);
	want_failed(begin(WIRE_FS_JOIN, 0, 0, "out", "y", "p", NULL), WIRE_STEP_FILE, EINVAL);
	assert_int_equal(do_list(drive->home, 1, text, sizeof(text)), 0);
	assert_string_equal(text, "d\nnew\np\ny\n");
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_bytes[] = {
	CASE(read_files),  CASE(read_ranges),         CASE(read_pseudo),   CASE(read_shrinking),
	CASE(write_files), CASE(write_through_links), CASE(write_aborted), CASE(write_refused_late),
	CASE(attributes),  CASE(join_files),
};
const size_t n_cases_bytes = ARRAY_SIZE(cases_bytes);
