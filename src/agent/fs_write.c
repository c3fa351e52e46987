/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file from what the host sends, or from other files. */
#include "agent/fs_priv.h"

#include <fcntl.h>
#include <poll.h>

/* What is taken from the pipe before it is written: fewer changes between us and whoever fills it. */
#define PIECE (UINT64_C(256) << 10)
/*
 * What is written at once, and so lies in the file at a multiple of itself: the box's tmpfs takes one page of that size
 * for it. The largest that the kernel has at hand for each CPU; larger ones cost less still when they are there, but a
 * virtual machine that gives free memory back to its host gives those first, and waits for them.
 */
#define BLOCK (UINT64_C(32) << 10)

/* Until the pipe has bytes, or ends, or nobody waits for the file any more. */
static int wait_for_bytes(const struct fs *fs)
{
	struct pollfd p[] = {
		{ .fd = fs->pipe_fd, .events = POLLIN },
		{ .fd = fs->sock, .events = POLLRDHUP },
	};
	int n;

	do {
		n = poll(p, ARRAY_SIZE(p), -1);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return p[0].revents ? 0 : -ECANCELED;
}

/* A whole piece; less only at the end of the file. */
static ssize_t read_piece(const struct fs *fs, unsigned char ret[PIECE])
{
	size_t len = 0;

	while (len < PIECE) {
		ssize_t n = read(fs->pipe_fd, ret + len, PIECE - len);
		int r = 0;

		if (n == 0)
			break;
		if (n > 0)
			len += (size_t)n;
		else if (errno == EAGAIN)
			r = wait_for_bytes(fs);
		else if (errno != EINTR)
			r = -errno;
		if (r < 0)
			return r;
	}
	return (ssize_t)len;
}

/* The end of the pipe alone could also be the end of whoever filled it. */
static int wait_for_file_end(int sock)
{
	static struct wire_frame f;
	int r = wire_recv(sock, &f, WIRE_ON_TO_OP);

	if (r <= 0)
		return r < 0 ? r : -ECANCELED;
	return f.head.type == WIRE_FILE_END ? 0 : -EPROTO;
}

static int write_piece(struct fs_upload *u, const unsigned char *data, size_t len)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < len; at += BLOCK)
		r = fs_upload_add(u, data + at, MIN(BLOCK, len - at));
	return r;
}

static int receive_pipe(const struct fs *fs, struct fs_upload *u)
{
	static unsigned char piece[PIECE];
	ssize_t n = PIECE;

	if (fcntl(fs->pipe_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	while (n == PIECE) {
		int r;

		n = read_piece(fs, piece);
		r = n < 0 ? (int)n : write_piece(u, piece, (size_t)n);
		if (r < 0)
			return r;
	}
	return wait_for_file_end(fs->sock);
}

static int receive_frames(const struct fs *fs, struct fs_upload *u)
{
	static struct wire_frame f;

	for (;;) {
		int r = wire_recv(fs->sock, &f, WIRE_ON_TO_OP);

		if (r <= 0)
			return r < 0 ? r : -ECANCELED;
		if (f.head.type == WIRE_FILE_END)
			return 0;
		if (f.head.type != WIRE_DATA)
			return -EPROTO;
		r = fs_upload_add(u, f.data, wire_len(&f));
		if (r < 0)
			return r;
	}
}

int fs_write(struct fs *fs)
{
	_cleanup_(fs_upload_done) struct fs_upload u = FS_UPLOAD_INIT;
	const char *path = fs->request->paths[0];
	int r = fs_upload_begin(&u, path);

	if (r == 0)
		r = fs->pipe_fd >= 0 ? receive_pipe(fs, &u) : receive_frames(fs, &u);
	if (r == 0)
		r = fs_upload_commit(&u, fs->request->attrs, fs->request->attrs_len);
	return r < 0 ? r : fs_entry_tell(fs->sock, path, path);
}

/* All of a file as long as it was when it was opened. */
static int append(struct fs *fs, struct fs_upload *u, const char *path)
{
	static unsigned char data[WIRE_DATA_MAX];
	struct stat st;
	_cleanup_(fd_closep) int fd = fs_open_regular(path, &st);
	uint64_t left = fd < 0 ? 0 : (uint64_t)st.st_size;
	int r = fd < 0 ? fd : 0;

	while (r == 0 && left) {
		ssize_t n = read(fd, data, MIN(left, sizeof(data)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		left -= (uint64_t)n;
		r = fs_hung_up(fs->sock) ? -ECANCELED : fs_upload_add(u, data, (size_t)n);
	}
	return r;
}

/* The result stays, also when it was made from itself. */
static int remove_source(const char *path, const char *result)
{
	struct stat source, made;

	if (stat(path, &source) < 0 || stat(result, &made) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (source.st_dev == made.st_dev && source.st_ino == made.st_ino)
		return 0;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int fs_join(struct fs *fs)
{
	_cleanup_(fs_upload_done) struct fs_upload u = FS_UPLOAD_INIT;
	const struct fs_request *q = fs->request;
	int r = fs_upload_begin(&u, q->paths[0]);

	for (size_t i = 1; r == 0 && i < q->n_paths; i++)
		r = append(fs, &u, q->paths[i]);
	if (r == 0)
		r = fs_upload_commit(&u, q->attrs, q->attrs_len);
	for (size_t i = 1; r == 0 && i < q->n_paths; i++)
		r = remove_source(q->paths[i], q->paths[0]);
	return r < 0 ? r : fs_entry_tell(fs->sock, q->paths[0], q->paths[0]);
}
