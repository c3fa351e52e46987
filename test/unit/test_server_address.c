/* SPDX-License-Identifier: Apache-2.0 */
/* Who is meant: targets, queries, host names, signed URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/http/host.h"
#include "server/http/signed_url.h"
#include "server/http/uri.h"
#include "server/sandbox/id.h"

/* --- targets ---------------------------------------------------------------------------------------- */

static void decodes(const char *text, bool plus, const char *want)
{
	char out[64];

	assert_int_equal(uri_decode(text, strlen(text), plus, out), 0);
	assert_string_equal(out, want);
}

static void refuses(const char *text)
{
	char out[64];

	assert_int_equal(uri_decode(text, strlen(text), false, out), -EINVAL);
}

static void test_decode(void **state)
{
	(void)state;
	decodes("", false, "");
	decodes("a%2Fb%3a", false, "a/b:");
	decodes("a+b", false, "a+b");
	decodes("a+b%2B", true, "a b+");
	decodes("%c3%A9", false, "\xc3\xa9");
	/* Once, and once only. */
	decodes("%252e", false, "%2e");
	refuses("%");
	refuses("%4");
	refuses("a%zz");
	refuses("%00");
	refuses("a%0");
	refuses("%c3");       /* half a character */
	refuses("%c0%af");    /* '/' written too long */
	refuses("%ed%a0%80"); /* half a pair */
}

static int split(const char *path, struct uri_path *ret)
{
	return uri_split_path(path, strlen(path), ret);
}

static void test_split(void **state)
{
	static const char *const wrong[] = {
		"",        "a",      "//",        "//a",
		"/a/",     "/a//b",  "/.",        "/..",
		"/a/../b", "/a/./b", "/a b",      "/a\\b",
		"/a#b",    "/a\x7f", "/\xc3\xa9", "/1/2/3/4/5/6/7/8/9"
	};
	struct uri_path p;

	(void)state;
	assert_int_equal(split("/", &p), 0);
	assert_int_equal(p.n, 0);
	assert_int_equal(split("/sandboxes/a%2Fb/..c", &p), 0);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.segment[1].len, 5);
	assert_memory_equal(p.segment[1].text, "a%2Fb", 5);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(split(wrong[i], &p), -EINVAL);
}

static void test_query(void **state)
{
	struct uri_query q;
	char many[URI_QUERY_MAX * 8 + 8] = "";

	(void)state;
	assert_int_equal(uri_parse_query("a=b&c&d=&&e=%26%3D+x", &q), 0);
	assert_int_equal(q.n, 4);
	assert_string_equal(uri_query_get(&q, "a"), "b");
	assert_string_equal(uri_query_get(&q, "c"), "");
	assert_string_equal(uri_query_get(&q, "d"), "");
	assert_string_equal(uri_query_get(&q, "e"), "&= x");
	assert_null(uri_query_get(&q, "f"));
	uri_query_done(&q);
	/* Two readers could take different ones. */
	assert_int_equal(uri_parse_query("a=1&a=2", &q), -EINVAL);
	assert_int_equal(uri_parse_query("a=1&%61=2", &q), -EINVAL);
	assert_int_equal(uri_parse_query("=1", &q), -EINVAL);
	assert_int_equal(uri_parse_query("a=%", &q), -EINVAL);
	for (unsigned i = 0; i <= URI_QUERY_MAX; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "a%u=1&", i);
	assert_int_equal(uri_parse_query(many, &q), -E2BIG);
}

/* --- hosts ------------------------------------------------------------------------------------------ */

static void is_kind(const char *text, const char *domain, enum host_kind kind)
{
	assert_int_equal(host_parse(text, domain).kind, kind);
}

static void test_self(void **state)
{
	static const char *const ours[] = { "127.0.0.1", "127.0.0.1:7070", "[::1]",   "[::1]:80",
					    "localhost", "LOCALHOST:9",    "10.1.2.3" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		is_kind(ours[i], "", HOST_SELF);
	is_kind("sbx.test", "sbx.test:8443", HOST_SELF);
	is_kind("api.sbx.test:8443", "sbx.test", HOST_SELF);
	is_kind("sandbox.sbx.test", "sbx.test", HOST_SELF);
}

/* AP-07: the name under which a browser was led here. */
static void test_foreign(void **state)
{
	static const char *const foreign[] = { "evil.test",
					       "127.0.0.1.evil.test",
					       "localhost.evil",
					       "xlocalhost",
					       "sbx.test.evil",
					       "evilsbx.test",
					       "",
					       ":80",
					       "127.0.0.1:",
					       "127.0.0.1:x",
					       "127.0.0.1:070",
					       "127.0.0.1:99999",
					       "[::1",
					       "[::1]x",
					       "[evil.test]",
					       "a b",
					       "127.1",
					       "0x7f.1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		is_kind(foreign[i], "sbx.test", HOST_FOREIGN);
	is_kind("sbx.test", "", HOST_FOREIGN);
}

static void test_sandbox(void **state)
{
	static const char *const wrong[] = { "x.sbx.test",      "49983.sbx.test",
					     "49983-.sbx.test", "-abc.sbx.test",
					     "0-abc.sbx.test",  "70000-abc.sbx.test",
					     "1-a_c.sbx.test",  "1x-abc.sbx.test" };
	struct host h = host_parse("49983-iabc123.sbx.test:8443", "sbx.test:8443");

	(void)state;
	assert_int_equal(h.kind, HOST_SANDBOX);
	assert_int_equal(h.port, 49983);
	assert_string_equal(h.id, "iabc123");
	/* Old clients wrote one part more. */
	h = host_parse("80-iabc-client.sbx.test", "sbx.test");
	assert_int_equal(h.kind, HOST_SANDBOX);
	assert_string_equal(h.id, "iabc");
	h = host_parse("8000-IABC.localhost:7070", "");
	assert_int_equal(h.kind, HOST_SANDBOX);
	assert_string_equal(h.id, "iabc");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		is_kind(wrong[i], "sbx.test", HOST_BAD);
	/* One level below the domain, not two. */
	is_kind("a.49983-iabc.sbx.test", "sbx.test", HOST_FOREIGN);
}

static void test_ids(void **state)
{
	(void)state;
	assert_true(host_id_ok("i0123456789abcdefghij"));
	assert_false(host_id_ok(""));
	assert_false(host_id_ok("ABC"));
	assert_false(host_id_ok("a-b"));
	assert_false(host_id_ok("a/b"));
	assert_true(host_id_ok("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	assert_false(host_id_ok("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* --- signatures ---------------------------------------------------------------------------------------- */

#define TOKEN "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"

static void test_signature(void **state)
{
	/* The value that E2B's own clients make of these. */
	struct sign_request q = {
		.path = "hello.txt",
		.operation = "read",
		.user = "user",
		.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
	};

	(void)state;
	assert_true(sign_matches(&q, TOKEN));
	assert_false(sign_matches(&q, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e1"));
	assert_false(sign_expired(&q, 2000000000));
	q.operation = "write";
	assert_false(sign_matches(&q, TOKEN));
	q.operation = "read";
	q.user = "";
	assert_false(sign_matches(&q, TOKEN));
	q.user = "user";
	q.path = "hello.txt2";
	assert_false(sign_matches(&q, TOKEN));
	q.path = "hello.txt";
	/* An expiration that was not signed cannot be added. */
	q.expiration = "99999999999";
	assert_false(sign_matches(&q, TOKEN));
	q.expiration = NULL;
	q.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E=";
	assert_false(sign_matches(&q, TOKEN));
	q.signature = "";
	assert_false(sign_matches(&q, TOKEN));
}

/* What no token makes is not tried on any of them. */
static void test_prepare(void **state)
{
	struct sign_request q = { .path = "", .operation = "read", .user = "" };
	struct sign_search s;
	char digits[64];

	(void)state;
	q.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
	assert_int_equal(sign_prepare(&q, &s), 0);
	memset(digits, '1', sizeof(digits));
	digits[20] = '\0';
	q.expiration = digits;
	assert_int_equal(sign_prepare(&q, &s), 0);
	digits[20] = '1';
	digits[21] = '\0';
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
	q.expiration = NULL;
	q.signature = "v2_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
	q.signature =
		"v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6F"; /* bits that are in no hash */
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
	q.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6EE";
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
	q.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6";
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
	q.signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvf wDr6E";
	assert_int_equal(sign_prepare(&q, &s), -EINVAL);
}

static void test_expiration(void **state)
{
	struct sign_request q = { .expiration = "1000" };

	(void)state;
	assert_false(sign_expired(&q, 999));
	assert_false(sign_expired(&q, 1000));
	assert_true(sign_expired(&q, 1001));
	q.expiration = "";
	assert_true(sign_expired(&q, 1));
	q.expiration = "-1";
	assert_true(sign_expired(&q, 1));
	q.expiration = "99999999999999999999999";
	assert_true(sign_expired(&q, 1));
}

static void test_secrets(void **state)
{
	(void)state;
	assert_true(token_equal("", ""));
	assert_true(token_equal("abc", "abc"));
	assert_false(token_equal("abc", "abd"));
	assert_false(token_equal("abc", "ab"));
	assert_false(token_equal("", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),     cmocka_unit_test(test_split),
		cmocka_unit_test(test_query),      cmocka_unit_test(test_self),
		cmocka_unit_test(test_foreign),    cmocka_unit_test(test_sandbox),
		cmocka_unit_test(test_ids),        cmocka_unit_test(test_signature),
		cmocka_unit_test(test_expiration), cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_prepare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
