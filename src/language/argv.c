/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and environment of a language: splitting and placeholders. */
#include "base/buf.h"
#include "language/language.h"

#define BLANKS " \t"

/* The value of the placeholder `text` starts with; 0 when it starts with none. */
static size_t placeholder(const char *text, const struct language_vars *vars, char *value,
			  size_t value_size)
{
	const struct {
		const char *name;
		uint64_t number;
	} table[] = {
		{ "{memory_mb}", vars->memory_mb },
		{ "{heap_mb}", vars->memory_mb - vars->memory_mb / 4 },
		{ "{cpus}", MAX(vars->cpus, 1u) },
	};

	if (strncmp(text, "{file}", 6) == 0) {
		(void)snprintf(value, value_size, "%s", vars->file);
		return 6;
	}
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t n = strlen(table[i].name);

		if (strncmp(text, table[i].name, n) != 0)
			continue;
		(void)snprintf(value, value_size, "%llu", (unsigned long long)table[i].number);
		return n;
	}
	return 0;
}

/* Appends one word, its placeholders replaced, and a NUL. -EINVAL: a brace that means nothing. */
static int add_word(struct buf *out, const char *word, size_t len, const struct language_vars *vars)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < len;) {
		char value[256];
		size_t n = strcspn(word + i, "{");

		n = MIN(n, len - i);
		if (n > 0) {
			r = buf_add(out, word + i, n);
		} else {
			n = placeholder(word + i, vars, value, sizeof(value));
			if (n == 0)
				return -EINVAL;
			r = buf_add(out, value, strlen(value));
		}
		i += n;
	}
	return r < 0 ? r : buf_add(out, "", 1);
}

/* Turns n NUL-terminated words into a vector and its text in one piece of memory. */
static int vector_make(const struct buf *words, size_t n, char ***ret)
{
	size_t table = (n + 1) * sizeof(char *);
	char **vector = malloc(table + words->len);
	char *text;

	if (!vector)
		return -ENOMEM;
	text = (char *)vector + table;
	memcpy(text, words->data, words->len);
	for (size_t i = 0; i < n; i++, text += strlen(text) + 1)
		vector[i] = text;
	vector[n] = NULL;
	*ret = vector;
	return 0;
}

static int fail_words(struct fail *fail, int r, const char *what)
{
	if (r == -EINVAL)
		return fail_set(
			fail, EINVAL, "language",
			"\"%.100s\": after a { must come file}, memory_mb}, heap_mb} or cpus}",
			what);
	return fail_set(fail, -r, "language", "\"%.100s\" is too long", what);
}

int language_argv(const char *command, const struct language_vars *vars, char ***ret_argv,
		  struct fail *fail)
{
	_cleanup_(buf_done) struct buf words = BUF_INIT(LANGUAGE_FILE_MAX);
	const char *word = command + strspn(command, BLANKS);
	size_t n = 0;
	int r = 0;

	if (!*word)
		return fail_set(fail, EINVAL, "language", "the command is empty");
	for (; *word && r >= 0; n++) {
		size_t len = strcspn(word, BLANKS);

		r = n < LANGUAGE_ARGV_MAX ? add_word(&words, word, len, vars) : -E2BIG;
		word += len;
		word += strspn(word, BLANKS);
	}
	if (r >= 0)
		r = vector_make(&words, n, ret_argv);
	return r < 0 ? fail_words(fail, r, command) : 0;
}

int language_env(const struct language *l, const struct language_vars *vars, char ***ret_env,
		 struct fail *fail)
{
	_cleanup_(buf_done) struct buf words = BUF_INIT(LANGUAGE_FILE_MAX);
	size_t n = 0;
	int r = buf_add(&words, "", 0);

	for (; l->env[n] && r >= 0; n++)
		r = add_word(&words, l->env[n], strlen(l->env[n]), vars);
	if (r >= 0)
		r = vector_make(&words, n, ret_env);
	return r < 0 ? fail_words(fail, r, "env") : 0;
}
