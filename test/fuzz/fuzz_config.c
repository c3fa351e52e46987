/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of settings from anywhere. Built with -fsanitize=fuzzer it is a fuzzer; with -DFUZZ_REPLAY it is
 * a program that runs over the files it is given.
 */
#include <assert.h>
#include <fcntl.h>

#include "base/buf.h"
#include "service/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted can be shown, and read again it is the same. */
static void check(const struct config *c)
{
	struct config again;
	struct fail fail;

	config_init(&again);
	for (size_t i = 0; i < config_count(); i++) {
		char text[CONFIG_TEXT_SIZE], twice[CONFIG_TEXT_SIZE];

		assert(config_text(c, i, text, sizeof(text)) == 0);
		assert(config_set(&again, config_name(i), text, &fail) == 0);
		assert(config_text(&again, i, twice, sizeof(twice)) == 0);
		assert(strcmp(text, twice) == 0);
	}
}

/* What was refused has changed nothing. */
static void check_defaults(const struct config *c)
{
	struct config defaults;

	config_init(&defaults);
	for (size_t i = 0; i < config_count(); i++) {
		char text[CONFIG_TEXT_SIZE], want[CONFIG_TEXT_SIZE];

		assert(config_text(c, i, text, sizeof(text)) == 0);
		assert(config_text(&defaults, i, want, sizeof(want)) == 0);
		assert(strcmp(text, want) == 0 && c->source[i] == CONFIG_DEFAULT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;
	struct fail fail = { 0 };

	config_init(&c);
	if (config_parse(&c, "fuzz.toml", (const char *)data, size, &fail) < 0) {
		assert(fail.msg[0] && !strchr(fail.msg, '\n'));
		check_defaults(&c);
		return 0;
	}
	check(&c);
	(void)!config_check(&c, &fail);
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
