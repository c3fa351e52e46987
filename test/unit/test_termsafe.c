/* SPDX-License-Identifier: Apache-2.0 */
/* DV-07: nothing a box prints may drive the operator's terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/termsafe.h"
#include "base/utf8.h"

static char result[70000];

/* Feeds the text in pieces of `piece` bytes and flushes; the result is NUL-terminated. */
static size_t filter(const char *text, size_t n, size_t piece)
{
	struct termsafe ts;
	size_t len = 0;

	termsafe_init(&ts);
	for (size_t i = 0; i < n; i += piece) {
		size_t part = MIN(piece, n - i);
		char out[4096];
		size_t m = termsafe_feed(&ts, text + i, part, out, sizeof(out));

		assert_true(m <= termsafe_max_out(part));
		memcpy(result + len, out, m);
		len += m;
	}
	len += termsafe_flush(&ts, result + len, sizeof(result) - len);
	result[len] = '\0';
	return len;
}

/* However the text is cut, the same comes out. */
static void assert_shown(const char *text, size_t n, const char *want)
{
	for (size_t piece = 1; piece <= MAX(n, (size_t)1); piece++) {
		size_t len = filter(text, n, piece);

		assert_string_equal(result, want);
		assert_int_equal(len, strlen(want));
	}
}

#define SHOWN(text, want) assert_shown((text), sizeof(text) - 1, (want))

static void test_text_passes(void **state)
{
	(void)state;
	SHOWN("", "");
	SHOWN("plain text\n\twith a tab\n", "plain text\n\twith a tab\n");
	SHOWN("dos\r\nlines\r\n", "dos\r\nlines\r\n");
	SHOWN("na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", "na\xc3\xafve "
									"\xe6\x97\xa5\xe6\x9c\xac "
									"\xf0\x9f\x98\x80");
}

static void test_controls(void **state)
{
	(void)state;
	SHOWN("a\0b\a\b\v\f\x7f", "a^@b^G^H^K^L^?");
	SHOWN("real\rfake", "real^Mfake");
	SHOWN("\r\r\n\r", "^M\r\n^M");
	SHOWN("end\r", "end^M");
	SHOWN("\xc2\x9b"
	      "31m\xc2\x85",
	      "<U+009B>31m<U+0085>");
	SHOWN("\x9b"
	      "31m",
	      "\\x9b31m");
}

static void test_reordering(void **state)
{
	(void)state;
	SHOWN("a\xe2\x80\xae"
	      "b\xe2\x81\xa6"
	      "c\xe2\x81\xa9",
	      "a<U+202E>b<U+2066>c<U+2069>");
	SHOWN("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "<U+200E><U+200F><U+061C>");
	SHOWN("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", "<U+2028><U+2029><U+202A>");
	/* The neighbours of the ranges are text. */
	SHOWN("\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xc2\xa0",
	      "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xc2\xa0");
}

static void test_not_utf8(void **state)
{
	(void)state;
	SHOWN("\xff\xc0\xaf", "\\xff\\xc0\\xaf");
	SHOWN("\xe2\x82", "\\xe2\\x82");
	SHOWN("\xe2\x82"
	      "A",
	      "\\xe2\\x82A");
	SHOWN("\xe2\xe2\x82\xac", "\\xe2\xe2\x82\xac");
	SHOWN("\xf0\x9f\x1b[2J", "\\xf0\\x9f^[[2J");
	SHOWN("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

static void test_colours(void **state)
{
	(void)state;
	SHOWN("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m");
	SHOWN("\x1b[31mred\x1b[m", "\x1b[31mred\x1b[m");
	SHOWN("\x1b[1;38;5;196mx\x1b[0;0m", "\x1b[1;38;5;196mx\x1b[0;0m");
	/* Left on: switched off at the end. "5;0" is a colour, not a reset. */
	SHOWN("\x1b[31mred", "\x1b[31mred\x1b[0m");
	SHOWN("\x1b[38;5;0mblack", "\x1b[38;5;0mblack\x1b[0m");
}

static void test_escape_sequences(void **state)
{
	(void)state;
	SHOWN("\x1b[2J\x1b[H", "^[[2J^[[H");
	SHOWN("\x1b]0;title\a", "^[]0;title^G");
	SHOWN("\x1b]52;c;cm0gLXJm\x1b\\", "^[]52;c;cm0gLXJm^[\\");
	SHOWN("\x1bP$q\"p\x1b\\", "^[P$q\"p^[\\");
	SHOWN("\x1b"
	      "c\x1b(0",
	      "^[c^[(0");
	SHOWN("\x1b[?25l\x1b[>4;2m\x1b[6n\x1b[1 q", "^[[?25l^[[>4;2m^[[6n^[[1 q");
	SHOWN("\x1b[3\x1b[31mx", "^[[3\x1b[31mx\x1b[0m");
	SHOWN("\x1b\x1b[0m", "^[\x1b[0m");
	SHOWN("\x1b[31", "^[[31");
	SHOWN("\x1b[38:5:1m", "^[[38:5:1m");
	SHOWN("\x1b[3\r\nm", "^[[3\r\nm");
}

static void test_colour_length(void **state)
{
	(void)state;
	/* 32 bytes pass, 33 do not. */
	SHOWN("\x1b[00000000000000000000000000000m", "\x1b[00000000000000000000000000000m");
	SHOWN("\x1b[000000000000000000000000000000m", "^[[000000000000000000000000000000m");
}

/* What comes out of any bytes is text and colours, whatever went in. */
static void assert_harmless(const char *text, size_t n)
{
	assert_true(utf8_valid(text, n, NULL));
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\r')
			assert_int_equal(text[i + 1], '\n');
		if (c == 0x1b) {
			size_t end = i + 2 + strspn(text + i + 2, "0123456789;");

			assert_int_equal(text[i + 1], '[');
			assert_int_equal(text[end], 'm');
			assert_true(end - i < TERMSAFE_SGR_MAX);
			continue;
		}
		assert_true((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t' || c == '\r');
		assert_false(c == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
	}
}

static void test_random_bytes(void **state)
{
	(void)state;
	static const char alphabet[] = "\x1b[0123;m\r\n\xc2\x9b\xe2\x80\xae\x7f\xf0\x9f\x98"
				       "a]P\\\0";
	uint32_t seed = 1;

	for (int round = 0; round < 3000; round++) {
		char text[200];
		static char whole[4096];
		size_t len;

		for (size_t i = 0; i < sizeof(text); i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = round % 2 ? (char)(seed >> 24) :
					      alphabet[(seed >> 8) % sizeof(alphabet)];
		}
		len = filter(text, sizeof(text), sizeof(text));
		assert_harmless(result, len);
		memcpy(whole, result, len + 1);
		assert_int_equal(filter(text, sizeof(text), 1 + (size_t)round % 7), len);
		assert_memory_equal(result, whole, len);
	}
}

static void test_max_out(void **state)
{
	(void)state;
	struct termsafe ts;
	char in[1000], out[4 * 1000 + 4 * TERMSAFE_SGR_MAX];

	assert_int_equal(termsafe_max_out(1000), sizeof(out));
	assert_true(termsafe_max_out(SIZE_MAX) == SIZE_MAX);
	assert_true(termsafe_max_out(SIZE_MAX / 4) == SIZE_MAX);
	termsafe_init(&ts);
	memset(in, 0xff, sizeof(in));
	assert_int_equal(termsafe_feed(&ts, in, sizeof(in), out, sizeof(out)), 4000);
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)(i % 2 ? 0x9c : 0xd8);
	assert_int_equal(termsafe_feed(&ts, in, sizeof(in), out, sizeof(out)), 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_passes),   cmocka_unit_test(test_controls),
		cmocka_unit_test(test_reordering),    cmocka_unit_test(test_not_utf8),
		cmocka_unit_test(test_colours),       cmocka_unit_test(test_escape_sequences),
		cmocka_unit_test(test_colour_length), cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_max_out),
	};

	return cmocka_run_group_tests_name("termsafe", tests, NULL, NULL);
}
