/* SPDX-License-Identifier: Apache-2.0 */
#include "service/discovery.h"

#include <limits.h>
#include <stdio.h>

int discovery_place(size_t i, char *ret, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool has_own = runtime && *runtime;
	int n;

	if (i > (has_own ? 1 : 0))
		return -ENOENT;
	n = snprintf(ret, size, "%s/glovebox/" DISCOVERY_NAME,
		     has_own && i == 0 ? runtime : "/run");
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool discovery_left(void)
{
	char path[PATH_MAX];

	for (size_t i = 0;; i++) {
		int r = discovery_place(i, path, sizeof(path));

		if (r == -ENOENT)
			return false;
		if (r == 0 && access(path, F_OK) == 0)
			return true;
	}
}
