/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that egress puts into requests to a host. A value may stand for a secret; that is put in when egress is told,
 * and never kept. Where nothing else is said the host is then spoken to with TLS: E2B adds headers to HTTPS only, so
 * a value that came from one of its clients may be secret without looking so.
 */
#include "server/sandbox/network.h"

#include <strings.h>

#define SHOWN_MAX 80

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

static int add_header(struct network *n, const struct network_header *of, const char *name,
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
	return add_header(n, of, name, value, fail);
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

int network_read_headers(const json_t *rules, struct network *ret, struct fail *fail)
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
