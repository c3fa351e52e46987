/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and rule sets as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policy.h"

static struct rule rule(const char *text)
{
	struct rule r;
	struct fail fail;

	if (rule_parse(text, strlen(text), &r, &fail) < 0)
		fail_msg("%s: %s", text, fail.msg);
	assert_true(rule_ok(&r));
	return r;
}

/* What is written, and the shortest way to write it. */
static void test_rules(void **state)
{
	static const char *const rows[][2] = {
		{ "example.com", "example.com" },
		{ "Example.COM.", "example.com" },
		{ "example.com:80,443", "example.com" },
		{ "example.com:443,80", "example.com:443,80" },
		{ "example.com:443", "example.com:443" },
		{ "example.com:*", "example.com:*" },
		{ "example.com:1-65535", "example.com:*" },
		{ "*.example.com", "*.example.com" },
		{ "*.com:22", "*.com:22" },
		{ "example.com:1,2,3-5,65535", "example.com:1,2,3-5,65535" },
		{ "example.com:7-7", "example.com:7" },
		{ "192.0.2.1", "192.0.2.1" },
		{ "192.0.2.1:*", "192.0.2.1" },
		{ "192.0.2.1/32", "192.0.2.1" },
		{ "192.0.2.1:443", "192.0.2.1:443" },
		{ "192.0.2.0/24", "192.0.2.0/24" },
		{ "192.0.2.77/24:8000-8010", "192.0.2.0/24:8000-8010" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "::/0", "0.0.0.0/0" },
		{ "1.2.3.4/0", "0.0.0.0/0" },
		{ "0.0.0.0/0:443", "0.0.0.0/0:443" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "0.0.0.0/1", "0.0.0.0/1" },
		{ "::ffff:0:0/96", "::ffff:0:0/96" },
		{ "::ffff:192.0.2.0/120", "192.0.2.0/24" },
		{ "2001:db8::/32", "2001:db8::/32" },
		{ "2001:db8::1", "2001:db8::1" },
		{ "[2001:db8::1]", "2001:db8::1" },
		{ "[2001:db8::1]/64", "2001:db8::/64" },
		{ "[2001:db8::1]:443", "[2001:db8::1]:443" },
		{ "[2001:db8::]/32:443", "[2001:db8::]/32:443" },
		{ "::1", "::1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rule r = rule(rows[i][0]), again;
		char text[POLICY_RULE_TEXT_SIZE];

		rule_text(&r, text);
		assert_string_equal(text, rows[i][1]);
		again = rule(text);
		assert_memory_equal(&r, &again, sizeof(r));
	}
}

static void test_no_rules(void **state)
{
	static const char *const rows[] = {
		"",
		"*",
		"*.",
		"**.a",
		"a.*.b",
		"*a.com",
		"a b",
		"a:",
		"a:0",
		"a:65536",
		"a:443,",
		"a:,443",
		"a:1-",
		"a:-1",
		"a:2-1",
		"a:1,2,3,4,5",
		"a:080",
		"a:http",
		"a:443:443",
		"https://a.com",
		"https://a.com/",
		"a.com/path",
		"a.com/24",
		"192.0.2.0/33",
		"192.0.2.0/",
		"192.0.2.0/-1",
		"192.0.2.0/024",
		"192.0.2/24",
		"192.0.2.1/24/24",
		"127.1",
		"2130706433",
		"0x7f000001",
		"[192.0.2.1]",
		"[::1",
		"::1]",
		"[]",
		"[::1]x",
		"[::1]443",
		"[::1]/",
		"[::1]/129",
		"[::1]:",
		"2001:db8::/32:443",
		"::/129",
		"fe80::1%1",
		"user@a.com",
		"a.com?x",
		"a\tb",
		"a.com\n",
		"\xc3\xa4.com",
		"set:x",
		":443",
		"/24",
	};
	struct rule untouched = { .kind = 77 };
	struct fail fail;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fail = (struct fail){ 0 };
		if (rule_parse(rows[i], strlen(rows[i]), &untouched, &fail) != -EINVAL)
			fail_msg("%s was taken", rows[i]);
		assert_int_equal(untouched.kind, 77);
		assert_true(fail.msg[0] && !strpbrk(fail.msg, "\n\t"));
	}
	assert_int_equal(rule_parse("a.com\0", 6, &untouched, &fail), -EINVAL);
	assert_int_equal(rule_parse("a.com\0.b", 8, &untouched, &fail), -EINVAL);
}

static void test_rule_ok(void **state)
{
	struct rule good = rule("example.com:443"), range = rule("192.0.2.0/24"), r;

	(void)state;
#define BAD(from, change)                                                                          \
	do {                                                                                       \
		r = (from);                                                                        \
		assert_true(rule_ok(&r));                                                          \
		change;                                                                            \
		assert_false(rule_ok(&r));                                                         \
	} while (0)
	BAD(good, r.kind = 0);
	BAD(good, r.kind = _RULE_KIND_MAX);
	BAD(good, r.flags = 8);
	BAD(good, r.flags = RULE_OPERATOR);
	BAD(good, r.flags = RULE_PRIVATE);
	BAD(range, r.flags = RULE_PRIVATE | RULE_DENY);
	BAD(good, r.n_ports = 0);
	BAD(good, r.n_ports = POLICY_PORTS_MAX + 1);
	BAD(good, r.n_ports = 2);
	BAD(good, r.ports[0].from = 0);
	BAD(good, r.ports[0].from = 444);
	BAD(good, r.ports[3].to = 1);
	BAD(good, r.name[0] = 'E');
	BAD(good, r.name[255] = 'x');
	BAD(good, memset(r.name, 0, sizeof(r.name)));
	BAD(good, memset(r.name, 'a', sizeof(r.name)));
	BAD(good, r.prefix = 1);
	BAD(good, r.address.bytes[0] = 1);
	BAD(range, r.name[0] = 'a');
	BAD(range, r.prefix = 129);
	BAD(range, r.address.bytes[15] = 1);
#undef BAD
	range.flags = RULE_PRIVATE;
	assert_true(rule_ok(&range));
	good.flags = RULE_DENY | RULE_OPERATOR;
	assert_true(rule_ok(&good));
}

static void test_sets(void **state)
{
	static const char text[] = "# for everybody\n"
				   "deny evil.example\n"
				   "private 10.1.0.0/16 # ours\n"
				   "\n"
				   "[packages]\n"
				   "\tpackages.example:443  \n"
				   "*.cdn.example\n"
				   "[2001:db8::1]:443\n"
				   "deny 192.0.2.0/24:25\n"
				   "[empty]\n"
				   "[last]\n"
				   "a.example";
	_cleanup_(sets_done) struct policy_sets s = { 0 };
	const struct policy_set *set;
	struct fail fail;

	(void)state;
	assert_int_equal(sets_parse(text, sizeof(text) - 1, &s, &fail), 0);
	assert_int_equal(s.n, 4);
	set = sets_find(&s, "");
	assert_ptr_equal(set, &s.set[0]);
	assert_int_equal(set->n_rules, 2);
	assert_int_equal(set->rules[0].flags, RULE_DENY | RULE_OPERATOR);
	assert_true(rule_has_port(&set->rules[0], 22)); /* a denial is of all ports */
	assert_int_equal(set->rules[1].flags, RULE_PRIVATE);
	set = sets_find(&s, "packages");
	assert_int_equal(set->n_rules, 4);
	assert_int_equal(set->rules[0].flags, 0);
	assert_int_equal(set->rules[2].kind, RULE_RANGE);
	assert_int_equal(set->rules[3].flags, RULE_DENY | RULE_OPERATOR);
	assert_false(rule_has_port(&set->rules[3], 80));
	assert_int_equal(sets_find(&s, "empty")->n_rules, 0);
	assert_int_equal(sets_find(&s, "last")->n_rules, 1);
	assert_null(sets_find(&s, "other"));
	for (size_t i = 0; i < s.n; i++)
		for (size_t k = 0; k < s.set[i].n_rules; k++)
			assert_true(rule_ok(&s.set[i].rules[k]));
}

static void test_no_sets(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "a.example", "line 1: before the first" },
		{ "[a]\nb c", "line 2:" },
		{ "[a]\n\n*\n", "line 3: \"*\" is not a rule: write 0.0.0.0/0" },
		{ "[a]\n[a]", "line 2: there are two" },
		{ "[A]", "line 1: a set's name" },
		{ "[]", "line 1: a set's name" },
		{ "[-a]", "line 1: a set's name" },
		{ "[", "line 1: a set begins" },
		{ "[a", "line 1: a set begins" },
		{ "[a] b", "line 1: a set begins" },
		{ "[12345678901234567890123456789012]", "line 1: a set begins" },
		{ "private a.example", "line 1: \"private\" needs" },
		{ "private 0.0.0.0/0", "line 1: \"private\" needs" },
		{ "private", "line 1: before" },
		{ "deny", "line 1: before" },
		{ "deny a.example b.example", "line 1:" },
		{ "[a]\nb.example\r\n", "line 2: \"b.example?\" is not a rule" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_sets s = { .n = 77 };
		struct fail fail = { 0 };

		if (sets_parse(rows[i].text, strlen(rows[i].text), &s, &fail) >= 0)
			fail_msg("%s was taken", rows[i].text);
		if (strncmp(fail.msg, rows[i].says, strlen(rows[i].says)) != 0)
			fail_msg("%s: %s", rows[i].text, fail.msg);
		assert_int_equal(s.n, 77);
	}
}

static size_t add(char *text, size_t size, size_t len, const char *line)
{
	return len + (size_t)snprintf(text + len, size - len, "%s", line);
}

static void test_set_bounds(void **state)
{
	static char text[64 << 10];
	struct policy_sets s = { 0 };
	struct policy_set one = { 0 };
	struct fail fail;
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < POLICY_SET_RULES_MAX; i++)
		len = add(text, sizeof(text), len, "a.example\n");
	assert_int_equal(set_parse(text, len, &one, &fail), 0);
	assert_int_equal(one.n_rules, POLICY_SET_RULES_MAX);
	set_done(&one);
	len = add(text, sizeof(text), len, "a.example\n");
	assert_int_equal(set_parse(text, len, &one, &fail), -E2BIG);
	assert_int_equal(set_parse("[a]\n", 4, &one, &fail), -EINVAL); /* there is only one */

	len = 0;
	for (size_t i = 0; i <= POLICY_SETS_MAX; i++) {
		char line[16];

		(void)snprintf(line, sizeof(line), "[s%zu]\n", i);
		if (i == POLICY_SETS_MAX) {
			assert_int_equal(sets_parse(text, len, &s, &fail), 0);
			sets_done(&s);
		}
		len = add(text, sizeof(text), len, line);
	}
	assert_int_equal(sets_parse(text, len, &s, &fail), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),   cmocka_unit_test(test_no_rules),
		cmocka_unit_test(test_rule_ok), cmocka_unit_test(test_sets),
		cmocka_unit_test(test_no_sets), cmocka_unit_test(test_set_bounds),
	};

	return cmocka_run_group_tests_name("policy_rule", tests, NULL, NULL);
}
