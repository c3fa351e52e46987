/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of settings from anywhere.
 */
#include "fuzz.h"

#include "service/config.h"

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
