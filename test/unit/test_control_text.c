/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the control plane: ids, times, names, filters, addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <sodium.h>

#include "server/control/text.h"

static void test_ids(void **state)
{
	char a[ID_SIZE], b[ID_SIZE], token[TOKEN_LEN + 1];
	const char zeros[ID_SIZE] = { 0 };

	(void)state;
	id_new('i', a);
	id_new('i', b);
	assert_int_equal(strlen(a), ID_LEN);
	assert_int_equal(a[0], 'i');
	assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789"), ID_LEN);
	assert_memory_equal(a + ID_LEN, zeros, ID_SIZE - ID_LEN);
	assert_string_not_equal(a, b);
	token_new(token);
	assert_int_equal(strlen(token), TOKEN_LEN);
}

static void test_uuids(void **state)
{
	char a[UUID_SIZE], b[UUID_SIZE];

	(void)state;
	uuid_new(a);
	uuid_new(b);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(a[14], '4');
	assert_non_null(strchr("89ab", a[19]));
	assert_string_not_equal(a, b);
	uuid_of("base", a);
	uuid_of("base", b);
	assert_string_equal(a, b);
	uuid_of("basf", b);
	assert_string_not_equal(a, b);
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-15T10:25:33.123Z", 1794738333123 },
		{ "2026-11-15t10:25:33.123456789z", 1794738333123 },
		{ "2026-11-15T12:25:33.1+02:00", 1794738333100 },
		{ "2026-11-15T09:55:33-00:30", 1794738333000 },
		{ "2024-02-29T00:00:00Z", 1709164800000 },
		{ "2016-12-31T23:59:60Z", 1483228800000 },
	};
	static const char *const bad[] = {
		"",
		"2026-11-15",
		"2026-11-15T10:25:33",
		"2026-11-15T10:25Z",
		"2026-11-15T10:25:33.Z",
		"2026-11-15T10:25:33Zx",
		"2026-02-29T00:00:00Z",
		"2026-04-31T00:00:00Z",
		"2026-00-10T00:00:00Z",
		"2026-13-10T00:00:00Z",
		"2026-01-00T00:00:00Z",
		"2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z",
		"2026-01-01T00:00:00+24:00",
		"2026-01-01T00:00:00+02",
		"+026-01-01T00:00:00Z",
		" 2026-01-01T00:00:00Z",
	};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(time_parse(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (time_parse(bad[i], &ms) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	}
}

static void test_spans(void **state)
{
	char text[32];

	(void)state;
	time_span(12345, text, sizeof(text));
	assert_string_equal(text, "12 s");
	time_span(-5, text, sizeof(text));
	assert_string_equal(text, "0 s");
	time_span(600000, text, sizeof(text));
	assert_string_equal(text, "10 min");
	time_span(INT64_C(3) * 3600000, text, sizeof(text));
	assert_string_equal(text, "3 h");
	time_span(INT64_C(4) * 86400000, text, sizeof(text));
	assert_string_equal(text, "4 days");
}

static void test_names(void **state)
{
	static const char *const bad[] = { "",      ":",     "a:",    ":a",       "/a",
					   "a/",    "a/b/c", "a:b:c", "a b",      "a.b",
					   "a/b.c", "../a",  "a\n",   "\xc3\xa9", "a%2fb" };
	char longest[NAME_PART_MAX + 2];
	struct name n;

	(void)state;
	assert_int_equal(template_name_parse("base", &n), 0);
	assert_string_equal(n.space, "");
	assert_string_equal(n.name, "base");
	assert_string_equal(n.tag, "");
	assert_int_equal(template_name_parse("Team_1/My-App:v1.2", &n), 0);
	assert_string_equal(n.space, "team_1");
	assert_string_equal(n.name, "my-app");
	assert_string_equal(n.tag, "v1.2");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (template_name_parse(bad[i], &n) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(template_name_parse(longest, &n), -EINVAL);
	assert_int_equal(template_name_parse(longest + 1, &n), 0);
	assert_true(name_tag_is_default("") && name_tag_is_default("default") &&
		    name_tag_is_default("latest"));
	assert_false(name_tag_is_default("v1"));
}

static void assert_pair(const json_t *filter, const char *key, const char *value)
{
	assert_string_equal(json_string_value(json_object_get(filter, key)), value);
}

/* What E2B's client sends for {"k 1": "v/é", "b": "c"}, after the query was decoded once. */
static void test_metadata(void **state)
{
	json_t *filter, *metadata;

	(void)state;
	assert_int_equal(filter_metadata("k%25201=v%252F%25C3%25A9&b=c", &filter), 0);
	assert_int_equal(json_object_size(filter), 2);
	assert_pair(filter, "k 1", "v/\xc3\xa9");
	assert_pair(filter, "b", "c");
	metadata = json_pack("{s:s, s:s, s:s}", "k 1", "v/\xc3\xa9", "b", "c", "more", "x");
	assert_true(filter_matches(metadata, filter));
	json_object_set_new(metadata, "b", json_string("C"));
	assert_false(filter_matches(metadata, filter));
	json_object_del(metadata, "b");
	assert_false(filter_matches(metadata, filter));
	json_decref(metadata);
	json_decref(filter);
}

static void test_metadata_edges(void **state)
{
	static const char *const bad[] = { "a=%",     "a=%2",    "a=%zz", "%00=a",
					   "a=%2500", "a=%25FF", "a=%ff" };
	json_t *filter;
	char many[FILTER_PAIRS_MAX * 8 + 16];
	size_t n = 0;

	(void)state;
	assert_int_equal(filter_metadata("", &filter), 0);
	assert_int_equal(json_object_size(filter), 0);
	assert_true(filter_matches(NULL, filter));
	json_decref(filter);
	/* '+' is a space for the form, and itself for the URI. */
	assert_int_equal(filter_metadata("a+b=c%2Bd&=x&lone&&", &filter), 0);
	assert_pair(filter, "a b", "c+d");
	assert_pair(filter, "", "x");
	assert_pair(filter, "lone", "");
	json_decref(filter);
	/* A value may have '=' and '&' in it. */
	assert_int_equal(filter_metadata("q=a%253D1%2526b", &filter), 0);
	assert_pair(filter, "q", "a=1&b");
	json_decref(filter);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (filter_metadata(bad[i], &filter) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	}
	for (int i = 0; i <= FILTER_PAIRS_MAX; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "k%d=v&", i);
	assert_int_equal(filter_metadata(many, &filter), -EINVAL);
}

static void test_states(void **state)
{
	unsigned bits;

	(void)state;
	assert_int_equal(filter_states("running", &bits), 0);
	assert_int_equal(bits, FILTER_RUNNING);
	assert_int_equal(filter_states("paused,running", &bits), 0);
	assert_int_equal(bits, FILTER_RUNNING | FILTER_PAUSED);
	assert_int_equal(filter_states("", &bits), -EINVAL);
	assert_int_equal(filter_states("running,", &bits), -EINVAL);
	assert_int_equal(filter_states("Running", &bits), -EINVAL);
	assert_int_equal(filter_states("running,dead", &bits), -EINVAL);
}

static void test_cursors(void **state)
{
	static const char *const bad[] = { "",
					   "1",
					   "1.",
					   ".i1",
					   "x.i1",
					   "-1.i1",
					   "1.I1",
					   "1.i/1",
					   "1.i1 ",
					   "99999999999999999999.i1",
					   "1.iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii" };
	struct cursor a = { .started_ms = 1794738333123, .id = "i0123" }, b;
	char text[CURSOR_TEXT_SIZE];

	(void)state;
	cursor_text(&a, text);
	assert_int_equal(cursor_parse(text, &b), 0);
	assert_int_equal(cursor_compare(&a, &b), 0);
	b.id[1] = '1';
	assert_true(cursor_compare(&a, &b) < 0);
	b.started_ms--;
	assert_true(cursor_compare(&a, &b) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (cursor_parse(bad[i], &b) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	}
}

/* As a resolver gives it. */
static bool looked_up_is_public(const char *text)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return address_is_public((const struct sockaddr *)&in);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return address_is_public((const struct sockaddr *)&in6);
}

static void test_addresses(void **state)
{
	static const char *const is_private[] = {
		"0.0.0.0",
		"10.1.2.3",
		"100.64.0.1",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.0.1",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.9.9",
		"192.0.0.8",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.1.1",
		"198.18.0.1",
		"198.19.0.1",
		"198.51.100.1",
		"203.0.113.9",
		"224.0.0.1",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::ffff:127.0.0.1",
		"::ffff:8.8.8.8",
		"::7f00:1",
		"64:ff9b::7f00:1",
		"64:ff9b::808:808",
		"64:ff9b:1::1",
		"100::1",
		"2001::1",
		"2001:db8::1",
		"2002:7f00:1::1",
		"fc00::1",
		"fdff::1",
		"fe80::1",
		"fec0::1",
		"ff02::1",
		"3fff::1",
	};
	static const char *const is_public[] = {
		"1.1.1.1",    "8.8.8.8",         "100.63.0.1",      "100.128.0.1",
		"172.15.0.1", "172.32.0.1",      "192.0.1.1",       "198.17.0.1",
		"223.1.1.1",  "2606:4700::1111", "2001:4860::8888",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(is_private); i++) {
		if (address_text_is_public(is_private[i]))
			fail_msg("public: %s", is_private[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(is_public); i++) {
		if (!address_text_is_public(is_public[i]))
			fail_msg("private: %s", is_public[i]);
	}
	assert_true(address_text_is_public("example.org"));
	assert_false(address_is_public(&(struct sockaddr){ .sa_family = AF_UNIX }));
	assert_true(looked_up_is_public("8.8.8.8"));
	assert_true(looked_up_is_public("2606:4700::1111"));
	assert_false(looked_up_is_public("10.0.0.1"));
	assert_false(looked_up_is_public("64:ff9b::808:808"));
	assert_false(looked_up_is_public("::ffff:8.8.8.8"));
}

/* printf 'secret{"a":1}' | openssl dgst -sha256 -binary | base64 */
static void test_signatures(void **state)
{
	char text[SIGNATURE_SIZE];

	(void)state;
	signature_text("secret", "{\"a\":1}", 7, text);
	assert_string_equal(text, "N7005LKS7534v+cOP1BSYTkklJDDwllM8gF1unZl4B0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_metadata_edges),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_cursors),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_signatures),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("control texts", tests, NULL, NULL);
}
