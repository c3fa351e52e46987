/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are when nobody says: for root in the system's directories, for a user in his own. */
#include "service/config.h"

#define SYSTEM_STATE "/var/lib/glovebox"
#define SYSTEM_FILE "/etc/glovebox/glovebox.toml"

/* $variable/name, or $HOME/below/name. */
static int user_place(const char *variable, const char *below, const char *name, char *ret,
		      size_t size)
{
	const char *dir = getenv(variable), *home = getenv("HOME");
	int n;

	if (dir && *dir == '/')
		n = snprintf(ret, size, "%s/%s", dir, name);
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/%s/%s", home, below, name);
	else
		return -ENOENT;
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int copy(const char *text, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s", text);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int config_state_dir(const struct config *c, char *ret, size_t size)
{
	if (*c->server_state)
		return copy(c->server_state, ret, size);
	if (geteuid() == 0)
		return copy(SYSTEM_STATE, ret, size);
	return user_place("XDG_DATA_HOME", ".local/share", "glovebox", ret, size);
}

int config_usual_file(char *ret, size_t size)
{
	if (geteuid() == 0)
		return copy(SYSTEM_FILE, ret, size);
	return user_place("XDG_CONFIG_HOME", ".config", "glovebox/glovebox.toml", ret, size);
}

int config_sets_dir(const struct config *c, char *ret, size_t size)
{
	char file[CONFIG_TEXT_SIZE];
	int r, n;

	if (*c->egress_sets)
		return copy(c->egress_sets, ret, size);
	r = config_usual_file(file, sizeof(file));
	if (r < 0)
		return r;
	*strrchr(file, '/') = '\0'; /* the path is absolute */
	n = snprintf(ret, size, "%s/egress", file);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int config_load(struct config *c, const char *path, char *const *environ_, struct fail *fail)
{
	char usual[CONFIG_TEXT_SIZE];
	int r = 0;

	if (path)
		r = config_read_file(c, path, fail);
	else if (config_usual_file(usual, sizeof(usual)) == 0)
		r = config_read_file(c, usual, fail);
	if (r == -ENOENT && !path)
		r = 0;
	if (r == 0)
		r = config_read_environment(c, environ_, fail);
	if (r == 0)
		r = config_check(c, fail);
	return r;
}
