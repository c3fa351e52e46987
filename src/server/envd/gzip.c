/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/gzip.h"

#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest window, and a gzip header */
#define GZIP_MEMORY 8
#define GZIP_LEVEL 1 /* it saves the way to the client, not a disk */
#define PIECE 65536

struct gzip {
	const struct stream *inner;
	void *inner_arg;
	z_stream z;
	bool input_ended, ended;
	char piece[PIECE];
};

void *gzip_new(const struct stream *inner, void *inner_arg)
{
	struct gzip *g = calloc(1, sizeof(*g));

	if (!g || deflateInit2(&g->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			       Z_DEFAULT_STRATEGY) != Z_OK) {
		inner->close(inner_arg);
		free(g);
		return NULL;
	}
	g->inner = inner;
	g->inner_arg = inner_arg;
	return g;
}

static int fill(struct gzip *g)
{
	ssize_t n = g->inner->read(g->inner_arg, g->piece, sizeof(g->piece));

	if (n < 0)
		return (int)n;
	g->input_ended = n == 0;
	g->z.next_in = (unsigned char *)g->piece;
	g->z.avail_in = (unsigned)n;
	return 0;
}

static ssize_t gzip_read(void *arg, char *data, size_t max)
{
	struct gzip *g = arg;
	unsigned room = (unsigned)MIN(max, (size_t)PIECE);

	g->z.next_out = (unsigned char *)data;
	g->z.avail_out = room;
	while (g->z.avail_out == room && !g->ended) {
		int r = g->z.avail_in == 0 && !g->input_ended ? fill(g) : 0;

		if (r < 0)
			return r;
		r = deflate(&g->z, g->input_ended ? Z_FINISH : Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return -EIO;
		g->ended = r == Z_STREAM_END;
	}
	return (ssize_t)(room - g->z.avail_out);
}

static void gzip_close(void *arg)
{
	struct gzip *g = arg;

	(void)deflateEnd(&g->z);
	g->inner->close(g->inner_arg);
	free(g);
}

const struct stream gzip_stream = { .read = gzip_read, .close = gzip_close };
