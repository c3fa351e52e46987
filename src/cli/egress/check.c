/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox egress check: the decision for one destination, without a lookup. */
#include "cli/cli.h"
#include "cli/egress/egress.h"

#include "base/parse.h"

#include <jansson.h>

#define RULES_MAX (POLICY_RULES_MAX + (size_t)(POLICY_USES_MAX + 1) * POLICY_SET_RULES_MAX)

struct check_target {
	char name[POLICY_NAME_SIZE]; /* "": an address */
	struct net_address address;
	uint16_t port;
};

struct rules {
	struct rule *list;
	size_t n;
};

/* "HOST:PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT". */
static int read_target(const char *text, struct check_target *ret)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	uint64_t port;

	*ret = (struct check_target){ 0 };
	if (!colon || parse_u64(colon + 1, &port) < 0 || port < 1 || port > UINT16_MAX)
		return -EINVAL;
	ret->port = (uint16_t)port;
	if (brackets)
		return memchr(text, ':', len) ? address_parse(text + 1, len - 2, &ret->address) :
						-EINVAL;
	if (memchr(text, ':', len))
		return -EINVAL;
	if (address_parse(text, len, &ret->address) == 0)
		return 0;
	return name_parse(text, len, ret->name);
}

static int add_set(struct rules *rules, const struct policy_sets *sets, const char *name,
		   size_t len)
{
	char whole[POLICY_SET_NAME_SIZE] = "";
	const struct policy_set *set;

	memcpy(whole, name, MIN(len, sizeof(whole) - 1));
	set = len < sizeof(whole) ? sets_find(sets, whole) : NULL;
	if (!set)
		return -ENOENT;
	if (set->n_rules > RULES_MAX - rules->n)
		return -E2BIG;
	if (set->n_rules)
		memcpy(rules->list + rules->n, set->rules, set->n_rules * sizeof(struct rule));
	rules->n += set->n_rules;
	return 0;
}

struct adding {
	struct rules *rules;
	const struct policy_sets *sets;
};

static int add_default(const char *word, size_t len, void *arg)
{
	const struct adding *a = arg;

	return add_set(a->rules, a->sets, word, len);
}

/* What a box gets that names nothing, or what it names. */
static int add_sets(const struct egress_request *q, const struct policy_sets *sets,
		    struct rules *rules)
{
	struct adding a = { rules, sets };

	if (add_set(rules, sets, "", 0) < 0)
		return cli_error(CLI_FAILURE, "there are too many rules");
	for (size_t i = 0; i < q->n_allow_set; i++)
		if (!*q->allow_set[i] ||
		    add_set(rules, sets, q->allow_set[i], strlen(q->allow_set[i])) < 0)
			return cli_error(CLI_USAGE,
					 "there is no rule set %.40s; see 'glovebox egress set ls'",
					 q->allow_set[i]);
	if (q->n_allow_set == 0 && q->n_allow == 0 &&
	    sets_each_word(q->config.egress_default, add_default, &a) < 0)
		return cli_error(CLI_FAILURE, "the sets of egress.default have too many rules");
	return CLI_OK;
}

static int add_rules(const struct egress_request *q, struct rules *rules)
{
	for (size_t i = 0; i < q->n_allow; i++) {
		struct fail fail = { 0 };

		if (rules->n == RULES_MAX ||
		    rule_parse(q->allow[i], strlen(q->allow[i]), &rules->list[rules->n], &fail) < 0)
			return cli_error(CLI_USAGE, "--allow: %s", fail.msg);
		rules->n++;
	}
	return CLI_OK;
}

static bool is_all(const struct egress_request *q)
{
	return q->n_allow == 0 && q->n_allow_set == 0 &&
	       strcmp(q->config.egress_internet, "all") == 0;
}

static enum policy_reason decide(const struct egress_request *q, const struct rules *rules,
				 const struct check_target *t)
{
	const struct policy p = {
		.rules = rules->list,
		.n_rules = rules->n,
		.base_allow = is_all(q),
	};
	bool by_name;

	if (t->name[0])
		return policy_name(&p, t->name, t->port, &by_name);
	return policy_address(&p, &t->address, t->port, false);
}

static int print_decision(const struct egress_request *q, const struct check_target *t,
			  enum policy_reason reason)
{
	bool allowed = policy_reason_allows(reason);
	json_t *json;
	int r;

	if (!q->json) {
		(void)printf("%s: %s%s\n", allowed ? "allowed" : "refused",
			     policy_reason_text(reason),
			     allowed && t->name[0] ?
				     "; each address it leads to is checked as well" :
				     "");
		return fflush(stdout) == EOF ? -EIO : 0;
	}
	json = json_pack("{ss sb ss ss}", "target", q->words[1], "allowed", allowed, "reason",
			 policy_reason_word(reason), "message", policy_reason_text(reason));
	r = json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;
	json_decref(json);
	return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF ? -EIO : 0;
}

int egress_check_target(struct egress_request *q)
{
	_cleanup_(sets_done) struct policy_sets sets = { 0 };
	_cleanup_(freep) struct rule *list = calloc(RULES_MAX, sizeof(*list));
	struct rules rules = { list, 0 };
	enum policy_reason reason;
	struct fail fail = { 0 };
	struct check_target t;
	int r;

	if (!list)
		return cli_error(CLI_FAILURE, "out of memory");
	if (read_target(q->words[1], &t) < 0)
		return cli_error(CLI_USAGE,
				 "what is '%.60s'? Say NAME:PORT, ADDRESS:PORT or [ADDRESS]:PORT",
				 q->words[1]);
	if (sets_load(&q->config, NULL, &sets, &fail) < 0)
		return cli_error(CLI_FAILURE, "%s", fail.msg);
	r = add_sets(q, &sets, &rules);
	if (r == CLI_OK)
		r = add_rules(q, &rules);
	if (r != CLI_OK)
		return r;
	reason = decide(q, &rules, &t);
	if (print_decision(q, &t, reason) < 0)
		return cli_error(CLI_FAILURE, "cannot write the result");
	return policy_reason_allows(reason) ? CLI_OK : 1;
}
