/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of DNS: questions of boxes, and what they get (NW-16, NW-09). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/parse/dns_message.h"

/* --- making questions --------------------------------------------------------------------------------------- */

static uint8_t message[DNS_QUERY_MAX + 1];
static size_t length;

static void add(const void *data, size_t len)
{
	memcpy(message + length, data, len);
	length += len;
}

#define ADD(text) add(text, sizeof(text) - 1)

/* Labels as in "\3www\7example\3com". */
static void ask(const char *labels, size_t len, const char *type_class)
{
	length = 0;
	ADD("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00");
	add(labels, len);
	ADD("\0");
	add(type_class, 4);
}

#define ASK(labels, type_class) ask(labels, sizeof(labels) - 1, type_class)
#define GOOD() ASK("\3wWw\7example\3com", "\0\1\0\1")

static struct dns_query query;

static int parse(void)
{
	return dns_parse(message, length, &query);
}

/* --- reading -------------------------------------------------------------------------------------------------- */

static void test_good(void **state)
{
	(void)state;
	GOOD();
	assert_int_equal(parse(), DNS_NOERROR);
	assert_int_equal(query.id, 0x1234);
	assert_int_equal(query.type, DNS_A);
	assert_string_equal(query.name, "www.example.com");
	assert_false(query.has_edns);
	assert_int_equal(query.udp_size, DNS_PLAIN_MAX);
	ASK("\1a", "\0\x1c\0\1");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_int_equal(query.type, DNS_AAAA);
}

static void test_edns(void **state)
{
	(void)state;
	GOOD();
	message[11] = 1;
	ADD("\0\0\x29\x10\x00\0\0\0\0\0\0");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_true(query.has_edns);
	assert_int_equal(query.udp_size, DNS_ANSWER_MAX); /* not what it says, but what we send */
	message[length - 8] = 0;                          /* it says it takes 0 bytes */
	assert_int_equal(parse(), DNS_NOERROR);
	assert_int_equal(query.udp_size, DNS_PLAIN_MAX);
	message[length - 5] = 1; /* another version */
	assert_int_equal(parse(), DNS_BADVERS);
	message[length - 5] = 0;
	message[length - 1] = 1; /* an option that is not there */
	assert_int_equal(parse(), DNS_FORMERR);
	message[length - 1] = 0;
	message[length - 9] = 1; /* another record than OPT */
	assert_int_equal(parse(), DNS_FORMERR);
	length -= 3;
	assert_int_equal(parse(), DNS_FORMERR);
}

static void test_silence(void **state)
{
	(void)state;
	GOOD();
	message[2] |= 0x80;
	assert_int_equal(parse(), -EBADMSG); /* an answer */
	GOOD();
	for (length = 0; length < DNS_HEAD_SIZE; length++)
		assert_int_equal(parse(), -EBADMSG);
	memset(message, 0, sizeof(message));
	length = DNS_QUERY_MAX + 1;
	assert_int_equal(parse(), -EBADMSG);
}

static void test_malformed(void **state)
{
	size_t whole;

	(void)state;
	GOOD();
	whole = length;
	for (length = DNS_HEAD_SIZE; length < whole; length++) {
		assert_int_equal(parse(), DNS_FORMERR);
		assert_int_equal(query.question_len, 0);
	}
	for (size_t at = 4; at < 12; at += 2) { /* more of each section */
		GOOD();
		message[at + 1] = 2;
		assert_int_equal(parse(), DNS_FORMERR);
	}
	GOOD();
	message[5] = 0;
	assert_int_equal(parse(), DNS_FORMERR);
	GOOD();
	message[2] |= 4 << 3; /* NOTIFY */
	assert_int_equal(parse(), DNS_NOTIMP);
	ASK("\1a", "\0\1\0\3"); /* class CH */
	assert_int_equal(parse(), DNS_REFUSED);
}

/* A question has nothing to point at; a pointer to itself never ends. */
static void test_pointers(void **state)
{
	(void)state;
	ASK("\xc0\x0c", "\0\1\0\1");
	assert_int_equal(parse(), DNS_FORMERR);
	ASK("\1a\xc0\x0c", "\0\1\0\1");
	assert_int_equal(parse(), DNS_FORMERR);
	ASK("\xc0\x00", "\0\1\0\1");
	assert_int_equal(parse(), DNS_FORMERR);
	ASK("\x41"
	    "a",
	    "\0\1\0\1");
	assert_int_equal(parse(), DNS_FORMERR);
}

/* They are questions in order, for names that are none. */
static void test_bad_names(void **state)
{
	(void)state;
	ASK("", "\0\2\0\1"); /* the root */
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
	ASK("\4a\0.b\3com", "\0\1\0\1");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
	ASK("\3www\x0b"
	    "example.com",
	    "\0\1\0\1"); /* a dot in a label is not a border of labels */
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
	ASK("\2\r\n\3com", "\0\1\0\1");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
	ASK("\3\\.a\3com", "\0\1\0\1");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
	ASK("\1"
	    "1\1"
	    "2\1"
	    "3\1"
	    "4",
	    "\0\1\0\1"); /* an address */
	assert_int_equal(parse(), DNS_NOERROR);
	assert_string_equal(query.name, "");
}

static void test_long_names(void **state)
{
	char labels[300] = "";
	size_t len = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++) { /* 3 × 63 + 61 bytes and dots: 253 */
		unsigned n = i < 3 ? 63 : 61;

		labels[len++] = (char)n;
		memset(labels + len, 'a', n);
		len += n;
	}
	ask(labels, len, "\0\1\0\1");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_int_equal(strlen(query.name), POLICY_NAME_MAX);
	assert_int_equal(query.question_len, DNS_QUESTION_MAX);
	labels[192]++; /* one more */
	labels[len++] = 'a';
	ask(labels, len, "\0\1\0\1");
	assert_true(parse() == DNS_FORMERR || query.name[0] == '\0');
}

/* --- writing -------------------------------------------------------------------------------------------------- */

static uint8_t out[DNS_ANSWER_MAX];

static unsigned at16(size_t at)
{
	return (unsigned)out[at] << 8 | out[at + 1];
}

static void test_answer(void **state)
{
	const struct net_address a[] = {
		{ { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
		{ { 0x20, 0x01, 0x0d, 0xb8, [15] = 7 } },
	};
	struct dns_reply r = { .addresses = a, .n_addresses = 2, .ttl_s = 30 };
	size_t n, question;

	(void)state;
	GOOD();
	assert_int_equal(parse(), DNS_NOERROR);
	question = query.question_len;
	n = dns_write(&query, &r, out, sizeof(out));
	assert_int_equal(n,
			 DNS_HEAD_SIZE + question + 16); /* the one of the two that was asked for */
	assert_int_equal(at16(0), 0x1234);
	assert_int_equal(at16(2), 0x8180);
	assert_int_equal(at16(4), 1);
	assert_int_equal(at16(6), 1);
	assert_memory_equal(out + 12, message + 12, question); /* in the asker's own letters */
	assert_memory_equal(out + n - 4, "\xc0\0\2\1", 4);
	query.type = DNS_AAAA;
	n = dns_write(&query, &r, out, sizeof(out));
	assert_int_equal(n, DNS_HEAD_SIZE + question + 28);
	assert_memory_equal(out + n - 16, a[1].bytes, 16);
	query.type = 65;
	assert_int_equal(dns_write(&query, &r, out, sizeof(out)), DNS_HEAD_SIZE + question);
	query.type = DNS_A;
	r.rcode = DNS_NXDOMAIN; /* then there are no addresses, whatever it says */
	assert_int_equal(dns_write(&query, &r, out, sizeof(out)), DNS_HEAD_SIZE + question);
	assert_int_equal(at16(2), 0x8183);
}

static void test_answer_too_long(void **state)
{
	struct net_address a[40];
	struct dns_reply r = { .addresses = a, .n_addresses = 40 };

	(void)state;
	memset(a, 0, sizeof(a));
	a[0].bytes[0] = 1;
	for (size_t i = 0; i < 40; i++)
		a[i].bytes[15] = (uint8_t)i + 2;
	ASK("\1a", "\0\x1c\0\1");
	message[11] = 1;
	ADD("\0\0\x29\x10\x00\0\0\0\0\0\0");
	assert_int_equal(parse(), DNS_NOERROR);
	assert_true(dns_write(&query, &r, out, DNS_PLAIN_MAX) <= DNS_PLAIN_MAX);
	assert_true(at16(2) & 0x0200);
	assert_int_equal(at16(6), (DNS_PLAIN_MAX - 12 - 7 - 17) / 28);
	assert_true(dns_write(&query, &r, out, DNS_ANSWER_MAX) <= DNS_ANSWER_MAX);
	assert_int_equal(at16(10), 1); /* EDNS has its place all the same */
}

static void test_answer_edns(void **state)
{
	struct dns_reply r = { .rcode = DNS_NXDOMAIN, .blocked = true };
	size_t n;

	(void)state;
	GOOD();
	message[11] = 1;
	ADD("\0\0\x29\x10\x00\0\0\0\0\0\0");
	assert_int_equal(parse(), DNS_NOERROR);
	n = dns_write(&query, &r, out, sizeof(out));
	assert_memory_equal(out + n - 17, "\0\0\x29\x04\xd0\0\0\0\0\0\6\0\x0f\0\2\0\x0f", 17);
	r = (struct dns_reply){ .rcode = DNS_BADVERS };
	n = dns_write(&query, &r, out, sizeof(out));
	assert_int_equal(at16(2) & 0xf, 0);
	assert_memory_equal(out + n - 11, "\0\0\x29\x04\xd0\1\0\0\0\0\0", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_edns),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_answer_too_long),
		cmocka_unit_test(test_answer_edns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
