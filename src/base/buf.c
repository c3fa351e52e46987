/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

static int buf_reserve(struct buf *b, size_t more)
{
	size_t need, size;
	unsigned char *data;

	if (__builtin_add_overflow(b->len, more, &need) || need > b->max)
		return -ENOBUFS;
	if (need < b->size)
		return 0;
	size = MAX(b->size * 2, (size_t)256);
	size = MAX(MIN(size, b->max + 1), need + 1);
	data = realloc(b->data, size);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->size = size;
	return 0;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	int r = buf_reserve(b, len);

	if (r < 0)
		return r;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_read_fd(struct buf *b, int fd)
{
	for (;;) {
		unsigned char chunk[16384];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return buf_add(b, "", 0);

		int r = buf_add(b, chunk, (size_t)n);

		if (r == -ENOBUFS)
			return -EFBIG;
		if (r < 0)
			return r;
	}
}
