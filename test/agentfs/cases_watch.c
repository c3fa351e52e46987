/* SPDX-License-Identifier: Apache-2.0 */
/* Watching. */
#include "cases.h"

#include <poll.h>

static struct seen_entry e;
static struct wire_frame f;

static int watch(const char *path, uint32_t flags)
{
	int sock = begin(WIRE_FS_WATCH, flags, 0, path, NULL);

	assert_true(next_frame(sock, &f));
	assert_int_equal(f.head.type, WIRE_DONE);
	return sock;
}

/* Takes changes until that one. */
static void skip_to(int sock, uint32_t what, const char *name)
{
	const struct wire_fs_change *change = (const struct wire_fs_change *)f.data;

	while (next_frame(sock, &f))
		if (f.head.type == WIRE_CHANGE && change->what == what &&
		    wire_len(&f) == sizeof(*change) + strlen(name) &&
		    memcmp(change + 1, name, strlen(name)) == 0)
			return;
	fail_msg("no change %u of %s", what, name);
}

/* That change, once or (a new file may be told of as it is found, and again by its own events)
 * several times. */
static void want_only(int sock, uint32_t what, const char *name)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	do {
		want_change(sock, what, name, NULL);
	} while (poll(&p, 1, 250) > 0);
}

static void refused(void **state)
{
	(void)state;
	drive->sh("touch f");
	want_failed(begin(WIRE_FS_WATCH, 0, 0, "none", NULL), WIRE_STEP_FILE, ENOENT);
	want_failed(begin(WIRE_FS_WATCH, 0, 0, "f", NULL), WIRE_STEP_FILE, ENOTDIR);
}

static void kinds_of_change(void **state)
{
	int sock;

	(void)state;
	drive->sh("mkdir d d/sub; touch d/old");
	sock = watch("d", 0);
	drive->sh("touch d/new");
	want_change(sock, WIRE_FS_CREATED, "new", NULL);
	want_change(sock, WIRE_FS_CHMODDED, "new", NULL); /* touch sets the times */
	drive->sh("echo x >>d/old");
	want_change(sock, WIRE_FS_WRITTEN, "old", NULL);
	drive->sh("chmod 600 d/old");
	want_change(sock, WIRE_FS_CHMODDED, "old", NULL);
	drive->sh("mv d/old d/other");
	want_change(sock, WIRE_FS_RENAMED, "old", NULL);
	want_change(sock, WIRE_FS_CREATED, "other", NULL);
	drive->sh("rm d/other");
	want_change(sock, WIRE_FS_REMOVED, "other", NULL);
	drive->sh("mv d/new .");
	want_change(sock, WIRE_FS_RENAMED, "new", NULL);
	drive->sh("touch d/sub/unseen");
	want_silence(sock);
	drive->sh("rm -r d");
	skip_to(sock, WIRE_FS_REMOVED, ".");
	want_silence(sock);
	fd_close(sock);
}

/* An upload looks like a file being written, whatever really happens. */
static void uploads(void **state)
{
	int sock;

	(void)state;
	drive->sh("mkdir d");
	sock = watch("d", 0);
	assert_int_equal(do_write("d/f", "one"), 0);
	want_change(sock, WIRE_FS_CREATED, "f", NULL);
	want_change(sock, WIRE_FS_WRITTEN, "f", NULL);
	want_silence(sock);
	assert_int_equal(do_write("d/f", "two"), 0);
	want_change(sock, WIRE_FS_WRITTEN, "f", NULL);
	want_silence(sock);
	fd_close(begin(WIRE_FS_WRITE, 0, 0, "d/aborted", NULL));
	want_silence(sock);
	assert_int_equal(do_simple(WIRE_FS_JOIN, "d/joined", "d/f"), 0);
	want_change(sock, WIRE_FS_CREATED, "joined", NULL);
	want_change(sock, WIRE_FS_WRITTEN, "joined", NULL);
	want_change(sock, WIRE_FS_REMOVED, "f", NULL);
	want_silence(sock);
	fd_close(sock);
}

static void entries(void **state)
{
	int sock;

	(void)state;
	drive->sh("mkdir d");
	sock = watch("d", WIRE_FS_ENTRIES);
	assert_int_equal(do_write("d/f", "12345"), 0);
	want_change(sock, WIRE_FS_CREATED, "f", &e);
	assert_string_equal(e.path, at_home("d/f"));
	want_change(sock, WIRE_FS_WRITTEN, "f", &e);
	assert_int_equal(e.head.size, 5);
	drive->sh("chmod 600 d/f");
	want_change(sock, WIRE_FS_CHMODDED, "f", &e);
	assert_int_equal(e.head.mode, 0600);
	drive->sh("rm d/f");
	assert_true(next_frame(sock, &f));
	assert_int_equal(f.head.type, WIRE_CHANGE);
	assert_int_equal(((const struct wire_fs_change *)f.data)->what, WIRE_FS_REMOVED);
	assert_int_equal(((const struct wire_fs_change *)f.data)->has_entry, 0);
	want_silence(sock);
	fd_close(sock);
}

static void recursive(void **state)
{
	int sock;

	(void)state;
	drive->sh("mkdir -p d/a/b other/x");
	sock = watch("d", WIRE_FS_RECURSIVE);
	drive->sh("echo 1 >d/a/b/f");
	want_change(sock, WIRE_FS_CREATED, "a/b/f", NULL);
	want_change(sock, WIRE_FS_WRITTEN, "a/b/f", NULL);
	/* A directory that is made now, with what was put there before anybody could look. */
	drive->sh("mkdir -p d/new/sub && echo 1 >d/new/sub/f");
	want_change(sock, WIRE_FS_CREATED, "new", NULL);
	want_change(sock, WIRE_FS_CREATED, "new/sub", NULL);
	want_change(sock, WIRE_FS_CREATED, "new/sub/f", NULL);
	want_only(sock, WIRE_FS_WRITTEN, "new/sub/f");
	drive->sh("echo 2 >>d/new/sub/f");
	want_change(sock, WIRE_FS_WRITTEN, "new/sub/f", NULL);
	/* Moved within: told under the new name from then on. */
	drive->sh("mv d/new d/a/moved; echo 3 >>d/a/moved/sub/f");
	want_change(sock, WIRE_FS_RENAMED, "new", NULL);
	want_change(sock, WIRE_FS_CREATED, "a/moved", NULL);
	want_change(sock, WIRE_FS_WRITTEN, "a/moved/sub/f", NULL);
	/* Moved out: not seen any more. Moved in: seen. */
	drive->sh("mv d/a/moved gone");
	want_change(sock, WIRE_FS_RENAMED, "a/moved", NULL);
	drive->sh("echo 4 >>gone/sub/f");
	want_silence(sock);
	drive->sh("mv other d/in");
	want_change(sock, WIRE_FS_CREATED, "in", NULL);
	drive->sh("touch d/in/x/y");
	want_change(sock, WIRE_FS_CREATED, "in/x/y", NULL);
	skip_to(sock, WIRE_FS_CHMODDED, "in/x/y");
	drive->sh("rm -r d/in");
	skip_to(sock, WIRE_FS_REMOVED, "in");
	want_silence(sock);
	assert_int_equal(do_write("d/p/q/file", "x"), 0);
	want_change(sock, WIRE_FS_CREATED, "p", NULL);
	want_change(sock, WIRE_FS_CREATED, "p/q", NULL);
	want_change(sock, WIRE_FS_CREATED, "p/q/file", NULL);
	want_only(sock, WIRE_FS_WRITTEN, "p/q/file");
	fd_close(sock);
}

/* FI-17: who does not read is told that he missed something, and nothing grows meanwhile. */
static void flood(void **state)
{
	bool overflow = false;
	int sock;

	(void)state;
	drive->sh("mkdir d");
	sock = watch("d", WIRE_FS_RECURSIVE);
	drive->sh("cd d; python3 -c 'import os\nfor i in range(40000):\n"
		  " open(\"f%d\" % i, \"w\").close(); os.unlink(\"f%d\" % i)'");
	drive->sh("mkdir d/late");
	while (!overflow && next_frame(sock, &f))
		overflow = f.head.type == WIRE_CHANGE &&
			   ((const struct wire_fs_change *)f.data)->what == WIRE_FS_OVERFLOW;
	assert_true(overflow);
	/* It goes on, also in the directory whose making was lost. */
	drive->sh("sleep 0.3; touch d/late/seen");
	skip_to(sock, WIRE_FS_CREATED, "late/seen");
	fd_close(sock);
}

static void many_watchers(void **state)
{
	int socks[16];

	(void)state;
	drive->sh("mkdir d");
	for (size_t i = 0; i < ARRAY_SIZE(socks); i++)
		socks[i] = watch("d", 0);
	drive->sh("mkdir d/x");
	for (size_t i = 0; i < ARRAY_SIZE(socks); i++) {
		want_change(socks[i], WIRE_FS_CREATED, "x", NULL);
		fd_close(socks[i]);
	}
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_watch[] = {
	CASE(refused),   CASE(kinds_of_change), CASE(uploads),       CASE(entries),
	CASE(recursive), CASE(flood),           CASE(many_watchers),
};
const size_t n_cases_watch = ARRAY_SIZE(cases_watch);
