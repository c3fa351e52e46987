/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, addresses, rules and rule sets from anywhere.
 */
#include "fuzz.h"

#include "policy/policy.h"

/* What is a name is one in its canonical form too, and never an address. */
static void check_name(const uint8_t *data, size_t size)
{
	char name[POLICY_NAME_SIZE], again[POLICY_NAME_SIZE];
	struct net_address a;

	if (name_parse(data, size, name) < 0) {
		assert(name[0] == '\0');
		return;
	}
	assert(name_ok(name) && !memchr(data, '\0', size));
	assert(name_parse(name, strlen(name), again) == 0);
	assert(memcmp(name, again, sizeof(name)) == 0);
	assert(address_parse(data, size, &a) < 0);
}

static void check_address(const uint8_t *data, size_t size)
{
	char text[NET_ADDRESS_TEXT_SIZE];
	struct net_address a, again, carried;
	struct policy p = { .base_allow = true };

	if (address_parse(data, size, &a) < 0)
		return;
	address_text(&a, text);
	assert(address_parse(text, strlen(text), &again) == 0 && address_equal(&a, &again));
	carried = address_unwrap(&a);
	assert(address_equal(&a, &carried) || address_is_v4(&carried));
	/* a form that carries another is special by itself; what is special is reached by nobody */
	assert(address_equal(&a, &carried) || address_special(&a));
	assert((policy_address(&p, &a, 443, true) == POLICY_PRIVATE) == !!address_special(&a));
}

/* The text of a rule is a rule, and the same one. */
static void check_rule(const struct rule *r)
{
	char text[POLICY_RULE_TEXT_SIZE];
	struct rule again;
	struct fail fail;

	assert(rule_ok(r));
	rule_text(r, text);
	assert(rule_parse(text, strlen(text), &again, &fail) == 0);
	again.flags = r->flags;
	assert(memcmp(r, &again, sizeof(again)) == 0);
}

static void check_message(const struct fail *fail)
{
	assert(fail->msg[0] && !strpbrk(fail->msg, "\n\r\t\x1b"));
}

static void check_sets(const char *text, size_t size)
{
	_cleanup_(sets_done) struct policy_sets s = { 0 };
	_cleanup_(set_done) struct policy_set one = { 0 };
	struct fail fail = { 0 };

	if (sets_parse(text, size, &s, &fail) < 0)
		check_message(&fail);
	for (size_t i = 0; i < s.n; i++) {
		assert(i == 0 ? !s.set[i].name[0] : set_name_ok(s.set[i].name));
		for (size_t k = 0; k < s.set[i].n_rules; k++)
			check_rule(&s.set[i].rules[k]);
	}
	if (set_parse(text, size, &one, &fail) < 0)
		check_message(&fail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = size ? (const char *)data : "";
	struct fail fail = { 0 };
	struct rule r;

	check_name(data, size);
	check_address((const uint8_t *)text, size);
	if (rule_parse(text, size, &r, &fail) < 0)
		check_message(&fail);
	else
		check_rule(&r);
	check_sets(text, size);
	return 0;
}
