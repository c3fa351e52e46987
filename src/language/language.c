/* SPDX-License-Identifier: Apache-2.0 */
#include "language/language.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/dir.h"
#include "base/utf8.h"

#ifndef GLOVEBOX_DATADIR
#define GLOVEBOX_DATADIR "/usr/local/share/glovebox"
#endif

#define SUFFIX ".lang"

static void words_done(char **words)
{
	for (; *words; words++)
		freep(words);
}

void language_done(struct language *l)
{
	words_done(l->aliases);
	words_done(l->extensions);
	words_done(l->env);
	free(l->name);
	free(l->title);
	free(l->file);
	free(l->compile);
	free(l->run);
	free(l->kernel);
	free(l->version);
	*l = (struct language){ 0 };
}

void language_list_free(struct language *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		language_done(&list[i]);
	free(list);
}

/* The directory of this program, without a slash at the end. */
static int exe_dir(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	char *slash;

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static bool in_build_dir(const char *exe_path)
{
	static const char *const tails[] = { "/src/cli", "/src/all_verbs" };
	size_t n = strlen(exe_path);

	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		size_t tail = strlen(tails[i]);

		if (n > tail && !strcmp(exe_path + n - tail, tails[i]))
			return true;
	}
	return false;
}

/*
 * A program still in its build directory uses the files of its own source tree, whatever may be
 * installed; an installed one the place it was built for, or else the one beside it.
 */
int language_open(struct fail *fail)
{
	const char *chosen = getenv("GLOVEBOX_LANGUAGES");
	char exe[PATH_MAX], path[PATH_MAX + 64];
	int fd = -ENOENT, have_exe = exe_dir(exe, sizeof(exe));

	if (chosen && *chosen) {
		fd = open(chosen, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd >= 0 ? fd :
				 fail_set(fail, errno, "language", "GLOVEBOX_LANGUAGES=%.100s: %s",
					  chosen, strerror(errno));
	}
	if (have_exe >= 0) {
		if (in_build_dir(exe)) {
			(void)snprintf(path, sizeof(path), "%s/../../languages", exe);
			fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		}
	}
	if (fd < 0)
		fd = open(GLOVEBOX_DATADIR "/languages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && have_exe >= 0) {
		(void)snprintf(path, sizeof(path), "%s/../share/glovebox/languages", exe);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return fail_set(fail, ENOENT, "language",
				"the language files are not in " GLOVEBOX_DATADIR
				"/languages; set GLOVEBOX_LANGUAGES to where they are");
	return fd;
}

/* -ENOENT without a message when there is no such file; a FIFO or directory is refused. */
static int load_file(int dir_fd, const char *file, struct language *ret, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(LANGUAGE_FILE_MAX);
	_cleanup_(fd_closep) int fd = -EBADF;
	struct stat st;
	int r;

	fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_set(fail, errno, "language", "%s: %s", file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail_set(fail, EINVAL, "language", "%s: not a regular file", file);
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return fail_set(fail, -r, "language", "%s: %s", file, strerror(-r));
	return language_parse(file, (const char *)text.data, text.len, ret, fail);
}

static bool is_language_file(const char *file)
{
	char name[LANGUAGE_NAME_MAX + 1];
	size_t n = strlen(file), tail = strlen(SUFFIX);

	if (n <= tail || n - tail >= sizeof(name) || strcmp(file + n - tail, SUFFIX) != 0)
		return false;
	memcpy(name, file, n - tail);
	name[n - tail] = '\0';
	return language_is_name(name);
}

struct language_list {
	struct language *items;
	size_t n;
};

static void list_done(struct language_list *list)
{
	language_list_free(list->items, list->n);
	*list = (struct language_list){ 0 };
}

static int list_add(struct language_list *list, int dir_fd, const char *file, struct fail *fail)
{
	struct language *items;
	int r;

	if (list->n == LANGUAGE_LIST_MAX)
		return fail_set(fail, E2BIG, "language", "more than %d language files",
				LANGUAGE_LIST_MAX);
	items = reallocarray(list->items, list->n + 1, sizeof(*items));
	if (!items)
		return fail_set(fail, ENOMEM, "language", "out of memory");
	list->items = items;
	r = load_file(dir_fd, file, &items[list->n], fail);
	if (r < 0)
		/* Removed since the directory was read: not an error. */
		return r == -ENOENT ? 0 : r;
	list->n++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct language *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* Takes the descriptor. */
static int list_read(int dir_fd, struct language_list *list, struct fail *fail)
{
	_cleanup_(dir_closep) DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;

	if (!dir) {
		(void)fd_close(dir_fd);
		return fail_set(fail, errno, "language", "languages: %s", strerror(errno));
	}
	while ((errno = 0, entry = readdir(dir))) {
		int r = is_language_file(entry->d_name) ?
				list_add(list, dir_fd, entry->d_name, fail) :
				0;

		if (r < 0)
			return r;
	}
	if (errno)
		return fail_set(fail, errno, "language", "languages: %s", strerror(errno));
	if (list->n > 1)
		qsort(list->items, list->n, sizeof(*list->items), by_name);
	return 0;
}

static int list_all(struct language_list *list, struct fail *fail)
{
	int fd = language_open(fail);

	return fd < 0 ? fd : list_read(fd, list, fail);
}

int language_list(struct language **ret, size_t *ret_n, struct fail *fail)
{
	_cleanup_(list_done) struct language_list list = { 0 };
	int r = list_all(&list, fail);

	if (r < 0)
		return r;
	*ret_n = list.n;
	*ret = take_ptr(list.items);
	list.n = 0;
	return 0;
}

static bool has_word(char *const *words, const char *word)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

/* Moves one language out of the list. */
static void list_take(struct language_list *list, size_t i, struct language *ret)
{
	*ret = list->items[i];
	list->items[i] = (struct language){ 0 };
}

/* What a user typed, fit for one line of a message. */
static const char *shown(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size; n++)
		out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	out[n] = '\0';
	return out;
}

static int fail_unknown(const char *name, const struct language *list, size_t n, struct fail *fail)
{
	const char *nearest = language_nearest(name, list, n);
	char known[140] = "", quoted[32];
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		const char *next = list[i].name;

		/* Room for it and for the dots, should it be the last that fits. */
		if (len + strlen(next) + sizeof("  ...") > sizeof(known))
			next = "...";
		len += (size_t)snprintf(known + len, sizeof(known) - len, " %s", next);
		if (next != list[i].name)
			break;
	}
	return fail_set(fail, ENOENT, "language", "unknown language \"%s\"%s%s%s known:%s",
			shown(name, quoted, sizeof(quoted)), nearest ? ", did you mean " : "",
			nearest ? nearest : "", nearest ? "?" : ";", known);
}

const struct language *language_find(const char *name_or_alias, const struct language *list,
				     size_t n, struct fail *fail)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name_or_alias) ||
		    has_word(list[i].aliases, name_or_alias))
			return &list[i];
	(void)fail_unknown(name_or_alias, list, n, fail);
	return NULL;
}

int language_load(const char *name_or_alias, struct language *ret, struct fail *fail)
{
	_cleanup_(list_done) struct language_list list = { 0 };
	char file[LANGUAGE_NAME_MAX + sizeof(SUFFIX)];
	int fd = language_open(fail), r;

	if (fd < 0)
		return fd;
	if (language_is_name(name_or_alias)) {
		(void)snprintf(file, sizeof(file), "%s" SUFFIX, name_or_alias);
		r = load_file(fd, file, ret, fail);
		if (r != -ENOENT) {
			(void)fd_close(fd);
			return r;
		}
	}
	r = list_read(fd, &list, fail);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++) {
		if (!has_word(list.items[i].aliases, name_or_alias))
			continue;
		list_take(&list, i, ret);
		return 0;
	}
	return fail_unknown(name_or_alias, list.items, list.n, fail);
}

int language_for_file(const char *path, struct language *ret, struct fail *fail)
{
	_cleanup_(list_done) struct language_list list = { 0 };
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	const char *dot = strrchr(file, '.');
	char quoted[80];
	int r = list_all(&list, fail);

	if (r < 0)
		return r;
	/* ".c" is a hidden file without an ending. */
	for (size_t i = 0; dot && dot > file && i < list.n; i++) {
		if (!has_word(list.items[i].extensions, dot + 1))
			continue;
		list_take(&list, i, ret);
		return 0;
	}
	return fail_set(fail, ENOENT, "language",
			"the name \"%s\" does not tell the language; say it with -l",
			shown(file, quoted, sizeof(quoted)));
}
