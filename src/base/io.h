/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

/* Writes all of it to a descriptor that blocks. */
_must_check_ static inline int io_write_all(int fd, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
