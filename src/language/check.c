/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said about a language or its code without running anything. */
#include "base/utf8.h"
#include "language/language.h"

#include <fcntl.h>

/* How many letters must be typed differently to get from one text to the other. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LANGUAGE_NAME_MAX + 1], n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t changed = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = MIN(changed, MIN(row[j], diagonal) + 1);
		}
	}
	return row[n];
}

const char *language_nearest(const char *text, const struct language *list, size_t n)
{
	char typed[LANGUAGE_NAME_MAX + 1] = "";
	size_t len = strlen(text), best_distance;
	const char *best = NULL;

	if (len >= sizeof(typed))
		return NULL;
	for (size_t i = 0; i <= len; i++)
		typed[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
	/* One slip in three letters; with more of them everything is near everything. */
	best_distance = len / 3 + 1;
	for (size_t i = 0; i < n; i++) {
		size_t d = distance(typed, list[i].name);

		for (char *const *alias = list[i].aliases; *alias; alias++)
			d = MIN(d, distance(typed, *alias));
		if (d < best_distance) {
			best_distance = d;
			best = list[i].name;
		}
	}
	return best;
}

static size_t line_of(const char *code, size_t offset)
{
	size_t line = 1;

	for (size_t i = 0; i < offset; i++)
		line += code[i] == '\n';
	return line;
}

int language_check_code(const char *code, size_t len, size_t max, struct fail *fail)
{
	const char *nul;
	size_t bad;

	if (len > max)
		return fail_set(fail, EFBIG, "code", "the code has %zu bytes, the limit is %zu",
				len, max);
	nul = len ? memchr(code, '\0', len) : NULL;
	if (nul)
		return fail_set(fail, EILSEQ, "code",
				"the code has a NUL byte at offset %zu (line %zu)",
				(size_t)(nul - code), line_of(code, (size_t)(nul - code)));
	if (!utf8_valid(code, len, &bad))
		return fail_set(fail, EILSEQ, "code",
				"the code is not valid UTF-8 at byte offset %zu (line %zu)", bad,
				line_of(code, bad));
	return 0;
}

/* The host's /usr is what a box of the base template sees. */
static bool program_present(const char *command)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/usr/local/go/bin" };
	char path[512];
	int len = (int)strcspn(command, " \t");

	/* "./main" is what the compile step makes; what is in /opt/glovebox the program brings
	 * along. */
	if (strncmp(command, "./", 2) == 0 || strncmp(command, "/opt/glovebox/", 14) == 0)
		return true;
	if (memchr(command, '/', (size_t)len)) {
		int n = snprintf(path, sizeof(path), "%.*s", len, command);

		return n < (int)sizeof(path) && strncmp(path, "/usr/", 5) == 0 &&
		       faccessat(AT_FDCWD, path, X_OK, 0) == 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int n = snprintf(path, sizeof(path), "%s/%.*s", dirs[i], len, command);

		if (n < (int)sizeof(path) && faccessat(AT_FDCWD, path, X_OK, 0) == 0)
			return true;
	}
	return false;
}

bool language_present(const struct language *l)
{
	return (!l->compile || program_present(l->compile)) && program_present(l->run) &&
	       program_present(l->version);
}

bool language_stateful(const struct language *l)
{
	return l->kernel && program_present(l->kernel);
}
