/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that grows up to a hard maximum and never past it. */
#pragma once

#include "base/util.h"

struct buf {
	unsigned char *data; /* len bytes, followed by a NUL that is not counted */
	size_t len;
	size_t size;
	size_t max;
};

#define BUF_INIT(maximum)                                                                          \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}

void buf_done(struct buf *b);

/* -ENOBUFS when it would exceed the maximum (nothing is added then), -ENOMEM. */
_must_check_ int buf_add(struct buf *b, const void *data, size_t len);

/* Reads the rest of a descriptor; -EFBIG when there is more than the maximum. */
_must_check_ int buf_read_fd(struct buf *b, int fd);
