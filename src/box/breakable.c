/* SPDX-License-Identifier: Apache-2.0 */
#include "box/breakable.h"

#include "base/util.h"

#ifdef GLOVEBOX_BREAKABLE
static const char *broken;

/* At once: a program that loads this may change its variables later. */
__attribute__((constructor)) static void read_broken(void)
{
	const char *list = getenv("GLOVEBOX_BREAK");

	broken = list ? strdup(list) : NULL;
}

bool control_on(const char *name)
{
	const char *list = broken;
	size_t len = strlen(name);

	while (list && *list) {
		const char *comma = strchrnul(list, ',');

		if ((size_t)(comma - list) == len && memcmp(list, name, len) == 0)
			return false;
		list = *comma ? comma + 1 : comma;
	}
	return true;
}
#endif
