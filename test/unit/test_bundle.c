/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's certificates: what is taken of a file, and what of it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "template/bundle.h"

#include <string.h>

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"
#define ONE BEGIN "AQIDBAUG\n" END
#define TWO BEGIN "Bwg=\n" END

static void test_taken(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ ONE, ONE },
		{ ONE TWO, ONE TWO },
		{ "# ours\nSubject: \xe4nything\n" ONE "\n\n" TWO "bye", ONE TWO },
		{ "-----BEGIN CERTIFICATE-----\r\nAQIDBAUG\r\n-----END CERTIFICATE-----\r\n", ONE },
		{ BEGIN "AQIDBAUG\n-----END CERTIFICATE-----", ONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(buf_done) struct buf got = BUF_INIT(BUNDLE_MAX);
		struct fail fail = { 0 };

		assert_int_equal(bundle_parse(rows[i].text, strlen(rows[i].text), &got, &fail), 0);
		assert_string_equal((char *)got.data, rows[i].want);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
#define ROW(text) { (text), sizeof(text) - 1 }
		ROW(""),
		ROW("no certificate"),
		ROW(BEGIN END), /* an empty one */
		ROW(BEGIN "AQID\n"),
		ROW(BEGIN "AQ ID\n" END),
		ROW(BEGIN "AQ\0ID\n" END),
		ROW(BEGIN BEGIN "AQID\n" END),
		ROW(ONE "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n"),
		ROW("-----BEGIN RSA PRIVATE KEY-----\nAQID\n-----END RSA PRIVATE KEY-----\n" ONE),
		ROW(ONE "-----END CERTIFICATE-----\n"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(buf_done) struct buf got = BUF_INIT(BUNDLE_MAX);
		struct fail fail = { 0 };

		assert_int_equal(bundle_parse(rows[i].text, rows[i].len, &got, &fail), -EINVAL);
		assert_true(fail.msg[0]);
	}
}

static void test_missing_file_is_named(void **state)
{
	_cleanup_(buf_done) struct buf got = BUF_INIT(BUNDLE_MAX);
	struct fail fail = { 0 };

	(void)state;
	assert_int_equal(bundle_read("/nonexistent/ca.pem", &got, &fail), -ENOENT);
	assert_non_null(strstr(fail.msg, "/nonexistent/ca.pem"));
	assert_int_equal(bundle_read("/dev/null", &got, &fail), -EINVAL);
	assert_int_equal(bundle_read("/tmp", &got, &fail), -EINVAL);
}

/* Byte for byte what the format says: a header, two trusted certificates, an empty checksum. */
static void test_java_source(void **state)
{
	static const unsigned char want[] =
		"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x02"
		"\0\0\0\x02\0\x0aglovebox-1\0\0\0\0\0\0\0\0\0\x05X.509\0\0\0\x06\x01\x02\x03\x04\x05\x06"
		"\0\0\0\x02\0\x0aglovebox-2\0\0\0\0\0\0\0\0\0\x05X.509\0\0\0\x02\x07\x08"
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	_cleanup_(buf_done) struct buf bundle = BUF_INIT(BUNDLE_MAX);
	_cleanup_(buf_done) struct buf got = BUF_INIT(BUNDLE_MAX);
	struct fail fail = { 0 };

	(void)state;
	assert_int_equal(bundle_parse(ONE TWO, strlen(ONE TWO), &bundle, &fail), 0);
	assert_int_equal(bundle_java_source(&bundle, &got), 0);
	assert_int_equal(got.len, sizeof(want) - 1);
	assert_memory_equal(got.data, want, sizeof(want) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_missing_file_is_named),
		cmocka_unit_test(test_java_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
