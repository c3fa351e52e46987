/* SPDX-License-Identifier: Apache-2.0 */
#include "box/breakable.h"

#include "base/util.h"

#ifdef GLOVEBOX_BREAKABLE
bool control_on(const char *name)
{
	const char *list = getenv("GLOVEBOX_BREAK");
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
