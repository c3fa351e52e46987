/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Language files and code from anywhere.
 */
#include "fuzz.h"

#include "language/language.h"

/* A language that was accepted must be usable, and everything in it as strict as promised. */
static void check(const struct language *l)
{
	const struct language_vars vars = { .file = l->file, .memory_mb = 256, .cpus = 1 };
	const char *const commands[] = { l->compile, l->run, l->version };
	struct fail fail;
	char **env = NULL;

	assert(language_is_name(l->name) && !strchr(l->file, '/') && l->file[0] != '.');
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		char **argv = NULL;

		if (!commands[i])
			continue;
		assert(language_argv(commands[i], &vars, &argv, &fail) == 0);
		assert(argv[0] && argv[0][0]);
		free(argv);
	}
	assert(language_env(l, &vars, &env, &fail) == 0);
	for (char **e = env; *e; e++)
		assert(strchr(*e, '=') > *e);
	free(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct language l = { 0 };
	struct fail fail;
	const char *text = (const char *)data;

	(void)!language_check_code(text, size, LANGUAGE_CODE_MAX, &fail);
	if (language_parse("toy.lang", text, size, &l, &fail) < 0)
		assert(!l.name && fail.msg[0]);
	else
		check(&l);
	language_done(&l);
	return 0;
}
