/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Language files and code from anywhere. Built with -fsanitize=fuzzer it is a fuzzer; with
 * -DFUZZ_REPLAY it is a program that runs over the files it is given.
 */
#include <assert.h>
#include <fcntl.h>

#include "base/buf.h"
#include "language/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

#ifdef FUZZ_REPLAY
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT((size_t)16 << 20);
		_cleanup_(fd_closep) int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || buf_read_fd(&b, fd) < 0) {
			perror(argv[i]);
			return 1;
		}
		(void)LLVMFuzzerTestOneInput(b.data, b.len);
	}
	return 0;
}
#endif
