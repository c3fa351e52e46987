/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what is accepted, what is refused and with which words, and who wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "service/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

static struct config config;
static struct fail fail;

static int start(void **state)
{
	(void)state;
	config_init(&config);
	fail = (struct fail){ 0 };
	return 0;
}

static int parse(const char *text)
{
	return config_parse(&config, "x.toml", text, strlen(text), &fail);
}

/* Refused with these words in the message, and nothing changed. */
static void refused(const char *text, const char *words)
{
	struct config before = config;

	assert_true(parse(text) < 0);
	if (!strstr(fail.msg, words))
		fail_msg("'%s' is not in '%s'", words, fail.msg);
	assert_memory_equal(&config, &before, sizeof(config));
}

static const char *shown(const char *name)
{
	static char text[CONFIG_TEXT_SIZE];

	for (size_t i = 0; i < config_count(); i++)
		if (strcmp(config_name(i), name) == 0) {
			assert_int_equal(config_text(&config, i, text, sizeof(text)), 0);
			return text;
		}
	fail_msg("no setting %s", name);
	return NULL;
}

static void test_defaults(void **state)
{
	(void)state;
	assert_string_equal(config.server_listen, "127.0.0.1:7070");
	assert_true(config.sandbox_memory == UINT64_C(512) << 20);
	assert_true(config.sandbox_root);
	assert_false(config.webhooks_private_addresses);
	assert_int_equal(config_check(&config, &fail), 0);
	assert_string_equal(shown("sandbox.memory"), "512M");
	assert_string_equal(shown("sandbox.cpus"), "2");
	assert_string_equal(shown("limits.timeout"), "24h");
	assert_string_equal(shown("sandbox.root"), "true");
	assert_string_equal(shown("server.state"), "");
}

/* What is shown can be set again, for each setting: the server room gets them like this. */
static void test_round_trip(void **state)
{
	struct config other;

	(void)state;
	assert_int_equal(parse("[sandbox]\ncpus = 0.25\nmemory = \"20000K\"\nroot = false\n"
			       "[limits]\ntimeout = \"1500ms\"\n[pool]\nsize = 0\n"
			       "[server]\ndomain = \"a.example:8443\"\n"),
			 0);
	config_init(&other);
	for (size_t i = 0; i < config_count(); i++) {
		char text[CONFIG_TEXT_SIZE];

		assert_int_equal(config_text(&config, i, text, sizeof(text)), 0);
		assert_int_equal(config_set(&other, config_name(i), text, &fail), 0);
	}
	memcpy(other.source, config.source, sizeof(other.source));
	assert_memory_equal(&config, &other, sizeof(config));
}

static void test_file(void **state)
{
	(void)state;
	assert_int_equal(parse("# all forms\n"
			       "\n"
			       "[ server ] # where\n"
			       "listen=\"[::1]:80\"# no space\n"
			       "\tstate = \"/a \\\"b\\\" \\\\ # c\"  \n"
			       "[sandbox]\n"
			       "memory = 33554432\n"
			       "disk = \"3G\"\n"
			       "cpus = 1.5\n"
			       "root = false # not here\n"
			       "[limits]\n"
			       "timeout = 3600"),
			 0);
	assert_string_equal(config.server_listen, "[::1]:80");
	assert_string_equal(config.server_state, "/a \"b\" \\ # c");
	assert_true(config.sandbox_memory == UINT64_C(32) << 20);
	assert_true(config.sandbox_disk == UINT64_C(3) << 30);
	assert_true(config.sandbox_cpus == 1500);
	assert_false(config.sandbox_root);
	assert_true(config.limits_timeout == 3600000);
	assert_int_equal(config.source[CONFIG_server_listen], CONFIG_FILE);
	assert_int_equal(config.source[CONFIG_server_user], CONFIG_DEFAULT);
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("\n\n#\n"), 0);
}

static void test_file_refused(void **state)
{
	(void)state;
	refused("listen = \"x\"", "x.toml:1: no [section] above");
	refused("[server]\nport = 1", "x.toml:2: there is no setting server.port");
	refused("[nothing]", "there is no section nothing");
	refused("[server.tls]", "there is no section server.tls");
	refused("[[server]]", "write a section as [name]");
	refused("[server", "write a section as [name]");
	refused("[server] x = 1", "write a section as [name]");
	refused("[server]\n[pool]\n[server]", "x.toml:3: a second section server");
	refused("[pool]\nsize = 1\nsize = 1", "x.toml:3: a second time: pool.size");
	refused("[pool]\nsize", "expected key = value");
	refused("[pool]\nsize =", "there is no value for pool.size");
	refused("[pool]\nsize = # 4", "there is no value for pool.size");
	refused("[pool]\nsize = \"4\"", "without quotes");
	refused("[pool]\nsize = 04", "in double quotes");
	refused("[pool]\nsize = +4", "in double quotes");
	refused("[pool]\nsize = 4 4", "in double quotes");
	refused("[pool]\nsize = 257", "pool.size must be a number, from 0 to 256");
	refused("[pool]\nsize = 99999999999999999999", "pool.size must be a number");
	refused("[pool]\nsize = 4.0", "pool.size must be a number");
	refused("[sandbox]\nmemory = 512M", "in double quotes: 512M");
	refused("[sandbox]\nmemory = \"1K\"",
		"sandbox.memory must be a size like 512M, from 16M to 1T");
	refused("[sandbox]\nmemory = \"-1\"", "sandbox.memory must be a size");
	refused("[sandbox]\ncpus = 0", "from 0.01 to 1024");
	refused("[sandbox]\nroot = \"true\"", "without quotes");
	refused("[sandbox]\nroot = yes", "in double quotes");
	refused("[sandbox]\nroot = 1", "sandbox.root must be true or false");
	refused("[server]\nlisten = 127.0.0.1:7070", "in double quotes");
	refused("[server]\nlisten = '127.0.0.1:7070'", "in double quotes");
	refused("[server]\nlisten = \"127.0.0.1:7070", "not closed");
	refused("[server]\nlisten = \"a\" \"b\"", "something follows");
	refused("[server]\nlisten = \"a\\n\"", "are understood");
	refused("[server]\nlisten = \"a\\\"", "not closed");
	refused("[limits]\ntimeout = \"1d\"", "a duration like 30s");
	refused("[server]\r\nlisten = \"x\"", "not plain text");
	refused("[server]\nlisten = \"\x01\"", "not plain text");
	refused("[server]\nlisten = \"\xff\"", "not plain text");
}

static void test_file_sizes(void **state)
{
	static char text[70000];

	(void)state;
	memset(text, '#', sizeof(text));
	assert_int_equal(config_parse(&config, "x", text, 65536, &fail), 0);
	assert_int_equal(config_parse(&config, "x", text, 65537, &fail), -EINVAL);
	assert_int_equal(config_parse(&config, "x", "#\0", 2, &fail), -EINVAL);
	(void)snprintf(text, sizeof(text), "[server]\nstate = \"/%01022d\"", 0);
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(config.server_state), CONFIG_TEXT_SIZE - 1);
	(void)snprintf(text, sizeof(text), "[server]\nstate = \"/%01023d\"", 0);
	refused(text, "server.state must be plain text of at most 1023 bytes");
	(void)snprintf(text, sizeof(text), "[server]\n%0500d = 1", 0);
	refused(text, "there is no setting");
}

static void test_set(void **state)
{
	(void)state;
	assert_int_equal(config_set(&config, "pool.size", "7", &fail), 0);
	assert_true(config.pool_size == 7);
	assert_int_equal(config_set(&config, "pool.siz", "7", &fail), -ENOENT);
	assert_int_equal(config_set(&config, "pool", "7", &fail), -ENOENT);
	assert_int_equal(config_set(&config, "pool.size", "x", &fail), -EINVAL);
	assert_int_equal(config_set(&config, "pool.size", "1000", &fail), -ERANGE);
	assert_int_equal(config_set(&config, "server.domain", "a\nb", &fail), -EINVAL);
	assert_true(config.pool_size == 7);
}

/* Flag over environment over file, in whatever order they are read; but each is checked. */
static void test_who_wins(void **state)
{
	char *const environment[] = { (char[]){ "GLOVEBOX_POOL_SIZE=2" },
				      (char[]){ "GLOVEBOX_SANDBOX_PIDS=22" },
				      (char[]){ "PATH=/bin" },
				      (char[]){ "GLOVEBOX_LANGUAGES=/x" },
				      (char[]){ "GLOVEBOX=" },
				      NULL };

	(void)state;
	assert_int_equal(config_set(&config, "pool.size", "1", &fail), 0);
	assert_int_equal(config_read_environment(&config, environment, &fail), 0);
	assert_int_equal(parse("[pool]\nsize = 3\n[sandbox]\npids = 33\nfiles = 333\n"), 0);
	assert_true(config.pool_size == 1);
	assert_true(config.sandbox_pids == 22);
	assert_true(config.sandbox_files == 333);
	assert_int_equal(config.source[CONFIG_pool_size], CONFIG_FLAG);
	assert_int_equal(config.source[CONFIG_sandbox_pids], CONFIG_ENVIRONMENT);
	assert_int_equal(config.source[CONFIG_sandbox_files], CONFIG_FILE);
	refused("[pool]\nsize = 9999\n", "pool.size must be");
}

static void test_environment_refused(void **state)
{
	char *const unknown[] = { (char[]){ "GLOVEBOX_SERVER_PORT=1" }, NULL };
	char *const bad[] = { (char[]){ "GLOVEBOX_POOL_SIZE=many" }, NULL };

	(void)state;
	assert_int_equal(config_read_environment(&config, unknown, &fail), -ENOENT);
	assert_non_null(strstr(fail.msg, "GLOVEBOX_SERVER_PORT"));
	assert_int_equal(config_read_environment(&config, bad, &fail), -EINVAL);
	assert_non_null(strstr(fail.msg, "GLOVEBOX_POOL_SIZE must be a number"));
}

static void test_flags(void **state)
{
	(void)state;
	assert_string_equal(config_flag_name("--listen"), "server.listen");
	assert_string_equal(config_flag_name("--tls-cert"), "server.tls_cert");
	assert_string_equal(config_flag_name("--sandbox-memory"), "sandbox.memory");
	assert_string_equal(config_flag_name("--limits-sandboxes-per-key"),
			    "limits.sandboxes_per_key");
	assert_null(config_flag_name("--server-listen"));
	assert_null(config_flag_name("--sandbox.memory"));
	assert_null(config_flag_name("--sandbox-"));
	assert_null(config_flag_name("--sandbox-memoryx"));
	assert_null(config_flag_name("--"));
	assert_null(config_flag_name("listen"));
	for (size_t i = 0; i < config_count(); i++) /* no two of them are one */
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(config_name(i), config_name(j));
}

static void test_check(void **state)
{
	static const char *const bad[][2] = {
		{ "server.listen", "localhost:7070" },
		{ "server.listen", ":7070" },
		{ "server.listen", "127.0.0.1" },
		{ "server.listen", "127.0.0.1:" },
		{ "server.listen", "::1:7070" },
		{ "server.listen", "[127.0.0.1]:7070" },
		{ "server.listen", "1.2.3.4:65536" },
		{ "server.listen", "" },
		{ "server.listen", "]:1" },
		{ "server.listen", "[:1" },
		{ "server.tls_cert", "/cert" },
		{ "server.tls_key", "/key" },
		{ "server.domain", "Example.org" },
		{ "server.domain", ".org" },
		{ "server.domain", "a..b" },
		{ "server.domain", "a.b:" },
		{ "server.domain", "a.b:0" },
		{ "server.domain", ":8443" },
		{ "server.domain", "a.b:65536" },
		{ "server.domain", "a/b" },
		{ "server.user", "" },
		{ "server.user", "-x" },
		{ "server.user", "a b" },
		{ "sandbox.memory", "5G" },
		{ "limits.pids", "511" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		config_init(&config);
		assert_int_equal(config_set(&config, bad[i][0], bad[i][1], &fail), 0);
		if (config_check(&config, &fail) != -EINVAL)
			fail_msg("%s = %s was accepted", bad[i][0], bad[i][1]);
	}
	config_init(&config);
	assert_int_equal(parse("[server]\nstate = \"here\""), 0);
	assert_int_equal(config_check(&config, &fail), -EINVAL);
	assert_int_equal(config_set(&config, "server.state", "here", &fail), 0);
	assert_int_equal(config_check(&config, &fail), 0);
}

static void test_listen(void **state)
{
	struct sockaddr_storage a;
	socklen_t len;

	(void)state;
	assert_int_equal(config_parse_listen("0.0.0.0:0", &a, &len), 0);
	assert_int_equal(a.ss_family, AF_INET);
	assert_int_equal(len, sizeof(struct sockaddr_in));
	assert_int_equal(config_parse_listen("[::1]:65535", &a, &len), 0);
	assert_int_equal(a.ss_family, AF_INET6);
	assert_int_equal(ntohs(((struct sockaddr_in6 *)&a)->sin6_port), 65535);
}

static void test_buffers(void **state)
{
	char text[8];

	(void)state;
	assert_int_equal(config_text(&config, CONFIG_server_listen, text, sizeof(text)), -ENOBUFS);
	assert_int_equal(config_text(&config, CONFIG_sandbox_memory, text, 4), -ENOBUFS);
	assert_int_equal(config_text(&config, CONFIG_sandbox_memory, text, 5), 0);
	assert_int_equal(config_text(&config, CONFIG_sandbox_root, text, 4), -ENOBUFS);
	assert_int_equal(config_set(&config, "server.state", "/12345678", &fail), 0);
	assert_int_equal(config_state_dir(&config, text, sizeof(text)), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults, start),
		cmocka_unit_test_setup(test_round_trip, start),
		cmocka_unit_test_setup(test_file, start),
		cmocka_unit_test_setup(test_file_refused, start),
		cmocka_unit_test_setup(test_file_sizes, start),
		cmocka_unit_test_setup(test_set, start),
		cmocka_unit_test_setup(test_who_wins, start),
		cmocka_unit_test_setup(test_environment_refused, start),
		cmocka_unit_test_setup(test_flags, start),
		cmocka_unit_test_setup(test_check, start),
		cmocka_unit_test_setup(test_listen, start),
		cmocka_unit_test_setup(test_buffers, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
