/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names: paths, entries, directories, moving, removing. */
#include "cases.h"

#include <sys/stat.h>

static struct seen_entry e;
static char text[1 << 20];

/* FI-01, FI-02: whatever a path looks like, it leads to a place in the box. */
static void path_rules(void **state)
{
	static const char *const same[] = { "~/a/f",    "a/f",       "./a/./f",     "a//f",
					    "a/x/../f", "../%s/a/f", "~/../%s/a/f", "a/f/" };
	const char *base = strrchr(drive->home, '/') + 1;
	char path[256];

	(void)state;
	drive->sh("mkdir a && echo hi >a/f");
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		const char *mark = strstr(same[i], "%s");

		if (mark)
			(void)snprintf(path, sizeof(path), "%.*s%s%s", (int)(mark - same[i]),
				       same[i], base, mark + 2);
		else
			(void)snprintf(path, sizeof(path), "%s", same[i]);
		assert_int_equal(do_stat(path, &e), 0);
		assert_string_equal(e.path, at_home("a/f"));
	}
	assert_int_equal(do_stat("~", &e), 0);
	assert_string_equal(e.path, drive->home);
	assert_int_equal(do_stat("../../../../../../../..", &e), 0);
	assert_string_equal(e.path, "/");
	assert_int_equal(do_stat("~root", &e), EINVAL);
	assert_int_equal(do_stat("a/f/x", &e), ENOTDIR);
	assert_int_equal(do_stat("none", &e), ENOENT);
	memset(text, 'x', 4095);
	text[4095] = '\0';
	assert_int_equal(do_stat(text, &e), ENAMETOOLONG);
	text[0] = '/';
	assert_int_equal(do_stat(text, &e), ENAMETOOLONG);
}

static void entry_fields(void **state)
{
	(void)state;
	drive->sh("printf hello >f && chmod 640 f && touch -d '2001-02-03 04:05:06.789 UTC' f && "
		  "mkdir d && chmod 1777 d && ln -s d l && ln -s nowhere broken && mkfifo p");
	assert_int_equal(do_stat("f", &e), 0);
	assert_int_equal(e.head.type, WIRE_FS_FILE);
	assert_int_equal(e.head.size, 5);
	assert_int_equal(e.head.mode, 0640);
	assert_int_equal(e.head.is_link, 0);
	assert_int_equal(e.head.mtime_s, 981173106);
	assert_int_equal(e.head.mtime_ns, 789000000);
	assert_string_equal(e.target, "");
	assert_true(e.owner[0] && e.group[0]);
	if (drive->in_box) {
		assert_string_equal(e.owner, "user");
		assert_string_equal(e.group, "user");
	}
	assert_int_equal(do_stat("d", &e), 0);
	assert_int_equal(e.head.type, WIRE_FS_DIR);
	assert_int_equal(e.head.mode, 01777);
	assert_int_equal(do_stat("l", &e), 0);
	assert_string_equal(e.path, at_home("l"));
	assert_int_equal(e.head.type, WIRE_FS_DIR);
	assert_int_equal(e.head.mode, 01777);
	assert_int_equal(e.head.is_link, 1);
	assert_string_equal(e.target, at_home("d"));
	assert_int_equal(do_stat("broken", &e), 0);
	assert_int_equal(e.head.type, WIRE_FS_OTHER);
	assert_int_equal(e.head.is_link, 1);
	assert_string_equal(e.target, "");
	assert_int_equal(do_stat("p", &e), 0);
	assert_int_equal(e.head.type, WIRE_FS_OTHER);
	assert_int_equal(e.head.is_link, 0);
}

/* FI-12 */
static void odd_names(void **state)
{
	const char *const names[] = { "new\nline",
				      "\033[31m",
				      "\xff\xfe",
				      "\xe2\x80\xae"
				      "rtl",
				      " ",
				      "~x" };

	(void)state;
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "odd", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "odd/%s", names[i]);
		assert_int_equal(do_write(path, names[i]), 0);
		assert_int_equal(do_stat(path, &e), 0);
		assert_string_equal(strrchr(e.path, '/') + 1, names[i]);
		assert_int_equal(do_read(path, text, sizeof(text)), 0);
		assert_string_equal(text, names[i]);
	}
	assert_int_equal(do_list(at_home("odd"), 1, text, sizeof(text)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_non_null(strstr(text, names[i]));
}

/* --- directories ----------------------------------------------------------------------------- */

static void make_directories(void **state)
{
	(void)state;
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "a/b/c", NULL), 0);
	assert_int_equal(do_stat("a/b", &e), 0);
	assert_int_equal(e.head.mode, 0755);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "a/b/c", NULL), EEXIST);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "a/b", NULL), EEXIST);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "/", NULL), EEXIST);
	drive->sh("touch f; ln -s a l; ln -s nowhere broken; mkdir -m 555 ro");
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "f", NULL), ENOTDIR);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "f/x", NULL), ENOTDIR);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "f/x/y", NULL), ENOTDIR);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "l", NULL), EEXIST);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "broken", NULL), ENOTDIR);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, "l/new", NULL), 0);
	assert_int_equal(do_stat("a/new", &e), 0);
	if (drive->in_box) {
		assert_int_equal(do_simple(WIRE_FS_MKDIR, "ro/x/y", NULL), EACCES);
		assert_int_equal(do_simple(WIRE_FS_MKDIR, "/usr/x/y", NULL), EACCES);
	}
	/* Half of the way is not left when the rest cannot be made. */
	memset(text, 'n', 300);
	memcpy(text, "u/v/", 4);
	text[300] = '\0';
	assert_int_equal(do_simple(WIRE_FS_MKDIR, text, NULL), ENAMETOOLONG);
	assert_int_equal(do_stat("u", &e), ENOENT);
	memcpy(text + 300, "/x/y", 5);
	assert_int_equal(do_simple(WIRE_FS_MKDIR, text, NULL), ENAMETOOLONG);
	assert_int_equal(do_stat("u", &e), ENOENT);
}

/* FI-11 */
static void list_order(void **state)
{
	(void)state;
	drive->sh(
		"mkdir -p t/b/y t/b/x t/a && touch t/b.txt t/a/1 t/a/10 t/a/2 t/b/x/deep t/A t/z && "
		"ln -s . t/loop && ln -s /nowhere t/broken");
	assert_int_equal(do_list(at_home("t"), 1, text, sizeof(text)), 0);
	assert_string_equal(text, "A\na\nb\nb.txt\nbroken\nloop\nz\n");
	assert_int_equal(do_list(at_home("t"), 2, text, sizeof(text)), 0);
	assert_string_equal(text, "A\na\na/1\na/10\na/2\nb\nb/x\nb/y\nb.txt\nbroken\nloop\nz\n");
	assert_int_equal(do_list(at_home("t"), UINT32_MAX, text, sizeof(text)), 0);
	assert_string_equal(
		text, "A\na\na/1\na/10\na/2\nb\nb/x\nb/x/deep\nb/y\nb.txt\nbroken\nloop\nz\n");
	/* A root that is a link is followed and told as it was asked for. */
	drive->sh("ln -s t link");
	assert_int_equal(do_list(at_home("link"), 1, text, sizeof(text)), 0);
	assert_string_equal(text, "A\na\nb\nb.txt\nbroken\nloop\nz\n");
	assert_int_equal(do_list(at_home("none"), 1, text, sizeof(text)), ENOENT);
	assert_int_equal(do_list(at_home("t/A"), 1, text, sizeof(text)), ENOTDIR);
	assert_int_equal(do_list(at_home("t/broken"), 1, text, sizeof(text)), ENOENT);
	drive->sh("mkdir empty && chmod 0 t/a");
	assert_int_equal(do_list(at_home("empty"), 3, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	/* What may not be looked into does not hide the rest. */
	assert_int_equal(do_list(at_home("t"), 2, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "a\n"));
	assert_non_null(strstr(text, "z\n"));
	drive->sh("chmod 700 t/a");
}

static void list_many(void **state)
{
	static struct wire_frame f;
	int sock, n = 0;

	(void)state;
	drive->sh("mkdir many && cd many && seq 20000 | xargs touch");
	sock = begin(WIRE_FS_LIST, 0, 1, "many", NULL);
	while (next_frame(sock, &f) && f.head.type == WIRE_ENTRY)
		n++;
	assert_int_equal(f.head.type, WIRE_DONE);
	assert_int_equal(n, 20000);
	fd_close(sock);
	/* Hanging up in the middle ends it. */
	sock = begin(WIRE_FS_LIST, 0, 1, "many", NULL);
	assert_true(next_frame(sock, &f));
	fd_close(sock);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "many", NULL), 0);
	assert_int_equal(do_stat("many", &e), ENOENT);
}

static void move(void **state)
{
	(void)state;
	drive->sh("echo 1 >f; echo 2 >g; mkdir -p d/e full/x; ln -s f l");
	assert_int_equal(do_simple(WIRE_FS_MOVE, "f", "new/sub/f"), 0);
	assert_int_equal(do_read("new/sub/f", text, sizeof(text)), 0);
	assert_string_equal(text, "1\n");
	assert_int_equal(do_stat("f", &e), ENOENT);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "g", "new/sub/f"), 0);
	assert_int_equal(do_read("new/sub/f", text, sizeof(text)), 0);
	assert_string_equal(text, "2\n");
	assert_int_equal(do_simple(WIRE_FS_MOVE, "none", "other/x"), ENOENT);
	assert_int_equal(do_stat("other", &e), ENOENT);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "d", "d/e/x"), EINVAL);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "d", "full"), ENOTEMPTY);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "d", "new/sub/f"), ENOTDIR);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "new/sub/f", "d"), EISDIR);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "l", "m"), 0); /* the link itself */
	assert_int_equal(do_stat("m", &e), 0);
	assert_int_equal(e.head.is_link, 1);
	assert_int_equal(do_simple(WIRE_FS_MOVE, "d", "moved"), 0);
	assert_int_equal(do_stat("moved/e", &e), 0);
}

static void move_far(void **state)
{
	char far[64], script[512];

	(void)state;
	(void)snprintf(far, sizeof(far), "%s/agentfs-test-%d", drive->far, (int)getpid());
	drive->sh("mkdir -p t/sub/deep && echo data >t/sub/f && ln -s sub/f t/l && mkfifo t/p && "
		  "truncate -s 10M t/sparse && echo end >>t/sparse && chmod 750 t/sub && "
		  "touch -d '2001-02-03 UTC' t/sub/f t/sub");
	assert_int_equal(do_simple(WIRE_FS_MOVE, "t", far), 0);
	assert_int_equal(do_stat("t", &e), ENOENT);
	assert_int_equal(do_list(far, 3, text, sizeof(text)), 0);
	assert_string_equal(text, "l\np\nsparse\nsub\nsub/deep\nsub/f\n");
	(void)snprintf(
		script, sizeof(script),
		"test $(stat -c %%a:%%Y %s/sub) = 750:981158400 && "
		"test $(stat -c %%Y %s/sub/f) = 981158400 && test $(du -k %s/sparse | cut -f1) -lt 1000",
		far, far, far);
	drive->sh(script);
	assert_int_equal(do_simple(WIRE_FS_MOVE, far, "back"), 0);
	assert_int_equal(do_read("back/l", text, sizeof(text)), 0);
	assert_string_equal(text, "data\n");
	assert_int_equal(do_stat(far, &e), ENOENT);
	/* The rules of a rename hold there too, and nothing is left over. */
	drive->sh("mkdir -p full/x");
	assert_int_equal(do_simple(WIRE_FS_MOVE, "back/sparse", far), 0);
	assert_int_equal(do_simple(WIRE_FS_MOVE, far, "full"), EISDIR);
	drive->sh("test $(ls -A | wc -l) = 2");
	assert_int_equal(do_simple(WIRE_FS_REMOVE, far, NULL), 0);
}

static void remove_trees(void **state)
{
	(void)state;
	drive->sh(
		"mkdir -p keep t/a/b/c t/d && touch keep/f t/a/b/f t/g && ln -s ../keep t/link && mkfifo t/p");
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "t", NULL), 0);
	assert_int_equal(do_stat("t", &e), ENOENT);
	assert_int_equal(do_stat("keep/f", &e), 0);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "t", NULL), 0);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "keep/f/x", NULL), 0);
	drive->sh("ln -s keep l");
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "l", NULL), 0);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "keep/f", NULL), 0);
	assert_int_equal(do_stat("keep", &e), 0);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "/", NULL), EINVAL);
	if (drive->in_box) {
		drive->sh("mkdir -p t/ro/x && chmod 555 t/ro");
		assert_int_equal(do_simple(WIRE_FS_REMOVE, "t", NULL), EACCES);
		drive->sh("chmod 755 t/ro");
		assert_int_equal(do_simple(WIRE_FS_REMOVE, "/etc/passwd", NULL), EACCES);
	}
}

/* Deeper than any path, than any number of descriptors, and than a stack would like. */
static void remove_deep(void **state)
{
	static struct wire_frame f;
	char far[64];
	int sock, n = 0;

	(void)state;
	drive->sh(
		"mkdir deep && cd deep && python3 -c 'import os\nfor i in range(2200):\n"
		" os.mkdir(\"d\"); os.chdir(\"d\"); open(\"f\", \"w\").close(); os.mkdir(\"e\")'");
	/* A list has as much of it as can be named. */
	sock = begin(WIRE_FS_LIST, 0, UINT32_MAX, "deep", NULL);
	while (next_frame(sock, &f) && f.head.type == WIRE_ENTRY)
		n++;
	assert_int_equal(f.head.type, WIRE_DONE);
	assert_in_range(n, 3 * 1900, 3 * 2048);
	fd_close(sock);
	(void)snprintf(far, sizeof(far), "%s/agentfs-test-%d", drive->far, (int)getpid());
	assert_int_equal(do_simple(WIRE_FS_MOVE, "deep", far), ELOOP);
	assert_int_equal(do_stat(far, &e), ENOENT);
	assert_int_equal(do_simple(WIRE_FS_REMOVE, "deep", NULL), 0);
	assert_int_equal(do_stat("deep", &e), ENOENT);
}

#define CASE(name) cmocka_unit_test_setup(name, case_setup)

const struct CMUnitTest cases_names[] = {
	CASE(path_rules),   CASE(entry_fields), CASE(odd_names), CASE(make_directories),
	CASE(list_order),   CASE(list_many),    CASE(move),      CASE(move_far),
	CASE(remove_trees), CASE(remove_deep),
};
const size_t n_cases_names = ARRAY_SIZE(cases_names);
