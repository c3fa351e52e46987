/* SPDX-License-Identifier: Apache-2.0 */
#include "run/result.h"

#include "wire/egress.h"
#include "wire/script.h"

#include <assert.h>
#include <strings.h>

/* Sets NAME=VALUE, replacing an earlier one of that name. */
static int env_put(char **env, size_t *n, const char *text)
{
	size_t name_len = strcspn(text, "=") + 1;
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++) {
		if (strncmp(env[i], text, name_len) == 0) {
			free(env[i]);
			env[i] = copy;
			return 0;
		}
	}
	env[(*n)++] = copy;
	return 0;
}

/*
 * What programs with network are told. ALL_PROXY is HTTP too, not SOCKS: several Python clients
 * need a package for SOCKS that is rarely there, and fail without it. Both spellings: each client
 * reads its own.
 */
#define PROXY "http://127.0.0.1:3128"
#define NOT_FOR_PROXY "localhost,127.0.0.1,::1"
#define PROXY_VARIABLES                                                                            \
	"http_proxy=" PROXY, "HTTP_PROXY=" PROXY, "https_proxy=" PROXY, "HTTPS_PROXY=" PROXY,      \
		"all_proxy=" PROXY, "ALL_PROXY=" PROXY, "no_proxy=" NOT_FOR_PROXY,                 \
		"NO_PROXY=" NOT_FOR_PROXY
static_assert(EGRESS_PROXY_PORT == 3128, "as PROXY has it");

static const char *const proxy_variables[] = { PROXY_VARIABLES, NULL };

/* Most of them replace what a program trusts, so these get everything; Node's and Deno's add to
 * it. */
static const char *const proxy_and_ca_variables[] = {
	PROXY_VARIABLES,
	"SSL_CERT_FILE=" RUN_CA_FILE,
	"REQUESTS_CA_BUNDLE=" RUN_CA_FILE,
	"CURL_CA_BUNDLE=" RUN_CA_FILE,
	"GIT_SSL_CAINFO=" RUN_CA_FILE,
	"PIP_CERT=" RUN_CA_FILE,
	"AWS_CA_BUNDLE=" RUN_CA_FILE,
	"CARGO_HTTP_CAINFO=" RUN_CA_FILE,
	"NODE_EXTRA_CA_CERTS=" RUN_CA_EXTRA,
	"DENO_CERT=" RUN_CA_EXTRA,
	NULL,
};

const char *const *run_network_env(bool with_ca)
{
	return with_ca ? proxy_and_ca_variables : proxy_variables;
}

static size_t env_count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* In either spelling: a user that sets HTTPS_PROXY means https_proxy too, which many programs
 * look at first. */
static bool names_variable(const char *const *list, const char *text)
{
	size_t name_len = strcspn(text, "=") + 1;

	for (; list && *list; list++)
		if (strncasecmp(*list, text, name_len) == 0)
			return true;
	return false;
}

int run_env(const struct run_limits *limits, const char *const *language,
	    const char *const *network, const char *const *given, char ***ret)
{
	char cpus[2][40];
	const char *const fixed[] = {
		("PATH=" SCRIPT_PATH),
		("HOME=" RUN_HOME),
		"USER=user",
		"LOGNAME=user",
		"SHELL=/bin/bash",
		("LANG=" SCRIPT_LANG),
		"TMPDIR=/tmp",
		cpus[0],
		cpus[1],
		NULL,
	};
	const char *const *const lists[] = { fixed, network, language, given };
	uint32_t n_cpus = MAX(limits->cpu_milli / 1000, 1u);
	size_t n = 0;
	char **env = calloc(env_count(fixed) + env_count(network) + env_count(language) +
				    env_count(given) + 1,
			    sizeof(*env));

	/* PR-18: runtimes that would env_count the host's CPUs are told the box's. */
	(void)snprintf(cpus[0], sizeof(cpus[0]), "GOMAXPROCS=%u", n_cpus);
	(void)snprintf(cpus[1], sizeof(cpus[1]), "OMP_NUM_THREADS=%u", n_cpus);
	for (size_t l = 0; env && l < ARRAY_SIZE(lists); l++) {
		for (const char *const *text = lists[l]; text && *text; text++) {
			if (lists[l] == network && names_variable(given, *text))
				continue;
			if (env_put(env, &n, *text) < 0) {
				run_env_free(env);
				return -ENOMEM;
			}
		}
	}
	*ret = env;
	return env ? 0 : -ENOMEM;
}

void run_env_free(char **env)
{
	for (char **text = env; text && *text; text++)
		free(*text);
	free(env);
}
