/* SPDX-License-Identifier: Apache-2.0 */
#include "service/sets.h"

#include "base/dir.h"
#include "base/io.h"
#include "base/termsafe.h"

#include <fcntl.h>
#include <sys/stat.h>

/* --- the file of one rule set ---------------------------------------------------------------- */

#define FILE_NAME_SIZE (POLICY_SET_NAME_SIZE + sizeof(SETS_SUFFIX))

static int sets_refuse(struct fail *fail, const char *name, int err)
{
	if (err == ENOENT)
		return fail_set(fail, ENOENT, "sets",
				"there is no rule set %s; see 'glovebox egress set ls'", name);
	return fail_set(fail, err, "sets", "rule set %s: %s", name, strerror(err));
}

static int directory(const struct config *c, char ret[static CONFIG_TEXT_SIZE], struct fail *fail)
{
	int r = config_sets_dir(c, ret, CONFIG_TEXT_SIZE);

	if (r < 0)
		return fail_set(fail, -r, "sets",
				"where are the rule sets? HOME is not set; set egress.sets");
	return 0;
}

static int open_directory(const struct config *c, struct fail *fail)
{
	char path[CONFIG_TEXT_SIZE];
	int fd, r = directory(c, path, fail);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void file_name(const char *name, char ret[static FILE_NAME_SIZE])
{
	(void)snprintf(ret, FILE_NAME_SIZE, "%.*s%s", POLICY_SET_NAME_SIZE - 1, name, SETS_SUFFIX);
}

/* Rules say what leaves this machine: nobody else writes them. */
static int set_check_file(int fd, const char *name, struct fail *fail)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sets_refuse(fail, name, errno);
	if (!S_ISREG(st.st_mode))
		return fail_set(fail, EINVAL, "sets", "%s%s is not a regular file", name,
				SETS_SUFFIX);
	if (st.st_mode & S_IWOTH)
		return fail_set(fail, EPERM, "sets",
				"%s%s can be written by everybody; use: chmod o-w", name,
				SETS_SUFFIX);
	return 0;
}

int sets_read_file(const struct config *c, const char *name, struct buf *ret, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open_directory(c, fail);
	_cleanup_(fd_closep) int fd = -EBADF;
	char file[FILE_NAME_SIZE];
	int r;

	if (dir_fd < 0)
		return sets_refuse(fail, name, -dir_fd);
	file_name(name, file);
	fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return sets_refuse(fail, name, errno);
	r = set_check_file(fd, name, fail);
	if (r < 0)
		return r;
	r = buf_read_fd(ret, fd);
	return r < 0 ? sets_refuse(fail, name, -r) : 0;
}

static int make_directory(const struct config *c, struct fail *fail)
{
	char path[CONFIG_TEXT_SIZE], part[CONFIG_TEXT_SIZE];
	int r = directory(c, path, fail);
	size_t len;

	if (r < 0)
		return r;
	len = strlen(path);
	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return fail_set(fail, errno, "sets", "cannot make %.120s: %s", part,
					strerror(errno));
	}
	return 0;
}

/* Either name is the whole new text afterwards, or nothing has changed: what is half written has
 * another name. */
static int write_beside(int dir_fd, const char *beside, const char *text, size_t len)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

static int put_file(int dir_fd, const char *file, const char *text, size_t len, bool replace)
{
	char beside[FILE_NAME_SIZE + 16];
	int r;

	(void)snprintf(beside, sizeof(beside), ".%s-%d", file, (int)getpid());
	r = write_beside(dir_fd, beside, text, len);
	if (r == -EEXIST) /* what a dead process with our number left */
		return unlinkat(dir_fd, beside, 0) < 0 ? -errno : -EAGAIN;
	if (r == 0 && renameat2(dir_fd, beside, dir_fd, file, replace ? 0 : RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, beside, 0);
	return r;
}

int sets_write_file(const struct config *c, const char *name, const char *text, size_t len,
		    bool replace, struct fail *fail)
{
	_cleanup_(set_done) struct policy_set parsed = { 0 };
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char file[FILE_NAME_SIZE];
	int r;

	if (len > SETS_FILE_MAX)
		return fail_set(fail, EFBIG, "sets", "a rule set can have %zu bytes",
				SETS_FILE_MAX);
	r = set_parse(text, len, &parsed, fail);
	if (r == 0)
		r = make_directory(c, fail);
	if (r < 0)
		return r;
	dir_fd = open_directory(c, fail);
	if (dir_fd < 0)
		return sets_refuse(fail, name, -dir_fd);
	file_name(name, file);
	r = put_file(dir_fd, file, text, len, replace);
	if (r == -EAGAIN)
		r = put_file(dir_fd, file, text, len, replace);
	if (r == -EEXIST)
		return fail_set(fail, EEXIST, "sets",
				"there is a rule set %s already; use --force to replace it", name);
	return r < 0 ? sets_refuse(fail, name, -r) : 0;
}

int sets_remove_file(const struct config *c, const char *name, struct fail *fail)
{
	_cleanup_(fd_closep) int dir_fd = open_directory(c, fail);
	char file[FILE_NAME_SIZE];

	if (dir_fd < 0)
		return sets_refuse(fail, name, -dir_fd);
	file_name(name, file);
	return unlinkat(dir_fd, file, 0) < 0 ? sets_refuse(fail, name, errno) : 0;
}

int sets_each_word(const char *list, int (*f)(const char *word, size_t len, void *arg), void *arg)
{
	static const char blanks[] = " \t";
	int r = 0;

	for (list += strspn(list, blanks); *list && r == 0; list += strspn(list, blanks)) {
		size_t len = strcspn(list, blanks);

		r = f(list, len, arg);
		list += len;
	}
	return r;
}

/* --- what holds for every box ----------------------------------------------------------------- */

struct sets_list {
	struct buf *text;
	const char *setting;
	const char *verb; /* "deny " or "private " */
	struct fail *fail;
};

static int too_much(struct fail *fail, int err)
{
	return fail_set(fail, -err, "sets", "the rule sets have more than %zu bytes together",
			SETS_TEXT_MAX);
}

/* A line of its own, checked here, where the setting's name is known. */
static int add_word(const char *word, size_t len, void *arg)
{
	struct sets_list *l = arg;
	_cleanup_(buf_done) struct buf line = BUF_INIT(CONFIG_TEXT_SIZE + 16);
	_cleanup_(sets_done) struct policy_sets parsed = { 0 };
	struct fail why;
	int r = buf_add(&line, l->verb, strlen(l->verb));

	if (r == 0)
		r = buf_add(&line, word, len);
	if (r == 0)
		r = buf_add(&line, "\n", 1);
	if (r < 0)
		return too_much(l->fail, r);
	if (len > 0 && memchr(word, '#', len))
		return fail_set(l->fail, EINVAL, "sets", "%s: '#' is in no name and no address",
				l->setting);
	r = sets_parse((const char *)line.data, line.len, &parsed, &why);
	if (r < 0)
		return fail_set(l->fail, -r, "sets", "%s: %.190s", l->setting,
				why.msg + strlen("line 1: "));
	r = buf_add(l->text, line.data, line.len);
	return r < 0 ? too_much(l->fail, r) : 0;
}

static int add_settings(const struct config *c, struct buf *text, struct fail *fail)
{
	struct sets_list deny = { text, "egress.deny", "deny ", fail };
	struct sets_list open = { text, "egress.private", "private ", fail };
	int r = sets_each_word(c->egress_deny, add_word, &deny);

	return r < 0 ? r : sets_each_word(c->egress_private, add_word, &open);
}

int sets_check_settings(const struct config *c, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_TEXT_MAX);

	return add_settings(c, &text, fail);
}

/* --- the files -------------------------------------------------------------------------------- */

/* Is it a file of rules? Then ret is the name of its set. -EINVAL: its name cannot be a set's. */
static int set_of_file(const char *file, char ret[static POLICY_SET_NAME_SIZE])
{
	size_t len = strlen(file), suffix = strlen(SETS_SUFFIX);

	if (file[0] == '.' || len < suffix || strcmp(file + len - suffix, SETS_SUFFIX) != 0)
		return 0;
	memset(ret, 0, POLICY_SET_NAME_SIZE);
	if (len - suffix >= POLICY_SET_NAME_SIZE)
		return -EINVAL;
	memcpy(ret, file, len - suffix);
	return set_name_ok(ret) ? 1 : -EINVAL;
}

static int compare_names(const void *a, const void *b)
{
	return memcmp(a, b, POLICY_SET_NAME_SIZE);
}

/* In the order of their names, so that the same files always give the same text. */
static int list_sets(const char *path, char names[][POLICY_SET_NAME_SIZE], size_t *ret_n,
		     struct fail *fail)
{
	_cleanup_(dir_closep) DIR *dir = opendir(path);
	const struct dirent *entry;

	*ret_n = 0;
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return fail_set(fail, errno, "sets", "%.120s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		char name[POLICY_SET_NAME_SIZE], shown[64];
		int r = set_of_file(entry->d_name, name);

		if (r == 0)
			continue;
		termsafe_line(entry->d_name, shown, sizeof(shown));
		if (r < 0)
			return fail_set(fail, EINVAL, "sets",
					"%.100s/%s: a set's name has small letters, digits and '-' "
					"(1 to %d)",
					path, shown, POLICY_SET_NAME_SIZE - 1);
		if (*ret_n == POLICY_SETS_MAX)
			return fail_set(fail, E2BIG, "sets", "%.120s has more than %d rule sets",
					path, POLICY_SETS_MAX);
		memcpy(names[(*ret_n)++], name, sizeof(name));
	}
	qsort(names, *ret_n, POLICY_SET_NAME_SIZE, compare_names);
	return 0;
}

static int sets_add_set(const struct config *c, const char *path, const char *name,
			struct buf *text, struct fail *fail)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SETS_FILE_MAX);
	_cleanup_(set_done) struct policy_set parsed = { 0 };
	char head[POLICY_SET_NAME_SIZE + 8];
	struct fail why;
	int r = sets_read_file(c, name, &file, fail);

	if (r < 0)
		return r;
	r = set_parse((const char *)file.data, file.len, &parsed, &why);
	if (r < 0)
		return fail_set(fail, -r, "sets", "%.60s/%s%s: %.120s", path, name, SETS_SUFFIX,
				why.msg);
	(void)snprintf(head, sizeof(head), "[%s]\n", name);
	r = buf_add(text, head, strlen(head));
	if (r == 0)
		r = buf_add(text, file.data, file.len);
	if (r == 0)
		r = buf_add(text, "\n", 1);
	return r < 0 ? too_much(fail, r) : 0;
}

static int add_files(const struct config *c, struct buf *text, struct fail *fail)
{
	char names[POLICY_SETS_MAX][POLICY_SET_NAME_SIZE], path[CONFIG_TEXT_SIZE];
	size_t n;
	int r = config_sets_dir(c, path, sizeof(path));

	if (r == -ENOENT) /* a user without HOME has none */
		return 0;
	if (r < 0)
		return fail_set(fail, -r, "sets", "the path of the rule sets is too long");
	r = list_sets(path, names, &n, fail);
	for (size_t i = 0; i < n && r == 0; i++)
		r = sets_add_set(c, path, names[i], text, fail);
	return r;
}

/* --- all of it -------------------------------------------------------------------------------- */

struct set_wanted {
	const struct policy_sets *sets;
	struct fail *fail;
};

static int check_default(const char *word, size_t len, void *arg)
{
	const struct set_wanted *w = arg;
	char name[POLICY_SET_NAME_SIZE] = "";

	if (len < sizeof(name))
		memcpy(name, word, len);
	if (!set_name_ok(name) || !sets_find(w->sets, name))
		return fail_set(
			w->fail, ENOENT, "sets",
			"egress.default: there is no rule set %.*s; see 'glovebox egress set ls'",
			(int)MIN(len, (size_t)40), word);
	return 0;
}

int sets_load(const struct config *c, struct buf *ret_text, struct policy_sets *ret,
	      struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_TEXT_MAX);
	_cleanup_(sets_done) struct policy_sets parsed = { 0 };
	struct set_wanted w = { &parsed, fail };
	int r = add_settings(c, &text, fail);

	if (r == 0)
		r = add_files(c, &text, fail);
	if (r == 0)
		r = sets_parse(text.data ? (const char *)text.data : "", text.len, &parsed, fail);
	if (r == 0)
		r = sets_each_word(c->egress_default, check_default, &w);
	if (r < 0)
		return r;
	if (ret_text) {
		*ret_text = text;
		text = (struct buf)BUF_INIT(SETS_TEXT_MAX);
	}
	if (ret) {
		*ret = parsed;
		parsed = (struct policy_sets){ 0 };
	}
	return 0;
}
