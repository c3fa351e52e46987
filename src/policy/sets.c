/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_priv.h"

struct line {
	const char *at;
	size_t len;
};

static bool set_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct line trim(struct line l)
{
	const char *comment = memchr(l.at, '#', l.len);

	if (comment)
		l.len = (size_t)(comment - l.at);
	for (; l.len > 0 && set_is_blank(l.at[0]); l.at++)
		l.len--;
	for (; l.len > 0 && set_is_blank(l.at[l.len - 1]);)
		l.len--;
	return l;
}

/* Takes the word and the blanks behind it off the line, if it begins with it. */
static bool take_word(struct line *l, const char *word)
{
	size_t len = strlen(word);

	if (l->len <= len || memcmp(l->at, word, len) != 0 || !set_is_blank(l->at[len]))
		return false;
	*l = trim((struct line){ l->at + len, l->len - len });
	return true;
}

bool set_name_ok(const char name[static POLICY_SET_NAME_SIZE])
{
	size_t len = strnlen(name, POLICY_SET_NAME_SIZE);

	if (len == 0 || len == POLICY_SET_NAME_SIZE || name[0] == '-')
		return false;
	for (size_t i = 0; i < POLICY_SET_NAME_SIZE; i++) {
		char c = name[i];

		if (i < len ? !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-') : c)
			return false;
	}
	return true;
}

void set_done(struct policy_set *s)
{
	free(s->rules);
	*s = (struct policy_set){ 0 };
}

void sets_done(struct policy_sets *s)
{
	for (size_t i = 0; i < s->n; i++)
		set_done(&s->set[i]);
	*s = (struct policy_sets){ 0 };
}

const struct policy_set *sets_find(const struct policy_sets *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->set[i].name, name) == 0)
			return &s->set[i];
	return NULL;
}

/* "[name]" */
static int begin_set(struct policy_sets *s, struct line l, struct fail *fail)
{
	char name[POLICY_SET_NAME_SIZE] = "";

	if (l.at[l.len - 1] != ']' || l.len - 2 >= sizeof(name))
		return fail_set(fail, EINVAL, "sets", "a set begins with [NAME]");
	memcpy(name, l.at + 1, l.len - 2);
	if (!set_name_ok(name))
		return fail_set(fail, EINVAL, "sets",
				"a set's name has small letters, digits and '-' (1 to %d)",
				POLICY_SET_NAME_SIZE - 1);
	if (sets_find(s, name))
		return fail_set(fail, EEXIST, "sets", "there are two sets %s", name);
	if (s->n == ARRAY_SIZE(s->set))
		return fail_set(fail, E2BIG, "sets", "there are more than %d sets",
				POLICY_SETS_MAX);
	memcpy(s->set[s->n++].name, name, sizeof(name));
	return 0;
}

/* What an operator denies is denied whatever else allows it, also in a set: a set that denied
 * nothing certain would be no help. */
static int parse_rule(struct line l, bool in_set, struct rule *ret, struct fail *fail)
{
	int r;

	if (take_word(&l, "deny")) {
		r = rule_parse_denial(l.at, l.len, ret, fail);
		ret->flags = RULE_DENY | RULE_OPERATOR;
		return r;
	}
	if (take_word(&l, "private")) {
		r = rule_parse(l.at, l.len, ret, fail);
		ret->flags = RULE_PRIVATE;
		if (r == 0 && (ret->kind != RULE_RANGE || rule_is_everything(ret)))
			return fail_set(fail, EINVAL, "sets",
					"\"private\" needs an address or a range of addresses");
		return r;
	}
	if (!in_set)
		return fail_set(fail, EINVAL, "sets",
				"before the first [NAME] there can be only \"deny RULE\" and "
				"\"private RANGE\"");
	return rule_parse(l.at, l.len, ret, fail);
}

static int set_add_rule(struct policy_set *set, const struct rule *rule, struct fail *fail)
{
	struct rule *more;

	if (set->n_rules == POLICY_SET_RULES_MAX)
		return fail_set(fail, E2BIG, "sets", "there are more than %d rules in one set",
				POLICY_SET_RULES_MAX);
	if ((set->n_rules & (set->n_rules - 1)) == 0) { /* full: room for twice as many */
		more = reallocarray(set->rules, set->n_rules ? 2 * set->n_rules : 1, sizeof(*more));
		if (!more)
			return fail_set(fail, ENOMEM, "sets", "there is not enough memory");
		set->rules = more;
	}
	set->rules[set->n_rules++] = *rule;
	return 0;
}

/* A line with one rule, or none. */
static int read_rule(struct policy_set *set, struct line l, bool in_set, struct fail *fail)
{
	struct rule rule = { 0 };
	int r;

	if (l.len == 0)
		return 0;
	r = parse_rule(l, in_set, &rule, fail);
	return r < 0 ? r : set_add_rule(set, &rule, fail);
}

static int set_read_line(struct policy_sets *s, struct line l, struct fail *fail)
{
	/* An IPv6 address in brackets has a colon; a set's name has none. */
	if (l.len > 0 && l.at[0] == '[' && !memchr(l.at, ':', l.len))
		return begin_set(s, l, fail);
	return read_rule(&s->set[s->n - 1], l, s->n > 1, fail);
}

/* The next line of a text, trimmed; *at is then behind it. */
static struct line next_line(const char *text, size_t len, size_t *at)
{
	const char *end = memchr(text + *at, '\n', len - *at);
	struct line l = { text + *at, end ? (size_t)(end - text) - *at : len - *at };

	*at += l.len + 1;
	return trim(l);
}

static int refuse_line(struct fail *fail, int r, size_t number, const struct fail *why)
{
	return fail_set(fail, -r, "sets", "line %zu: %.200s", number, why->msg);
}

int set_parse(const char *text, size_t len, struct policy_set *ret, struct fail *fail)
{
	_cleanup_(set_done) struct policy_set set = { 0 };
	size_t number = 1;

	for (size_t at = 0; at < len; number++) {
		struct fail why;
		int r = read_rule(&set, next_line(text, len, &at), true, &why);

		if (r < 0)
			return refuse_line(fail, r, number, &why);
	}
	*ret = set;
	set = (struct policy_set){ 0 };
	return 0;
}

int sets_parse(const char *text, size_t len, struct policy_sets *ret, struct fail *fail)
{
	_cleanup_(sets_done) struct policy_sets s = { .n = 1 };
	size_t number = 1;

	for (size_t at = 0; at < len; number++) {
		struct fail why;
		int r = set_read_line(&s, next_line(text, len, &at), &why);

		if (r < 0)
			return refuse_line(fail, r, number, &why);
	}
	*ret = s;
	s = (struct policy_sets){ 0 };
	return 0;
}
