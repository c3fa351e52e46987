/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

extern char **environ;

static int send_text(int sock, enum wire_type type, const char *text)
{
	return wire_send(sock, type, text, strlen(text));
}

static int send_variable(int sock, const char *name, const char *value)
{
	char *text = NULL;
	int r = asprintf(&text, "%s=%s", name, value) < 0 ? -ENOMEM : 0;

	if (r == 0)
		r = send_text(sock, WIRE_ENV, text);
	free(text);
	return r;
}

static bool is_name(const char *variable, const char *name, size_t len)
{
	return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

static bool in_list(const char *variable, const char *list)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");

		if (is_name(variable, list, len))
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* What another user's command gets of our environment when nobody asked for more. The proxy is the box's
 * way out, whoever goes. */
static bool is_kept(const char *variable)
{
	static const char *const names[] = {
		"TERM",       "COLORTERM",   "LANG",     "LANGUAGE",   "TZ",          "DISPLAY",
		"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_name(variable, names[i], strlen(names[i])))
			return true;
	return strncmp(variable, "LC_", 3) == 0;
}

/* What is always the target's. */
static bool is_set(const char *variable, const struct sudo_options *o)
{
	return is_name(variable, "PATH", 4) || is_name(variable, "USER", 4) ||
	       is_name(variable, "LOGNAME", 7) ||
	       ((o->set_home || o->login) && is_name(variable, "HOME", 4)) ||
	       (o->login && is_name(variable, "SHELL", 5));
}

static int send_environment(int sock, const struct sudo_options *o)
{
	char uid[16], gid[16];
	int r = 0;

	for (char **v = environ; r == 0 && *v; v++)
		if (strchr(*v, '=') > *v && !is_set(*v, o) &&
		    (o->keep_env || is_kept(*v) || in_list(*v, o->keep_list)))
			r = send_text(sock, WIRE_ENV, *v);
	(void)snprintf(uid, sizeof(uid), "%u", getuid());
	(void)snprintf(gid, sizeof(gid), "%u", getgid());
	if (r == 0)
		r = send_variable(sock, "PATH", WIRE_BOX_PATH);
	if (r == 0)
		r = send_variable(sock, "SUDO_USER", getuid() == 0 ? "root" : "user");
	if (r == 0)
		r = send_variable(sock, "SUDO_UID", uid);
	if (r == 0)
		r = send_variable(sock, "SUDO_GID", gid);
	if (r == 0 && o->n_command)
		r = send_variable(sock, "SUDO_COMMAND", o->command[0]);
	for (size_t i = 0; r == 0 && i < o->n_vars; i++)
		r = send_text(sock, WIRE_ENV, o->vars[i]);
	return r;
}

/* Appends a word so that a shell reads it as this word. */
static char *quote(char *to, const char *word)
{
	for (; *word; word++) {
		unsigned char c = (unsigned char)*word;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '$' || c >= 128;

		if (c == '\n') { /* a backslash before it would remove it */
			*to++ = '\'';
			*to++ = '\n';
			*to++ = '\'';
			continue;
		}
		if (!plain)
			*to++ = '\\';
		*to++ = (char)c;
	}
	return to;
}

static int send_quoted(int sock, const struct sudo_options *o)
{
	size_t size = 1;
	char *text, *end;
	int r;

	for (size_t i = 0; i < o->n_command; i++)
		size += strlen(o->command[i]) * 3 + 1;
	text = end = malloc(size);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < o->n_command; i++) {
		if (i)
			*end++ = ' ';
		end = quote(end, o->command[i]);
	}
	r = wire_send(sock, WIRE_ARG, text, (size_t)(end - text));
	free(text);
	return r;
}

static int send_command(int sock, const struct sudo_options *o, const struct agent_user *target)
{
	const char *shell = getenv("SHELL");
	int r = 0;

	if (!o->login && !o->shell) {
		for (size_t i = 0; r == 0 && i < o->n_command; i++)
			r = send_text(sock, WIRE_ARG, o->command[i]);
		return r;
	}
	r = send_text(sock, WIRE_ARG, o->login || !shell || !shell[0] ? target->shell : shell);
	if (r == 0 && o->login)
		r = send_text(sock, WIRE_ARG, "-l");
	if (r == 0 && o->n_command)
		r = send_text(sock, WIRE_ARG, "-c");
	if (r == 0 && o->n_command)
		r = send_quoted(sock, o);
	return r;
}

int sudo_send(int sock, const struct sudo_options *o, const struct agent_user *target,
	      const int fds[SUDO_FDS], bool tty)
{
	const struct wire_sudo request = { .flags = tty ? WIRE_SUDO_TTY : 0 };
	char cwd[WIRE_PATH_MAX + 1];
	int r = wire_send_fds(sock, WIRE_SUDO, &request, sizeof(request), fds, SUDO_FDS);

	if (r == 0)
		r = send_text(sock, WIRE_USER, target->name);
	if (r == 0 && !o->login)
		r = send_text(sock, WIRE_CWD,
			      getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' ? cwd : "/");
	if (r == 0)
		r = send_environment(sock, o);
	if (r == 0)
		r = send_command(sock, o, target);
	return r < 0 ? r : wire_send(sock, WIRE_GO, NULL, 0);
}
