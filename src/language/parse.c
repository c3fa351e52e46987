/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one language file. Strict: what is not understood is an error that names the line. */
#include "base/parse.h"
#include "base/utf8.h"
#include "language/language.h"

#define SUFFIX ".lang"
#define BLANKS " \t"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Does the text consist of `chars` only, of 1 to max of them? */
static bool made_of(const char *text, const char *chars, size_t max)
{
	size_t n = strspn(text, chars);

	return n > 0 && n <= max && !text[n];
}

bool language_is_name(const char *text)
{
	return made_of(text, LOWER DIGITS "+-", LANGUAGE_NAME_MAX);
}

static bool is_extension(const char *text)
{
	return made_of(text, LOWER UPPER DIGITS "+", LANGUAGE_NAME_MAX);
}

/* A plain file name: no directory, not hidden, not an option. */
static bool is_file_name(const char *text)
{
	return made_of(text, LOWER UPPER DIGITS "._-", 64) && !strchr(".-", *text);
}

static bool is_env_name(const char *text)
{
	return made_of(text, LOWER UPPER DIGITS "_", 64) && !strchr(DIGITS, *text);
}

enum key_kind {
	KEY_NAME,
	KEY_TEXT,
	KEY_NAMES,
	KEY_EXTENSIONS,
	KEY_FILE,
	KEY_COMMAND,
	KEY_BYTES,
	KEY_DURATION,
	KEY_COUNT,
};

#define AT(member) offsetof(struct language, member)

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t at;
} keys[] = {
	{ "name", KEY_NAME, AT(name) },
	{ "title", KEY_TEXT, AT(title) },
	{ "aliases", KEY_NAMES, AT(aliases) },
	{ "extensions", KEY_EXTENSIONS, AT(extensions) },
	{ "file", KEY_FILE, AT(file) },
	{ "compile", KEY_COMMAND, AT(compile) },
	{ "run", KEY_COMMAND, AT(run) },
	{ "kernel", KEY_COMMAND, AT(kernel) },
	{ "version", KEY_COMMAND, AT(version) },
	{ "compile-memory", KEY_BYTES, AT(compile_limits.memory_bytes) },
	{ "compile-disk", KEY_BYTES, AT(compile_limits.disk_bytes) },
	{ "compile-timeout", KEY_DURATION, AT(compile_limits.timeout_us) },
	{ "compile-cpu-time", KEY_DURATION, AT(compile_limits.cpu_time_us) },
	{ "compile-pids", KEY_COUNT, AT(compile_limits.pids) },
	{ "memory", KEY_BYTES, AT(run_limits.memory_bytes) },
	{ "disk", KEY_BYTES, AT(run_limits.disk_bytes) },
	{ "timeout", KEY_DURATION, AT(run_limits.timeout_us) },
	{ "cpu-time", KEY_DURATION, AT(run_limits.cpu_time_us) },
	{ "pids", KEY_COUNT, AT(run_limits.pids) },
};

/* What a value of each kind must be, for the message when it is not. */
static const char *const key_wants[] = {
	[KEY_NAME] = "1 to 24 characters of a-z 0-9 + -",
	[KEY_TEXT] = "text",
	[KEY_NAMES] = "up to 16 different names of a-z 0-9 + -",
	[KEY_EXTENSIONS] = "up to 16 different endings of letters, digits and +, without the dot",
	[KEY_FILE] = "a plain file name of letters, digits, . _ -",
	[KEY_COMMAND] = "a command with no { but {file} {memory_mb} {heap_mb} {cpus}",
	[KEY_BYTES] = "a size like 512M, not 0",
	[KEY_DURATION] = "a duration like 30s, not 0",
	[KEY_COUNT] = "a number, not 0",
};

static int set_text(char **at, const char *value)
{
	if (*at)
		return -EEXIST;
	*at = strdup(value);
	return *at ? 0 : -ENOMEM;
}

static int set_number(uint64_t *at, int (*parse)(const char *, uint64_t *), const char *value)
{
	uint64_t number;
	int r = parse(value, &number);

	if (*at)
		return -EEXIST;
	if (r < 0 || number == 0)
		return -EINVAL;
	*at = number;
	return 0;
}

static int set_words(char **at, bool (*is_word)(const char *), char *value)
{
	char *rest = value, *word;
	size_t n = 0;

	if (*at)
		return -EEXIST;
	while ((word = strsep(&rest, BLANKS))) {
		if (!*word)
			continue;
		for (size_t i = 0; i < n; i++)
			if (strcmp(at[i], word) == 0)
				return -EINVAL;
		if (n == LANGUAGE_WORDS_MAX || !is_word(word))
			return -EINVAL;
		at[n] = strdup(word);
		if (!at[n++])
			return -ENOMEM;
	}
	return 0;
}

static int set_command(char **at, const char *value)
{
	const struct language_vars any = { .file = "x", .memory_mb = 1, .cpus = 1 };
	_cleanup_(freep) char **argv = NULL;
	struct fail ignored;
	int r = language_argv(value, &any, &argv, &ignored);

	return r < 0 ? r : set_text(at, value);
}

static int set_env(struct language *l, const char *name, const char *value)
{
	const struct language_vars any = { .file = "x", .memory_mb = 1, .cpus = 1 };
	_cleanup_(freep) char *pair = NULL;
	_cleanup_(freep) char **expanded = NULL;
	size_t n = 0, len = strlen(name);
	struct fail ignored;
	int r;

	if (!is_env_name(name))
		return -EINVAL;
	for (; l->env[n]; n++)
		if (strncmp(l->env[n], name, len) == 0 && l->env[n][len] == '=')
			return -EEXIST;
	if (n == LANGUAGE_ENV_MAX)
		return -E2BIG;
	if (asprintf(&pair, "%s=%s", name, value) < 0)
		return -ENOMEM;
	r = language_env(&(struct language){ .env = { pair } }, &any, &expanded, &ignored);
	if (r < 0)
		return r;
	l->env[n] = take_ptr(pair);
	return 0;
}

static int set_key(struct language *l, const struct key *key, char *value)
{
	void *at = (char *)l + key->at;

	switch (key->kind) {
	case KEY_NAME:
		return language_is_name(value) ? set_text(at, value) : -EINVAL;
	case KEY_TEXT:
		return set_text(at, value);
	case KEY_FILE:
		return is_file_name(value) ? set_text(at, value) : -EINVAL;
	case KEY_NAMES:
		return set_words(at, language_is_name, value);
	case KEY_EXTENSIONS:
		return set_words(at, is_extension, value);
	case KEY_COMMAND:
		return set_command(at, value);
	case KEY_BYTES:
		return set_number(at, parse_bytes, value);
	case KEY_DURATION:
		return set_number(at, parse_duration_us, value);
	case KEY_COUNT:
		return set_number(at, parse_u64, value);
	}
	return -EINVAL;
}

static int parse_line(struct language *l, const char *where, size_t number, char *line,
		      struct fail *fail)
{
	char *value = strchr(line, '='), *name;
	const char *wants = "NAME = VALUE, up to 16 of them";
	int r = -ENOENT;

	if (!value)
		return fail_set(fail, EINVAL, "language", "%s:%zu: expected key = value", where,
				number);
	*value++ = '\0';
	name = parse_trim(line);
	value = parse_trim(value);
	if (!*value)
		return fail_set(fail, EINVAL, "language", "%s:%zu: %.40s has no value", where,
				number, name);
	if (strncmp(name, "env.", 4) == 0)
		r = set_env(l, name + 4, value);
	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == -ENOENT; i++) {
		if (strcmp(name, keys[i].name) != 0)
			continue;
		wants = key_wants[keys[i].kind];
		r = set_key(l, &keys[i], value);
	}
	if (r == -ENOENT)
		return fail_set(fail, EINVAL, "language", "%s:%zu: unknown key %.40s", where,
				number, name);
	if (r == -EEXIST)
		return fail_set(fail, EINVAL, "language", "%s:%zu: %.40s is there twice", where,
				number, name);
	if (r < 0)
		return fail_set(fail, -r, "language", "%s:%zu: %.40s must be %s", where, number,
				name, wants);
	return 0;
}

static int check_complete(const struct language *l, const char *where, struct fail *fail)
{
	const struct {
		const char *key;
		const char *value;
	} needed[] = {
		{ "name", l->name }, { "title", l->title },     { "file", l->file },
		{ "run", l->run },   { "version", l->version },
	};
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!needed[i].value)
			return fail_set(fail, EINVAL, "language", "%s: %s is missing", where,
					needed[i].key);
	/* It is the name of its context, too, in the box's own protocol. */
	if (l->kernel && !made_of(l->name, LOWER DIGITS "-", LANGUAGE_KERNEL_NAME_MAX))
		return fail_set(
			fail, EINVAL, "language",
			"%s: with a kernel its name must be 1 to %d characters of a-z 0-9 -", where,
			LANGUAGE_KERNEL_NAME_MAX);
	n = strlen(l->name);
	if (strncmp(where, l->name, n) != 0 || strcmp(where + n, SUFFIX) != 0)
		return fail_set(fail, EINVAL, "language",
				"%s: its name is %s, so the file must be %s" SUFFIX, where, l->name,
				l->name);
	return 0;
}

/* Lines are cut in place, so this needs a copy of its own. */
static int parse_lines(struct language *l, const char *where, char *text, struct fail *fail)
{
	char *rest = text, *line;

	for (size_t number = 1; (line = strsep(&rest, "\n")); number++) {
		int r;

		line = parse_trim(line);
		if (!*line || *line == '#')
			continue;
		r = parse_line(l, where, number, line, fail);
		if (r < 0)
			return r;
	}
	return check_complete(l, where, fail);
}

int language_parse(const char *where, const char *text, size_t len, struct language *ret,
		   struct fail *fail)
{
	_cleanup_(language_done) struct language l = { 0 };
	_cleanup_(freep) char *copy = NULL;
	int r;

	if (len > LANGUAGE_FILE_MAX || !utf8_plain(text, len))
		return fail_set(fail, EINVAL, "language",
				"%s: not plain text in UTF-8 of at most %zu bytes", where,
				LANGUAGE_FILE_MAX);
	copy = strndup(text, len);
	if (!copy)
		return fail_set(fail, ENOMEM, "language", "%s: out of memory", where);
	r = parse_lines(&l, where, copy, fail);
	if (r < 0)
		return r;
	*ret = l;
	l = (struct language){ 0 };
	return 0;
}
