/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port 49999: what an interpreter says (results, errors, numbers, output), which is foreign code's to choose (AG-15).
 * The first byte chooses which of them the rest is. Whatever it is, clients get whole lines of ASCII, each one a JSON
 * object with a type.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "server/sandbox/clock.h"
#include "server/interp/interp.h"

int64_t clock_wall_ms(void)
{
	return 0;
}

void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
	(void)wall_ms;
	(void)snprintf(ret, CLOCK_TEXT_SIZE, "now");
}

static void check_line(const char *line, size_t len, const char *type, struct buf *text)
{
	json_t *event = json_loadb(line, len, JSON_ALLOW_NUL, NULL), *its;

	for (size_t i = 0; i < len; i++)
		assert((unsigned char)line[i] < 0x80 && line[i] != '\n');
	assert(event && strncmp(line, "{\"type\":\"", 9) == 0);
	assert(strcmp(json_string_value(json_object_get(event, "type")), type) == 0);
	its = json_object_get(event, "text");
	if (text)
		assert(buf_add(text, json_string_value(its), json_string_length(its)) == 0);
	json_decref(event);
}

static void check_lines(const struct buf *out, const char *type, struct buf *text)
{
	const char *at = out->len ? (const char *)out->data : "", *end = at + out->len;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		assert(line_end);
		check_line(at, (size_t)(line_end - at), type, text);
		at = line_end + 1;
	}
}

static void fuzz_event(int (*make)(const void *, size_t, json_t **), const char *type,
		       const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(INTERP_LINE_MAX);
	json_t *event = NULL;
	int r = make(data, size, &event);

	assert(r == 0 || r == -EINVAL || r == -E2BIG);
	if (r == 0) {
		assert(interp_line(&out, event) == 0);
		check_lines(&out, type, NULL);
	}
	buf_done(&out);
}

/* The first byte says how long the pieces are; together they must be what they are as one. */
static void fuzz_output(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(INTERP_LINE_MAX), text = BUF_INIT(1 << 20),
		   whole = BUF_INIT(1 << 20);
	struct interp_carry carry = { 0 };
	size_t step = size ? data[0] % 16 + 1 : 1;

	data += size > 0;
	size -= size > 0;
	for (size_t at = 0; at < size; at += step)
		assert(interp_line_output(&out, &carry, true, data + at, MIN(step, size - at)) ==
		       0);
	assert(interp_line_rest(&out, &carry, true) == 0 && carry.len == 0);
	check_lines(&out, "stderr", &text);
	assert(utf8_replace_invalid(data, size, &whole) == 0);
	assert(text.len == whole.len &&
	       (!text.len || memcmp(text.data, whole.data, text.len) == 0));
	buf_done(&out);
	buf_done(&text);
	buf_done(&whole);
}

static void fuzz_mentions(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);

	assert(copy);
	memcpy(copy, data, size);
	copy[size] = '\0';
	(void)interp_mentions(copy, size, "numpy pandas matplotlib.pyplot");
	(void)interp_mentions("import numpy", 12, copy);
	(void)!interp_language_name(copy, (char[LANGUAGE_NAME_MAX + 1]){ 0 });
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % 5) {
	case 0:
		fuzz_event(interp_event_result, "result", data + 1, size - 1);
		break;
	case 1:
		fuzz_event(interp_event_error, "error", data + 1, size - 1);
		break;
	case 2:
		fuzz_event(interp_event_count, "number_of_executions", data + 1, size - 1);
		break;
	case 3:
		fuzz_output(data + 1, size - 1);
		break;
	default:
		fuzz_mentions(data + 1, size - 1);
		break;
	}
	return 0;
}
