/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in the query of a list: encoded metadata, states, times, cursors, names.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "server/control/text.h"

static void check_metadata(const char *text)
{
	json_t *filter, *value;
	const char *key;

	if (filter_metadata(text, &filter) < 0)
		return;
	assert(json_object_size(filter) <= FILTER_PAIRS_MAX);
	json_object_foreach(filter, key, value) {
		assert(utf8_valid(key, strlen(key), NULL));
		assert(strlen(key) + json_string_length(value) <= strlen(text));
	}
	assert(filter_matches(filter, filter));
	json_decref(filter);
}

static void check_cursor(const char *text)
{
	char again[CURSOR_TEXT_SIZE];
	struct cursor a, b;

	if (cursor_parse(text, &a) < 0)
		return;
	cursor_text(&a, again);
	assert(cursor_parse(again, &b) == 0 && cursor_compare(&a, &b) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = malloc(size + 1);
	unsigned states;
	struct name name;
	int64_t ms;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_metadata(text);
	check_cursor(text);
	(void)!filter_states(text, &states);
	(void)!time_parse(text, &ms);
	if (template_name_parse(text, &name) == 0)
		assert(*name.name);
	(void)address_text_is_public(text);
	return 0;
}
