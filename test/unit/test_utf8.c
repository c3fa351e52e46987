/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

/* The shortest form of a code point, surrogates and too large ones included. */
static size_t encode(uint32_t cp, unsigned char *out)
{
	if (cp < 0x80) {
		out[0] = (unsigned char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; cp >>= 6)
		out[i] = (unsigned char)(0x80 | (cp & 0x3f));
	out[0] = (unsigned char)((0xf00u >> n & 0xf0u) | cp);
	return n;
}

static void test_every_code_point(void **state)
{
	(void)state;
	for (uint32_t cp = 0; cp < 0x1fffff; cp++) {
		bool good = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
		unsigned char bytes[4];
		size_t n = encode(cp, bytes);
		struct utf8_step step = utf8_next(bytes, n);

		if (utf8_valid(bytes, n, NULL) != good)
			fail_msg("U+%04X is judged wrongly", cp);
		if (good && (step.kind != UTF8_CHAR || step.len != n || step.cp != cp))
			fail_msg("U+%04X is read as U+%04X", cp, step.cp);
	}
}

static void test_every_two_bytes(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = 0; b < 256; b++) {
			unsigned char bytes[2] = { (unsigned char)a, (unsigned char)b };
			bool good = (a < 0x80 && b < 0x80) ||
				    (a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf);

			if (utf8_valid(bytes, 2, NULL) != good)
				fail_msg("%02x %02x is judged wrongly", a, b);
		}
	}
}

static void assert_bad_at(const char *text, size_t n, size_t want)
{
	size_t at = 999;

	assert_false(utf8_valid(text, n, &at));
	assert_int_equal(at, want);
}

static void test_bad_offset(void **state)
{
	(void)state;
	size_t at = 999;

	assert_bad_at("\x80", 1, 0);
	assert_bad_at("abcdefgh\xff", 9, 8);
	assert_bad_at("abcdefghi\xc0\xaf", 11, 9);
	assert_bad_at("\xc3\xa9\xe2\x82", 4, 2);      /* cut off */
	assert_bad_at("a\xe0\x80\xaf", 4, 1);         /* overlong / */
	assert_bad_at("a\xf0\x80\x80\xaf", 5, 1);     /* overlong / */
	assert_bad_at("12345678\xed\xa0\x80", 11, 8); /* a surrogate */
	assert_bad_at("\xf4\x90\x80\x80", 4, 0);      /* U+110000 */
	assert_bad_at("\xf8\x88\x80\x80\x80", 5, 0);
	assert_true(utf8_valid("", 0, &at));
	assert_true(utf8_valid("a\0b", 3, &at));
	assert_int_equal(at, 999);
}

static void assert_replaced(const char *text, size_t n, const char *want)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(1000);

	assert_int_equal(utf8_replace_invalid(text, n, &out), 0);
	assert_string_equal((const char *)out.data, want);
	assert_int_equal(out.len, strlen(want));
}

#define FFFD "\xef\xbf\xbd"

static void test_replace(void **state)
{
	(void)state;
	assert_replaced("", 0, "");
	assert_replaced("gr\xc3\xbc\xc3\x9f\x65", 7, "gr\xc3\xbc\xc3\x9f\x65");
	/* The examples of the Unicode standard, tables 3-8 to 3-11. */
	assert_replaced("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", 9,
			FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
	assert_replaced("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", 9,
			FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
	assert_replaced("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", 9,
			FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B");
	assert_replaced("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", 9, FFFD FFFD FFFD FFFD "A");
	assert_replaced("x\xf0\x9f\x98", 4, "x" FFFD);
}

static void test_replace_full(void **state)
{
	(void)state;
	_cleanup_(buf_done) struct buf out = BUF_INIT(6);

	assert_int_equal(buf_add(&out, "ab", 2), 0);
	assert_int_equal(utf8_replace_invalid("cd\xff", 3, &out), -ENOBUFS);
	assert_int_equal(out.len, 2);
	assert_string_equal((const char *)out.data, "ab");
	assert_int_equal(utf8_replace_invalid("c\xff", 2, &out), 0);
	assert_string_equal((const char *)out.data, "abc" FFFD);
}

static void test_plain(void **state)
{
	static const char *const bad[] = { "a\rb", "\x1b[31m", "\x7f", "\x01", "\xff", "a\xc3" };

	(void)state;
	assert_true(utf8_plain("", 0));
	assert_true(utf8_plain("two\n\tlines \xc3\xa4", 13));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(utf8_plain(bad[i], strlen(bad[i])));
	assert_false(utf8_plain("a\0b", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_point), cmocka_unit_test(test_every_two_bytes),
		cmocka_unit_test(test_bad_offset),       cmocka_unit_test(test_replace),
		cmocka_unit_test(test_replace_full),     cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
