/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for as rules, and rules as messages to egress. */
#include "server/sandbox/network.h"
#include "sys/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#define ALL "0.0.0.0/0"

static struct config settings(const char *internet, const char *sets, bool enabled)
{
	struct config c;

	memset(&c, 0, sizeof(c));
	(void)snprintf(c.egress_internet, sizeof(c.egress_internet), "%s", internet);
	(void)snprintf(c.egress_default, sizeof(c.egress_default), "%s", sets);
	c.egress_enabled = enabled;
	return c;
}

static int read_text(const char *text, enum network_internet internet, const struct config *c,
		     struct network *ret, struct fail *fail)
{
	json_t *o = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	int r;

	assert_true(!text || o);
	*ret = (struct network){ 0 };
	*fail = (struct fail){ 0 };
	r = network_read(o, internet, c, ret, fail);
	json_decref(o);
	return r;
}

/* Is this let out? As egress decides it. */
static bool reaches(const struct network *n, const char *name, const char *address)
{
	const struct policy p = { .rules = n->rules,
				  .n_rules = n->n_rules,
				  .base_allow = n->base_allow };
	bool by_name = false;
	struct net_address a;

	assert_int_equal(address_parse(address, strlen(address), &a), 0);
	if (name && !policy_reason_allows(policy_name(&p, name, 443, &by_name)))
		return false;
	return policy_reason_allows(policy_address(&p, &a, 443, by_name));
}

/* --- E2B's combinations ------------------------------------------------------------------------------------ */

static const struct combination {
	const char *network;
	enum network_internet internet;
	int all;    /* egress.internet = "all": 1 reaches, 0 does not, -1 is refused */
	int listed; /* "listed" */
	const char *name, *address;
} combinations[] = {
	/* nothing said */
	{ NULL, NETWORK_UNSAID, 1, 0, NULL, "8.8.8.8" },
	{ NULL, NETWORK_UNSAID, 1, 0, "example.com", "8.8.8.8" },
	{ "{}", NETWORK_INTERNET, 1, 0, NULL, "8.8.8.8" },
	{ NULL, NETWORK_NO_INTERNET, 0, 0, NULL, "8.8.8.8" },
	{ NULL, NETWORK_NO_INTERNET, 0, 0, "example.com", "8.8.8.8" },
	{ "{\"allowOut\": null, \"denyOut\": null}", NETWORK_UNSAID, 1, 0, NULL, "8.8.8.8" },
	/* an empty list is a list: it names nothing */
	{ "{\"allowOut\": []}", NETWORK_UNSAID, 1, 0, NULL, "8.8.8.8" },
	/* denials */
	{ "{\"denyOut\": [\"8.8.8.8\"]}", NETWORK_UNSAID, 0, 0, NULL, "8.8.8.8" },
	{ "{\"denyOut\": [\"8.8.8.0/24\"]}", NETWORK_UNSAID, 0, 0, "example.com", "8.8.8.8" },
	{ "{\"denyOut\": [\"8.8.8.8\"]}", NETWORK_UNSAID, 1, 0, NULL, "8.8.4.4" },
	{ "{\"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0, NULL, "8.8.8.8" },
	{ "{\"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0, NULL, "2001:4860::8888" },
	{ "{\"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0, "example.com", "8.8.8.8" },
	/* everything, but not at all ports */
	{ "{\"denyOut\": [\"" ALL ":25\"]}", NETWORK_UNSAID, 1, 0, "example.com", "8.8.8.8" },
	{ "{\"denyOut\": [\"" ALL ":25\"]}", NETWORK_UNSAID, 1, 0, NULL, "8.8.8.8" },
	{ "{\"denyOut\": [\"" ALL ":25,443\"]}", NETWORK_UNSAID, 0, 0, "example.com", "8.8.8.8" },
	{ "{\"denyOut\": [\"" ALL ":25,443\"]}", NETWORK_UNSAID, 0, 0, NULL, "8.8.8.8" },
	{ "{\"denyOut\": [\"" ALL ":*\"]}", NETWORK_UNSAID, 0, 0, NULL, "8.8.8.8" },
	{ "{\"allowOut\": [\"example.com\"], \"denyOut\": [\"" ALL ":25\"]}", NETWORK_UNSAID, -1, 1,
	  "example.com", "8.8.8.8" },
	/* what is allowed beats what is denied */
	{ "{\"allowOut\": [\"8.8.8.8\"], \"denyOut\": [\"8.8.8.0/24\"]}", NETWORK_UNSAID, 1, 1,
	  NULL, "8.8.8.8" },
	{ "{\"allowOut\": [\"8.8.8.8\"], \"denyOut\": [\"8.8.8.0/24\"]}", NETWORK_UNSAID, 0, 0,
	  NULL, "8.8.8.9" },
	{ "{\"allowOut\": [\"8.8.8.8\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 1, 1, NULL,
	  "8.8.8.8" },
	{ "{\"allowOut\": [\"8.8.8.8\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0, NULL,
	  "8.8.4.4" },
	{ "{\"allowOut\": [\"" ALL "\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 1, 1,
	  "example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"8.8.8.8\"]}", NETWORK_NO_INTERNET, 1, 1, NULL, "8.8.8.8" },
	{ "{\"allowOut\": [\"8.8.8.8\"]}", NETWORK_NO_INTERNET, 0, 0, NULL, "8.8.4.4" },
	/* names need everything else to be denied, where it is not denied anyway */
	{ "{\"allowOut\": [\"example.com\"]}", NETWORK_UNSAID, -1, 1, "example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"*.example.com\"], \"denyOut\": [\"8.8.8.8\"]}", NETWORK_UNSAID, -1, 1,
	  "www.example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"example.com\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 1, 1,
	  "example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"example.com\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0,
	  "example.org", "8.8.8.8" },
	{ "{\"allowOut\": [\"example.com\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0,
	  NULL, "8.8.8.8" },
	{ "{\"allowOut\": [\"example.com\"]}", NETWORK_NO_INTERNET, 1, 1, "example.com",
	  "8.8.8.8" },
	{ "{\"allowOut\": [\"*.example.com\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0,
	  "example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"set:packages\"]}", NETWORK_UNSAID, -1, 0, NULL, "8.8.8.8" },
	/* ports are ours */
	{ "{\"allowOut\": [\"example.com:22\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0,
	  "example.com", "8.8.8.8" },
	{ "{\"allowOut\": [\"8.8.8.8:443\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 1, 1,
	  NULL, "8.8.8.8" },
	/* no list opens what is private */
	{ "{\"allowOut\": [\"10.0.0.0/8\"], \"denyOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0,
	  NULL, "10.1.2.3" },
	{ "{\"allowOut\": [\"" ALL "\"]}", NETWORK_UNSAID, 0, 0, NULL, "169.254.169.254" },
};

static void check_combination(const struct combination *c, const struct config *config, int want)
{
	struct network n;
	struct fail fail;
	int r = read_text(c->network, c->internet, config, &n, &fail);
	int got = r < 0 ? -1 : reaches(&n, c->name, c->address);

	if (got != want)
		fail_msg("%s, internet %d, %s: %s %s: %d, not %d (%s)",
			 c->network ? c->network : "nothing", c->internet, config->egress_internet,
			 c->name ? c->name : "-", c->address, got, want, fail.msg);
	network_done(&n);
}

static void test_combinations(void **state)
{
	const struct config all = settings("all", "", true), listed = settings("listed", "", true);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(combinations); i++) {
		check_combination(&combinations[i], &all, combinations[i].all);
		check_combination(&combinations[i], &listed, combinations[i].listed);
	}
}

static void test_names_need_denial(void **state)
{
	const struct config all = settings("all", "", true);
	struct network n;
	struct fail fail;

	(void)state;
	assert_int_equal(read_text("{\"allowOut\": [\"example.com\"]}", NETWORK_UNSAID, &all, &n,
				   &fail),
			 -EINVAL);
	assert_string_equal(fail.msg,
			    "When specifying allowed domains in allow out, you must include "
			    "'ALL_TRAFFIC' in deny out to block all other traffic.");
}

/* --- malformed --------------------------------------------------------------------------------------------- */

static void test_malformed(void **state)
{
	/* the text that an error has to name */
	static const char *const bad[][2] = {
		{ "{\"allowOut\": [\"\"]}", "allowOut" },
		{ "{\"allowOut\": [\"*\"]}", "'*'" },
		{ "{\"allowOut\": [\"exa mple.com\"]}", "'exa mple.com'" },
		{ "{\"allowOut\": [\"good.com\", \"-bad-.com\"]}", "'-bad-.com'" },
		{ "{\"allowOut\": [\"example.com\\u0000.evil.com\"]}", "'example.com" },
		{ "{\"allowOut\": [\"http://example.com\"]}", "http://example.com" },
		{ "{\"allowOut\": [\"example.com:0\"]}", "example.com:0" },
		{ "{\"allowOut\": [\"example.com:70000\"]}", "example.com:70000" },
		{ "{\"allowOut\": [\"*.*.example.com\"]}", "*.*.example.com" },
		{ "{\"allowOut\": [\"a*.example.com\"]}", "a*.example.com" },
		{ "{\"allowOut\": [\"1.2.3\"]}", "1.2.3" },
		{ "{\"allowOut\": [\"1.2.3.4/33\"]}", "1.2.3.4/33" },
		{ "{\"allowOut\": [\"01.2.3.4\"]}", "01.2.3.4" },
		{ "{\"allowOut\": [\"set:\"]}", "set:" },
		{ "{\"allowOut\": [\"set:UPPER\"]}", "UPPER" },
		{ "{\"allowOut\": [\"set:a/../b\"]}", "a/../b" },
		{ "{\"allowOut\": [7]}", "allowOut" },
		{ "{\"denyOut\": [\"example.com\"]}", "denyOut: 'example.com'" },
		{ "{\"denyOut\": [\"*.example.com\"]}", "denyOut: '*.example.com'" },
		{ "{\"denyOut\": [\"set:packages\"]}", "denyOut: 'set:packages'" },
		{ "{\"denyOut\": [\"fe80::1%eth0\"]}", "denyOut: 'fe80::1%eth0'" },
		{ "{\"rules\": {\"*\": [{}]}}", "'*'" },
		{ "{\"rules\": {\"1.2.3.4\": [{}]}}", "1.2.3.4" },
		{ "{\"rules\": {\"a.com\": [{}, {}]}}", "a.com" },
		{ "{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"Host\": \"x\"}}}]}}",
		  "Host" },
		{ "{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"X Y\": \"x\"}}}]}}",
		  "X Y" },
		{ "{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"X\": \"a\\r\\nB: c\"}}}]}}",
		  "'X'" },
		{ "{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"X\": \"a\\u0000b\"}}}]}}",
		  "'X'" },
		{ "{\"rules\": {\"a.com\": [{\"tls\": false, \"transform\": {\"headers\": "
		  "{\"X\": \"${secrets.key}\"}}}]}}",
		  "TLS" },
	};
	const struct config c = settings("listed", "", true);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct network n;
		struct fail fail;
		int r = read_text(bad[i][0], NETWORK_UNSAID, &c, &n, &fail);

		if (r != -EINVAL || !strstr(fail.msg, bad[i][1]) || n.rules || n.headers)
			fail_msg("%s: %d, \"%s\"", bad[i][0], r, fail.msg);
	}
}

static void test_error_keeps_value_secret(void **state)
{
	const struct config c = settings("listed", "", true);
	struct network n;
	struct fail fail;

	(void)state;
	assert_int_equal(read_text("{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": "
				   "{\"X\": \"hunter2\\u0007\"}}}]}}",
				   NETWORK_UNSAID, &c, &n, &fail),
			 -EINVAL);
	assert_null(strstr(fail.msg, "hunter2"));
}

static json_t *many(size_t n, const char *format)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_sprintf("%s%zu", format, i));
	return list;
}

static void test_bounds(void **state)
{
	const struct config c = settings("listed", "", true);
	const struct {
		size_t n;
		const char *entry;
		int want;
	} cases[] = {
		{ POLICY_RULES_MAX, "example.com:1", 0 },
		{ POLICY_RULES_MAX + 1, "10.0.0.0/8:1", -EINVAL },
		{ POLICY_USES_MAX, "set:x", 0 },
		{ POLICY_USES_MAX + 1, "set:x", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *o = json_pack("{s:o}", "allowOut", many(cases[i].n, cases[i].entry));
		struct network n = { 0 };
		struct fail fail;

		assert_int_equal(network_read(o, NETWORK_UNSAID, &c, &n, &fail), cases[i].want);
		network_done(&n);
		json_decref(o);
	}
}

/* --- what the service gives ---------------------------------------------------------------------------------- */

static void test_default_sets(void **state)
{
	const struct config c = settings("listed", " packages  git packages ", true);
	struct network n;
	struct fail fail;

	(void)state;
	assert_int_equal(read_text(NULL, NETWORK_INTERNET, &c, &n, &fail), 0);
	assert_int_equal(n.n_uses, 2);
	assert_string_equal(n.use[0], "packages");
	assert_string_equal(n.use[1], "git");
	assert_true(n.is_default && network_allows(&n) && !n.base_allow);
	network_done(&n);
	/* As soon as there is a list, only what it names; and nothing where nothing is wanted. */
	assert_int_equal(read_text("{\"allowOut\": [\"a.com\"]}", NETWORK_UNSAID, &c, &n, &fail),
			 0);
	assert_int_equal(n.n_uses, 0);
	network_done(&n);
	assert_int_equal(read_text("{\"denyOut\": [\"1.2.3.4\"]}", NETWORK_UNSAID, &c, &n, &fail),
			 0);
	assert_false(network_allows(&n));
	network_done(&n);
	assert_int_equal(read_text(NULL, NETWORK_NO_INTERNET, &c, &n, &fail), 0);
	assert_false(network_allows(&n));
	network_done(&n);
}

static void test_switched_off(void **state)
{
	const struct config c = settings("all", "", false);
	struct network n;
	struct fail fail;

	(void)state;
	assert_int_equal(read_text(NULL, NETWORK_INTERNET, &c, &n, &fail), 0);
	assert_false(network_allows(&n));
	assert_int_equal(read_text("{\"allowOut\": [\"8.8.8.8\"], \"denyOut\": [\"" ALL "\"]}",
				   NETWORK_UNSAID, &c, &n, &fail),
			 -EOPNOTSUPP);
	assert_non_null(strstr(fail.msg, "egress.enabled"));
}

/* --- headers ------------------------------------------------------------------------------------------------- */

static const char headers_text[] =
	"{\"rules\": {"
	"\"API.Example.com\": [{\"transform\": {\"headers\": {\"Authorization\": \"Bearer ${secrets.key}\"}}}],"
	"\"*.plain.test\": [{\"tls\": false, \"transform\": {\"headers\": {\"X-Who\": \"me\"}}}],"
	"\"empty.test\": [], \"nothing.test\": [{}]}}";

static void test_headers(void **state)
{
	const struct config c = settings("listed", "", true);
	const struct network_header *api, *plain;
	struct network n;
	struct fail fail;

	(void)state;
	assert_int_equal(read_text(headers_text, NETWORK_UNSAID, &c, &n, &fail), 0);
	assert_int_equal(n.n_headers, 2);
	api = &n.headers[n.headers[0].tls ? 0 : 1];
	plain = &n.headers[n.headers[0].tls ? 1 : 0];
	assert_string_equal(api->host, "api.example.com");
	assert_true(api->tls);
	assert_string_equal(api->value, "Bearer ${secrets.key}");
	assert_string_equal(plain->host, ".plain.test");
	assert_false(plain->tls);
	/* A header opens nothing. */
	assert_false(network_allows(&n));
	assert_true(network_uses_secret(&n, "key"));
	assert_true(network_uses_secret(&n, "KEY"));
	assert_false(network_uses_secret(&n, "ke"));
	assert_false(network_uses_secret(&n, "keys"));
	network_done(&n);
}

/* --- as messages --------------------------------------------------------------------------------------------- */

static int put_in(void *arg, const char *value, char ret[static EGRESS_HEADER_VALUE_SIZE])
{
	if (strchr(value, '$') && !arg)
		return -ENOENT;
	(void)snprintf(ret, EGRESS_HEADER_VALUE_SIZE, "%s",
		       strchr(value, '$') ? (const char *)arg : value);
	return 0;
}

static size_t receive(int sock, struct egress_frame *frames, size_t max)
{
	size_t n = 0;

	while (n < max && egress_recv(sock, &frames[n], EGRESS_FROM_SERVER, NULL, NULL) > 0)
		n++;
	return n;
}

static void test_messages(void **state)
{
	static const char id[WARDEN_ID_SIZE] = "i1";
	const struct config c = settings("listed", "", true);
	const struct egress_limits limits = { .connections = 7, .lookups = 8, .bytes_up = 9 };
	struct egress_frame *f = calloc(16, sizeof(*f));
	struct network n;
	struct fail fail;
	size_t missing, got;
	int pair[2];

	(void)state;
	assert_non_null(f);
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(
		read_text(
			"{\"allowOut\": [\"set:git\", \"a.com\"], \"denyOut\": [\"1.2.3.4\"],"
			"\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"X\": \"${secrets.k}\"}}}]}}",
			NETWORK_UNSAID, &c, &n, &fail),
		0);
	assert_int_equal(network_send(pair[0], id, &n, &limits, put_in,
				      (void *)(uintptr_t) "s3cret", &missing),
			 0);
	assert_int_equal(missing, 0);
	assert_int_equal(network_send(pair[0], id, &n, &limits, put_in, NULL, &missing), 0);
	assert_int_equal(missing, 1);
	fd_close(pair[0]);
	got = receive(pair[1], f, 16);
	assert_int_equal(got, 12);
	assert_int_equal(f[0].head.type, EGRESS_POLICY);
	assert_int_equal(f[0].as_POLICY.limits.connections, 7);
	assert_int_equal(f[0].as_POLICY.base_allow, 0);
	assert_int_equal(f[1].head.type, EGRESS_USE);
	assert_string_equal(f[1].as_USE.set, "git");
	assert_int_equal(f[2].head.type, EGRESS_RULE);
	assert_int_equal(f[2].as_RULE.rule.flags, RULE_DENY);
	assert_int_equal(f[3].head.type, EGRESS_RULE);
	assert_string_equal(f[3].as_RULE.rule.name, "a.com");
	assert_int_equal(f[4].head.type, EGRESS_HEADER);
	assert_string_equal(f[4].as_HEADER.value, "s3cret");
	assert_int_equal(f[4].as_HEADER.tls, 1);
	assert_int_equal(f[5].head.type, EGRESS_COMMIT);
	/* Without its secret the header stays, empty: the host is still spoken to with TLS. */
	assert_int_equal(f[10].head.type, EGRESS_HEADER);
	assert_string_equal(f[10].as_HEADER.value, "");
	assert_int_equal(f[10].as_HEADER.tls, 1);
	fd_close(pair[1]);
	network_done(&n);
	free(f);
}

/* Each letter's own, as long as a value may be. */
static int put_in_long(void *arg, const char *value, char ret[static EGRESS_HEADER_VALUE_SIZE])
{
	(void)arg;
	memset(ret, value[0], EGRESS_HEADER_VALUE_SIZE - 1);
	ret[EGRESS_HEADER_VALUE_SIZE - 1] = '\0';
	return 0;
}

/* Secrets that were changed to longer ones than egress has room for: what is too much is empty, and nothing else. */
static void test_too_long_together(void **state)
{
	static const char id[WARDEN_ID_SIZE] = "i1";
	const struct config c = settings("listed", "", true);
	const struct egress_limits limits = { .connections = 7 };
	const int room = 200000;
	struct egress_frame *f = calloc(16, sizeof(*f));
	struct network n;
	struct fail fail;
	size_t missing, first = 0, got;
	int pair[2];

	(void)state;
	assert_non_null(f);
	assert_int_equal(sock_pair(pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	assert_int_equal(
		read_text(
			"{\"rules\": {\"a.com\": [{\"transform\": {\"headers\": {\"A\": \"a${secrets.k}\","
			"\"B\": \"b${secrets.k}\", \"C\": \"c${secrets.k}\", \"D\": \"d${secrets.k}\","
			"\"E\": \"e${secrets.k}\", \"F\": \"f${secrets.k}\", \"G\": \"g${secrets.k}\","
			"\"H\": \"h${secrets.k}\", \"A2\": \"a${secrets.k}\", \"H2\": \"h${secrets.k}\"}}}]}}",
			NETWORK_UNSAID, &c, &n, &fail),
		0);
	assert_int_equal(n.n_headers, 10);
	assert_int_equal(network_send(pair[0], id, &n, &limits, put_in_long, NULL, &missing), 0);
	assert_int_equal(missing, 2);
	fd_close(pair[0]);
	got = receive(pair[1], f, 16);
	while (first < got && f[first].head.type != EGRESS_HEADER)
		first++;
	assert_int_equal(got - first, 11);
	/* Seven and the empty one: eight would be all that there is. */
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(f[first + i].as_HEADER.value[0], "abcdefg\0a\0"[i]);
	assert_int_equal(f[first + 10].head.type, EGRESS_COMMIT);
	fd_close(pair[1]);
	network_done(&n);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_names_need_denial),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_error_keeps_value_secret),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_default_sets),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_too_long_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
