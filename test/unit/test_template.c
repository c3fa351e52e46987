/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in root. Runs with GLOVEBOX_LANGUAGES naming the tree's own languages/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "language/language.h"
#include "template/embedded.h"
#include "template/template.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Any bytes do for the agent here; the real one is in src/box. */
__asm__(".section .rodata\n"
	".globl agent_image, agent_image_end\n"
	"agent_image:\n.ascii \"agent\"\nagent_image_end:\n.byte 0\n.previous\n");

static char root[] = "/tmp/test_template.XXXXXX";
static int root_fd = -EBADF;

static int make_root(void **state)
{
	struct fail why = { 0 };

	(void)state;
	if (!mkdtemp(root))
		return -1;
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 || template_build_base(root_fd, "", &why) < 0) {
		print_error("%s\n", why.msg);
		return -1;
	}
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	root_fd = fd_close(root_fd);
	return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void read_file(int dir_fd, const char *name, struct buf *ret)
{
	_cleanup_(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		fail_msg("%s: %s", name, strerror(errno));
	assert_int_equal(buf_read_fd(ret, fd), 0);
}

static void test_embedded(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct embedded_file *f = embedded_files; f->name; f++, n++) {
		_cleanup_(buf_done) struct buf text = BUF_INIT((size_t)64 << 20);
		struct stat st;

		assert_int_equal(fstatat(root_fd, f->name, &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFREG | f->mode);
		read_file(root_fd, f->name, &text);
		assert_int_equal(text.len, (uintptr_t)f->end - (uintptr_t)f->data);
		assert_memory_equal(text.data, f->data, text.len);
	}
	assert_true(n > 0);
}

/* What a language file calls its kernel is in the root, and what is for readers of the source is not. */
static void test_kernels(void **state)
{
	static const char *const not_there[] = { "opt/glovebox/kernels/PROTOCOL.md",
						 "opt/glovebox/kernels/meson.build" };
	struct language *list;
	struct stat st;
	size_t n, kernels = 0;
	struct fail why;

	(void)state;
	assert_int_equal(language_list(&list, &n, &why), 0);
	for (size_t i = 0; i < n; i++) {
		const char *path = list[i].kernel ? strstr(list[i].kernel, "/opt/glovebox/") : NULL;
		char name[256];

		if (!path)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(path + 1, " :"), path + 1);
		if (fstatat(root_fd, name, &st, 0) < 0)
			fail_msg("%s: /%s is not in the root", list[i].name, name);
		kernels++;
	}
	language_list_free(list, n);
	assert_true(kernels >= 3);
	for (size_t i = 0; i < ARRAY_SIZE(not_there); i++)
		assert_int_equal(fstatat(root_fd, not_there[i], &st, 0), -1);
}

static void test_key(void **state)
{
	uint64_t first = 0, second = 0;

	(void)state;
	assert_int_equal(template_base_key("", &first), 0);
	assert_int_equal(template_base_key("", &second), 0);
	assert_int_equal(first, second);
	assert_int_not_equal(embedded_key, 0);
}

/* In a mount namespace of its own: the key after another boot. */
static _noreturn_ void tell_later_key(int fd)
{
	uint64_t key = 0;
	char path[] = "/tmp/test_template_boot.XXXXXX";
	int file = mkstemp(path);
	bool done = write(file, "another boot\n", 13) == 13 && unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    mount(path, "/proc/sys/kernel/random/boot_id", NULL, MS_BIND, NULL) == 0 &&
		    template_base_key("", &key) == 0;

	(void)unlink(path);
	_exit(!done || write(fd, &key, sizeof(key)) != sizeof(key));
}

/* Nobody waits until a root is on the disk, so one that was made before a power cut is not used after it. */
static void test_key_of_boot(void **state)
{
	uint64_t now = 0, later = 0;
	int pair[2];
	ssize_t n;
	pid_t pid;

	(void)state;
	assert_return_code(pipe2(pair, O_CLOEXEC), errno);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		tell_later_key(pair[1]);
	fd_close(pair[1]);
	n = read(pair[0], &later, sizeof(later));
	fd_close(pair[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (n != sizeof(later))
		skip(); /* not everybody may mount */
	assert_int_equal(template_base_key("", &now), 0);
	assert_int_not_equal(now, later);
}

/* --- the operator's certificates --------------------------------------------------------------------------- */

#define HOST_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"
#define END_LINE "-----END CERTIFICATE-----\n"

/* The first certificate that this host trusts, in a file: real ones are hard to make here. */
static bool write_certificate(const char *path, struct buf *ret)
{
	_cleanup_(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct buf all = BUF_INIT((size_t)8 << 20);
	const char *begin, *end;
	bool found;

	if (access(HOST_CERTIFICATES, R_OK) == 0)
		read_file(AT_FDCWD, HOST_CERTIFICATES, &all);
	begin = all.len ? strstr((char *)all.data, "-----BEGIN") : NULL;
	end = begin ? strstr(begin, END_LINE) : NULL;
	found = end && buf_add(ret, begin, (size_t)(end - begin) + strlen(END_LINE)) == 0 &&
		write(fd, ret->data, ret->len) == (ssize_t)ret->len;
	buf_done(&all);
	return found;
}

static bool ends_with(const struct buf *text, const struct buf *end)
{
	return text->len >= end->len &&
	       memcmp(text->data + text->len - end->len, end->data, end->len) == 0;
}

static void test_bundle(void **state)
{
	_cleanup_(buf_done) struct buf one = BUF_INIT((size_t)1 << 20);
	_cleanup_(buf_done) struct buf extra = BUF_INIT((size_t)1 << 20);
	_cleanup_(buf_done) struct buf all = BUF_INIT((size_t)8 << 20);
	char dir[] = "/tmp/test_template.XXXXXX", path[64], with[64];
	_cleanup_(fd_closep) int fd = -EBADF;
	uint64_t without_key = 0, key = 0;
	struct fail why = { 0 };
	bool possible;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/ca.pem", dir);
	(void)snprintf(with, sizeof(with), "%s/root", dir);
	possible = write_certificate(path, &one);
	if (possible) {
		assert_int_equal(mkdir(with, 0755), 0);
		fd = open(with, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		if (template_build_base(fd, path, &why) < 0)
			fail_msg("%s", why.msg);
		read_file(fd, "opt/glovebox/ca-bundle.pem", &extra);
		assert_int_equal(extra.len, one.len);
		assert_memory_equal(extra.data, one.data, one.len);
		read_file(fd, "etc/ssl/certs/ca-certificates.crt", &all);
		assert_true(all.len > one.len && ends_with(&all, &one));
		assert_int_equal(template_base_key("", &without_key), 0);
		assert_int_equal(template_base_key(path, &key), 0);
		assert_int_not_equal(key, without_key);
	}
	assert_int_equal(template_base_key("/nonexistent/ca.pem", &key), -ENOENT);
	assert_int_equal(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	if (!possible)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded), cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_key),      cmocka_unit_test(test_key_of_boot),
		cmocka_unit_test(test_bundle),
	};

	return cmocka_run_group_tests_name("template", tests, make_root, remove_root);
}
