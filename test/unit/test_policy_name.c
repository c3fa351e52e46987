/* SPDX-License-Identifier: Apache-2.0 */
/* Names and addresses: what is one, and which addresses are nobody's (NW-04, NW-05, NW-06, NW-09, NW-10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policy.h"

#include <arpa/inet.h>

#define LABEL63 "a23456789012345678901234567890123456789012345678901234567890123"

static void test_names(void **state)
{
	static const char *const rows[][2] = {
		{ "example.com", "example.com" },
		{ "EXAMPLE.Com", "example.com" },
		{ "example.com.", "example.com" },
		{ "a", "a" },
		{ "localhost", "localhost" },
		{ "_dmarc.example.com", "_dmarc.example.com" },
		{ "a-b.c--d.xn--p1ai", "a-b.c--d.xn--p1ai" },
		{ "1.2.3.4.example", "1.2.3.4.example" },
		{ "0x7f.com", "0x7f.com" },
		{ "1a", "1a" },
		{ "0y1", "0y1" },
		{ LABEL63 ".com", LABEL63 ".com" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[POLICY_NAME_SIZE];

		memset(name, 'x', sizeof(name));
		if (name_parse(rows[i][0], strlen(rows[i][0]), name) < 0)
			fail_msg("%s was refused", rows[i][0]);
		assert_string_equal(name, rows[i][1]);
		assert_true(name_ok(name));
	}
}

/* NW-04, NW-09: none of these is ever looked up. */
static void test_no_names(void **state)
{
#define ROW(text)                                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
		ROW(""),
		ROW("."),
		ROW(".."),
		ROW("a..b"),
		ROW(".a"),
		ROW("a.."),
		ROW("a b"),
		ROW(" a"),
		ROW("a "),
		ROW("a\tb"),
		ROW("a\n"),
		ROW("a\r\nb"),
		ROW("a\0b"),
		ROW("a.com\0"),
		ROW("\0"),
		ROW("good.com\0.evil.com"),
		ROW("a%00b"),
		ROW("a@b"),
		ROW("a#b"),
		ROW("a/b"),
		ROW("a:80"),
		ROW("[::1]"),
		ROW("a?b"),
		ROW("a\\b"),
		ROW("-a"),
		ROW("a-"),
		ROW("a.-b"),
		ROW("a-.b"),
		ROW("*.a"),
		ROW("*"),
		ROW("a,b"),
		ROW("a;b"),
		ROW("a\x7f"),
		ROW("\xc3\xa4.com"),
		ROW("a\xff"),
		ROW("a\xe3\x80\x82"
		    "b"),
		ROW("127.0.0.1"),
		ROW("127.1"),
		ROW("0x7f.1"),
		ROW("0x7f000001"),
		ROW("0X7F000001"),
		ROW("2130706433"),
		ROW("017700000001"),
		ROW("127.0.0.0x1"),
		ROW("a.0x"),
		ROW("a.7"),
		ROW("127.0.0.1."),
		ROW("::1"),
		ROW("a$b"),
		ROW("a'b"),
		ROW("(a)"),
		ROW("a\"b"),
		ROW("b" LABEL63 ".com"),
	};
#undef ROW

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static const char zero[POLICY_NAME_SIZE];
		char name[POLICY_NAME_SIZE];

		memset(name, 'x', sizeof(name));
		if (name_parse(rows[i].text, rows[i].len, name) != -EINVAL)
			fail_msg("row %zu (%s) was taken for %s", i, rows[i].text, name);
		assert_memory_equal(name, zero, sizeof(zero));
	}
}

static void test_every_byte(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char text[] = { 'a', (char)c, 'a' }, name[POLICY_NAME_SIZE];
		bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			    (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';

		if ((name_parse(text, sizeof(text), name) == 0) != good)
			fail_msg("byte %u", c);
	}
}

static void test_name_lengths(void **state)
{
	char text[POLICY_NAME_SIZE + 2], name[POLICY_NAME_SIZE];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 1; i < sizeof(text); i += 2)
		text[i] = '.'; /* a.a.a… */
	assert_int_equal(name_parse(text, 253, name), 0);
	assert_int_equal(name[252], 'a');
	assert_int_equal(name[253], 0);
	assert_int_equal(name_parse(text, 254, name), 0); /* with a dot at the end */
	assert_int_equal(name_parse(text, 255, name), -EINVAL);
}

static void test_name_ok(void **state)
{
	char name[POLICY_NAME_SIZE] = "example.com";

	(void)state;
	assert_true(name_ok(name));
	name[200] = 'x'; /* behind the end */
	assert_false(name_ok(name));
	memset(name, 'a', sizeof(name)); /* no end */
	assert_false(name_ok(name));
	assert_false(name_ok((char[POLICY_NAME_SIZE]){ "Example.com" }));
	assert_false(name_ok((char[POLICY_NAME_SIZE]){ "example.com." }));
	assert_false(name_ok((char[POLICY_NAME_SIZE]){ "" }));
}

/* NW-10 */
static void test_below(void **state)
{
	(void)state;
	assert_true(name_is_below("a.example.com", "example.com"));
	assert_true(name_is_below("a.b.example.com", "example.com"));
	assert_false(name_is_below("example.com", "example.com"));
	assert_false(name_is_below("evilexample.com", "example.com"));
	assert_false(name_is_below("a.example.com.evil.net", "example.com"));
	assert_false(name_is_below(".example.com", "example.com"));
	assert_false(name_is_below("com", "example.com"));
	assert_false(name_is_below("a.b", ""));
}

static struct net_address address(const char *text)
{
	struct net_address a;

	if (address_parse(text, strlen(text), &a) < 0)
		fail_msg("%s is no address", text);
	return a;
}

static void test_addresses(void **state)
{
	static const char *const rows[][2] = {
		{ "1.2.3.4", "1.2.3.4" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "2001:DB8::0001", "2001:db8::1" },
		{ "::ffff:1.2.3.4", "1.2.3.4" },
		{ "::ffff:102:304", "1.2.3.4" },
		{ "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" },
		{ "64:ff9b::10.0.0.1", "64:ff9b::a00:1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = address(rows[i][0]);
		char text[NET_ADDRESS_TEXT_SIZE];

		address_text(&a, text);
		assert_string_equal(text, rows[i][1]);
	}
}

static void test_no_addresses(void **state)
{
	static const char *const rows[] = {
		"",
		"1",
		"127.1",
		"1.2.3",
		"1.2.3.4.5",
		"1.2.3.4.",
		".1.2.3.4",
		"01.2.3.4",
		"1.2.3.04",
		"256.1.1.1",
		"1.2.3.256",
		"0x7f.0.0.1",
		"1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.-4",
		"1..3.4",
		"+1.2.3.4",
		"2130706433",
		"[::1]",
		"::1%lo",
		"fe80::1%25",
		"1::2::3",
		":::",
		":1",
		"12345::",
		"::1.2.3",
		"::01.2.3.4",
		"::1.2.3.4.5",
		"1:2:3:4:5:6:7:8:9",
		"g::",
		"1.2.3.4::",
		"1000.2.3.4",
		"::ffff:1.2.3.04",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = { { 7 } };

		if (address_parse(rows[i], strlen(rows[i]), &a) != -EINVAL)
			fail_msg("%s was taken", rows[i]);
		assert_int_equal(a.bytes[0], 7);
	}
	struct net_address a;

	assert_int_equal(address_parse("1.2.3.4\0", 8, &a), -EINVAL);
	assert_int_equal(address_parse("::1\0", 4, &a), -EINVAL);
}

static void test_unwrap(void **state)
{
	static const char *const rows[][2] = {
		{ "8.8.8.8", "8.8.8.8" },
		{ "::8.8.8.8", "8.8.8.8" },
		{ "64:ff9b::8.8.8.8", "8.8.8.8" },
		{ "64:ff9b:1::8.8.8.8", "8.8.8.8" },
		{ "2002:808:808::1", "8.8.8.8" },
		{ "2001:0:1:2:3:4:f7f7:f7f7", "8.8.8.8" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "2606:4700::1111", "2606:4700::1111" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = address(rows[i][0]), carried = address_unwrap(&a);
		char text[NET_ADDRESS_TEXT_SIZE];

		address_text(&carried, text);
		assert_string_equal(text, rows[i][1]);
	}
}

static void test_special(void **state)
{
	static const char *const rows[][2] = {
		{ "0.0.0.0", "unspecified" },
		{ "0.255.255.255", "unspecified" },
		{ "10.0.0.0", "private" },
		{ "10.255.255.255", "private" },
		{ "100.64.0.0", "shared" },
		{ "100.100.100.200", "shared" },
		{ "100.127.255.255", "shared" },
		{ "127.0.0.1", "loopback" },
		{ "127.255.255.255", "loopback" },
		{ "169.254.169.254", "link-local" },
		{ "172.16.0.0", "private" },
		{ "172.31.255.255", "private" },
		{ "192.0.0.170", "reserved" },
		{ "192.0.2.1", "documentation" },
		{ "192.88.99.1", "transition" },
		{ "192.168.1.1", "private" },
		{ "198.18.0.1", "benchmark" },
		{ "198.19.255.255", "benchmark" },
		{ "198.51.100.7", "documentation" },
		{ "203.0.113.80", "documentation" },
		{ "224.0.0.1", "multicast" },
		{ "239.255.255.255", "multicast" },
		{ "240.0.0.1", "reserved" },
		{ "255.255.255.255", "broadcast" },
		{ "::", "unspecified" },
		{ "::1", "loopback" },
		{ "::2", "transition" },
		{ "::8.8.8.8", "transition" },
		{ "::ffff:10.0.0.1", "private" },
		{ "64:ff9b::8.8.8.8", "transition" },
		{ "64:ff9b:1::1", "transition" },
		{ "64:ff9b:2::1", "reserved" },
		{ "100::1", "discard" },
		{ "2001::1", "transition" },
		{ "2001:10::1", "reserved" },
		{ "2001:1ff:ffff::1", "reserved" },
		{ "2001:db8::1", "documentation" },
		{ "2002:808:808::1", "transition" },
		{ "3fff:fff::1", "documentation" },
		{ "4000::1", "reserved" },
		{ "5f00::1", "reserved" },
		{ "fc00::1", "private" },
		{ "fd00:ec2::254", "private" },
		{ "fe80::1", "link-local" },
		{ "febf::1", "link-local" },
		{ "fec0::1", "private" },
		{ "ff02::1", "multicast" },
		{ "1fff::1", "reserved" },
	};
	static const char *const ordinary[] = {
		"1.1.1.1",     "9.255.255.255",   "11.0.0.0",    "100.63.255.255",
		"100.128.0.0", "126.255.255.255", "128.0.0.0",   "169.253.255.255",
		"169.255.0.0", "172.15.255.255",  "172.32.0.0",  "192.0.1.0",
		"192.0.3.0",   "192.167.255.255", "192.169.0.0", "198.17.255.255",
		"198.20.0.0",  "203.0.112.255",   "203.0.114.0", "223.255.255.255",
		"2000::1",     "2001:200::1",     "2001:db7::1", "2001:db9::1",
		"2003::1",     "2606:4700::1111", "3ffe::1",     "3fff:1000::1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = address(rows[i][0]);
		const char *word = address_special(&a);

		if (!word || strcmp(word, rows[i][1]) != 0)
			fail_msg("%s is %s, not %s", rows[i][0], word ? word : "ordinary",
				 rows[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ordinary); i++) {
		struct net_address a = address(ordinary[i]);

		if (address_special(&a))
			fail_msg("%s is %s", ordinary[i], address_special(&a));
	}
}

static void test_sockaddr(void **state)
{
	static const char *const rows[] = { "192.0.2.1", "2001:db8::1" };
	struct sockaddr_storage ss;
	struct net_address back;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = address(rows[i]);
		socklen_t len = address_to_sockaddr(&a, 443, &ss);

		assert_int_equal(len,
				 i == 0 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		assert_int_equal(ss.ss_family, i == 0 ? AF_INET : AF_INET6);
		assert_int_equal(address_from_sockaddr((const struct sockaddr *)&ss, &back, &port),
				 0);
		assert_true(address_equal(&a, &back));
		assert_int_equal(port, 443);
		assert_int_equal(address_is_v4(&a), i == 0);
	}
	ss.ss_family = AF_UNIX;
	assert_int_equal(address_from_sockaddr((const struct sockaddr *)&ss, &back, &port),
			 -EAFNOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),      cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_every_byte), cmocka_unit_test(test_name_lengths),
		cmocka_unit_test(test_name_ok),    cmocka_unit_test(test_below),
		cmocka_unit_test(test_addresses),  cmocka_unit_test(test_no_addresses),
		cmocka_unit_test(test_unwrap),     cmocka_unit_test(test_special),
		cmocka_unit_test(test_sockaddr),
	};

	return cmocka_run_group_tests_name("policy_name", tests, NULL, NULL);
}
