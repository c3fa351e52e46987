/* SPDX-License-Identifier: Apache-2.0 */
#include "service/program.h"

#include <libgen.h>
#include <limits.h>

static int try_path(const char *dir, const char *rest, const char *name, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s%s/%s", dir, rest, name);

	return n < 0 || (size_t)n >= size || access(ret, X_OK) < 0 ? -ENOENT : 0;
}

int program_find(const char *dir, const char *name, char *ret, size_t size)
{
	char self[PATH_MAX], rest[64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		(void)snprintf(rest, sizeof(rest), "/../%s", dir);
		if (try_path(dirname(self), rest, name, ret, size) == 0)
			return 0;
	}
	return try_path(GLOVEBOX_LIBEXECDIR, "", name, ret, size);
}
