/* SPDX-License-Identifier: Apache-2.0 */
/* What is learned from a run's connections, and the variables that programs with network get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/run/learn.h"
#include "run/result.h"

/* --- learning ------------------------------------------------------------------------------------------------- */

static void see(struct learned *l, const char *name, const char *address, uint16_t port,
		enum egress_how how, enum policy_reason reason)
{
	char copy[POLICY_NAME_SIZE] = "";
	struct net_connection c = { .how = how, .reason = reason, .port = port };

	(void)snprintf(copy, sizeof(copy), "%s", name);
	c.name = *name ? copy : NULL;
	c.verdict = (uint8_t)net_verdict(reason);
	if (*address)
		assert_int_equal(address_parse(address, strlen(address), &c.address), 0);
	learn(l, &c);
}

static void assert_learned(struct learned *l, const char *want)
{
	json_t *got = learned_json(l);
	char *text = json_dumps(got, JSON_COMPACT);

	assert_non_null(text);
	assert_string_equal(text, want);
	free(text);
	json_decref(got);
	learned_done(l);
}

static void test_nothing(void **state)
{
	struct learned l = { 0 };

	(void)state;
	assert_learned(&l, "{\"rules\":[],\"private\":[],\"complete\":true}");
}

static void test_merged_and_sorted(void **state)
{
	struct learned l = { 0 };

	(void)state;
	see(&l, "b.example", "45.67.89.1", 443, EGRESS_HOW_CONNECT, POLICY_LEARNING);
	see(&l, "a.example", "45.67.89.2", 8443, EGRESS_HOW_CATCH, POLICY_LEARNING);
	see(&l, "a.example", "", 22, EGRESS_HOW_SOCKS, POLICY_LEARNING);
	see(&l, "b.example", "45.67.89.1", 80, EGRESS_HOW_HTTP, POLICY_LEARNING);
	see(&l, "b.example", "45.67.89.1", 443, EGRESS_HOW_CONNECT, POLICY_LEARNING);
	see(&l, "", "45.67.89.9", 5432, EGRESS_HOW_CATCH, POLICY_LEARNING);
	/* 80 and 443 are what a name has anyway. */
	assert_learned(&l, "{\"rules\":[\"a.example:22,8443\",\"b.example\",\"45.67.89.9:5432\"],"
			   "\"private\":[],\"complete\":true}");
}

static void test_more_ports_than_a_rule_has(void **state)
{
	struct learned l = { 0 };

	(void)state;
	for (uint16_t port = 7000; port < 7010; port += 2)
		see(&l, "a.example", "", port, EGRESS_HOW_CATCH, POLICY_LEARNING);
	assert_learned(&l, "{\"rules\":[\"a.example:7000,7002,7004,7006\",\"a.example:7008\"],"
			   "\"private\":[],\"complete\":true}");
}

static void test_special_addresses(void **state)
{
	struct learned l = { 0 };

	(void)state;
	see(&l, "mirror.example", "", 443, EGRESS_HOW_CONNECT, POLICY_LEARNING);
	see(&l, "mirror.example", "203.0.113.80", 443, EGRESS_HOW_CONNECT, POLICY_LEARNING);
	see(&l, "", "10.0.0.5", 22, EGRESS_HOW_CATCH, POLICY_LEARNING);
	see(&l, "", "fd00::5", 22, EGRESS_HOW_CATCH, POLICY_LEARNING);
	assert_learned(&l, "{\"rules\":[\"mirror.example:443\",\"10.0.0.5:22\",\"[fd00::5]:22\"],"
			   "\"private\":[\"10.0.0.5/32\",\"203.0.113.80/32\",\"fd00::5/128\"],"
			   "\"complete\":true}");
}

/* What was refused, only looked up or never named is nothing to allow. */
static void test_not_learned(void **state)
{
	struct learned l = { 0 };

	(void)state;
	see(&l, "a.example", "127.0.0.1", 443, EGRESS_HOW_CONNECT, POLICY_PRIVATE);
	see(&l, "a.example", "45.67.89.1", 0, EGRESS_HOW_DNS, POLICY_LEARNING);
	see(&l, "", "", 443, EGRESS_HOW_CATCH, POLICY_LEARNING);
	see(&l, "a.example", "", 443, EGRESS_HOW_CONNECT, POLICY_RESOLVE);
	assert_learned(&l, "{\"rules\":[],\"private\":[],\"complete\":true}");
}

static void test_bounded(void **state)
{
	struct learned l = { 0 };

	(void)state;
	for (unsigned port = 1; port <= LEARN_PLACES_MAX + 1; port++)
		see(&l, "a.example", "", (uint16_t)port, EGRESS_HOW_CATCH, POLICY_LEARNING);
	assert_int_equal(l.n_places, LEARN_PLACES_MAX);
	assert_true(l.is_partial);
	learned_done(&l);
}

/* --- variables -------------------------------------------------------------------------------------------------- */

static const char *value_of(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

static void test_no_network_no_variables(void **state)
{
	const struct run_limits limits = { .cpu_milli = 1000 };
	char **env = NULL;

	(void)state;
	assert_int_equal(run_env(&limits, NULL, NULL, NULL, &env), 0);
	assert_null(value_of(env, "http_proxy"));
	assert_null(value_of(env, "ALL_PROXY"));
	assert_null(value_of(env, "SSL_CERT_FILE"));
	run_env_free(env);
}

static void test_proxy_variables(void **state)
{
	static const char *const names[] = { "http_proxy",  "HTTP_PROXY", "https_proxy",
					     "HTTPS_PROXY", "all_proxy",  "ALL_PROXY" };
	const struct run_limits limits = { .cpu_milli = 1000 };
	char **env = NULL;

	(void)state;
	assert_int_equal(run_env(&limits, NULL, run_network_env(false), NULL, &env), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(value_of(env, names[i]), "http://127.0.0.1:3128");
	assert_string_equal(value_of(env, "NO_PROXY"), "localhost,127.0.0.1,::1");
	assert_null(value_of(env, "SSL_CERT_FILE"));
	run_env_free(env);
}

static void test_ca_variables(void **state)
{
	const struct run_limits limits = { .cpu_milli = 1000 };
	char **env = NULL;

	(void)state;
	assert_int_equal(run_env(&limits, NULL, run_network_env(true), NULL, &env), 0);
	assert_string_equal(value_of(env, "SSL_CERT_FILE"), RUN_CA_FILE);
	assert_string_equal(value_of(env, "NODE_EXTRA_CA_CERTS"), RUN_CA_EXTRA);
	assert_non_null(value_of(env, "https_proxy"));
	run_env_free(env);
}

/* Whoever sets one spelling means both. */
static void test_own_variables_win(void **state)
{
	static const char *const given[] = { "HTTPS_PROXY=http://mine:1", "no_proxy=", NULL };
	static const char *const language[] = { "PIP_CERT=/other", NULL };
	const struct run_limits limits = { .cpu_milli = 1000 };
	char **env = NULL;

	(void)state;
	assert_int_equal(run_env(&limits, language, run_network_env(true), given, &env), 0);
	assert_string_equal(value_of(env, "HTTPS_PROXY"), "http://mine:1");
	assert_null(value_of(env, "https_proxy"));
	assert_string_equal(value_of(env, "no_proxy"), "");
	assert_null(value_of(env, "NO_PROXY"));
	assert_string_equal(value_of(env, "http_proxy"), "http://127.0.0.1:3128");
	assert_string_equal(value_of(env, "PIP_CERT"), "/other");
	run_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_merged_and_sorted),
		cmocka_unit_test(test_more_ports_than_a_rule_has),
		cmocka_unit_test(test_special_addresses),
		cmocka_unit_test(test_not_learned),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_no_network_no_variables),
		cmocka_unit_test(test_proxy_variables),
		cmocka_unit_test(test_ca_variables),
		cmocka_unit_test(test_own_variables_win),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
