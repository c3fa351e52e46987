/* SPDX-License-Identifier: Apache-2.0 */
/* The name in a TLS handshake, and which protocol a client speaks: src/egress/parse/hello.c, first.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "egress/parse/request.h"

#define SERVER_NAME 0
#define ECH 0xfe0d
#define OTHER 0xff01

struct bytes {
	unsigned char data[20000];
	size_t len;
};

static void put(struct bytes *b, const void *data, size_t len)
{
	assert_true(len <= sizeof(b->data) - b->len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_number(struct bytes *b, size_t n, unsigned size)
{
	while (size-- > 0)
		put(b, (unsigned char[]){ (unsigned char)(n >> 8 * size) }, 1);
}

static void put_extension(struct bytes *b, unsigned id, const void *data, size_t len)
{
	put_number(b, id, 2);
	put_number(b, len, 2);
	put(b, data, len);
}

/* server_name with one entry. */
static void put_name(struct bytes *b, const char *name, size_t len)
{
	struct bytes e = { .len = 0 };

	put_number(&e, len + 3, 2);
	put_number(&e, 0, 1);
	put_number(&e, len, 2);
	put(&e, name, len);
	put_extension(b, SERVER_NAME, e.data, e.len);
}

/* A handshake with these extensions, in records of at most that size. */
static void make_hello(const struct bytes *extensions, size_t record, struct bytes *ret)
{
	struct bytes body = { .len = 0 }, whole = { .len = 0 };
	static const unsigned char random[32];

	put_number(&body, 0x0303, 2);
	put(&body, random, sizeof(random));
	put_number(&body, 0, 1); /* no session */
	put_number(&body, 2, 2); /* one cipher */
	put_number(&body, 0x1301, 2);
	put_number(&body, 1, 1); /* no compression */
	put_number(&body, 0, 1);
	put_number(&body, extensions->len, 2);
	put(&body, extensions->data, extensions->len);
	put_number(&whole, 1, 1);
	put_number(&whole, body.len, 3);
	put(&whole, body.data, body.len);
	ret->len = 0;
	for (size_t at = 0; at < whole.len; at += record) {
		size_t n = MIN(record, whole.len - at);

		put_number(ret, 22, 1);
		put_number(ret, 0x0301, 2);
		put_number(ret, n, 2);
		put(ret, whole.data + at, n);
	}
}

static enum hello read_with(const struct bytes *extensions, char name[static POLICY_NAME_SIZE])
{
	static struct bytes hello;

	make_hello(extensions, 16384, &hello);
	return hello_read(hello.data, hello.len, name);
}

static void test_name(void **state)
{
	struct bytes e = { .len = 0 }, hello;
	char name[POLICY_NAME_SIZE];

	(void)state;
	put_extension(&e, OTHER, "x", 1);
	put_name(&e, "API.Example.com", 15);
	for (size_t record = 1; record < 200; record += 7) {
		make_hello(&e, record, &hello);
		assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_NAME);
		assert_string_equal(name, "api.example.com");
		for (size_t len = 0; len < hello.len; len++)
			assert_int_equal(hello_read(hello.data, len, name), HELLO_MORE);
	}
}

static void test_no_name(void **state)
{
	struct bytes e = { .len = 0 };
	char name[POLICY_NAME_SIZE];

	(void)state;
	put_extension(&e, OTHER, "x", 1);
	assert_int_equal(read_with(&e, name), HELLO_NO_NAME);
}

static void test_hidden(void **state)
{
	struct bytes e = { .len = 0 };
	char name[POLICY_NAME_SIZE];

	(void)state;
	put_name(&e, "example.com", 11);
	put_extension(&e, ECH, "anything", 8);
	assert_int_equal(read_with(&e, name), HELLO_HIDDEN);
}

/* NW-09: what is no name; two of them; an entry that says another length than the list. */
static void test_odd_names(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = { { "", 0 },          { "a\0.example.com", 14 }, { "example.com\0", 12 },
		    { "192.0.2.1", 9 }, { "a b.com", 7 },          { "-a.com", 6 },
		    { "a..com", 6 } };
	char name[POLICY_NAME_SIZE];
	struct bytes e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e.len = 0;
		put_name(&e, bad[i].text, bad[i].len);
		assert_int_equal(read_with(&e, name), HELLO_BAD);
	}
	e.len = 0;
	put_name(&e, "example.com", 11);
	put_name(&e, "evil.com", 8);
	assert_int_equal(read_with(&e, name), HELLO_BAD);
	e.len = 0;
	put_extension(&e, SERVER_NAME, "\0\x09\0\0\6ab.com!", 12);
	assert_int_equal(read_with(&e, name), HELLO_BAD);
	e.len = 0;
	put_extension(&e, SERVER_NAME, "\0\x12\0\0\6ab.com\0\0\6ef.com", 20); /* two entries */
	assert_int_equal(read_with(&e, name), HELLO_BAD);
	e.len = 0;
	put_extension(&e, SERVER_NAME, "\0\x09\1\0\6ab.com", 11); /* of another kind */
	assert_int_equal(read_with(&e, name), HELLO_BAD);
}

static void test_odd_records(void **state)
{
	struct bytes e = { .len = 0 }, hello;
	char name[POLICY_NAME_SIZE];

	(void)state;
	put_name(&e, "example.com", 11);
	make_hello(&e, 16384, &hello);
	hello.data[5] = 2; /* a ServerHello */
	assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_BAD);
	make_hello(&e, 16384, &hello);
	hello.data[4]++; /* one byte more in the record than the handshake has */
	put(&hello, "x", 1);
	assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_BAD);
	make_hello(&e, 16384, &hello);
	hello.data[6] = 1; /* a handshake of more than 64 KiB */
	assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_BAD);
	make_hello(&e, 10, &hello);
	hello.data[15] = 23; /* something else between */
	assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_BAD);
	hello.data[3] = hello.data[4] = 0; /* an empty record: one could send them for ever */
	assert_int_equal(hello_read(hello.data, hello.len, name), HELLO_BAD);
	assert_int_equal(hello_read((const unsigned char *)"GET / HTTP/1.1", 14, name),
			 HELLO_NOT_TLS);
	assert_int_equal(hello_read((const unsigned char *)"\x80\x2e\x01", 3, name), HELLO_NOT_TLS);
	assert_int_equal(hello_read((const unsigned char *)"\x16\x02", 2, name), HELLO_NOT_TLS);
}

static enum first first_of(const char *text, size_t len)
{
	return first_bytes((const unsigned char *)text, len);
}
#define FIRST(text) first_of(text, sizeof(text) - 1)

static void test_first(void **state)
{
	static unsigned char longer[9000];

	(void)state;
	assert_int_equal(FIRST(""), FIRST_MORE);
	assert_int_equal(FIRST("\x16"), FIRST_MORE);
	assert_int_equal(FIRST("\x16\3\1"), FIRST_TLS);
	assert_int_equal(FIRST("\x16\2"), FIRST_RAW);
	assert_int_equal(FIRST("GET / HT"), FIRST_MORE);
	assert_int_equal(FIRST("GET / HTTP/1.1\r\n"), FIRST_HTTP);
	assert_int_equal(FIRST("\r\n\n get\t/ http/1.1\n"), FIRST_HTTP);
	assert_int_equal(FIRST("PRI * HTTP/2.0\r\n"), FIRST_HTTP);
	assert_int_equal(FIRST("GET / HTTP/1.1\0"), FIRST_HTTP);
	assert_int_equal(FIRST("SSH-2.0-OpenSSH\r\n"), FIRST_RAW);
	assert_int_equal(FIRST("HELO example.com\r\n"), FIRST_RAW);
	assert_int_equal(FIRST("0033git-upload-pack /x\0host=y"), FIRST_RAW);
	assert_int_equal(FIRST("\0\0\0\x08"), FIRST_RAW);
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(first_bytes(longer, 8000), FIRST_MORE);
	assert_int_equal(first_bytes(longer, sizeof(longer)), FIRST_HTTP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name),        cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_hidden),      cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_odd_records), cmocka_unit_test(test_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
