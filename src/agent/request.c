/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/request.h"

static size_t name_len(const char *variable)
{
	return (size_t)(strchr(variable, '=') - variable);
}

/* Is there one of the same name behind it? */
static bool is_overridden(const struct request *q, size_t i)
{
	size_t len = name_len(q->envs[i]) + 1;

	for (size_t k = i + 1; k < q->n_envs; k++)
		if (strncmp(q->envs[k], q->envs[i], len) == 0)
			return true;
	return false;
}

static void remove_overridden(struct request *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n_envs; i++) {
		if (is_overridden(q, i))
			free(q->envs[i]);
		else
			q->envs[n++] = q->envs[i];
	}
	q->n_envs = n;
	q->envs[n] = NULL;
}

static char *variable(const char *name, const char *value)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

int request_environment(struct request *q, const struct agent_user *user, bool tty)
{
	const struct {
		const char *name, *value;
		bool on;
	} defaults[REQUEST_DEFAULTS_MAX] = {
		{ "HOME", user->home, user->name[0] },    { "USER", user->name, user->name[0] },
		{ "LOGNAME", user->name, user->name[0] }, { "SHELL", user->shell, user->name[0] },
		{ "TERM", "xterm-256color", tty },
	};
	size_t n = 0;

	for (size_t i = 0; i < REQUEST_DEFAULTS_MAX; i++)
		n += defaults[i].on;
	memmove(q->envs + n, q->envs, q->n_envs * sizeof(q->envs[0]));
	q->n_envs += n;
	n = 0;
	for (size_t i = 0; i < REQUEST_DEFAULTS_MAX; i++) {
		if (!defaults[i].on)
			continue;
		q->envs[n] = variable(defaults[i].name, defaults[i].value);
		if (!q->envs[n++])
			return -ENOMEM;
	}
	remove_overridden(q);
	return 0;
}

int request_enter(const struct request *q, const struct agent_user *user)
{
	const char *cwd = q->cwd;

	if (!user->name[0])
		return chdir(cwd[0] ? cwd : "/") < 0 ? -errno : 0;
	if (cwd[0] == '/')
		return chdir(cwd) < 0 ? -errno : 0;
	if (cwd[0] == '~' && (cwd[1] == '/' || cwd[1] == '\0'))
		cwd++;
	while (*cwd == '/')
		cwd++;
	/* A user without a home starts at the root, as when logging in. */
	if (chdir(user->home) < 0 && (*cwd || chdir("/") < 0))
		return -errno;
	return *cwd && chdir(cwd) < 0 ? -errno : 0;
}
