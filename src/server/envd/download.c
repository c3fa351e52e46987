/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET and HEAD of /files. The agent opens the file once and tells what it is before it sends a
 * byte, so length, time and bytes are of one file, whatever happens to its name meanwhile. What
 * breaks off in the middle resets the connection: a client that counts has fewer bytes than it was
 * promised, one that does not gets an error.
 */
#include "server/envd/envd.h"

#include "server/envd/file_head.h"
#include "server/http/head_field.h"

#include <zlib.h>

/* --- gzip ------------------------------------------------------------------------------------ */

#define GZIP_WINDOW (15 + 16) /* the largest window, and a gzip header */
#define GZIP_MEMORY 8
#define GZIP_LEVEL 1 /* it saves the way to the client, not a disk */
#define GZIP_PIECE 65536

struct gzip {
	const struct stream *inner;
	void *inner_arg;
	z_stream z;
	bool input_ended, ended;
	char piece[GZIP_PIECE];
};

/* Takes over inner_arg, also when it fails (NULL then). */
static void *gzip_new(const struct stream *inner, void *inner_arg)
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

static int gzip_fill(struct gzip *g)
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
	unsigned room = (unsigned)MIN(max, (size_t)GZIP_PIECE);

	g->z.next_out = (unsigned char *)data;
	g->z.avail_out = room;
	while (g->z.avail_out == room && !g->ended) {
		int r = g->z.avail_in == 0 && !g->input_ended ? gzip_fill(g) : 0;

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

static const struct stream gzip_stream = { .read = gzip_read, .close = gzip_close };

/* --- the file -------------------------------------------------------------------------------- */

#define TIMEOUT_MS 60000 /* without a byte from the box */

/*
 * The bytes come through a pipe, into which the kernel moves the file's own pages; the operation's
 * socket only tells how it ends. So each byte is copied once to us and once to the client.
 */
struct download {
	struct talk *talk;
	uint64_t left; /* promised and not yet received */
	int pipe_fd;
	bool told; /* the agent has said its last word */
};

static void download_close(void *arg)
{
	struct download *d = arg;

	talk_free(d->talk);
	fd_close(d->pipe_fd);
	free(d);
}

/* The agent says something, or is gone, while bytes are missing. What it has put into the pipe
 * before can be read. */
static int last_word(struct download *d)
{
	int r = talk_recv_now(d->talk);

	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	if (d->talk->frame.head.type == WIRE_FAILED)
		return -ENODATA; /* the file was cut short */
	if (d->talk->frame.head.type != WIRE_DONE)
		return envd_broken(d->talk->op.sandbox, "in a file");
	d->told = true;
	return 0;
}

static int wait_for_bytes(struct download *d)
{
	int other_fd = d->told ? -EBADF : d->talk->op.sock;
	int r = stream_wait_either(d->talk->request, d->pipe_fd, other_fd, TIMEOUT_MS);

	if (r <= 0)
		return r < 0 ? r : -ETIMEDOUT;
	return d->told ? 0 : last_word(d);
}

static ssize_t download_read(void *arg, char *data, size_t max)
{
	struct download *d = arg;
	ssize_t n;
	int r;

	if (d->left == 0)
		return 0;
	for (;;) {
		n = read(d->pipe_fd, data, MIN(max, d->left));
		if (n > 0) {
			d->left -= (uint64_t)n;
			return n;
		}
		if (n == 0)
			return -ENODATA;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for_bytes(d);
		if (r < 0)
			return r;
	}
}

static const struct stream download_stream = { .read = download_read, .close = download_close };

/* What is asked for: whose file, which, and which part of it. */
struct download_wanted {
	char user[RPC_USER_SIZE];
	const char *path;
	uint64_t offset, length;
	bool part;
	bool gzip;
	struct wire_fs_entry is; /* what the file is: size and times */
};

/* GO, with a pipe for the bytes: our end of it. */
static int go_with_pipe(struct talk *t)
{
	int fds[2], r = talk_pipe(fds, 0);

	if (r < 0)
		return r;
	r = wire_send_fds(t->op.sock, WIRE_GO, NULL, 0, &fds[1], 1);
	fd_close(fds[1]);
	if (r < 0) {
		fd_close(fds[0]);
		return r == -EAGAIN ? -ETIMEDOUT : r == -EPIPE ? -ENOTCONN : r;
	}
	return fds[0];
}

/* Opens the file: 0 with its ENTRY and a pipe; 1 when it replied. */
static int download_open(struct talk *t, struct download_wanted *w, int *ret_pipe)
{
	_cleanup_(fd_closep) int pipe_fd = -EBADF;
	const struct wire_fs request = { .op = WIRE_FS_READ,
					 .offset = w->offset,
					 .length = w->length };
	struct wire_failed failed;
	struct envd_entry entry;
	int r = envd_fs_open(t, &request, w->user, &w->path, 1);

	if (r < 0)
		return r;
	pipe_fd = go_with_pipe(t);
	r = pipe_fd < 0 ? pipe_fd : talk_recv(t);
	if (r < 0)
		return r;
	if (talk_failed(&t->frame, &failed) == 0) {
		r = envd_files_failed(t->request, &failed, w->user, w->path);
		return r < 0 ? r : 1;
	}
	if (t->frame.head.type != WIRE_ENTRY ||
	    envd_entry_read(t->frame.data, wire_len(&t->frame), &entry) < 0)
		return envd_broken(t->request->sandbox, "about a file");
	w->is = *entry.head;
	*ret_pipe = take_fd(&pipe_fd);
	return 0;
}

/* Where the client has the file already. */
static bool not_modified(struct request *r, const char *etag, int64_t mtime_s)
{
	const char *tags = request_header(r, "If-None-Match");
	int64_t since;

	if (tags)
		return envd_etag_matches(tags, etag);
	return envd_date_parse(request_header(r, "If-Modified-Since"), &since) && mtime_s <= since;
}

static void download_add_headers(struct request *r, const struct download_wanted *w,
				 const char *etag)
{
	char disposition[ENVD_DISPOSITION_SIZE], date[HEAD_DATE_SIZE], range[80];

	envd_disposition(w->path, disposition);
	head_date(w->is.mtime_s, date);
	reply_header(r, "Content-Disposition", disposition);
	reply_header(r, "Vary", "Accept-Encoding");
	reply_header(r, "Accept-Ranges", w->gzip ? "none" : "bytes");
	reply_header(r, "ETag", etag);
	if (w->gzip)
		reply_header(r, "Content-Encoding", "gzip");
	if (*date)
		reply_header(r, "Last-Modified", date);
	/* FI-16: what a sandbox made must not run as a page of ours. */
	reply_header(r, "Content-Security-Policy", "sandbox; default-src 'none'");
	if (!w->part)
		return;
	(void)snprintf(range, sizeof(range), "bytes %llu-%llu/%llu", (unsigned long long)w->offset,
		       (unsigned long long)(w->offset + w->length - 1),
		       (unsigned long long)w->is.size);
	reply_header(r, "Content-Range", range);
}

static int reply_file(struct request *r, struct talk **t, int *pipe_fd,
		      const struct download_wanted *w)
{
	uint64_t rest = w->is.size - MIN(w->offset, w->is.size);
	uint64_t length = MIN(w->length, rest);
	char etag[ENVD_ETAG_SIZE];
	struct download *d;
	void *gzip;

	envd_etag(w->is.mtime_s, w->is.mtime_ns, w->is.size, etag);
	if (!w->part && not_modified(r, etag, w->is.mtime_s)) {
		reply_header(r, "ETag", etag);
		return reply_empty(r, 304);
	}
	d = calloc(1, sizeof(*d));
	if (!d || talk_no_wait(*t) < 0) {
		free(d);
		return -ENOMEM;
	}
	d->talk = take_ptr(*t);
	d->pipe_fd = take_fd(pipe_fd);
	d->left = length;
	if (w->gzip) {
		char weak[ENVD_ETAG_SIZE + 2];

		/* The same file in another form: its tag says the same, but not for every byte. */
		(void)snprintf(weak, sizeof(weak), "W/%s", etag);
		download_add_headers(r, w, weak);
		gzip = gzip_new(&download_stream, d);
		return gzip ? reply_stream(r, 200, "application/octet-stream", UINT64_MAX,
					   &gzip_stream, gzip) :
			      -ENOMEM;
	}
	download_add_headers(r, w, etag);
	return reply_stream(r, w->part ? 206 : 200, "application/octet-stream", length,
			    &download_stream, d);
}

/* A part is only known once the size is: asks for it first. 0, or 1 when it replied. */
static int find_part(struct request *r, struct download_wanted *w, const char *range)
{
	_cleanup_(talk_freep) struct talk *t = talk_new(r);
	_cleanup_(fd_closep) int pipe_fd = -EBADF;
	const char *only_if = request_header(r, "If-Range");
	char etag[ENVD_ETAG_SIZE], all[48];
	int n;

	w->length = 0;
	n = t ? download_open(t, w, &pipe_fd) : -ENOMEM;
	if (n != 0)
		return n;
	w->length = UINT64_MAX;
	envd_etag(w->is.mtime_s, w->is.mtime_ns, w->is.size, etag);
	if (only_if && strcmp(only_if, etag) != 0)
		return 0; /* another file than the one the client has a part of */
	n = envd_range_parse(range, w->is.size, &w->offset, &w->length);
	w->part = n > 0;
	if (n >= 0)
		return 0;
	(void)snprintf(all, sizeof(all), "bytes */%llu", (unsigned long long)w->is.size);
	reply_header(r, "Content-Range", all);
	n = reply_error(r, 416, "the file has no such part");
	return n < 0 ? n : 1;
}

static int read_wanted(struct request *r, struct download_wanted *w)
{
	const char *user = request_query(r, "username");
	struct rpc_error e;

	w->path = request_query(r, "path");
	if (!w->path || !*w->path)
		return reply_error(r, 400, "path: is missing");
	if (strlen(w->path) > WIRE_PATH_MAX)
		return reply_error(r, 400, "path: is longer than %d bytes", WIRE_PATH_MAX);
	if (!user || !*user)
		user = "user";
	if (rpc_user_check(user, strlen(user), w->user, &e) < 0)
		return reply_error(r, 401, "%s", e.message);
	/* A part is a part of the file, not of what gzip makes of it. */
	w->gzip = !request_header(r, "Range") &&
		  envd_gzip_wanted(request_header(r, "Accept-Encoding"));
	if (!w->gzip && !envd_identity_accepted(request_header(r, "Accept-Encoding")))
		return reply_error(r, 406, "files are sent as they are (identity) or as gzip");
	return 0;
}

static int download_send(struct request *r, struct download_wanted *w)
{
	const char *range = request_header(r, "Range");
	_cleanup_(talk_freep) struct talk *t = NULL;
	_cleanup_(fd_closep) int pipe_fd = -EBADF;
	int n = range ? find_part(r, w, range) : 0;

	if (n != 0)
		return n < 0 ? n : 0;
	t = talk_new(r);
	n = t ? download_open(t, w, &pipe_fd) : -ENOMEM;
	if (n != 0)
		return n < 0 ? n : 0;
	/* The same file as a moment ago, or the range would be of another one. */
	if (w->part && w->offset + w->length > w->is.size)
		return reply_error(r, 409, "the file changed while it was being read; try again");
	return reply_file(r, &t, &pipe_fd, w);
}

int envd_files_read(struct request *r)
{
	struct download_wanted w = { .length = UINT64_MAX };
	int n = read_wanted(r, &w);

	if (n < 0 || r->replied)
		return n;
	n = download_send(r, &w);
	return n < 0 && !r->replied ? rpc_reply_gone(r, n) : n;
}

int envd_files_failed(struct request *r, const struct wire_failed *failed, const char *user,
		      const char *path)
{
	struct rpc_error e;

	(void)envd_fs_failed(failed, user, path, &e);
	if (failed->step == WIRE_STEP_FILE) {
		switch (failed->err) {
		case ENOENT:
			return reply_error(r, 404, "path '%.400s' does not exist", path);
		case EISDIR:
			return reply_error(r, 400, "path '%.400s' is a directory", path);
		case ENOSPC:
		case EDQUOT:
			return reply_error(r, 507, "the sandbox's disk is full");
		default:
			break;
		}
	}
	return reply_error(r, rpc_code_status(e.code), "%s", e.message);
}
