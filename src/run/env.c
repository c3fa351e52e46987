/* SPDX-License-Identifier: Apache-2.0 */
#include "run/result.h"

/* Sets NAME=VALUE, replacing an earlier one of that name. */
static int put(char **env, size_t *n, const char *text)
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

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

int run_env(const struct run_limits *limits, const char *const *language, const char *const *given,
	    char ***ret)
{
	char cpus[2][40];
	const char *const fixed[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin",
		("HOME=" RUN_HOME),
		"USER=user",
		"LOGNAME=user",
		"SHELL=/bin/bash",
		"LANG=C.UTF-8",
		"TMPDIR=/tmp",
		cpus[0],
		cpus[1],
		NULL,
	};
	const char *const *const lists[] = { fixed, language, given };
	uint32_t n_cpus = MAX(limits->cpu_milli / 1000, 1u);
	size_t n = 0;
	char **env = calloc(count(fixed) + count(language) + count(given) + 1, sizeof(*env));

	/* PR-18: runtimes that would count the host's CPUs are told the box's. */
	(void)snprintf(cpus[0], sizeof(cpus[0]), "GOMAXPROCS=%u", n_cpus);
	(void)snprintf(cpus[1], sizeof(cpus[1]), "OMP_NUM_THREADS=%u", n_cpus);
	for (size_t l = 0; env && l < ARRAY_SIZE(lists); l++) {
		for (const char *const *text = lists[l]; text && *text; text++) {
			if (put(env, &n, *text) < 0) {
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
