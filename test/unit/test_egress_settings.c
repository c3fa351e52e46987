/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of egress, and the proxy of the machine's network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "egress/start.h"

static struct egress g;
static struct config config;
static struct fail fail;

static int proxy(const char *url)
{
	g = (struct egress){ 0 };
	fail = (struct fail){ 0 };
	return settings_proxy(&g, url, &fail);
}

static void test_proxy(void **state)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&g.proxy;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&g.proxy;

	(void)state;
	assert_int_equal(proxy("http://192.0.2.7:3128"), 0);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(ntohs(in->sin_port), 3128);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0xc0000207);
	assert_string_equal(g.proxy_authorization, "");
	assert_int_equal(proxy("http://[2001:db8::7]:80/"), 0);
	assert_int_equal(in6->sin6_family, AF_INET6);
	assert_int_equal(in6->sin6_addr.s6_addr[15], 7);
	assert_int_equal(proxy("http://user:p%40ss:w%3ard@192.0.2.7:1"), 0);
	assert_string_equal(g.proxy_authorization, "Basic dXNlcjpwQHNzOnc6cmQ=");
}

static void test_bad_proxy(void **state)
{
	static const char *const bad[] = { "",
					   "192.0.2.7:3128",
					   "https://192.0.2.7:3128",
					   "http://",
					   "http://192.0.2.7",
					   "http://:80",
					   "http://192.0.2.7:",
					   "http://192.0.2.7:80x",
					   "http://192.0.2.7:80/path",
					   "http://a%4@192.0.2.7:80",
					   "http://a%zz@192.0.2.7:80",
					   "http://[]:80" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(proxy(bad[i]) < 0);
		assert_non_null(strstr(fail.msg, "egress.proxy"));
	}
	/* What is wrong with it is said without its password. */
	assert_true(proxy("ftp://user:hunter2@192.0.2.7:80") < 0);
	assert_null(strstr(fail.msg, "hunter2"));
	assert_true(proxy("http://user:hunter2@192.0.2.7:80:x") < 0);
	assert_null(strstr(fail.msg, "hunter2"));
}

static int read_args(const char *a, const char *b)
{
	char first[64], second[64], *argv[] = { (char[]){ "egress" }, first, second, NULL };

	g = (struct egress){ 0 };
	(void)snprintf(first, sizeof(first), "%s", a);
	(void)snprintf(second, sizeof(second), "%s", b);
	return settings_read(3, argv, &g, &config, &fail);
}

static void test_arguments(void **state)
{
	(void)state;
	assert_int_equal(read_args("--egress.connections_total=99", "--learn"), 0);
	assert_int_equal(g.conns_max, 99);
	assert_true(g.learn);
	assert_int_equal(read_args("--egress.resolver=192.0.2.53", "--egress.ca_bundle=/x"), 0);
	assert_string_equal(config.egress_resolver, "192.0.2.53");
	assert_false(g.learn);
	assert_false(g.proxy_resolves);
	assert_int_equal(read_args("--egress.proxy_resolves=true", "--learn"), 0);
	assert_true(g.proxy_resolves);
	assert_true(read_args("--egress.nosuch=1", "--learn") < 0);
	assert_true(read_args("--learn=1", "--learn") < 0);
	assert_true(read_args("learn", "--learn") < 0);
	assert_true(read_args("--egress.connections_total=0", "--learn") < 0);
}

static void test_environment(void **state)
{
	(void)state;
	assert_int_equal(setenv("GLOVEBOX_EGRESS_PROXY", "http://u:secret@192.0.2.7:8", 1), 0);
	assert_int_equal(read_args("--learn", "--learn"), 0);
	assert_int_equal(g.proxy.ss_family, AF_INET);
	assert_string_equal(g.proxy_authorization, "Basic dTpzZWNyZXQ=");
	assert_string_equal(getenv("GLOVEBOX_EGRESS_PROXY"), ""); /* wiped */
	assert_string_equal(config.egress_proxy, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_bad_proxy),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
