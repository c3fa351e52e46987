/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "sys/sock.h"
#include "wire/tree.h"

#define BOX WIRE_ON_FROM_OP /* a tree on its way out of a box */
#define HOST WIRE_ON_TO_OP  /* a tree on its way into one */

static char top[] = "/tmp/glovebox-tree-XXXXXX";
static int from_fd = -EBADF, to_fd = -EBADF; /* two empty directories, new for each test */

/* By descriptor, because the whole path may be longer than a path can be. */
static int remove_all(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return unlinkat(parent_fd, name, 0);
	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_all(dirfd(dir), entry->d_name);
	(void)closedir(dir);
	return r < 0 ? r : unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static int set_up(void **state)
{
	char *from = NULL, *to = NULL;

	(void)state;
	memcpy(top + sizeof(top) - 7, "XXXXXX", 6);
	if (!mkdtemp(top) || asprintf(&from, "%s/from", top) < 0 || asprintf(&to, "%s/to", top) < 0)
		return -1;
	if (mkdir(from, 0755) < 0 || mkdir(to, 0755) < 0)
		return -1;
	from_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(from);
	free(to);
	return from_fd < 0 || to_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	fd_closep(&from_fd);
	fd_closep(&to_fd);
	return remove_all(AT_FDCWD, top);
}

static void put_file(int dir_fd, const char *name, size_t size, mode_t mode)
{
	static unsigned char data[300000];
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + size);
	assert_true(fd >= 0 && size <= sizeof(data));
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	fd_close(fd);
}

static bool same_file(int a_dir, int b_dir, const char *name)
{
	static unsigned char a[300001], b[300001];
	_cleanup_(fd_closep) int a_fd = openat(a_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_(fd_closep) int b_fd = openat(b_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	assert_true(a_fd >= 0 && b_fd >= 0);
	n = read(a_fd, a, sizeof(a));
	return n >= 0 && read(b_fd, b, sizeof(b)) == n && memcmp(a, b, (size_t)n) == 0;
}

static size_t entries_in(int dir_fd)
{
	DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n - 2;
}

static size_t open_fds(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return entries_in(fd);
}

/* What the receiver was told. */
struct heard {
	char text[4096];
	uint64_t bytes;
};

static void hear_data(void *arg, const void *data, size_t len)
{
	(void)data;
	((struct heard *)arg)->bytes += len;
}

static int hear_file(void *arg, const char *path, uint64_t size)
{
	struct heard *h = arg;
	size_t at = strlen(h->text);

	(void)snprintf(h->text + at, sizeof(h->text) - at, "%s=%llu\n", path,
		       (unsigned long long)size);
	return 0;
}

static int hear_refused(void *arg, const char *path, uint32_t type)
{
	struct heard *h = arg;
	size_t at = strlen(h->text);

	(void)snprintf(h->text + at, sizeof(h->text) - at, "%s!%o\n", path, type);
	return 0;
}

struct sender {
	int sock;
	bool with_links;
	int result;
};

static void *send_tree(void *arg)
{
	struct sender *s = arg;
	struct tree_inward in = { "" };

	s->result = tree_send_dir(s->sock, from_fd, s->with_links ? &in : NULL);
	if (s->result == 0)
		s->result = wire_send(s->sock, WIRE_TREE_END, NULL, 0);
	(void)shutdown(s->sock, SHUT_WR);
	return NULL;
}

/* from_fd's tree through a socket into to_fd: what the receiver says; the sender's word in ret_sent. */
static int transfer(bool with_links, const struct tree_limits *limits, struct heard *h,
		    int *ret_sent)
{
	const struct tree_events events = {
		.arg = h,
		.data = hear_data,
		.file = hear_file,
		.refused = hear_refused,
	};
	struct sender s = { .with_links = with_links };
	pthread_t thread;
	int pair[2], r;

	*h = (struct heard){ 0 };
	assert_int_equal(sock_pair(pair), 0);
	s.sock = pair[0];
	assert_int_equal(pthread_create(&thread, NULL, send_tree, &s), 0);
	r = tree_recv(pair[1], with_links ? HOST : BOX, to_fd, limits, &events);
	fd_close(pair[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	fd_close(pair[0]);
	*ret_sent = s.result;
	return r;
}

static const struct tree_limits generous = {
	.bytes = UINT64_MAX,
	.entries = UINT64_MAX,
	.cancel_fd = -EBADF,
};

static void test_round_trip(void **state)
{
	struct heard h;
	struct stat st;
	int sent;

	(void)state;
	put_file(from_fd, "empty", 0, 0644);
	put_file(from_fd, "chunk", WIRE_DATA_MAX, 0600);
	assert_int_equal(mkdirat(from_fd, "d", 0700), 0);
	assert_int_equal(mkdirat(from_fd, "d/none", 0555), 0);
	put_file(from_fd, "d/big\n\x1b\xff", 300000, 06755);
	assert_int_equal(transfer(false, &generous, &h, &sent), 0);
	assert_int_equal(sent, 0);
	assert_true(same_file(from_fd, to_fd, "empty") && same_file(from_fd, to_fd, "chunk"));
	assert_true(same_file(from_fd, to_fd, "d/big\n\x1b\xff"));
	assert_int_equal(h.bytes, WIRE_DATA_MAX + 300000);
	assert_non_null(strstr(h.text, "d/big\n\x1b\xff=300000\n"));
	assert_non_null(strstr(h.text, "empty=0\n"));
	assert_int_equal(fstatat(to_fd, "d/big\n\x1b\xff", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755); /* no set-id bit travels */
	assert_int_equal(fstatat(to_fd, "d/none", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 0700) == 0700);
	assert_int_equal(entries_in(to_fd), 3);
}

/* Out of a box travel files and directories; everything else is named and left. */
static void test_refused(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), sent;
	struct heard h;

	(void)state;
	put_file(from_fd, "file", 1, 0644);
	assert_int_equal(mkdirat(from_fd, "d", 0755), 0);
	assert_int_equal(symlinkat("/etc/passwd", from_fd, "d/link"), 0);
	assert_int_equal(symlinkat("d", from_fd, "dirlink"), 0);
	assert_int_equal(mkfifoat(from_fd, "fifo", 0644), 0);
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/from/sock", top);
	assert_int_equal(bind(s, (struct sockaddr *)&sun, sizeof(sun)), 0);
	fd_close(s);
	assert_int_equal(transfer(false, &generous, &h, &sent), 0);
	assert_int_equal(sent, 0);
	assert_non_null(strstr(h.text, "d/link!120000\n"));
	assert_non_null(strstr(h.text, "dirlink!120000\n"));
	assert_non_null(strstr(h.text, "fifo!10000\n"));
	assert_non_null(strstr(h.text, "sock!140000\n"));
	assert_int_equal(entries_in(to_fd), 2);
}

static void test_links_in(void **state)
{
	char target[64] = "";
	struct heard h;
	int sent;

	(void)state;
	assert_int_equal(symlinkat("../../etc/shadow", from_fd, "l"), 0);
	assert_int_equal(transfer(true, &generous, &h, &sent), 0);
	assert_int_equal(sent, 0);
	assert_int_equal(readlinkat(to_fd, "l", target, sizeof(target) - 1), 16);
	assert_string_equal(target, "../../etc/shadow");
}

static void test_limits(void **state)
{
	struct tree_limits l = generous;
	struct heard h;
	int sent;

	(void)state;
	put_file(from_fd, "a", 100000, 0644);
	put_file(from_fd, "b", 100000, 0644);
	l.bytes = 200000;
	l.entries = 2;
	assert_int_equal(transfer(false, &l, &h, &sent), 0);
	assert_int_equal(unlinkat(to_fd, "a", 0), 0);
	assert_int_equal(unlinkat(to_fd, "b", 0), 0);
	l.bytes = 199999;
	assert_int_equal(transfer(false, &l, &h, &sent), -EFBIG);
	assert_true(h.bytes <= l.bytes);
	/* The first file is whole and named; of the second nothing is left. */
	assert_int_equal(entries_in(to_fd), 1);
	(void)unlinkat(to_fd, "a", 0);
	(void)unlinkat(to_fd, "b", 0);
	l = generous;
	l.entries = 1;
	assert_int_equal(transfer(false, &l, &h, &sent), -E2BIG);
	assert_int_equal(entries_in(to_fd), 1);
}

/* Directories nested to the limit travel, one more does not. */
static void test_depth(void **state)
{
	int dir_fd = fcntl(from_fd, F_DUPFD_CLOEXEC, 3), sent;
	struct heard h;

	(void)state;
	for (int i = 0; i < TREE_DEPTH_MAX; i++) {
		int next;

		assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
		next = openat(dir_fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(dir_fd);
		dir_fd = next;
	}
	assert_int_equal(transfer(false, &generous, &h, &sent), 0);
	assert_int_equal(sent, 0);
	assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
	fd_close(dir_fd);
	assert_true(transfer(false, &generous, &h, &sent) < 0);
	assert_int_equal(sent, -ELOOP);
}

/* What is there already is not written through or over. */
static void test_in_the_way(void **state)
{
	struct heard h;
	struct stat st;
	int sent;

	(void)state;
	put_file(from_fd, "x", 10, 0644);
	assert_int_equal(symlinkat("victim", to_fd, "x"), 0);
	assert_int_equal(transfer(false, &generous, &h, &sent), -EEXIST);
	assert_true(fstatat(to_fd, "victim", &st, 0) < 0);
	assert_int_equal(unlinkat(from_fd, "x", 0), 0);
	assert_int_equal(mkdirat(from_fd, "x", 0755), 0);
	put_file(from_fd, "x/inner", 10, 0644);
	assert_int_equal(unlinkat(to_fd, "x", 0), 0);
	assert_int_equal(mkdirat(to_fd, "victim", 0755), 0);
	assert_int_equal(symlinkat("victim", to_fd, "x"), 0);
	assert_true(transfer(false, &generous, &h, &sent) < 0);
	assert_true(fstatat(to_fd, "victim/inner", &st, 0) < 0);
}

/* ---- a hostile sender --------------------------------------------------------------------------- */

enum { SAY_END = 1000 };

struct say {
	unsigned type;
	const char *name; /* of an entry, or the data */
	size_t len;       /* 0: strlen */
	uint32_t mode;
};

static void say(int sock, const struct say *s)
{
	struct wire_entry entry = { .size = UINT64_MAX, .mode = s->mode };
	size_t len = s->len || !s->name ? s->len : strlen(s->name);
	bool is_entry = s->type == WIRE_DIR || s->type == WIRE_FILE || s->type == WIRE_REFUSED;

	/* What the receiver has refused already may find nobody there any more. */
	if (is_entry)
		(void)!wire_send2(sock, (enum wire_type)s->type, &entry, sizeof(entry), s->name,
				  len);
	else
		(void)!wire_send(sock, (enum wire_type)s->type, s->name, len);
}

/* Sends all of it, hangs up, and lets the receiver judge; it may keep no descriptor. */
static int judge(const struct say *says)
{
	const struct tree_limits limits = { .bytes = 1000, .entries = 100, .cancel_fd = -EBADF };
	struct heard h = { 0 };
	const struct tree_events events = {
		.arg = &h,
		.data = hear_data,
		.file = hear_file,
		.refused = hear_refused,
	};
	size_t before = open_fds();
	int pair[2], r;

	assert_int_equal(sock_pair(pair), 0);
	for (; says->type != SAY_END; says++)
		say(pair[0], says);
	fd_close(pair[0]);
	r = tree_recv(pair[1], BOX, to_fd, &limits, &events);
	fd_close(pair[1]);
	assert_int_equal(open_fds(), before);
	return r;
}

#define JUDGE(want, ...)                                                                           \
	assert_int_equal(judge((const struct say[]){ __VA_ARGS__, { .type = SAY_END } }), (want))
#define DIR_(text)                                                                                 \
	{                                                                                          \
		.type = WIRE_DIR, .name = (text), .mode = 0755                                     \
	}
#define FILE_(text)                                                                                \
	{                                                                                          \
		.type = WIRE_FILE, .name = (text), .mode = 0644                                    \
	}
#define DATA_(text)                                                                                \
	{                                                                                          \
		.type = WIRE_DATA, .name = (text)                                                  \
	}
#define BARE(kind)                                                                                 \
	{                                                                                          \
		.type = WIRE_##kind                                                                \
	}

static void test_hostile_order(void **state)
{
	(void)state;
	JUDGE(0, BARE(TREE_END));
	JUDGE(0, FILE_("ok"), DATA_("x"), BARE(FILE_END), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("ok2"));
	JUDGE(-EPROTO, DATA_("x"), BARE(TREE_END));
	JUDGE(-EPROTO, BARE(FILE_END), BARE(TREE_END));
	JUDGE(-EPROTO, BARE(DIR_END), FILE_("up"), BARE(FILE_END), BARE(TREE_END));
	JUDGE(-EPROTO, DIR_("d"), BARE(DIR_END), BARE(DIR_END), BARE(TREE_END));
	JUDGE(-EPROTO, DIR_("d"), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("f1"), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("f2"), DIR_("e"), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("f3"), FILE_("f4"), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("f5"), BARE(DIR_END), BARE(TREE_END));
	JUDGE(-EPROTO, FILE_("f6"), { .type = WIRE_REFUSED, .name = "r", .mode = S_IFLNK });
	JUDGE(-EPROTO, BARE(STARTED), BARE(TREE_END));
	JUDGE(-EPROTO, { .type = WIRE_OUT, .name = "x" }, BARE(TREE_END));
	JUDGE(-EPROTO, { .type = WIRE_LINK, .name = "l\0/etc/passwd", .len = 13 }, BARE(TREE_END));
	JUDGE(-EPROTO, { .type = WIRE_ROOT, .name = "/etc" }, BARE(TREE_END));
	JUDGE(-EEXIST, FILE_("twice"), BARE(FILE_END), FILE_("twice"), BARE(FILE_END));
	JUDGE(-EFBIG, FILE_("long"), { .type = WIRE_DATA, .name = top, .len = 10 },
	      { .type = WIRE_DATA, .name = (char[1000]){ 0 }, .len = 1000 });
}

static void test_hostile_names(void **state)
{
	static const struct {
		const char *name;
		size_t len;
	} bad[] = {
		{ ".", 1 }, { "..", 2 }, { "a/b", 3 }, { "/", 1 }, { "../x", 4 }, { "a\0b", 3 }
	};
	char name[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		JUDGE(-EPROTO, { .type = WIRE_FILE, .name = bad[i].name, .len = bad[i].len });
		JUDGE(-EPROTO, { .type = WIRE_DIR, .name = bad[i].name, .len = bad[i].len });
		JUDGE(-EPROTO, { .type = WIRE_REFUSED, .name = bad[i].name, .len = bad[i].len });
	}
	assert_int_equal(entries_in(to_fd), 0);
	/* 16 names of 255 bytes are longer than a path may be. */
	memset(name, 'n', 255);
	name[255] = '\0';
	JUDGE(-ENAMETOOLONG, DIR_(name), DIR_(name), DIR_(name), DIR_(name), DIR_(name), DIR_(name),
	      DIR_(name), DIR_(name), DIR_(name), DIR_(name), DIR_(name), DIR_(name), DIR_(name),
	      DIR_(name), DIR_(name), DIR_(name), DIR_(name));
}

/* A path may be as long as it may be, and the one after it starts from its directory again. */
static void test_path_end(void **state)
{
	char name[256];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	for (size_t last = 250; last <= 255; last++) {
		struct say says[40] = { { 0 } };
		size_t n = 0;

		for (; n < 15; n++)
			says[n] = (struct say)DIR_(name);
		says[n++] = (struct say){
			.type = WIRE_REFUSED, .name = name, .len = last, .mode = S_IFIFO
		};
		for (int i = 0; i < 15; i++)
			says[n++] = (struct say)BARE(DIR_END);
		says[n++] = (struct say){ .type = WIRE_REFUSED, .name = "short", .mode = S_IFIFO };
		says[n++] = (struct say)BARE(TREE_END);
		says[n] = (struct say){ .type = SAY_END };
		/* 15 * 256 + last bytes, of which WIRE_PATH_MAX are allowed */
		assert_int_equal(judge(says), 15 * 256 + last <= WIRE_PATH_MAX ? 0 : -ENAMETOOLONG);
	}
}

static void test_failed_and_late(void **state)
{
	static const struct {
		int32_t err;
		int want;
	} cases[] = {
		{ ENOENT, -ENOENT }, { 4095, -4095 },   { 0, -EPROTO },
		{ -1, -EPROTO },     { 4096, -EPROTO }, { INT32_MIN, -EPROTO },
	};
	const struct tree_events events = { 0 };
	struct tree_limits l = generous;
	int pair[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_failed failed = { .step = 1, .err = cases[i].err };

		JUDGE(cases[i].want,
		      { .type = WIRE_FAILED, .name = (const char *)&failed, .len = 8 });
	}
	assert_int_equal(sock_pair(pair), 0);
	l.deadline_boot_us = clock_boot_us() + 20000;
	assert_int_equal(tree_recv(pair[1], BOX, to_fd, &l, &events), -ETIME);
	/* A receiver that wants no refusals gets none. */
	l.deadline_boot_us = 0;
	say(pair[0], &(struct say){ .type = WIRE_REFUSED, .name = "r", .mode = S_IFLNK });
	assert_int_equal(tree_recv(pair[1], BOX, to_fd, &l, &events), -EPROTO);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

/* ---- a tree that changes while it is sent ------------------------------------------------------- */

static atomic_bool stop;

static void *swap_names(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		(void)renameat2(from_fd, "x", from_fd, "link", RENAME_EXCHANGE);
		(void)renameat2(from_fd, "d", from_fd, "dirlink", RENAME_EXCHANGE);
	}
	return NULL;
}

/* FI-03: whatever is swapped for whatever, a link is never followed. */
static void test_swap_race(void **state)
{
	pthread_t thread;
	int secret;

	(void)state;
	assert_int_equal(mkdirat(to_fd, "secret", 0755), 0);
	secret = openat(to_fd, "secret", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(secret, "s", 77, 0644);
	put_file(from_fd, "x", 5, 0644);
	assert_int_equal(mkdirat(from_fd, "d", 0755), 0);
	assert_int_equal(symlinkat("../to/secret/s", from_fd, "link"), 0);
	assert_int_equal(symlinkat("../to/secret", from_fd, "dirlink"), 0);
	fd_close(secret);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_names, NULL), 0);
	for (int i = 0; i < 500; i++) {
		struct heard h;
		int sent, r;

		assert_int_equal(mkdirat(to_fd, "round", 0755), 0);
		secret = to_fd;
		to_fd = openat(secret, "round", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = transfer(false, &generous, &h, &sent);
		/* A link where a moment ago a file was is an error (ELOOP); a link's content never comes. */
		assert_true(r == 0 || sent < 0);
		assert_null(strstr(h.text, "=77"));
		assert_null(strstr(h.text, "/s"));
		(void)unlinkat(to_fd, "x", 0);
		(void)unlinkat(to_fd, "link", 0);
		(void)unlinkat(to_fd, "d", AT_REMOVEDIR);
		(void)unlinkat(to_fd, "dirlink", AT_REMOVEDIR);
		fd_close(to_fd);
		to_fd = secret;
		assert_int_equal(unlinkat(to_fd, "round", AT_REMOVEDIR), 0);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *change_size(void *arg)
{
	int fd = *(int *)arg;

	while (!atomic_load(&stop)) {
		(void)!ftruncate(fd, 10);
		(void)!ftruncate(fd, 4 << 20);
	}
	return NULL;
}

/* FI-07: what the receiver was told is what it got, however the file grows and shrinks. */
static void test_size_race(void **state)
{
	pthread_t thread;
	int fd;

	(void)state;
	put_file(from_fd, "f", 10, 0644);
	fd = openat(from_fd, "f", O_RDWR | O_CLOEXEC);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_size, &fd), 0);
	for (int i = 0; i < 30; i++) {
		struct heard h;
		struct stat st;
		char want[32];
		int sent;

		assert_int_equal(transfer(false, &generous, &h, &sent), 0);
		assert_int_equal(fstatat(to_fd, "f", &st, 0), 0);
		(void)snprintf(want, sizeof(want), "f=%llu\n", (unsigned long long)st.st_size);
		assert_string_equal(h.text, want);
		assert_true(st.st_size <= 4 << 20);
		assert_int_equal(unlinkat(to_fd, "f", 0), 0);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	fd_close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),      TEST(test_refused),       TEST(test_links_in),
		TEST(test_limits),          TEST(test_depth),         TEST(test_in_the_way),
		TEST(test_hostile_order),   TEST(test_hostile_names), TEST(test_path_end),
		TEST(test_failed_and_late), TEST(test_swap_race),     TEST(test_size_race),
	};

	(void)umask(022);
	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
