/* SPDX-License-Identifier: Apache-2.0 */
#include "service/program.h"

#include <libgen.h>
#include <sys/stat.h>

static int try_path(const char *dir, const char *name, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size || access(ret, X_OK) < 0 ? -ENOENT : 0;
}

/* A directory, and no link to one, that nobody can change who could not change ours. */
static bool is_as_safe(const char *path, const struct stat *own)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != own->st_uid)
		return false;
	if ((st.st_mode & S_IWGRP) && (!(own->st_mode & S_IWGRP) || st.st_gid != own->st_gid))
		return false;
	return !(st.st_mode & S_IWOTH);
}

/*
 * In a build tree our neighbours' directories have the owner of ours. A program that was copied
 * somewhere has neighbours that anybody may have made, or could put others in the place of. What
 * passes here stays what it is: its path may be used again.
 */
static bool is_neighbour(const char *own, const char *above, const char *other)
{
	struct stat st;

	return stat(own, &st) == 0 && is_as_safe(above, &st) && is_as_safe(other, &st);
}

/* The path of one beside us, if that can be trusted. */
static int find_neighbour(const char *dir, const char *name, char *ret, size_t size)
{
	char self[PATH_MAX], above[PATH_MAX + 4], there[PATH_MAX + 64];
	const char *own;

	if (program_self(self) < 0)
		return -ENOENT;
	own = dirname(self);
	(void)snprintf(above, sizeof(above), "%s/..", own);
	(void)snprintf(there, sizeof(there), "%s/%s", above, dir);
	return is_neighbour(own, above, there) ? try_path(there, name, ret, size) : -ENOENT;
}

int program_find(const char *dir, const char *name, char *ret, size_t size)
{
	if (find_neighbour(dir, name, ret, size) == 0)
		return 0;
	return try_path(GLOVEBOX_LIBEXECDIR, name, ret, size);
}

int program_self(char ret[static PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n <= 0)
		return -ENOENT;
	ret[n] = '\0';
	return 0;
}

int program_front(char ret[static PATH_MAX])
{
	char self[PATH_MAX], path[PATH_MAX];

	if (find_neighbour("cli", "glovebox", path, sizeof(path)) < 0 &&
	    try_path(GLOVEBOX_BINDIR, "glovebox", path, sizeof(path)) < 0)
		return -ENOENT;
	if (program_self(self) < 0 || !realpath(path, ret) || strcmp(self, ret) == 0)
		return -ENOENT;
	return 0;
}
