/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <dirent.h>
#include <stddef.h>

/* For _cleanup_: closes a directory stream, if there is one. */
static inline void dir_closep(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}
