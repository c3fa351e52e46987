/* SPDX-License-Identifier: Apache-2.0 */
#include "server/envd/upload.h"

#include "server/envd/http.h"

#include <stdarg.h>

#define GZIP_WINDOW (15 + 16)        /* the largest window, and a gzip header */
#define DROP_MAX (UINT64_C(8) << 30) /* of a body that nobody wants any more */
#define INFLATE_PIECE (UINT64_C(64) << 10)

int upload_fail(struct upload *u, unsigned status, const char *fmt, ...)
{
	va_list args;

	u->status = status;
	va_start(args, fmt);
	(void)vsnprintf(u->why, sizeof(u->why), fmt, args);
	va_end(args);
	return -EREMOTEIO;
}

static enum MHD_Result each_header(void *arg, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	struct upload *u = arg;
	char key[ENVD_ATTR_KEY_MAX + 1];
	int r = envd_attr_key(name, key);

	(void)kind;
	if (r == -ENOENT)
		return MHD_YES;
	if (r < 0 || !value || !envd_attr_value_ok(value)) {
		(void)upload_fail(
			u, 400,
			"%.100s: name and value must be printable ASCII, the name at most %d long",
			name, ENVD_ATTR_KEY_MAX);
		return MHD_NO;
	}
	r = buf_add(&u->attrs, key, strlen(key) + 1);
	if (r == 0)
		r = buf_add(&u->attrs, value, strlen(value) + 1);
	if (r < 0)
		(void)upload_fail(u, 400, "X-Metadata: more than %d bytes together",
				  ENVD_ATTRS_MAX);
	return r < 0 ? MHD_NO : MHD_YES;
}

static int open_gzip(struct upload *u)
{
	const char *encoding = request_header(u->request, "Content-Encoding");

	if (!encoding || strcasecmp(encoding, "identity") == 0)
		return 0;
	if (strcasecmp(encoding, "gzip") != 0)
		return upload_fail(u, 415, "Content-Encoding must be gzip or identity");
	u->piece = malloc(INFLATE_PIECE);
	if (!u->piece || inflateInit2(&u->gzip, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	u->gzipped = true;
	/* FI-10: what does not fit in the box is not unpacked. */
	u->room = u->request->sandbox->limits.disk_bytes;
	return 0;
}

static int open_body(struct upload *u)
{
	const char *type = request_header(u->request, "Content-Type");

	if (rpc_type_is(type, "multipart/form-data"))
		return parts_open(u);
	if (!rpc_type_is(type, "application/octet-stream"))
		return upload_fail(
			u, 400,
			"Content-Type must be multipart/form-data or application/octet-stream");
	if (!u->path || !*u->path)
		return upload_fail(u, 400, "path: is missing");
	return sink_open(u, u->path);
}

static int read_request(struct upload *u)
{
	const char *user = request_query(u->request, "username");
	struct rpc_error e;

	if (!user || !*user)
		user = "user";
	if (rpc_user_check(user, strlen(user), u->user, &e) < 0)
		return upload_fail(u, 401, "%s", e.message);
	u->path = request_query(u->request, "path");
	(void)MHD_get_connection_values(u->request->connection, MHD_HEADER_KIND, each_header, u);
	return u->status ? -EREMOTEIO : 0;
}

/*
 * Something went wrong. What was not finished leaves nothing behind. The library can send a reply only once the
 * body has come, and a client that is told nothing cannot know that the disk is full: so the rest is read and dropped.
 */
static int give_up(struct upload *u, int err)
{
	sink_undo(u);
	u->error = err;
	return err == -ECONNRESET ? err : 0; /* there is nobody to be told */
}

static int reply_wrong(struct upload *u)
{
	return u->error == -EREMOTEIO ? reply_error(u->request, u->status, "%s", u->why) :
					rpc_reply_gone(u->request, u->error);
}

int envd_upload_begin(struct request *r)
{
	struct upload *u = calloc(1, sizeof(*u));
	int n;

	if (!u)
		return -ENOMEM;
	r->state = u;
	u->request = r;
	u->attrs.max = ENVD_ATTRS_MAX;
	u->written = json_array();
	u->targets = json_object();
	n = u->written && u->targets ? read_request(u) : -ENOMEM;
	if (n == 0)
		n = open_gzip(u);
	if (n == 0)
		n = open_body(u);
	return n < 0 ? give_up(u, n) : 0;
}

static int feed(struct upload *u, const void *data, size_t len)
{
	return u->parts ? parts_feed(u, data, len) : sink_write(u, data, len);
}

/* Where the body is the file, nothing needs to look at what comes behind its first piece. */
static int feed_plain(struct upload *u, const void *data, size_t len)
{
	bool first = u->sink.bytes == 0;
	int r = feed(u, data, len);

	return r == 0 && first && !u->parts ? sink_pour(u) : r;
}

/* One step of unpacking: as much as fits into one piece. */
static int inflate_step(struct upload *u)
{
	size_t n;
	int z;

	u->gzip.next_out = u->piece;
	u->gzip.avail_out = INFLATE_PIECE;
	z = inflate(&u->gzip, Z_NO_FLUSH);
	if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
		return upload_fail(u, 400, "the body is not gzip");
	u->gzip_ended = z == Z_STREAM_END;
	n = INFLATE_PIECE - u->gzip.avail_out;
	if (n > u->room)
		return upload_fail(u, 507, "unpacked, the body is larger than the sandbox's disk");
	u->room -= n;
	return n ? feed(u, u->piece, n) : 0;
}

static int feed_gzip(struct upload *u, const char *data, size_t len)
{
	int r = 0;

	u->gzip.next_in = (unsigned char *)(uintptr_t)data;
	u->gzip.avail_in = (unsigned)len;
	do {
		/* gzip files may be put one behind the other. */
		if (u->gzip_ended && inflateReset(&u->gzip) != Z_OK)
			return -EIO;
		u->gzip_ended = false;
		r = inflate_step(u);
	} while (r == 0 && (u->gzip.avail_in > 0 || (u->gzip.avail_out == 0 && !u->gzip_ended)));
	return r;
}

int envd_upload_data(struct request *r, const char *data, size_t len)
{
	struct upload *u = r->state;
	int n;

	if (u->error) {
		u->dropped += len;
		return u->dropped > DROP_MAX ? -EFBIG : 0;
	}
	n = u->gzipped ? feed_gzip(u, data, len) : feed_plain(u, data, len);
	return n < 0 ? give_up(u, n) : 0;
}

static int finish(struct upload *u)
{
	if (u->gzipped && !u->gzip_ended)
		return upload_fail(u, 400, "the gzip body is cut off");
	return u->parts ? parts_finish(u) : sink_finish(u);
}

int envd_upload_handle(struct request *r)
{
	struct upload *u = r->state;
	int n = u->error ? 0 : finish(u);

	if (n < 0)
		(void)give_up(u, n);
	return u->error ? reply_wrong(u) : reply_json(r, 200, take_ptr(u->written));
}

void envd_upload_done(struct request *r)
{
	struct upload *u = r->state;

	if (!u)
		return;
	parts_drop(u);
	sink_drop(u);
	if (u->gzipped)
		(void)inflateEnd(&u->gzip);
	free(u->piece);
	buf_done(&u->attrs);
	json_decref(u->written);
	json_decref(u->targets);
	free(u);
	r->state = NULL;
}
