/* SPDX-License-Identifier: Apache-2.0 */
#include "service/program.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

static int try_path(const char *dir, const char *name, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/%s", dir, name);

	return n < 0 || (size_t)n >= size || access(ret, X_OK) < 0 ? -ENOENT : 0;
}

/*
 * In a build tree our neighbours' directories are whoever's ours is. A program that was copied somewhere has neighbours
 * that anybody may have made.
 */
static bool is_neighbour(const char *own, const char *other)
{
	struct stat a, b;

	return stat(own, &a) == 0 && stat(other, &b) == 0 && a.st_uid == b.st_uid &&
	       !(b.st_mode & S_IWOTH);
}

int program_find(const char *dir, const char *name, char *ret, size_t size)
{
	char self[PATH_MAX], there[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		const char *own;

		self[n] = '\0';
		own = dirname(self);
		(void)snprintf(there, sizeof(there), "%s/../%s", own, dir);
		if (is_neighbour(own, there) && try_path(there, name, ret, size) == 0)
			return 0;
	}
	return try_path(GLOVEBOX_LIBEXECDIR, name, ret, size);
}
