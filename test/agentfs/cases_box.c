/* SPDX-License-Identifier: Apache-2.0 */
/* What needs a box: its limits, its root. */
#include "cases.h"

#include <poll.h>

static struct seen_entry e;
static char text[65536];

/* The box of this suite has 64 MiB of disk. */
static void write_full_disk(void **state)
{
	int sock, r = 0;

	(void)state;
	sock = begin(WIRE_FS_WRITE, 0, 0, "big", NULL);
	for (int i = 0; i < 2000 && r == 0; i++)
		r = wire_send(sock, WIRE_DATA, text, 65000);
	assert_int_equal(r, 0);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	want_failed(sock, WIRE_STEP_FILE, ENOSPC);
	drive->sh("test $(ls -A | wc -l) = 0");
	assert_int_equal(do_write("small", "fits"), 0);
}

/* A user named in the request: root where the box has one. */
static void as_root(void **state)
{
	const struct wire_fs stat_request = { .op = WIRE_FS_STAT },
			     write_request = { .op = WIRE_FS_WRITE };
	const char *const home[] = { "~", NULL }, *const file[] = { "of-root", NULL };
	int sock;

	(void)state;
	sock = begin_request(&stat_request, "root", home);
	want_entry(sock, &e);
	assert_string_equal(e.path, "/root");
	assert_string_equal(e.owner, "root");
	want_done(sock);
	sock = begin_request(&write_request, "root", file);
	assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
	want_entry(sock, &e);
	assert_string_equal(e.path, "/root/of-root");
	assert_string_equal(e.owner, "root");
	want_done(sock);
	assert_int_equal(do_stat("/root/of-root", &e), EACCES);
	/* Somebody else's file stays his when root writes it. */
	drive->sh("echo mine >f && chmod 640 f");
	{
		const char *const other[] = { at_home("f"), NULL };

		sock = begin_request(&write_request, "root", other);
		assert_int_equal(wire_send(sock, WIRE_DATA, "roots", 5), 0);
		assert_int_equal(wire_send(sock, WIRE_FILE_END, NULL, 0), 0);
		want_entry(sock, &e);
		assert_string_equal(e.owner, "user");
		assert_int_equal(e.head.mode, 0640);
		want_done(sock);
	}
	assert_int_equal(do_read("f", text, sizeof(text)), 0);
	assert_string_equal(text, "roots");
}

static int as_root_do(uint32_t op, const char *path, const char *second)
{
	const struct wire_fs request = { .op = op };
	const char *const paths[] = { path, second, NULL };
	int sock = begin_request(&request, "root", paths), err = 0;
	static struct wire_frame f;

	while (next_frame(sock, &f))
		if (f.head.type == WIRE_FAILED)
			err = ((const struct wire_failed *)f.data)->err;
	fd_close(sock);
	return err;
}

/* What lies in the template's layers cannot be renamed by the kernel, nor really removed. */
static void template_layer(void **state)
{
	(void)state;
	assert_int_equal(do_stat("/usr/share/terminfo", &e), 0);
	assert_int_equal(as_root_do(WIRE_FS_MOVE, "/usr/share/terminfo", "/root/moved/here"), 0);
	assert_int_equal(do_stat("/usr/share/terminfo", &e), ENOENT);
	assert_int_equal(as_root_do(WIRE_FS_REMOVE, "/root/moved", NULL), 0);
	assert_int_equal(do_stat("/etc/profile", &e), 0);
	assert_int_equal(as_root_do(WIRE_FS_MOVE, "/etc/profile", "/usr/profile"), 0);
	assert_int_equal(do_stat("/usr/profile", &e), 0);
	assert_string_equal(e.owner, "root");
	assert_int_equal(do_stat("/etc/profile", &e), ENOENT);
	assert_int_equal(as_root_do(WIRE_FS_REMOVE, "/usr/share/man", NULL), 0);
	assert_int_equal(do_stat("/usr/share/man", &e), ENOENT);
}

/* FI-13: whoever swaps a directory for a link while root removes it loses nothing but that. */
static void remove_swapped(void **state)
{
	(void)state;
	drive->sh(
		"mkdir keep && touch keep/f && (python3 -c 'import ctypes, os, time\n"
		"libc = ctypes.CDLL(None)\n"
		"end = time.time() + 3\n"
		"while time.time() < end:\n"
		" try:\n"
		"  os.makedirs(\"t/a/x\"); os.symlink(\"../keep\", \"t/l\")\n"
		" except OSError: pass\n"
		" while time.time() < end and libc.renameat2(-100, b\"t/a\", -100, b\"t/l\", 2) == 0: pass\n"
		"open(\"over\", \"w\").close()' >/dev/null 2>&1 &)");
	for (int i = 0; i < 1500; i++)
		(void)as_root_do(WIRE_FS_REMOVE, at_home("t"), NULL);
	assert_int_equal(do_stat("keep/f", &e), 0);
	drive->sh("for i in $(seq 1000); do test -e over && exit; sleep 0.05; done; exit 1");
}

/* FI-13: nor does he who moves the directory away that is just being emptied. */
static int remove_while_it_moves(void)
{
	drive->sh(
		"rm -rf keep t ready && mkdir -p keep t/a/b && touch keep/f && cd t/a/b && seq 20000 | xargs touch && cd ~ && "
		"(python3 -c 'import os\n"
		"open(\"ready\", \"w\").close()\n"
		"while len(os.listdir(\"t/a/b\")) == 20000: pass\n"
		"os.rename(\"t/a/b\", \"keep/b\")' >/dev/null 2>&1 &)\n"
		"for i in $(seq 1000); do test -e ready && exit; sleep 0.05; done; exit 1");
	return as_root_do(WIRE_FS_REMOVE, at_home("t"), NULL);
}

static void remove_moved(void **state)
{
	int err = 0;

	(void)state;
	/* Who gets no CPU while it is emptied comes too late to move it: again, then. */
	for (int i = 0; i < 10 && err == 0; i++) {
		err = remove_while_it_moves();
		assert_int_equal(do_stat("keep/f", &e), 0);
	}
	assert_int_equal(err, ESTALE);
}

/* FI-06: a file of /proc that goes on for terabytes. */
static void read_endless(void **state)
{
	char pid[32], path[64];

	(void)state;
	drive->sh("sleep 5 >/dev/null 2>&1 & printf %s $! >pid");
	assert_int_equal(do_read("pid", pid, sizeof(pid)), 0);
	(void)snprintf(path, sizeof(path), "/proc/%s/pagemap", pid);
	assert_int_equal(do_read(path, text, sizeof(text)), EFBIG);
}

/* FI-05: a lease would make an open wait for its holder. */
static void read_leased(void **state)
{
	static char got[64];

	(void)state;
	drive->sh("echo x >/dev/shm/leased; (python3 -c 'import fcntl, os, signal, time\n"
		  "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
		  "fd = os.open(\"/dev/shm/leased\", os.O_RDWR)\n"
		  "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
		  "open(\"ready\", \"w\").close(); time.sleep(40)' >/dev/null 2>&1 &)\n"
		  "for i in $(seq 1000); do test -e ready && exit; sleep 0.05; done; exit 1");
	assert_int_equal(do_read("/dev/shm/leased", got, sizeof(got)), EAGAIN);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "/dev/shm/leased", NULL), 0);
}

/* Beyond what runs at once, an operation is refused and the box lives on. */
static void too_many(void **state)
{
	const struct wire_fs request = { .op = WIRE_FS_STAT };
	static int socks[1024];
	static struct wire_frame f;
	size_t n = 0;
	int err = 0;

	(void)state;
	while (n < ARRAY_SIZE(socks) && !err) {
		struct pollfd p;

		socks[n] = drive->open(&request);
		p = (struct pollfd){ .fd = socks[n++], .events = POLLIN };
		if (poll(&p, 1, 5) > 0 && next_frame(p.fd, &f) && f.head.type == WIRE_FAILED)
			err = ((const struct wire_failed *)f.data)->err;
	}
	assert_int_equal(err, EAGAIN);
	while (n)
		fd_close(socks[--n]);
	for (int i = 0; i < 1500 && err; i++) {
		(void)poll(NULL, 0, 20);
		socks[0] = begin(WIRE_FS_STAT, 0, 0, "~", NULL);
		err = next_frame(socks[0], &f) && f.head.type == WIRE_ENTRY ? 0 : EAGAIN;
		fd_close(socks[0]);
	}
	assert_int_equal(err, 0);
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_box[] = {
	CASE(write_full_disk), CASE(as_root),      CASE(template_layer), CASE(remove_swapped),
	CASE(remove_moved),    CASE(read_endless), CASE(read_leased),    CASE(too_many),
};
const size_t n_cases_box = ARRAY_SIZE(cases_box);
