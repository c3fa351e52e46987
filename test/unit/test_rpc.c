/* SPDX-License-Identifier: Apache-2.0 */
/* The Connect protocol's bytes: envelopes, members of messages, headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/http/schema.h"
#include "server/rpc/rpc.h"

static struct rpc_error e;

static json_t *parsed(const char *text)
{
	json_t *message = NULL;

	assert_int_equal(rpc_parse(text, strlen(text), &message, &e), 0);
	return message;
}

static void test_envelope(void **state)
{
	struct buf out = BUF_INIT(1000);
	size_t len = 0;

	(void)state;
	assert_int_equal(rpc_envelope_add(&out, 0, "{}", 2), 0);
	assert_int_equal(out.len, 7);
	assert_memory_equal(out.data, "\0\0\0\0\2{}", 7);
	for (size_t n = 0; n < 7; n++)
		assert_int_equal(rpc_envelope_next(out.data, n, &len), 0);
	assert_int_equal(rpc_envelope_next(out.data, 7, &len), 1);
	assert_int_equal(len, 7);
	/* What follows belongs to the next one. */
	assert_int_equal(rpc_envelope_add(&out, 0, "x", 1), 0);
	assert_int_equal(rpc_envelope_next(out.data, out.len, &len), 1);
	assert_int_equal(len, 7);
	buf_done(&out);
}

static void test_envelope_refused(void **state)
{
	const unsigned char compressed[] = { 1, 0, 0, 0, 0 }, end[] = { 2, 0, 0, 0, 0 };
	const unsigned char largest[] = { 0, 0, 0x10, 0, 0 }, larger[] = { 0, 0, 0x10, 0, 1 };
	const unsigned char huge[] = { 0, 0xff, 0xff, 0xff, 0xff };
	size_t len;

	(void)state;
	assert_int_equal(rpc_envelope_next(compressed, 5, &len), -EPROTO);
	assert_int_equal(rpc_envelope_next(end, 5, &len), -EPROTO);
	assert_int_equal(rpc_envelope_next(largest, 5, &len), 0);
	assert_int_equal(rpc_envelope_next(larger, 5, &len), -EMSGSIZE);
	assert_int_equal(rpc_envelope_next(huge, 5, &len), -EMSGSIZE);
}

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"[]",
		"1",
		"\"x\"",
		"{",
		"{} x",
		"{\"a\":1,\"a\":2}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"\xff\"}",
		"{\"a\":1e999}",
	};
	char deep[200] = "";
	json_t *message = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.code = RPC_OK;
		assert_int_equal(rpc_parse(bad[i], strlen(bad[i]), &message, &e), -EREMOTEIO);
		assert_int_equal(e.code, RPC_INVALID_ARGUMENT);
	}
	assert_null(message);
	json_decref(parsed(""));
	json_decref(parsed("{}"));
	/* {"a":[[…]]}: the object is a level too. */
	for (int levels = 31; levels <= 33; levels++) {
		(void)snprintf(deep, sizeof(deep), "{\"a\":%.*s%.*s}", levels,
			       "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", levels,
			       "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
		assert_int_equal(rpc_parse(deep, strlen(deep), &message, &e),
				 levels < CHECK_DEPTH_MAX ? 0 : -EREMOTEIO);
		if (levels < CHECK_DEPTH_MAX)
			json_decref(message);
	}
}

static void test_member_names(void **state)
{
	json_t *m = parsed("{\"include_entry\":true,\"watcherId\":\"a\",\"x\":null}");
	bool value;

	(void)state;
	assert_int_equal(rpc_bool(m, "includeEntry", &value, &e), 0);
	assert_true(value);
	assert_string_equal(json_string_value(rpc_member(m, "watcherId")), "a");
	assert_null(rpc_member(m, "x"));
	assert_null(rpc_member(m, "watcher"));
	json_decref(m);
}

static void test_typed(void **state)
{
	json_t *m = parsed("{\"s\":\"abc\",\"b\":true,\"n\":7,\"t\":\"8\",\"neg\":-1,\"f\":1.5,"
			   "\"big\":\"18446744073709551615\",\"bigger\":\"18446744073709551616\"}");
	const char *text;
	uint64_t number;
	const json_t *object;
	bool flag;

	(void)state;
	assert_int_equal(rpc_string(m, "s", 3, &text, &e), 0);
	assert_string_equal(text, "abc");
	assert_int_equal(rpc_string(m, "s", 2, &text, &e), -EREMOTEIO);
	assert_int_equal(rpc_string(m, "n", 9, &text, &e), -EREMOTEIO);
	assert_int_equal(rpc_string(m, "none", 9, &text, &e), 0);
	assert_null(text);
	assert_int_equal(rpc_bool(m, "n", &flag, &e), -EREMOTEIO);
	assert_int_equal(rpc_bool(m, "none", &flag, &e), 0);
	assert_false(flag);
	assert_int_equal(rpc_object(m, "s", &object, &e), -EREMOTEIO);
	assert_int_equal(rpc_number(m, "n", 7, &number, &e), 0);
	assert_int_equal(number, 7);
	assert_int_equal(rpc_number(m, "t", 8, &number, &e), 0);
	assert_int_equal(number, 8);
	assert_int_equal(rpc_number(m, "n", 6, &number, &e), -EREMOTEIO);
	assert_int_equal(rpc_number(m, "neg", UINT64_MAX, &number, &e), -EREMOTEIO);
	assert_int_equal(rpc_number(m, "f", 9, &number, &e), -EREMOTEIO);
	assert_int_equal(rpc_number(m, "big", UINT64_MAX, &number, &e), 0);
	assert_true(number == UINT64_MAX);
	assert_int_equal(rpc_number(m, "bigger", UINT64_MAX, &number, &e), -EREMOTEIO);
	assert_int_equal(rpc_number(m, "none", 9, &number, &e), 0);
	assert_int_equal(number, 0);
	json_decref(m);
}

static void test_base64(void **state)
{
	static const char *const good[] = { "+/8=", "+/8", "-_8=", "-_8" };
	static const char *const bad[] = { "+", "+_8=", "+/8==", "a b=", "+/9=x" };
	unsigned char *bytes;
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		json_t *m = json_pack("{s:s}", "d", good[i]);

		assert_int_equal(rpc_bytes(m, "d", &bytes, &len, &e), 0);
		assert_int_equal(len, 2);
		assert_memory_equal(bytes, "\xfb\xff", 2);
		free(bytes);
		json_decref(m);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *m = json_pack("{s:s}", "d", bad[i]);

		assert_int_equal(rpc_bytes(m, "d", &bytes, &len, &e), -EREMOTEIO);
		json_decref(m);
	}
}

/* What is written in pieces must read as one. */
static void test_base64_both_ways(void **state)
{
	static unsigned char data[10000];
	size_t sizes[] = { 0, 1, 2, 3, 3071, 3072, 3073, 6144, 9999, 10000 };

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct buf out = BUF_INIT(20000);
		unsigned char *bytes;
		size_t len;
		json_t *m;

		assert_int_equal(buf_add(&out, "", 0), 0);
		assert_int_equal(rpc_base64_add(&out, data, sizes[i]), 0);
		m = json_pack("{s:s%}", "d", out.data, out.len);
		assert_int_equal(rpc_bytes(m, "d", &bytes, &len, &e), 0);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(bytes, data, len);
		free(bytes);
		json_decref(m);
		buf_done(&out);
	}
}

static void test_text(void **state)
{
	json_t *text = rpc_text("a\xff\xc3\xa4", 4);

	(void)state;
	assert_string_equal(json_string_value(text), "a\xef\xbf\xbd\xc3\xa4");
	json_decref(text);
	text = rpc_text("", 0);
	assert_string_equal(json_string_value(text), "");
	json_decref(text);
}

static void test_headers(void **state)
{
	uint64_t ms = 1;

	(void)state;
	assert_int_equal(rpc_timeout_parse(NULL, &ms), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(rpc_timeout_parse("60000", &ms), 0);
	assert_int_equal(ms, 60000);
	assert_int_equal(rpc_timeout_parse("9999999999", &ms), 0);
	assert_int_equal(rpc_timeout_parse("10000000000", &ms), -EINVAL);
	assert_int_equal(rpc_timeout_parse("-1", &ms), -EINVAL);
	assert_int_equal(rpc_timeout_parse("", &ms), -EINVAL);
	assert_int_equal(rpc_timeout_parse("1s", &ms), -EINVAL);
	assert_int_equal(rpc_keepalive_us("50"), 50000000);
	assert_int_equal(rpc_keepalive_us(NULL), 90000000);
	assert_int_equal(rpc_keepalive_us("0"), 90000000);
	assert_int_equal(rpc_keepalive_us("1000000"), 90000000);
}

static void test_terminal(void **state)
{
	json_t *m = parsed("{\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}");
	uint16_t rows = 0, cols = 0;
	bool given = false;

	(void)state;
	assert_int_equal(rpc_terminal(m, "pty", &given, &rows, &cols, &e), 0);
	assert_true(given && rows == 24 && cols == 80);
	assert_int_equal(rpc_terminal(m, "none", &given, &rows, &cols, &e), 0);
	assert_false(given);
	json_decref(m);
	m = parsed("{\"pty\":{\"size\":{\"cols\":65536,\"rows\":24}}}");
	assert_int_equal(rpc_terminal(m, "pty", &given, &rows, &cols, &e), -EREMOTEIO);
	json_decref(m);
}

static void test_error_cut(void **state)
{
	char longer[600];

	(void)state;
	memset(longer, 'x', sizeof(longer));
	memcpy(longer + 510, "\xc3\xa4", 3);
	assert_int_equal(rpc_fail(&e, RPC_NOT_FOUND, "%s", longer), -EREMOTEIO);
	assert_int_equal(strlen(e.message), 510); /* and not half of the last character */
	assert_string_equal(rpc_code_name(RPC_NOT_FOUND), "not_found");
	for (int code = 0; code < _RPC_CODE_MAX; code++) {
		assert_non_null(rpc_code_name((enum rpc_code)code));
		assert_true(rpc_code_status((enum rpc_code)code) >= 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_envelope),  cmocka_unit_test(test_envelope_refused),
		cmocka_unit_test(test_parse),     cmocka_unit_test(test_member_names),
		cmocka_unit_test(test_typed),     cmocka_unit_test(test_base64),
		cmocka_unit_test(test_text),      cmocka_unit_test(test_base64_both_ways),
		cmocka_unit_test(test_headers),   cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_error_cut),
	};

	return cmocka_run_group_tests_name("rpc", tests, NULL, NULL);
}
