/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/network.h"

#define SET_PREFIX "set:"
#define SHOWN_MAX 80 /* bytes of an entry that an error quotes */

/* Clients of E2B have seen this sentence before. */
#define NAMES_NEED_DENIAL                                                                           \
	"When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out " \
	"to block all other traffic."

void network_done(struct network *n)
{
	for (size_t i = 0; i < n->n_headers; i++) {
		free(n->headers[i].name);
		free(n->headers[i].value);
	}
	free(n->headers);
	free(n->rules);
	*n = (struct network){ 0 };
}

bool network_allows(const struct network *n)
{
	if (n->base_allow || n->n_uses > 0)
		return true;
	for (size_t i = 0; i < n->n_rules; i++)
		if (!(n->rules[i].flags & RULE_DENY))
			return true;
	return false;
}

/* --- one entry --------------------------------------------------------------------------------------------- */

static int bad_entry(struct fail *fail, const char *list, const char *entry, const char *why)
{
	return fail_set(fail, EINVAL, "network", "network.%s: '%.*s': %s", list, SHOWN_MAX, entry,
			why);
}

static int add_use(struct network *n, const char *list, const char *name, size_t len,
		   struct fail *fail)
{
	char set[POLICY_SET_NAME_SIZE] = { 0 };

	if (len >= sizeof(set))
		return bad_entry(fail, list, name, "this is not the name of a rule set");
	memcpy(set, name, len);
	if (!set_name_ok(set))
		return bad_entry(fail, list, name, "this is not the name of a rule set");
	for (size_t i = 0; i < n->n_uses; i++)
		if (memcmp(n->use[i], set, sizeof(set)) == 0)
			return 0;
	if (n->n_uses == POLICY_USES_MAX)
		return fail_set(fail, EINVAL, "network", "network.%s: at most %d rule sets", list,
				POLICY_USES_MAX);
	memcpy(n->use[n->n_uses++], set, sizeof(set));
	return 0;
}

static int add_rule(struct network *n, const char *list, const char *entry, size_t len,
		    unsigned flags, struct fail *fail)
{
	struct fail why = { 0 };
	struct rule r;

	if (rule_parse(entry, len, &r, &why) < 0)
		return bad_entry(fail, list, entry, why.msg);
	if ((flags & RULE_DENY) && r.kind != RULE_RANGE)
		return bad_entry(fail, list, entry, "only addresses and networks can be denied");
	/* Everything denied is nothing allowed where no rule says so: names are then not even looked up. */
	if ((flags & RULE_DENY) && rule_is_everything(&r) && rule_has_all_ports(&r)) {
		n->base_allow = false;
		return 0;
	}
	if (n->n_rules == POLICY_RULES_MAX)
		return fail_set(fail, EINVAL, "network", "network: at most %d rules in all",
				POLICY_RULES_MAX);
	r.flags |= (uint8_t)flags;
	n->rules[n->n_rules++] = r;
	return 0;
}

/* NW-09: a NUL in an entry is part of it, and what the parser gets to see. */
static int add_entry(struct network *n, const char *list, const json_t *entry, unsigned flags,
		     struct fail *fail)
{
	const char *text = json_string_value(entry);
	size_t len = json_string_length(entry), prefix = strlen(SET_PREFIX);

	if (!text)
		return fail_set(fail, EINVAL, "network", "network.%s: an entry is not text", list);
	if (!(flags & RULE_DENY) && len > prefix && strncmp(text, SET_PREFIX, prefix) == 0)
		return add_use(n, list, text + prefix, len - prefix, fail);
	return add_rule(n, list, text, len, flags, fail);
}

static int add_list(struct network *n, const char *list, const json_t *entries, unsigned flags,
		    struct fail *fail)
{
	size_t i;
	json_t *entry;
	int r = 0;

	json_array_foreach(entries, i, entry) {
		r = add_entry(n, list, entry, flags, fail);
		if (r < 0)
			return r;
	}
	return r;
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

static int add_default_sets(struct network *n, const char *names, struct fail *fail)
{
	n->is_default = true;
	for (;;) {
		size_t len;
		int r;

		names += strspn(names, " \t");
		len = strcspn(names, " \t");
		if (len == 0)
			return 0;
		r = add_use(n, "default", names, len, fail);
		if (r < 0)
			return r;
		names += len;
	}
}

static bool names_something(const struct network *n)
{
	for (size_t i = 0; i < n->n_rules; i++)
		if (!(n->rules[i].flags & RULE_DENY) && n->rules[i].kind != RULE_RANGE)
			return true;
	return n->n_uses > 0;
}

static int read_lists(const json_t *allow, const json_t *deny, struct network *n, struct fail *fail)
{
	size_t max = MIN(json_array_size(allow) + json_array_size(deny), (size_t)POLICY_RULES_MAX);
	int r;

	n->rules = calloc(max + 1, sizeof(*n->rules));
	if (!n->rules)
		return fail_set(fail, ENOMEM, "network", "out of memory");
	r = add_list(n, "denyOut", deny, RULE_DENY, fail);
	if (r == 0)
		r = add_list(n, "allowOut", allow, 0, fail);
	if (r == 0 && n->base_allow && names_something(n))
		r = fail_set(fail, EINVAL, "network", NAMES_NEED_DENIAL);
	return r;
}

static int read_all(const json_t *settings, enum network_internet internet, const struct config *c,
		    struct network *n, struct fail *fail)
{
	const json_t *allow = json_object_get(settings, "allowOut"),
		     *deny = json_object_get(settings, "denyOut");
	bool has_lists = json_is_array(allow) || json_is_array(deny);
	bool all = strcmp(c->egress_internet, "all") == 0;
	int r;

	n->base_allow = all && internet != NETWORK_NO_INTERNET;
	r = read_lists(allow, deny, n, fail);
	if (r == 0)
		r = network_read_headers(json_object_get(settings, "rules"), n, fail);
	if (r == 0 && !all && !has_lists && internet != NETWORK_NO_INTERNET)
		r = add_default_sets(n, c->egress_default, fail);
	return r;
}

int network_read(const json_t *settings, enum network_internet internet, const struct config *c,
		 struct network *ret, struct fail *fail)
{
	struct network n = { 0 };
	int r = read_all(settings, internet, c, &n, fail);

	if (r == 0 && !c->egress_enabled) {
		if (!n.is_default && !n.base_allow && network_allows(&n))
			r = fail_set(fail, EOPNOTSUPP, "network",
				     "network.allowOut: this service gives sandboxes no network "
				     "(its setting egress.enabled is false)");
		else
			network_done(&n);
	}
	if (r < 0) {
		network_done(&n);
		return r;
	}
	*ret = n;
	return 0;
}
