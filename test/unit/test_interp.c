/* SPDX-License-Identifier: Apache-2.0 */
/* Port 49999 without a sandbox: bodies, events of interpreters, lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/sandbox/clock.h"
#include "server/interp/interp.h"

#define TEXT_MAX ((size_t)1 << 20)

/* --- the rest of the server ------------------------------------------------------------------------- */

int64_t clock_wall_ms(void)
{
	return 0;
}

void clock_format(int64_t wall_ms, char ret[CLOCK_TEXT_SIZE])
{
	assert_int_equal(wall_ms, 0);
	(void)snprintf(ret, CLOCK_TEXT_SIZE, "now");
}

/* --- bodies ------------------------------------------------------------------------------------------- */

static json_t *load(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

static const struct interp_limits unlimited = { .output_bytes = 1000 };

static int read_execute(json_t *body, struct interp_execute *x)
{
	struct rpc_error e = { 0 };
	int r = interp_read_execute(body, &unlimited, x, &e);

	assert_true(r == 0 || (r == -EREMOTEIO && e.message[0]));
	return r;
}

static void test_execute(void **state)
{
	json_t *body = load("{\"code\":\"x\\u00e9\",\"context_id\":null,\"language\":\"r\","
			    "\"env_vars\":{\"A\":\"b=c\",\"EMPTY\":\"\"}}");
	struct interp_execute x;

	(void)state;
	assert_int_equal(read_execute(body, &x), 0);
	assert_int_equal(x.code_len, 3);
	assert_null(x.context);
	assert_string_equal(x.language, "r");
	assert_int_equal(json_object_size(x.env), 2);
	assert_int_equal(x.limits.wall_ms, 0);
	assert_int_equal(x.limits.output_bytes, 1000);
	json_decref(body);
}

static void test_execute_refused(void **state)
{
	static const char *const bad[] = {
		"{\"code\":\"\",\"context_id\":\"a\",\"language\":\"r\"}",
		"{\"code\":\"\",\"env_vars\":{\"A=B\":\"c\"}}",
		"{\"code\":\"\",\"env_vars\":{\"\":\"c\"}}",
	};
	struct interp_execute x;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *body = load(bad[i]);

		assert_int_equal(read_execute(body, &x), -EREMOTEIO);
		json_decref(body);
	}
}

/* A variable is one frame. */
static void test_large_variable(void **state)
{
	static char value[WIRE_DATA_MAX + 1];
	json_t *body;
	struct interp_execute x;

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[WIRE_DATA_MAX - 2] = '\0';
	body = json_pack("{s:s, s:{s:s}}", "code", "", "env_vars", "A", value);
	assert_int_equal(read_execute(body, &x), 0);
	json_decref(body);
	value[WIRE_DATA_MAX - 2] = 'x';
	body = json_pack("{s:s, s:{s:s}}", "code", "", "env_vars", "A", value);
	assert_int_equal(read_execute(body, &x), -EREMOTEIO);
	json_decref(body);
}

static void test_limits(void **state)
{
	const struct interp_limits most = { .wall_ms = 100, .output_bytes = 50 };
	json_t *body = load("{\"code\":\"\",\"limits\":{\"wall_ms\":1000,\"cpu_ms\":7,"
			    "\"memory_mb\":3,\"output_bytes\":10}}");
	struct interp_execute x;
	struct rpc_error e;

	(void)state;
	assert_int_equal(interp_read_execute(body, &most, &x, &e), 0);
	assert_int_equal(x.limits.wall_ms, 100);
	assert_int_equal(x.limits.cpu_ms, 7);
	assert_int_equal(x.limits.memory_bytes, 3 << 20);
	assert_int_equal(x.limits.output_bytes, 10);
	json_decref(body);
}

static void test_language_name(void **state)
{
	char name[LANGUAGE_NAME_MAX + 1];

	(void)state;
	assert_int_equal(interp_language_name(" \tPython\n", name), 0);
	assert_string_equal(name, "python");
	assert_int_equal(interp_language_name("C++", name), 0);
	assert_string_equal(name, "c++");
	assert_int_equal(interp_language_name("", name), -EINVAL);
	assert_int_equal(interp_language_name("  ", name), -EINVAL);
	assert_int_equal(interp_language_name("abcdefghijklmnopqrstuvwx", name), 0);
	assert_int_equal(interp_language_name("abcdefghijklmnopqrstuvwxy", name), -EINVAL);
}

static void test_mentions(void **state)
{
	static const char names[] = "numpy pandas matplotlib.pyplot";
	static const struct {
		const char *code;
		bool mentions;
	} cases[] = {
		{ "import numpy as np", true },
		{ "from matplotlib import cm", true },
		{ "numpy", true },
		{ "x=pandas.DataFrame()", true },
		{ "numpyx, xnumpy, num, _pandas", false },
		{ "pyplot", false },
		{ "my_numpy; \xc3\xa9numpy; numpy", true },
		{ "\xc3\xa9numpy", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(interp_mentions(cases[i].code, strlen(cases[i].code), names),
				 cases[i].mentions);
	assert_false(interp_mentions("numpy", 5, ""));
	assert_true(interp_mentions("numpy", 5, ", numpy"));
}

/* --- events ------------------------------------------------------------------------------------------- */

/* The line that an interpreter's words become; NULL: none. */
static char *line_of(int (*make)(const void *, size_t, json_t **), const char *text, size_t len,
		     int *ret)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	json_t *event = NULL;

	*ret = make(text, len, &event);
	if (*ret < 0) {
		assert_null(event);
		return NULL;
	}
	assert_int_equal(interp_line(&out, event), 0);
	return (char *)out.data;
}

static void expect(int (*make)(const void *, size_t, json_t **), const char *text,
		   const char *expected)
{
	int r;
	char *line = line_of(make, text, strlen(text), &r);

	assert_int_equal(r, 0);
	assert_string_equal(line, expected);
	free(line);
}

static void test_result(void **state)
{
	(void)state;
	expect(interp_event_result, "{\"text\":\"a\",\"is_main_result\":true}",
	       "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"a\",\"extra\":{}}\n");
	expect(interp_event_result,
	       "{\"json\":[1,2.5],\"data\":{\"a\":[1]},\"chart\":{},\"png\":\"aGk=\"}",
	       "{\"type\":\"result\",\"is_main_result\":false,\"json\":[1,2.5],\"data\":{\"a\":[1]},"
	       "\"chart\":{},\"png\":\"aGk=\",\"extra\":{}}\n");
	/* Other kinds of data, under their own name or together. */
	expect(interp_event_result, "{\"a/b\":\"x\",\"extra\":{\"c/d\":{\"e\":null}}}",
	       "{\"type\":\"result\",\"is_main_result\":false,"
	       "\"extra\":{\"a/b\":\"x\",\"c/d\":{\"e\":null}}}\n");
}

/* A known field of a type that clients do not expect is left out, and nothing can be passed off as another event. */
static void test_result_types(void **state)
{
	(void)state;
	expect(interp_event_result,
	       "{\"type\":\"end_of_execution\",\"text\":5,\"html\":[],\"data\":[],\"chart\":\"x\","
	       "\"json\":\"x\",\"extra\":7,\"is_main_result\":\"yes\",\"svg\":\"s\"}",
	       "{\"type\":\"result\",\"is_main_result\":false,\"svg\":\"s\",\"extra\":{}}\n");
}

static void test_result_text(void **state)
{
	(void)state;
	/* All ASCII, also what is outside the first plane; a NUL is a character like any other. */
	expect(interp_event_result, "{\"text\":\"\xc3\xa9\xf0\x9f\x98\x80\\u0000\\n\"}",
	       "{\"type\":\"result\",\"is_main_result\":false,"
	       "\"text\":\"\\u00E9\\uD83D\\uDE00\\u0000\\n\",\"extra\":{}}\n");
	/* What fits into no integer is a number all the same. */
	expect(interp_event_result, "{\"json\":[123456789012345678901234567890]}",
	       "{\"type\":\"result\",\"is_main_result\":false,\"json\":[1.2345678901234568e29],"
	       "\"extra\":{}}\n");
}

static void test_error(void **state)
{
	(void)state;
	expect(interp_event_error, "{\"name\":\"E\",\"value\":\"v\",\"traceback\":\"t\"}",
	       "{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":\"t\"}\n");
	expect(interp_event_error, "{\"value\":1}",
	       "{\"type\":\"error\",\"name\":\"Error\",\"value\":\"\",\"traceback\":\"\"}\n");
}

static void test_long_error(void **state)
{
	struct buf text = BUF_INIT(TEXT_MAX);
	json_t *event = NULL;
	const json_t *value;

	(void)state;
	assert_int_equal(buf_add(&text, "{\"value\":\"", 10), 0);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(buf_add(&text, "\xe2\x82\xac", 3), 0);
	assert_int_equal(buf_add(&text, "\"}", 2), 0);
	assert_int_equal(interp_event_error(text.data, text.len, &event), 0);
	value = json_object_get(event, "value");
	assert_int_equal(json_string_length(value), (256 << 10) / 3 * 3);
	json_decref(event);
	buf_done(&text);
}

static void test_count(void **state)
{
	static const char *const bad[] = { "", "x", "-1", "1 ", "12345678901", "0x1" };
	json_t *event = NULL;

	(void)state;
	expect(interp_event_count, "17",
	       "{\"type\":\"number_of_executions\",\"execution_count\":17}\n");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(interp_event_count(bad[i], strlen(bad[i]), &event), -EINVAL);
}

/* AG-05: nonsense, and what would cost too much to read. */
static void test_hostile_events(void **state)
{
	static const char *const bad[] = {
		"", "[]", "5", "{", "{}x", "{\"a\":NaN}", "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}"
	};
	struct buf text = BUF_INIT(4 * INTERP_EVENT_VALUES_MAX);
	json_t *event = NULL;
	int r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)line_of(interp_event_result, bad[i], strlen(bad[i]), &r);
		assert_int_equal(r, -EINVAL);
		(void)line_of(interp_event_error, bad[i], strlen(bad[i]), &r);
		assert_int_equal(r, -EINVAL);
	}
	assert_int_equal(buf_add(&text, "{\"json\":[", 9), 0);
	for (size_t i = 0; i < INTERP_EVENT_VALUES_MAX + 10; i++)
		assert_int_equal(buf_add(&text, "1,", 2), 0);
	assert_int_equal(buf_add(&text, "1]}", 3), 0);
	assert_int_equal(interp_event_result(text.data, text.len, &event), -E2BIG);
	text.len = 8;
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(buf_add(&text, "[", 1), 0);
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(buf_add(&text, "]", 1), 0);
	assert_int_equal(buf_add(&text, "}", 1), 0);
	assert_int_equal(interp_event_result(text.data, text.len, &event), -E2BIG);
	buf_done(&text);
}

/* A picture is large and read at once; what waits for others like it are values by the hundred thousand. */
static void test_heavy(void **state)
{
	enum { PIECES = 200000 };
	struct buf text = BUF_INIT(INTERP_EVENT_MAX);

	(void)state;
	assert_false(interp_event_is_heavy(text.data, text.len));
	assert_int_equal(buf_add(&text, "{\"png\":\"", 8), 0);
	for (size_t i = 0; i < PIECES; i++)
		assert_int_equal(buf_add(&text, "AA", 2), 0);
	assert_int_equal(buf_add(&text, "\"}", 2), 0);
	assert_false(interp_event_is_heavy(text.data, text.len));
	text.len = 0;
	assert_int_equal(buf_add(&text, "{\"json\":[", 9), 0);
	for (size_t i = 0; i < PIECES; i++)
		assert_int_equal(buf_add(&text, "1,", 2), 0);
	assert_int_equal(buf_add(&text, "1]}", 3), 0);
	assert_true(interp_event_is_heavy(text.data, text.len));
	assert_false(interp_event_is_heavy(text.data, INTERP_EVENT_SMALL));
	buf_done(&text);
}

static void test_line_bound(void **state)
{
	struct buf out = BUF_INIT(30);

	(void)state;
	assert_int_equal(interp_line(&out, json_pack("{s:s}", "type", "keepalive")), 0);
	assert_int_equal(out.len, 21);
	/* What does not fit is not there by half. */
	assert_int_equal(interp_line(&out, json_pack("{s:s}", "type", "keepalive")), -ENOBUFS);
	assert_int_equal(out.len, 21);
	buf_done(&out);
}

static void test_end(void **state)
{
	struct wire_cell_end end = { .reason = WIRE_CELL_DONE,
				     .wall_us = 1999,
				     .cpu_us = UINT64_MAX };
	char text[ENVD_STATUS_SIZE];
	json_t *usage;

	(void)state;
	assert_string_equal(interp_reason(&end), "done");
	end.died = 1;
	assert_string_equal(interp_reason(&end), "died");
	end.reason = WIRE_CELL_MEMORY;
	assert_string_equal(interp_reason(&end), "memory");
	usage = interp_usage(&end);
	assert_int_equal(json_integer_value(json_object_get(usage, "wall_ms")), 1);
	assert_true(json_integer_value(json_object_get(usage, "cpu_ms")) > 0);
	json_decref(usage);
	interp_exit_text(&(struct wire_exit){ .code = 3 }, text);
	assert_string_equal(text, "exit status 3");
	interp_exit_text(&(struct wire_exit){ .code = -1, .signal = 9 }, text);
	assert_string_equal(text, "signal: killed");
	interp_exit_text(&(struct wire_exit){ .code = 300, .signal = 9 }, text);
	assert_string_equal(text, "nobody knows how");
}

/* --- output ------------------------------------------------------------------------------------------- */

/* All texts of the lines, one after the other. */
static void gather(const struct buf *out, char *ret, size_t size)
{
	const char *at = (const char *)out->data, *end = at + out->len;
	size_t n = 0;

	while (at < end) {
		size_t len = (size_t)((const char *)memchr(at, '\n', (size_t)(end - at)) - at);
		json_t *line = json_loadb(at, len, 0, NULL), *text = json_object_get(line, "text");

		assert_non_null(text);
		assert_string_equal(json_string_value(json_object_get(line, "timestamp")), "now");
		for (size_t i = 0; i < len; i++)
			assert_true((unsigned char)at[i] < 0x80);
		assert_true(n + json_string_length(text) < size);
		memcpy(ret + n, json_string_value(text), json_string_length(text));
		n += json_string_length(text);
		json_decref(line);
		at += len + 1;
	}
	ret[n] = '\0';
}

/* Wherever it is cut, the same text comes out. */
static void expect_text(const char *bytes, const char *expected)
{
	size_t len = strlen(bytes);

	for (size_t cut = 0; cut <= len; cut++) {
		struct interp_carry carry = { 0 };
		struct buf out = BUF_INIT(TEXT_MAX);
		char text[256];

		assert_int_equal(interp_line_output(&out, &carry, false, bytes, cut), 0);
		assert_int_equal(interp_line_output(&out, &carry, false, bytes + cut, len - cut),
				 0);
		assert_int_equal(interp_line_rest(&out, &carry, false), 0);
		gather(&out, text, sizeof(text));
		assert_string_equal(text, expected);
		buf_done(&out);
	}
}

static void test_output(void **state)
{
	struct interp_carry carry = { 0 };
	struct buf out = BUF_INIT(TEXT_MAX);

	(void)state;
	assert_int_equal(interp_line_output(&out, &carry, true, "a\n", 2), 0);
	assert_string_equal((char *)out.data,
			    "{\"type\":\"stderr\",\"text\":\"a\\n\",\"timestamp\":\"now\"}\n");
	buf_done(&out);
	expect_text("a\xc3\xa9"
		    "b\xe2\x82\xac\xf0\x9f\x98\x80!",
		    "a\xc3\xa9"
		    "b\xe2\x82\xac\xf0\x9f\x98\x80!");
}

#define BAD "\xef\xbf\xbd"

static void test_output_not_text(void **state)
{
	(void)state;
	expect_text("\xff\xfe", BAD BAD);
	expect_text("a\xe2\x82", "a" BAD); /* the end is missing for ever */
	expect_text("\xe2\x82z", BAD "z"); /* or something else follows */
	expect_text("\xf0\x9f\x98", BAD);
	expect_text("\x80\x80\x80\x80", BAD BAD BAD BAD);
	expect_text("\xc3", BAD);
	expect_text("", "");
}

static void test_output_cut_often(void **state)
{
	static const char text[] = "\xf0\x9f\x98\x80";
	struct interp_carry carry = { 0 };
	struct buf out = BUF_INIT(TEXT_MAX);
	char got[64];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(interp_line_output(&out, &carry, false, text + i, 1), 0);
		assert_int_equal(out.len, 0); /* no line without anything in it */
	}
	assert_int_equal(interp_line_output(&out, &carry, false, text + 3, 1), 0);
	gather(&out, got, sizeof(got));
	assert_string_equal(got, text);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_execute),          cmocka_unit_test(test_execute_refused),
		cmocka_unit_test(test_large_variable),   cmocka_unit_test(test_limits),
		cmocka_unit_test(test_language_name),    cmocka_unit_test(test_mentions),
		cmocka_unit_test(test_result),           cmocka_unit_test(test_result_types),
		cmocka_unit_test(test_result_text),      cmocka_unit_test(test_error),
		cmocka_unit_test(test_long_error),       cmocka_unit_test(test_count),
		cmocka_unit_test(test_hostile_events),   cmocka_unit_test(test_heavy),
		cmocka_unit_test(test_line_bound),       cmocka_unit_test(test_end),
		cmocka_unit_test(test_output),           cmocka_unit_test(test_output_not_text),
		cmocka_unit_test(test_output_cut_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
