/* SPDX-License-Identifier: Apache-2.0 */
/* What interpreters say, whole and in pieces, and what they must not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/event.h"

#include <stdio.h>

/* The tokens as text: "<ready", bytes of pieces, ">"; "!" when it is refused. Fed this many bytes at a time. */
static const char *parse(const char *bytes, size_t len, size_t at_a_time)
{
	static const char *const words[_KERNEL_WORD_MAX] = { "ready", "count", "result", "error",
							     "end" };
	static char text[8192];
	struct kernel_event e = { 0 };
	size_t n = 0;

	text[0] = '\0';
	for (size_t at = 0; at < len; at += at_a_time) {
		struct kernel_bytes in = { .at = (const unsigned char *)bytes + at,
					   .len = MIN(at_a_time, len - at) },
				    piece;
		int token;

		while ((token = kernel_event_next(&e, &in, &piece)) != KERNEL_TOKEN_NONE) {
			char *to = text + n;
			size_t room = sizeof(text) - n;

			if (token < 0) {
				assert_int_equal(token, -EPROTO);
				(void)snprintf(to, room, "!");
				return text;
			}
			if (token == KERNEL_TOKEN_BEGIN)
				n += (size_t)snprintf(to, room, "<%s ", words[e.word]);
			else if (token == KERNEL_TOKEN_FINISH)
				n += (size_t)snprintf(to, room, ">");
			else
				n += (size_t)snprintf(to, room, "%.*s", (int)piece.len,
						      (const char *)piece.at);
			assert_true(n < sizeof(text));
		}
		assert_int_equal(in.len, 0);
	}
	return text;
}

static void expect(const char *bytes, const char *tokens)
{
	for (size_t i = 1; i <= 9; i++)
		assert_string_equal(parse(bytes, strlen(bytes), i), tokens);
	assert_string_equal(parse(bytes, strlen(bytes), 4096), tokens);
}

static void test_messages(void **state)
{
	(void)state;
	expect("ready 4\n1234", "<ready 1234>");
	expect("count 1\n1result 2\n{}end 0\n", "<count 1><result {}><end >");
	expect("error 9\n{\"a\": \n1}end 0\n", "<error {\"a\": \n1}><end >");
	expect("count 10\n4294967295", "<count 4294967295>");
	expect("result 6\nend 0\nend 0\n", "<result end 0\n><end >");
	expect("result 3\n{", "<result {");
	expect("resu", "");
}

static void test_numbers(void **state)
{
	struct kernel_event e = { 0 };
	struct kernel_bytes in = { .at = (const unsigned char *)"count 10\n9999999999", .len = 19 },
			    piece;

	(void)state;
	assert_int_equal(kernel_event_next(&e, &in, &piece), KERNEL_TOKEN_BEGIN);
	assert_int_equal(kernel_event_next(&e, &in, &piece), KERNEL_TOKEN_PIECE);
	assert_int_equal(kernel_event_next(&e, &in, &piece), KERNEL_TOKEN_FINISH);
	assert_int_equal(e.word, KERNEL_WORD_COUNT);
	assert_true(e.number == UINT64_C(9999999999));
	assert_int_equal(kernel_event_next(&e, &in, &piece), KERNEL_TOKEN_NONE);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"\n",
		"end\n",
		"end \n",
		"end 00\n",
		"end 1\n",
		"end 0 \n",
		" end 0\n",
		"end  0\n",
		"End 0\n",
		"ends 0\n",
		"en 0\n",
		"end\t0\n",
		"end 0x0\n",
		"end -0\n",
		"end +0\n",
		"run 0\n",
		"code 1\n",
		"result 1\n",
		"result 02\n",
		"result 123456789\n",
		"result 33554433\n",
		"result 99999999\n",
		"error 0\n",
		"ready 0\n",
		"ready 11\n",
		"resultresultresultresultresultres",
		"end 0\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect(bad[i], "!");
	assert_string_equal(parse("end\0 0\n", 7, 7), "!");
	expect("ready 1\n0", "<ready !");
	expect("count 2\n01", "<count !");
	assert_string_equal(parse("count 2\n1x", 10, 10), "<count !");
	assert_string_equal(parse("count 2\n-1", 10, 10), "<count !");
	/* The largest that may be. */
	expect("result 33554432\n", "<result ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("kernel-event", tests, NULL, NULL);
}
