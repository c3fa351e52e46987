/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/network.h"

#include <assert.h>
#include <strings.h>

#define SET_PREFIX "set:"
#define SHOWN_MAX 80 /* bytes of an entry that an error quotes */

/* Clients of E2B have seen this sentence before. */
#define NAMES_NEED_DENIAL                                                                          \
	"When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny "    \
	"out to block all other traffic."

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

static int network_add_rule(struct network *n, const char *list, const char *entry, size_t len,
			    unsigned flags, struct fail *fail)
{
	struct fail why = { 0 };
	struct rule r;

	if (rule_parse(entry, len, &r, &why) < 0)
		return bad_entry(fail, list, entry, why.msg);
	if ((flags & RULE_DENY) && r.kind != RULE_RANGE)
		return bad_entry(fail, list, entry, "only addresses and networks can be denied");
	/* Everything denied is nothing allowed where no rule says so: names are then not even
	 * looked up. */
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
static int network_add_entry(struct network *n, const char *list, const json_t *entry,
			     unsigned flags, struct fail *fail)
{
	const char *text = json_string_value(entry);
	size_t len = json_string_length(entry), prefix = strlen(SET_PREFIX);

	if (!text)
		return fail_set(fail, EINVAL, "network", "network.%s: an entry is not text", list);
	if (!(flags & RULE_DENY) && len > prefix && strncmp(text, SET_PREFIX, prefix) == 0)
		return add_use(n, list, text + prefix, len - prefix, fail);
	return network_add_rule(n, list, text, len, flags, fail);
}

static int add_list(struct network *n, const char *list, const json_t *entries, unsigned flags,
		    struct fail *fail)
{
	size_t i;
	json_t *entry;
	int r = 0;

	json_array_foreach(entries, i, entry) {
		r = network_add_entry(n, list, entry, flags, fail);
		if (r < 0)
			return r;
	}
	return r;
}

/* --- headers ---------------------------------------------------------------------------------- */

/*
 * Headers that egress puts into requests to a host. A value may stand for a secret; that is put in
 * when egress is told, and never kept. Where nothing else is said the host is then spoken to with
 * TLS: E2B adds headers to HTTPS only, so a value that came from one of its clients may be secret
 * without looking so.
 */

bool network_has_placeholder(const char *text)
{
	return strstr(text, "${") != NULL;
}

static bool has_secret(const char *value, const char *name)
{
	static const char *const prefixes[] = { "${secrets.", "${e2b.secrets." };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		const char *at = value;

		while ((at = strstr(at, prefixes[i]))) {
			at += strlen(prefixes[i]);
			if (strncasecmp(at, name, len) == 0 && at[len] == '}')
				return true;
		}
	}
	return false;
}

bool network_uses_secret(const struct network *n, const char *name)
{
	for (size_t i = 0; i < n->n_headers; i++)
		if (has_secret(n->headers[i].value, name))
			return true;
	return false;
}

static int bad_host(struct fail *fail, const char *host, const char *why)
{
	return fail_set(fail, EINVAL, "network", "network.rules: '%.*s': %s", SHOWN_MAX, host, why);
}

/* A name, or "*.name" as ".name". */
static int parse_host(const char *text, char ret[static POLICY_NAME_SIZE])
{
	bool below = strncmp(text, "*.", 2) == 0;
	char name[POLICY_NAME_SIZE];
	int r = name_parse(text + (below ? 2 : 0), strlen(text) - (below ? 2 : 0), name);

	if (r < 0)
		return r;
	if (below && strlen(name) + 2 > POLICY_NAME_SIZE)
		return -EINVAL;
	memset(ret, 0, POLICY_NAME_SIZE);
	(void)snprintf(ret, POLICY_NAME_SIZE, "%s%s", below ? "." : "", name);
	return 0;
}

static bool header_name_ok(const char *name)
{
	char fixed[EGRESS_HEADER_NAME_SIZE] = { 0 };

	if (strlen(name) >= sizeof(fixed))
		return false;
	(void)snprintf(fixed, sizeof(fixed), "%s", name);
	return egress_header_name_ok(fixed);
}

static bool header_value_ok(const json_t *value)
{
	char fixed[EGRESS_HEADER_VALUE_SIZE] = { 0 };
	size_t len = json_string_length(value);

	if (!json_is_string(value) || len > NETWORK_VALUE_MAX)
		return false;
	memcpy(fixed, json_string_value(value), len);
	return strlen(fixed) == len && egress_header_value_ok(fixed);
}

static int network_add_header(struct network *n, const struct network_header *of, const char *name,
			      const json_t *value, struct fail *fail)
{
	struct network_header *h = &n->headers[n->n_headers];

	*h = *of;
	h->name = strdup(name);
	h->value = strdup(json_string_value(value));
	n->n_headers++;
	return h->name && h->value ? 0 : fail_set(fail, ENOMEM, "network", "out of memory");
}

static int read_header(struct network *n, const char *host, const struct network_header *of,
		       bool is_plain, const char *name, const json_t *value, struct fail *fail)
{
	if (!header_name_ok(name))
		return fail_set(fail, EINVAL, "network",
				"network.rules: '%.*s': '%.*s' is no header that can be set",
				SHOWN_MAX, host, SHOWN_MAX, name);
	/* The value itself is not told: it may be secret. */
	if (!header_value_ok(value))
		return fail_set(
			fail, EINVAL, "network",
			"network.rules: '%.*s': the value of '%.*s' must be text of at most %d "
			"bytes without control characters",
			SHOWN_MAX, host, SHOWN_MAX, name, NETWORK_VALUE_MAX);
	if (is_plain && network_has_placeholder(json_string_value(value)))
		return bad_host(fail, host, "a secret is not sent without TLS (tls: false)");
	return network_add_header(n, of, name, value, fail);
}

static int read_transform(struct network *n, const char *host, const json_t *rule,
			  struct fail *fail)
{
	struct network_header of = { .tls = !json_is_false(json_object_get(rule, "tls")) };
	json_t *headers = json_object_get(json_object_get(rule, "transform"), "headers"), *value;
	const char *name;
	int r = 0;

	if (parse_host(host, of.host) < 0)
		return bad_host(fail, host, "this is not a host name");
	if (json_object_size(headers) > NETWORK_HEADERS_MAX)
		return bad_host(fail, host, "a host has at most 20 headers");
	json_object_foreach(headers, name, value) {
		r = read_header(n, host, &of, !of.tls, name, value, fail);
		if (r < 0)
			return r;
	}
	return r;
}

/* {host: [{transform: {headers: {name: value}}, tls: bool}]} */
static int network_read_headers(const json_t *rules, struct network *ret, struct fail *fail)
{
	size_t n_hosts = json_object_size(rules);
	const char *host;
	json_t *list;
	int r = 0;

	if (n_hosts == 0)
		return 0;
	if (n_hosts > NETWORK_HEADER_HOSTS_MAX)
		return fail_set(fail, EINVAL, "network", "network.rules: at most %d hosts",
				NETWORK_HEADER_HOSTS_MAX);
	ret->headers = calloc(n_hosts * NETWORK_HEADERS_MAX, sizeof(*ret->headers));
	if (!ret->headers)
		return fail_set(fail, ENOMEM, "network", "out of memory");
	json_object_foreach((json_t *)(uintptr_t)rules, host, list) {
		if (json_array_size(list) > 1)
			return bad_host(fail, host, "a host has at most one transform");
		r = read_transform(ret, host, json_array_get(list, 0), fail);
		if (r < 0)
			return r;
	}
	return r;
}

/* --- settings --------------------------------------------------------------------------------- */

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

static int network_read_settings(const json_t *settings, enum network_internet internet,
				 const struct config *c, struct network *n, struct fail *fail)
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
	int r = network_read_settings(settings, internet, c, &n, fail);

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

/* --- as messages ------------------------------------------------------------------------------ */

static int send_uses(int sock, const char *id, const struct network *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->n_uses; i++) {
		struct egress_frame f = { 0 };

		memcpy(f.as_USE.id, id, WARDEN_ID_SIZE);
		memcpy(f.as_USE.set, n->use[i], sizeof(f.as_USE.set));
		r = egress_send(sock, EGRESS_USE, &f, NULL, 0);
	}
	return r;
}

static int network_send_rules(int sock, const char *id, const struct network *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n->n_rules; i++) {
		struct egress_frame f = { 0 };

		memcpy(f.as_RULE.id, id, WARDEN_ID_SIZE);
		f.as_RULE.rule = n->rules[i];
		r = egress_send(sock, EGRESS_RULE, &f, NULL, 0);
	}
	return r;
}

static_assert(NETWORK_HEADER_HOSTS_MAX * NETWORK_HEADERS_MAX <= EGRESS_HEADERS_MAX, "one each");

struct values {
	size_t left;                   /* bytes that egress has space for */
	bool fits[EGRESS_HEADERS_MAX]; /* those that were given some */
	size_t missing;
};

size_t network_first_equal(const struct network *n, size_t i)
{
	size_t k = 0;

	while (strcmp(n->headers[k].value, n->headers[i].value) != 0)
		k++;
	return k;
}

/* A secret can grow after it was looked at. Egress would refuse all of it, and go on with the old
 * value. */
static bool find_space(struct values *v, const struct network *n, size_t i, const char *value)
{
	size_t first = network_first_equal(n, i), size = strlen(value) + 1;

	if (first < i)
		return v->fits[first];
	v->fits[i] = size <= v->left;
	if (v->fits[i])
		v->left -= size;
	return v->fits[i];
}

static int send_header(int sock, const char *id, const struct network *n, size_t i,
		       network_expand *expand, void *arg, struct values *v)
{
	const struct network_header *h = &n->headers[i];
	struct egress_frame f = { 0 };
	struct egress_header *to = &f.as_HEADER;
	int r;

	memcpy(to->id, id, WARDEN_ID_SIZE);
	memcpy(to->host, h->host, sizeof(to->host));
	(void)snprintf(to->name, sizeof(to->name), "%s", h->name);
	to->tls = h->tls;
	/* A secret that came with control characters is as good as none. */
	if (expand(arg, h->value, to->value) < 0 || !egress_header_value_ok(to->value) ||
	    !find_space(v, n, i, to->value)) {
		explicit_bzero(to->value, sizeof(to->value));
		v->missing++;
	}
	r = egress_send(sock, EGRESS_HEADER, &f, NULL, 0);
	explicit_bzero(&f, sizeof(f));
	return r;
}

int network_send(int sock, const char id[static WARDEN_ID_SIZE], const struct network *n,
		 const struct egress_limits *limits, network_expand *expand, void *arg,
		 size_t *ret_missing)
{
	struct egress_frame f = { .as_POLICY = { .base_allow = n->base_allow, .limits = *limits } };
	struct values values = { .left = EGRESS_HEADER_VALUES_MAX - 1 }; /* without the empty one */
	int r;

	memcpy(f.as_POLICY.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_POLICY, &f, NULL, 0);
	if (r == 0)
		r = send_uses(sock, id, n);
	if (r == 0)
		r = network_send_rules(sock, id, n);
	for (size_t i = 0; r == 0 && i < n->n_headers; i++)
		r = send_header(sock, id, n, i, expand, arg, &values);
	if (r < 0)
		return r;
	memset(&f, 0, sizeof(f));
	memcpy(f.as_COMMIT.id, id, WARDEN_ID_SIZE);
	r = egress_send(sock, EGRESS_COMMIT, &f, NULL, 0);
	if (r == 0)
		*ret_missing = values.missing;
	return r;
}
