/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox.toml: sections one level deep, and in each "key = value". Everything that is accepted is
 * TOML and means the same there; most of TOML is not accepted.
 */
#include "service/config_priv.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/termsafe.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)64 << 10)
#define NAME_MAX_LEN 64 /* of "section.key" */
#define BLANKS " \t"

struct toml_reader {
	struct config *config;
	const char *where; /* the file, for errors */
	size_t line;
	char section[NAME_MAX_LEN];
	bool section_seen[_CONFIG_MAX]; /* at the place of its first setting */
	bool seen[_CONFIG_MAX];
};

static int file_refuse(const struct toml_reader *r, struct fail *fail, const char *what,
		       const char *text)
{
	char shown[64];

	termsafe_line(text, shown, sizeof(shown));
	return fail_set(fail, EINVAL, "settings", "%s:%zu: %s%s", r->where, r->line, what, shown);
}

static bool ends_here(const char *rest)
{
	rest += strspn(rest, BLANKS);
	return !*rest || *rest == '#';
}

static size_t first_of_section(const char *name)
{
	size_t i = 0, len = strlen(name);

	while (i < config_count() && (config_setting(i)->section_len != len ||
				      strncmp(config_setting(i)->name, name, len) != 0))
		i++;
	return i;
}

static int read_section(struct toml_reader *r, char *line, struct fail *fail)
{
	char *end = strchr(line, ']'), *name;
	size_t first;

	if (!end || !ends_here(end + 1))
		return file_refuse(r, fail, "write a section as [name], not ", line);
	*end = '\0';
	name = parse_trim(line + 1);
	first = first_of_section(name);
	if (first == config_count())
		return file_refuse(r, fail, "there is no section ", name);
	if (r->section_seen[first])
		return file_refuse(r, fail, "a second section ", name);
	r->section_seen[first] = true;
	(void)snprintf(r->section, sizeof(r->section), "%s", name);
	return 0;
}

/* Undoes the quotes in place; the escapes are those that a path or a name can need. */
static int unquote(const struct toml_reader *r, char *value, struct fail *fail)
{
	char *to = value, *from = value + 1;

	while (*from && *from != '"') {
		if (*from == '\\' && from[1] != '"' && from[1] != '\\')
			return file_refuse(
				r, fail, "in quotes only \\\" and \\\\ are understood, not ", from);
		if (*from == '\\')
			from++;
		*to++ = *from++;
	}
	if (!*from)
		return file_refuse(r, fail, "the quote is not closed: ", value);
	if (!ends_here(from + 1))
		return file_refuse(r, fail, "something follows the value: ", from + 1);
	*to = '\0';
	return 0;
}

/* What TOML lets stand without quotes and we have a use for: digits, at most one dot, true, false.
 */
static bool is_bare(const char *value)
{
	size_t whole = strspn(value, "0123456789"), part;

	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
		return true;
	if (whole == 0 || (whole > 1 && value[0] == '0'))
		return false;
	if (!value[whole])
		return true;
	part = strspn(value + whole + 1, "0123456789");
	return value[whole] == '.' && part > 0 && !value[whole + 1 + part];
}

static int read_bare(const struct toml_reader *r, const struct setting *s, char *value,
		     struct fail *fail)
{
	value[strcspn(value, "#")] = '\0';
	value = parse_trim(value);
	if (!*value)
		return file_refuse(r, fail, "there is no value for ", s->name);
	if (s->kind == KIND_TEXT || !is_bare(value))
		return file_refuse(r, fail, "write it in double quotes: ", value);
	return 0;
}

static int read_value(struct toml_reader *r, size_t i, char *value, struct fail *fail)
{
	const struct setting *s = config_setting(i);
	bool quoted = *value == '"', number = s->kind == KIND_FLAG || s->kind == KIND_COUNT;
	char where[NAME_MAX_LEN + 80];
	int err;

	if (quoted && number)
		return file_refuse(r, fail, "write it without quotes: ", value);
	err = quoted ? unquote(r, value, fail) : read_bare(r, s, value, fail);
	if (err < 0)
		return err;
	(void)snprintf(where, sizeof(where), "%.60s:%zu: %s", r->where, r->line, s->name);
	return config_apply(r->config, i, value, CONFIG_FILE, where, fail);
}

static int read_setting(struct toml_reader *r, char *line, struct fail *fail)
{
	char *value = strchr(line, '='), name[2 * NAME_MAX_LEN];
	int i;

	if (!value)
		return file_refuse(r, fail, "expected key = value, not ", line);
	*value++ = '\0';
	line = parse_trim(line);
	value += strspn(value, BLANKS);
	if (!*r->section)
		return file_refuse(r, fail, "no [section] above the setting ", line);
	(void)snprintf(name, sizeof(name), "%s.%.*s", r->section, NAME_MAX_LEN - 1, line);
	i = config_find(name);
	if (i < 0)
		return file_refuse(r, fail, "there is no setting ", name);
	if (r->seen[i])
		return file_refuse(r, fail, "a second time: ", name);
	r->seen[i] = true;
	return read_value(r, (size_t)i, value, fail);
}

/* Lines are cut and unquoted in place, so this needs a copy of its own. */
static int read_lines(struct toml_reader *r, char *text, struct fail *fail)
{
	char *rest = text, *line;

	for (r->line = 1; (line = strsep(&rest, "\n")); r->line++) {
		int err = 0;

		line = parse_trim(line);
		if (*line == '[')
			err = read_section(r, line, fail);
		else if (*line && *line != '#')
			err = read_setting(r, line, fail);
		if (err < 0)
			return err;
	}
	return 0;
}

int config_parse(struct config *c, const char *where, const char *text, size_t len,
		 struct fail *fail)
{
	struct config read = *c; /* an error changes nothing */
	struct toml_reader r = { .config = &read, .where = where };
	_cleanup_(freep) char *copy = NULL;
	int err;

	if (len > FILE_MAX || !utf8_plain(text, len))
		return fail_set(fail, EINVAL, "settings",
				"%.100s: not plain text in UTF-8 of at most %zu bytes", where,
				FILE_MAX);
	copy = strndup(text, len);
	if (!copy)
		return fail_set(fail, ENOMEM, "settings", "%.100s: out of memory", where);
	err = read_lines(&r, copy, fail);
	if (err < 0)
		return err;
	*c = read;
	return 0;
}

/* A user who can write the settings of a service that root starts can become root. */
static int file_check(int fd, const char *path, struct fail *fail)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail_set(fail, errno, "settings", "%.100s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail_set(fail, EINVAL, "settings", "%.100s is not a regular file", path);
	if (st.st_mode & S_IWOTH)
		return fail_set(fail, EPERM, "settings",
				"%.100s can be written by everybody; use: chmod o-w", path);
	return 0;
}

int config_read_file(struct config *c, const char *path, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	int r;

	if (fd < 0)
		return fail_set(fail, errno, "settings", "%.100s: %s", path, strerror(errno));
	r = file_check(fd, path, fail);
	if (r < 0)
		return r;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return fail_set(fail, -r, "settings", "%.100s: %s", path, strerror(-r));
	return config_parse(c, path, (const char *)text.data, text.len, fail);
}
