/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users of the box, and the environment and directory that a process of theirs begins with. The
 * box's /etc/passwd and /etc/group may have been written by anything that runs in it. They are read
 * by hand, with a bound on everything, because the C library's readers have none.
 */
#include "agent/agent.h"

#include "base/parse.h"
#include "wire/request.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILE_SIZE_MAX (256 << 10)
#define LINE_SIZE 1024 /* a longer line is passed over */
#define ID_MAX 65534   /* the largest that is mapped in a box */

struct lines {
	int fd;
	size_t left; /* of FILE_SIZE_MAX */
	size_t at, n;
	char data[4096];
	char line[LINE_SIZE];
};

static int lines_open(struct lines *l, const char *path)
{
	struct stat st;

	*l = (struct lines){ .left = FILE_SIZE_MAX };
	/* Not blocking: somebody may have put a FIFO there. */
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (l->fd < 0)
		return -errno;
	return fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

static void lines_close(struct lines *l)
{
	fd_closep(&l->fd);
}

static bool lines_fill(struct lines *l)
{
	ssize_t n = read(l->fd, l->data, MIN(sizeof(l->data), l->left));

	if (n <= 0)
		return false;
	l->left -= (size_t)n;
	l->at = 0;
	l->n = (size_t)n;
	return true;
}

/* The next whole line that is not too long, without its end. */
static bool lines_next(struct lines *l)
{
	size_t len = 0;
	bool too_long = false;

	for (;;) {
		char c;

		if (l->at < l->n || lines_fill(l))
			c = l->data[l->at++];
		else if (len > 0 && !too_long)
			c = '\n'; /* a last line without an end */
		else
			return false;
		if (c != '\n') {
			if (c == '\0' || len == LINE_SIZE - 1)
				too_long = true;
			else
				l->line[len++] = c;
			continue;
		}
		l->line[len] = '\0';
		if (!too_long)
			return true;
		len = 0;
		too_long = false;
	}
}

/* Cuts the line into its fields; false when it has another number of them. */
static bool user_split(char *line, char **fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *colon = strchr(line, ':');

		if (!colon != (i == n - 1))
			return false;
		fields[i] = line;
		if (colon) {
			*colon = '\0';
			line = colon + 1;
		}
	}
	return true;
}

static bool parse_id(const char *text, uint32_t *ret)
{
	uint64_t id;

	if (parse_u64(text, &id) < 0 || id > ID_MAX)
		return false;
	*ret = (uint32_t)id;
	return true;
}

static int user_copy(char *to, size_t size, const char *from)
{
	if (strlen(from) >= size)
		return -ENAMETOOLONG;
	memcpy(to, from, strlen(from) + 1);
	return 0;
}

/* name:password:uid:gid:comment:home:shell */
static int find_user(const char *path, const char *name, struct agent_user *ret)
{
	_cleanup_(lines_close) struct lines l;
	char *field[7];
	int r = lines_open(&l, path);

	if (r < 0)
		return r;
	while (lines_next(&l)) {
		if (!user_split(l.line, field, ARRAY_SIZE(field)) || strcmp(field[0], name) != 0)
			continue;
		if (!parse_id(field[2], &ret->uid) || !parse_id(field[3], &ret->gid))
			return -EINVAL;
		r = user_copy(ret->name, sizeof(ret->name), name);
		if (r == 0)
			r = user_copy(ret->home, sizeof(ret->home),
				      field[5][0] == '/' ? field[5] : "/");
		if (r == 0)
			r = user_copy(ret->shell, sizeof(ret->shell),
				      field[6][0] == '/' ? field[6] : "/bin/sh");
		return r;
	}
	return -ENOENT;
}

static bool is_member(char *members, const char *name)
{
	char *save = NULL;

	for (char *m = strtok_r(members, ",", &save); m; m = strtok_r(NULL, ",", &save))
		if (strcmp(m, name) == 0)
			return true;
	return false;
}

/* name:password:gid:members. Without the file, or beyond the bound, there are no further groups. */
static void find_groups(const char *path, struct agent_user *user)
{
	_cleanup_(lines_close) struct lines l;
	char *field[4];

	if (lines_open(&l, path) < 0)
		return;
	while (user->n_groups < AGENT_GROUPS_MAX && lines_next(&l)) {
		uint32_t gid;

		if (user_split(l.line, field, ARRAY_SIZE(field)) && parse_id(field[2], &gid) &&
		    gid != user->gid && is_member(field[3], user->name))
			user->groups[user->n_groups++] = gid;
	}
}

int agent_user_find(const char *passwd_path, const char *group_path, const char *name,
		    struct agent_user *ret)
{
	struct agent_user user = { 0 };
	int r = find_user(passwd_path, name, &user);

	if (r < 0)
		return r;
	find_groups(group_path, &user);
	*ret = user;
	return 0;
}

int agent_user_lookup(const char *name, struct agent_user *ret)
{
	return agent_user_find("/etc/passwd", "/etc/group", name, ret);
}

/* --- what a process of its gets -------------------------------------------------------------- */

static size_t name_len(const char *variable)
{
	return (size_t)(strchr(variable, '=') - variable);
}

/* Is there one of the same name behind it? */
static bool is_overridden(const struct agent_request *q, size_t i)
{
	size_t len = name_len(q->envs[i]) + 1;

	for (size_t k = i + 1; k < q->n_envs; k++)
		if (strncmp(q->envs[k], q->envs[i], len) == 0)
			return true;
	return false;
}

static void remove_overridden(struct agent_request *q)
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

int agent_user_environment(struct agent_request *q, const struct agent_user *user, bool tty)
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

int agent_user_enter(const struct agent_request *q, const struct agent_user *user)
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
