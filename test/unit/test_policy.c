/* SPDX-License-Identifier: Apache-2.0 */
/* The decision: E2B's rules for what allows and what denies, and the operator above them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policy.h"

#define RULES_MAX 8

/* Rules with blanks between; "-" before one denies, "!" is the operator's denial, "+" opens a private range. */
struct made {
	struct rule rules[RULES_MAX];
	struct policy policy;
};

static void add_rule(struct made *m, const char *word, size_t len)
{
	static const struct {
		char mark;
		uint8_t flags;
	} marks[] = { { '-', RULE_DENY },
		      { '!', RULE_DENY | RULE_OPERATOR },
		      { '+', RULE_PRIVATE } };
	struct rule *r = &m->rules[m->policy.n_rules++];
	uint8_t flags = 0;
	struct fail fail;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (word[0] == marks[i].mark)
			flags = marks[i].flags;
	if (flags) {
		word++;
		len--;
	}
	if (rule_parse(word, len, r, &fail) < 0)
		fail_msg("%s", fail.msg);
	r->flags = flags;
	assert_true(rule_ok(r));
}

static void make(struct made *m, const char *rules, bool base_allow)
{
	*m = (struct made){ .policy.base_allow = base_allow };
	for (rules += strspn(rules, " "); *rules; rules += strspn(rules, " ")) {
		size_t len = strcspn(rules, " ");

		add_rule(m, rules, len);
		rules += len;
	}
	m->policy.rules = m->rules;
}

static struct net_address address(const char *text)
{
	struct net_address a;

	if (address_parse(text, strlen(text), &a) < 0)
		fail_msg("%s is no address", text);
	return a;
}

struct row {
	const char *rules;
	bool base_allow;
	const char *target;
	uint16_t port;
	enum policy_reason want;
	bool by_name; /* of names: what must come out; of addresses: what goes in */
};

static void check_names(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool by_name = !rows[i].by_name;
		enum policy_reason got;
		struct made m;

		make(&m, rows[i].rules, rows[i].base_allow);
		got = policy_name(&m.policy, rows[i].target, rows[i].port, &by_name);
		if (got != rows[i].want || by_name != rows[i].by_name)
			fail_msg("row %zu, '%s' for %s:%u: %s%s, not %s", i, rows[i].rules,
				 rows[i].target, rows[i].port, policy_reason_word(got),
				 by_name ? " by name" : "", policy_reason_word(rows[i].want));
	}
}

static void check_addresses(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct net_address a = address(rows[i].target);
		enum policy_reason got;
		struct made m;

		make(&m, rows[i].rules, rows[i].base_allow);
		got = policy_address(&m.policy, &a, rows[i].port, rows[i].by_name);
		if (got != rows[i].want)
			fail_msg("row %zu, '%s' for %s:%u: %s, not %s", i, rows[i].rules,
				 rows[i].target, rows[i].port, policy_reason_word(got),
				 policy_reason_word(rows[i].want));
	}
}

static void test_names(void **state)
{
	static const struct row rows[] = {
		/* NW-15: an empty list allows nothing */
		{ "", false, "a.example", 443, POLICY_NOT_ALLOWED },
		{ "", true, "a.example", 443, POLICY_ALLOWED },
		/* NW-10 */
		{ "a.example", false, "a.example", 443, POLICY_ALLOWED, true },
		{ "a.example", false, "b.a.example", 443, POLICY_NOT_ALLOWED },
		{ "a.example", false, "xa.example", 443, POLICY_NOT_ALLOWED },
		{ "*.a.example", false, "a.example", 443, POLICY_NOT_ALLOWED },
		{ "*.a.example", false, "b.a.example", 443, POLICY_ALLOWED, true },
		{ "*.a.example", false, "c.b.a.example", 443, POLICY_ALLOWED, true },
		{ "*.a.example", false, "evila.example", 443, POLICY_NOT_ALLOWED },
		{ "*.a.example", false, "b.a.example.evil.net", 443, POLICY_NOT_ALLOWED },
		/* NW-12 */
		{ "a.example", false, "a.example", 80, POLICY_ALLOWED, true },
		{ "a.example", false, "a.example", 22, POLICY_PORT_NOT_ALLOWED },
		{ "a.example:22", false, "a.example", 443, POLICY_PORT_NOT_ALLOWED },
		{ "a.example:22 a.example:443", false, "a.example", 443, POLICY_ALLOWED, true },
		{ "a.example:8000-8010", false, "a.example", 8010, POLICY_ALLOWED, true },
		{ "a.example:8000-8010", false, "a.example", 8011, POLICY_PORT_NOT_ALLOWED },
		/* the port is not known yet */
		{ "a.example:22", false, "a.example", 0, POLICY_ALLOWED, true },
		{ "b.example:22", false, "a.example", 0, POLICY_NOT_ALLOWED },
		/* an address rule names nothing */
		{ "192.0.2.0/24", false, "a.example", 443, POLICY_NOT_ALLOWED },
		/* everything */
		{ "0.0.0.0/0", false, "a.example", 22, POLICY_ALLOWED },
		{ "0.0.0.0/0:443", false, "a.example", 22, POLICY_NOT_ALLOWED },
		{ "0.0.0.0/0:443", false, "a.example", 443, POLICY_ALLOWED },
		{ "-0.0.0.0/0", true, "a.example", 443, POLICY_NOT_ALLOWED },
		{ "-0.0.0.0/0 a.example", true, "a.example", 443, POLICY_ALLOWED, true },
		{ "-0.0.0.0/0 a.example", true, "b.example", 443, POLICY_NOT_ALLOWED },
		{ "-0.0.0.0/0 0.0.0.0/0", false, "a.example", 443, POLICY_ALLOWED },
		{ "-0.0.0.0/0:25", true, "a.example", 443, POLICY_ALLOWED },
		{ "-0.0.0.0/0:25", true, "a.example", 25, POLICY_NOT_ALLOWED },
		{ "-0.0.0.0/0:25", true, "a.example", 0, POLICY_ALLOWED },
		{ "-8.8.8.8", true, "a.example", 443, POLICY_ALLOWED },
		/* denied names */
		{ "-a.example:*", true, "a.example", 443, POLICY_DENIED },
		{ "-a.example:* a.example", true, "a.example", 443, POLICY_ALLOWED, true },
		{ "!a.example:* a.example", true, "a.example", 443, POLICY_OPERATOR },
		{ "!*.a.example:* b.a.example 0.0.0.0/0", true, "b.a.example", 443,
		  POLICY_OPERATOR },
		{ "!*.a.example:*", true, "a.example", 443, POLICY_ALLOWED },
		{ "!a.example:25", true, "a.example", 443, POLICY_ALLOWED },
		{ "!a.example:25", true, "a.example", 25, POLICY_OPERATOR },
		{ "!a.example:25", true, "a.example", 0, POLICY_ALLOWED },
		{ "!a.example:*", true, "a.example", 0, POLICY_OPERATOR },
		{ "!0.0.0.0/0 a.example", true, "a.example", 443, POLICY_OPERATOR },
		/* what is opened is not allowed by that */
		{ "+10.0.0.0/8", false, "a.example", 443, POLICY_NOT_ALLOWED },
	};

	(void)state;
	check_names(rows, ARRAY_SIZE(rows));
}

static void test_addresses(void **state)
{
	static const struct row rows[] = {
		{ "", false, "8.8.8.8", 443, POLICY_ADDRESS },
		{ "", true, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "", false, "8.8.8.8", 443, POLICY_ALLOWED, true },
		{ "8.8.8.0/24", false, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "8.8.8.0/24", false, "8.8.9.8", 443, POLICY_ADDRESS },
		{ "8.8.8.0/24:53", false, "8.8.8.8", 443, POLICY_PORT_NOT_ALLOWED },
		{ "2606:4700::/32", false, "2606:4700::1", 443, POLICY_ALLOWED },
		{ "2606:4700::/32", false, "2606:4701::1", 443, POLICY_ADDRESS },
		{ "8.8.8.8/31", false, "8.8.8.9", 443, POLICY_ALLOWED },
		{ "8.8.8.8/31", false, "8.8.8.10", 443, POLICY_ADDRESS },
		/* a range of IPv6 is about IPv6 only */
		{ "::/1", false, "8.8.8.8", 443, POLICY_ADDRESS },
		{ "::/1", false, "2606:4700::1", 443, POLICY_ALLOWED },
		{ "::ffff:0:0/96", false, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "::ffff:0:0/96", false, "2606:4700::1", 443, POLICY_ADDRESS },
		/* everything has both */
		{ "0.0.0.0/0", false, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "0.0.0.0/0", false, "2606:4700::1", 443, POLICY_ALLOWED },
		/* what is allowed beats what is denied */
		{ "-8.8.8.0/24", true, "8.8.8.8", 443, POLICY_DENIED },
		{ "-8.8.8.0/24 8.8.8.8", true, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "-8.8.8.0/24 8.8.8.8", true, "8.8.8.9", 443, POLICY_DENIED },
		{ "-0.0.0.0/0 0.0.0.0/0", true, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "-0.0.0.0/0", true, "8.8.8.8", 443, POLICY_DENIED },
		{ "-0.0.0.0/0", true, "8.8.8.8", 443, POLICY_ALLOWED, true },
		{ "-8.8.8.8:25", true, "8.8.8.8", 443, POLICY_ALLOWED },
		{ "-8.8.8.8:25", true, "8.8.8.8", 25, POLICY_DENIED },
		/* but not what the operator denies */
		{ "!8.8.8.8 8.8.8.8 0.0.0.0/0", true, "8.8.8.8", 443, POLICY_OPERATOR, true },
		{ "!8.8.8.8:25", true, "8.8.8.8", 25, POLICY_OPERATOR, true },
		{ "!8.8.8.8:25", true, "8.8.8.8", 0, POLICY_ALLOWED, true },
		{ "!8.8.8.8", true, "8.8.8.8", 0, POLICY_OPERATOR, true },
		/* NW-02, NW-04, NW-05: whatever is allowed */
		{ "0.0.0.0/0", true, "127.0.0.1", 80, POLICY_PRIVATE, true },
		{ "127.0.0.1 10.0.0.0/8", true, "10.0.0.1", 80, POLICY_PRIVATE },
		{ "0.0.0.0/0", true, "169.254.169.254", 80, POLICY_PRIVATE, true },
		{ "0.0.0.0/0", true, "fd00:ec2::254", 80, POLICY_PRIVATE, true },
		{ "0.0.0.0/0", true, "100.100.100.200", 80, POLICY_PRIVATE, true },
		{ "0.0.0.0/0", true, "::", 80, POLICY_PRIVATE, true },
		{ "0.0.0.0/0", true, "0.0.0.0", 80, POLICY_PRIVATE, true },
		/* unless the operator opens it, which allows nothing yet */
		{ "+10.1.0.0/16", false, "10.1.2.3", 80, POLICY_ADDRESS },
		{ "+10.1.0.0/16", false, "10.1.2.3", 80, POLICY_ALLOWED, true },
		{ "+10.1.0.0/16", false, "10.2.2.3", 80, POLICY_PRIVATE, true },
		{ "+10.1.0.0/16:443 0.0.0.0/0", false, "10.1.2.3", 80, POLICY_PRIVATE, true },
		{ "+10.1.0.0/16:443 0.0.0.0/0", false, "10.1.2.3", 443, POLICY_ALLOWED },
		{ "+10.1.0.0/16 !10.1.2.0/24", false, "10.1.2.3", 443, POLICY_OPERATOR, true },
		{ "+127.0.0.1", false, "127.0.0.1", 443, POLICY_ALLOWED, true },
		/* NW-06: neither the form nor what it carries */
		{ "0.0.0.0/0", true, "::ffff:10.0.0.1", 80, POLICY_PRIVATE, true },
		{ "0.0.0.0/0", true, "64:ff9b::8.8.8.8", 80, POLICY_PRIVATE, true },
		{ "+64:ff9b::/96", false, "64:ff9b::8.8.8.8", 80, POLICY_ALLOWED, true },
		{ "+64:ff9b::/96", false, "64:ff9b::10.0.0.1", 80, POLICY_PRIVATE, true },
		{ "+10.0.0.0/8", false, "64:ff9b::10.0.0.1", 80, POLICY_PRIVATE, true },
		{ "+64:ff9b::/96 +10.0.0.0/8", false, "64:ff9b::10.0.0.1", 80, POLICY_ALLOWED,
		  true },
		{ "+64:ff9b::/96 !8.8.8.8", false, "64:ff9b::8.8.8.8", 80, POLICY_OPERATOR, true },
		{ "+64:ff9b::/96 8.8.8.8", false, "64:ff9b::8.8.8.8", 80, POLICY_ALLOWED },
		{ "+64:ff9b::/96 -8.8.8.8", true, "64:ff9b::8.8.8.8", 80, POLICY_DENIED },
		{ "+2002::/16", false, "2002:7f00:1::", 80, POLICY_PRIVATE, true },
		{ "+2001::/32", false, "2001::f5ff:fffe", 80, POLICY_PRIVATE, true },
	};

	(void)state;
	check_addresses(rows, ARRAY_SIZE(rows));
}

static void test_learning(void **state)
{
	static const struct row rows[] = {
		{ "", false, "8.8.8.8", 443, POLICY_LEARNING },
		{ "-0.0.0.0/0", false, "8.8.8.8", 443, POLICY_LEARNING },
		{ "", false, "10.0.0.1", 443, POLICY_LEARNING },
		{ "", false, "203.0.113.80", 443, POLICY_LEARNING },
		{ "", false, "fc00::1", 443, POLICY_LEARNING },
		{ "", false, "127.0.0.1", 443, POLICY_PRIVATE },
		{ "", false, "0.0.0.0", 443, POLICY_PRIVATE },
		{ "", false, "::", 443, POLICY_PRIVATE },
		{ "", false, "::1", 443, POLICY_PRIVATE },
		{ "", false, "169.254.169.254", 80, POLICY_PRIVATE },
		{ "", false, "fe80::1", 80, POLICY_PRIVATE },
		{ "", false, "224.0.0.1", 80, POLICY_PRIVATE },
		{ "", false, "ff02::1", 80, POLICY_PRIVATE },
		{ "", false, "255.255.255.255", 80, POLICY_PRIVATE },
		{ "", false, "64:ff9b::127.0.0.1", 80, POLICY_PRIVATE },
		{ "+127.0.0.0/8", false, "127.0.0.1", 443, POLICY_LEARNING },
		{ "!8.8.8.8", false, "8.8.8.8", 443, POLICY_OPERATOR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net_address a = address(rows[i].target);
		struct made m;
		bool by_name = true;

		make(&m, rows[i].rules, false);
		m.policy.learn = true;
		if (policy_address(&m.policy, &a, rows[i].port, false) != rows[i].want)
			fail_msg("row %zu, %s", i, rows[i].target);
		assert_int_equal(policy_name(&m.policy, "a.example", 443, &by_name),
				 POLICY_LEARNING);
		assert_false(by_name);
	}
	struct made m;
	bool by_name;

	make(&m, "!a.example:*", false);
	m.policy.learn = true;
	assert_int_equal(policy_name(&m.policy, "a.example", 443, &by_name), POLICY_OPERATOR);
}

static void test_reasons(void **state)
{
	(void)state;
	assert_true(policy_reason_allows(POLICY_ALLOWED));
	assert_true(policy_reason_allows(POLICY_LEARNING));
	for (unsigned i = 0; i < 256; i++) {
		if (i != POLICY_ALLOWED && i != POLICY_LEARNING)
			assert_false(policy_reason_allows(i));
		if (!policy_reason_is(i))
			assert_string_equal(policy_reason_word(i), "unknown");
		else
			assert_string_not_equal(policy_reason_word(i), "unknown");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_learning),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
