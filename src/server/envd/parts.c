/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/upload.h"

#include "server/envd/http.h"

#define PARTS_BUFFER (UINT64_C(128) << 10)
#define PART_NAME "file" /* parts of another name are not files */

/* Where a part goes: the query's path, or else its own file name. */
static int find_target(struct upload *u, const char *filename, char ret[WIRE_PATH_MAX + 1])
{
	bool named = u->path && *u->path;

	if (!named && (!filename || !*filename))
		return upload_fail(u, 400, "a file without a name, and no path in the query");
	if (!named && envd_part_name(filename, ret, WIRE_PATH_MAX + 1) == 0)
		return 0;
	if (named && strlen(u->path) <= WIRE_PATH_MAX) {
		memcpy(ret, u->path, strlen(u->path) + 1);
		return 0;
	}
	return upload_fail(u, 400, "the path is longer than %d bytes", WIRE_PATH_MAX);
}

/*
 * libmicrohttpd may tell of a part's beginning twice, with nothing in it the first time. Two empty parts of one
 * name look the same, and mean the same.
 */
static bool is_beginning(const struct upload *u, const char *target, uint64_t off)
{
	const struct sink *s = &u->sink;

	return off == 0 && !(s->talk && s->bytes == 0 && strcmp(s->path, target) == 0);
}

static int on_part(struct upload *u, const char *key, const char *filename, const char *data,
		   uint64_t off, size_t len)
{
	char target[WIRE_PATH_MAX + 1];
	int r;

	if (u->error || !key || strcmp(key, PART_NAME) != 0)
		return 0;
	r = find_target(u, filename, target);
	if (r < 0)
		return r;
	if (is_beginning(u, target, off)) {
		if (u->sink.talk)
			r = sink_finish(u);
		if (r == 0)
			r = sink_open(u, target);
	}
	if (r < 0)
		return r;
	return u->sink.talk ? sink_write(u, data, len) : -EPROTO;
}

static enum MHD_Result each_piece(void *arg, enum MHD_ValueKind kind, const char *key,
				  const char *filename, const char *content_type,
				  const char *transfer_encoding, const char *data, uint64_t off,
				  size_t size)
{
	struct upload *u = arg;

	(void)kind;
	(void)content_type;
	(void)transfer_encoding;
	u->part_error = on_part(u, key, filename, data, off, size);
	return u->part_error < 0 ? MHD_NO : MHD_YES;
}

int parts_open(struct upload *u)
{
	if (!envd_boundary_ok(request_header(u->request, "Content-Type")))
		return upload_fail(u, 400, "Content-Type: the boundary is missing or malformed");
	u->parts = MHD_create_post_processor(u->request->connection, PARTS_BUFFER, each_piece, u);
	return u->parts ? 0 : upload_fail(u, 400, "Content-Type: the boundary cannot be used");
}

int parts_feed(struct upload *u, const void *data, size_t len)
{
	u->part_error = 0;
	if (MHD_post_process(u->parts, data, len) == MHD_YES)
		return 0;
	if (u->part_error < 0)
		return u->part_error;
	return upload_fail(u, 400, "the body is not multipart/form-data");
}

int parts_finish(struct upload *u)
{
	enum MHD_Result whole;

	u->part_error = 0;
	whole = MHD_destroy_post_processor(u->parts);
	u->parts = NULL;
	if (u->part_error < 0)
		return u->part_error;
	if (whole != MHD_YES)
		return upload_fail(u, 400, "the body ends before its last part does");
	if (u->sink.talk)
		return sink_finish(u);
	if (json_array_size(u->written) == 0)
		return upload_fail(u, 400, "the body has no part named \"" PART_NAME "\"");
	return 0;
}

void parts_drop(struct upload *u)
{
	if (!u->parts)
		return;
	/* It may call back with what is left: there is nowhere to write it to. */
	u->error = -ECANCELED;
	(void)MHD_destroy_post_processor(u->parts);
	u->parts = NULL;
}
