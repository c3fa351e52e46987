/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /files, in three layers, with constant memory but for a few words about each file, which are
 * bounded: the request (what kind of body it is, gzip, the reply), multipart (which part goes
 * where), and one file on its way into the box.
 */
#include "server/envd/envd.h"

#include "base/clock.h"
#include "server/envd/file_head.h"

#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <zlib.h>

/* One file. What happened to it is in the upload. */
struct sink {
	struct talk *talk; /* NULL: none is being written */
	char *path;        /* where to, as the client says it */
	uint64_t bytes;
	size_t n; /* of: */
	unsigned char
		data[WIRE_DATA_MAX]; /* small pieces are collected, a frame is a system call */
};

struct upload {
	struct request *request;
	char user[RPC_USER_SIZE];
	const char *path; /* of the query, or NULL */
	struct buf attrs; /* key, NUL, value, NUL … */
	json_t *written;  /* the reply */
	uint64_t kept;    /* bytes of what the agent said of them */
	json_t *targets;  /* hashes of every path that was written to, as an object's keys */
	struct MHD_PostProcessor *parts; /* NULL: the body is the file */
	int part_error;                  /* what made the parser stop */
	z_stream gzip;
	bool gzipped;
	bool gzip_ended;
	unsigned char *piece; /* unpacked */
	uint64_t room;        /* how much a compressed body may still grow to */
	int error;            /* what went wrong, once something did, */
	uint64_t dropped;     /* and how much came after it */
	unsigned status;      /* what to reply with, once something went wrong, and why: */
	char why[512];
	struct sink sink;
};

/* Notes what to reply and returns -EREMOTEIO: "it is in the upload". */
static int upload_fail(struct upload *u, unsigned status, const char *fmt, ...) _printf_(3, 4);

static int upload_fail(struct upload *u, unsigned status, const char *fmt, ...)
{
	va_list args;

	u->status = status;
	va_start(args, fmt);
	(void)vsnprintf(u->why, sizeof(u->why), fmt, args);
	va_end(args);
	return -EREMOTEIO;
}

/* --- one file on its way into the box -------------------------------------------------------- */

#define LARGE_PIECE (UINT64_C(16) << 10)
#define SMALL_REST (UINT64_C(4) << 10)
#define UNDO_US (UINT64_C(5) * 1000000)
#define FILES_MAX 10000              /* of one request: each is kept in mind until the reply */
#define KEPT_MAX (UINT64_C(4) << 20) /* and so much is said about them */
#define SOCKET_BUFFER (1 << 20)      /* the kernel gives what it allows */

static int send_attrs(struct talk *t, const struct buf *attrs)
{
	const char *at = (const char *)attrs->data, *end = at + attrs->len;
	int r = 0;

	while (r == 0 && at && at < end) {
		size_t key = strlen(at), value = strlen(at + key + 1);

		r = talk_send(t, WIRE_ATTR, at, key + 1 + value);
		at += key + value + 2;
	}
	return r;
}

/*
 * Two parts of one request for the same file: the later would silently win. Paths are any bytes,
 * and as long as the client likes: what is kept is a hash of each, as text.
 */
static int claim(struct upload *u, const char *path)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char key[2 * sizeof(hash) + 1];

	crypto_hash_sha256(hash, (const unsigned char *)path, strlen(path));
	(void)sodium_bin2hex(key, sizeof(key), hash, sizeof(hash));
	if (json_object_get(u->targets, key))
		return upload_fail(u, 400, "two files of this request go to '%.300s'", path);
	return json_object_set_new(u->targets, key, json_true()) < 0 ? -ENOMEM : 0;
}

static int sink_open(struct upload *u, const char *path)
{
	const struct wire_fs request = { .op = WIRE_FS_WRITE };
	struct sink *s = &u->sink;
	int r;

	if (strlen(path) > WIRE_PATH_MAX)
		return upload_fail(u, 400, "the path is longer than %d bytes", WIRE_PATH_MAX);
	if (json_array_size(u->written) >= FILES_MAX || u->kept >= KEPT_MAX)
		return upload_fail(
			u, 400, "too many files in one request: at most %d, fewer with long names",
			FILES_MAX);
	r = claim(u, path);
	if (r < 0)
		return r;
	s->n = s->bytes = 0;
	s->path = strdup(path);
	s->talk = talk_new(u->request);
	if (!s->path || !s->talk)
		return -ENOMEM;
	r = envd_fs_open(s->talk, &request, u->user, &path, 1);
	if (r == 0) /* more in flight means fewer changes between the two processes */
		(void)setsockopt(s->talk->op.sock, SOL_SOCKET, SO_SNDBUF, &(int){ SOCKET_BUFFER },
				 sizeof(int));
	if (r == 0)
		r = send_attrs(s->talk, &u->attrs);
	return r < 0 ? r : talk_send(s->talk, WIRE_GO, NULL, 0);
}

static int wait_for_answer(struct sink *s)
{
	/* However long the upload took: from now on. */
	s->talk->until_us = clock_boot_us() + ENVD_WAIT_MS * UINT64_C(1000);
	return talk_recv(s->talk);
}

/* The frame says why the file could not be written. */
static int sink_on_failed(struct upload *u)
{
	struct sink *s = &u->sink;
	struct wire_failed failed;
	struct rpc_error e;

	if (talk_failed(&s->talk->frame, &failed) < 0)
		return envd_broken(u->request->sandbox, "while a file was sent");
	(void)envd_fs_failed(&failed, u->user, s->path, &e);
	if (failed.step == WIRE_STEP_FILE && failed.err == EISDIR)
		return upload_fail(u, 400, "path '%.300s' is a directory", s->path);
	if (failed.step == WIRE_STEP_FILE && (failed.err == ENOSPC || failed.err == EDQUOT))
		return upload_fail(u, 507, "the sandbox's disk is full");
	return upload_fail(u, rpc_code_status(e.code), "%s", e.message);
}

/* What the agent says before it has everything can only be that it failed. */
static int sink_failure(struct upload *u)
{
	int r = wait_for_answer(&u->sink);

	return r < 0 ? r : sink_on_failed(u);
}

/* Sends what was collected, and data behind it. */
static int send_frame(struct upload *u, const void *data, size_t len)
{
	struct sink *s = &u->sink;
	struct pollfd p = { .fd = s->talk->op.sock, .events = POLLIN };
	size_t before = s->n;
	int r;

	/* Sending two gigabytes to an agent that has refused already would be a waste. */
	if (poll(&p, 1, 0) > 0)
		return sink_failure(u);
	s->n = 0;
	r = wire_send2(p.fd, WIRE_DATA, s->data, before, data, len);
	if (r == -EPIPE)
		return sink_failure(u);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

static int sink_write(struct upload *u, const void *data, size_t len)
{
	struct sink *s = &u->sink;
	const unsigned char *from = data;
	/* Copying a large piece costs more than sending it, so only a small rest of one is kept. */
	size_t keep = len >= LARGE_PIECE ? SMALL_REST : sizeof(s->data) - 1;

	s->bytes += len;
	while (s->n + len > keep) {
		size_t n = MIN(len, sizeof(s->data) - s->n);
		int r = send_frame(u, from, n);

		if (r < 0)
			return r;
		from += n;
		len -= n;
	}
	memcpy(s->data + s->n, from, len);
	s->n += len;
	return 0;
}

static int sink_flush(struct upload *u)
{
	return u->sink.n ? send_frame(u, NULL, 0) : 0;
}

static int add_written(struct upload *u, const struct envd_entry *entry)
{
	json_t *info = envd_entry_json(entry), *attrs = envd_entry_attrs(entry);
	json_t *file = json_pack("{s:O, s:O, s:s}", "name", json_object_get(info, "name"), "path",
				 json_object_get(info, "path"), "type", "file");
	int r = file ? 0 : -ENOMEM;

	if (r == 0 && attrs)
		r = json_object_set(file, "metadata", attrs) < 0 ? -ENOMEM : 0;
	json_decref(attrs);
	json_decref(info);
	if (r < 0 || json_array_append_new(u->written, file) < 0)
		return -ENOMEM;
	return 0;
}

/* The same file by two names is noticed too, though only now. */
static int claim_resolved(struct upload *u, const struct envd_entry *entry)
{
	_cleanup_(freep) char *path = strndup(entry->path, entry->head->path_len);

	if (!path)
		return -ENOMEM;
	return strcmp(path, u->sink.path) == 0 ? 0 : claim(u, path);
}

static void sink_drop(struct upload *u)
{
	talk_freep(&u->sink.talk);
	free(u->sink.path);
	u->sink.path = NULL;
}

static int sink_finish(struct upload *u)
{
	struct sink *s = &u->sink;
	struct envd_entry entry;
	int r = sink_flush(u);

	if (r == 0)
		r = talk_send(s->talk, WIRE_FILE_END, NULL, 0);
	if (r < 0)
		return r;
	r = wait_for_answer(s);
	if (r < 0)
		return r;
	if (s->talk->frame.head.type == WIRE_FAILED)
		return sink_on_failed(u);
	if (s->talk->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(s->talk->frame.data, wire_len(&s->talk->frame), &entry) < 0)
		return envd_broken(u->request->sandbox, "after a file was sent");
	u->kept += wire_len(&s->talk->frame);
	r = claim_resolved(u, &entry);
	if (r == 0)
		r = add_written(u, &entry);
	sink_drop(u);
	return r;
}

static void sink_undo(struct upload *u)
{
	struct talk *t = u->sink.talk;

	if (t && t->op.sock >= 0) {
		(void)shutdown(t->op.sock, SHUT_WR);
		t->until_us = clock_boot_us() + UNDO_US;
		/* An agent that always has something to say would never be timed out otherwise. */
		while (clock_boot_us() < t->until_us && talk_recv(t) > 0)
			;
	}
	sink_drop(u);
}

/* --- the rest of a large one ----------------------------------------------------------------- */

/*
 * The rest of a large body that is a file as it is: the kernel moves it from the connection into a
 * pipe which the box reads, so none of it is copied here. What the box gets is the read end of a
 * pipe in which there is nothing but this body.
 */

/* Less is not worth a pipe, and a connection that cannot be used again. */
#define POUR_MIN (UINT64_C(1) << 20)
#define STALL_MS 10000 /* AG-09: in which the box reads nothing */

/* Until there is more of the body and room for it. A box that says something meanwhile has
 * failed. */
static int wait_for_both(struct upload *u, int pipe_fd)
{
	struct pollfd said = { .fd = u->sink.talk->op.sock, .events = POLLIN };
	int r = stream_wait_space(u->request, pipe_fd, said.fd, STALL_MS);

	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	r = body_wait(u->request, said.fd);
	if (r < 0)
		return r;
	return poll(&said, 1, 0) > 0 ? sink_failure(u) : 0;
}

static int pour_some(struct upload *u, int pipe_fd)
{
	ssize_t n = body_splice(u->request, pipe_fd);

	if (n == -EAGAIN) {
		int r = wait_for_both(u, pipe_fd);

		if (r < 0)
			return r;
		n = body_splice(u->request, pipe_fd);
		/* Both are there, and nothing moves: TCP's urgent data, of which HTTP knows
		 * nothing. It would be so for ever. */
		if (n == -EAGAIN)
			return -ECONNRESET;
	}
	if (n == -EPIPE)
		return sink_failure(u);
	return n < 0 ? (int)n : 0;
}

/* Tells the box what comes through the pipe's other end. */
static int send_pipe(struct upload *u, int theirs)
{
	const struct wire_pipe message = { .bytes = body_rest(u->request) };
	int r = sink_flush(u);

	if (r == 0)
		r = wire_send_fds(u->sink.talk->op.sock, WIRE_PIPE, &message, sizeof(message),
				  &theirs, 1);
	if (r == -EPIPE)
		return sink_failure(u);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

static int sink_pour(struct upload *u)
{
	_cleanup_(fd_closep) int ours = -EBADF, theirs = -EBADF;
	int fds[2], r;

	if (body_rest(u->request) < POUR_MIN)
		return 0;
	r = talk_pipe(fds, 1);
	if (r < 0)
		return 0; /* it goes on in frames */
	theirs = fds[0];
	ours = fds[1];
	/* The kernel gives all pipes of a user so much and no more. Through a small one it takes
	 * longer than in frames. */
	if (r < ENVD_PIPE_SIZE)
		return 0;
	r = send_pipe(u, theirs);
	fd_closep(&theirs); /* what the box closes is to have no reader left */
	while (r == 0 && body_rest(u->request) > 0)
		r = pour_some(u, ours);
	return r;
}

/* --- multipart ------------------------------------------------------------------------------- */

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
 * libmicrohttpd may tell of a part's beginning twice, with nothing in it the first time. Two empty
 * parts of one name look the same, and mean the same.
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

static int parts_open(struct upload *u)
{
	if (!envd_boundary_ok(request_header(u->request, "Content-Type")))
		return upload_fail(u, 400, "Content-Type: the boundary is missing or malformed");
	u->parts = MHD_create_post_processor(u->request->connection, PARTS_BUFFER, each_piece, u);
	return u->parts ? 0 : upload_fail(u, 400, "Content-Type: the boundary cannot be used");
}

static int parts_feed(struct upload *u, const void *data, size_t len)
{
	u->part_error = 0;
	if (MHD_post_process(u->parts, data, len) == MHD_YES)
		return 0;
	if (u->part_error < 0)
		return u->part_error;
	return upload_fail(u, 400, "the body is not multipart/form-data");
}

static int parts_finish(struct upload *u)
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

static void parts_drop(struct upload *u)
{
	if (!u->parts)
		return;
	/* It may call back with what is left: there is nowhere to write it to. */
	u->error = -ECANCELED;
	(void)MHD_destroy_post_processor(u->parts);
	u->parts = NULL;
}

/* --- the request ----------------------------------------------------------------------------- */

#define GZIP_WINDOW (15 + 16)        /* the largest window, and a gzip header */
#define DROP_MAX (UINT64_C(8) << 30) /* of a body that nobody wants any more */
#define INFLATE_PIECE (UINT64_C(64) << 10)

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

static int upload_read_request(struct upload *u)
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
 * Something went wrong. What was not finished leaves nothing behind. The library can send a reply
 * only once the body has come, and a client that is told nothing cannot know that the disk is full:
 * so the rest is read and dropped.
 */
static int upload_give_up(struct upload *u, int err)
{
	sink_undo(u);
	u->error = err;
	return err == -ECONNRESET ? err : 0; /* there is nobody to be told */
}

static int upload_reply_wrong(struct upload *u)
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
	n = u->written && u->targets ? upload_read_request(u) : -ENOMEM;
	if (n == 0)
		n = open_gzip(u);
	if (n == 0)
		n = open_body(u);
	return n < 0 ? upload_give_up(u, n) : 0;
}

static int upload_feed(struct upload *u, const void *data, size_t len)
{
	return u->parts ? parts_feed(u, data, len) : sink_write(u, data, len);
}

/* Where the body is the file, nothing needs to look at what comes behind its first piece. */
static int feed_plain(struct upload *u, const void *data, size_t len)
{
	bool first = u->sink.bytes == 0;
	int r = upload_feed(u, data, len);

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
	return n ? upload_feed(u, u->piece, n) : 0;
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
	return n < 0 ? upload_give_up(u, n) : 0;
}

static int upload_finish(struct upload *u)
{
	if (u->gzipped && !u->gzip_ended)
		return upload_fail(u, 400, "the gzip body is cut off");
	return u->parts ? parts_finish(u) : sink_finish(u);
}

int envd_upload_handle(struct request *r)
{
	struct upload *u = r->state;
	int n = u->error ? 0 : upload_finish(u);

	if (n < 0)
		(void)upload_give_up(u, n);
	return u->error ? upload_reply_wrong(u) : reply_json(r, 200, take_ptr(u->written));
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
