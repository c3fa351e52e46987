/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file from what the host sends, or from other files. */
#include "agent/fs/priv.h"

#include <fcntl.h>

/* What is taken from a pipe at once: the host's end of it holds several times as much. */
#define PIPE_PIECE (UINT64_C(256) << 10)

/* Exactly so many bytes. The pipe is the host's: it ends when the host gives up. */
static int receive_pipe(struct fs_upload *u, int pipe_fd, uint64_t left)
{
	static unsigned char piece[PIPE_PIECE];

	while (left) {
		ssize_t n = read(pipe_fd, piece, MIN(left, sizeof(piece)));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECANCELED;
		left -= (uint64_t)n;
		r = fs_upload_add(u, piece, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One frame, and what it brings: 1 when the file goes on, 0 at its end. Only PIPE has a descriptor. */
static int receive_some(struct fs *fs, struct fs_upload *u)
{
	static struct wire_frame f;
	_cleanup_(fd_closep) int pipe_fd = -EBADF;
	size_t n_fds = 1;
	int r = wire_recv_fds(fs->sock, &f, WIRE_ON_TO_OP, &pipe_fd, &n_fds);

	if (r <= 0)
		return r < 0 ? r : -ECANCELED;
	if (n_fds != (f.head.type == WIRE_PIPE))
		return -EPROTO;
	switch (f.head.type) {
	case WIRE_FILE_END:
		return 0;
	case WIRE_DATA:
		r = fs_upload_add(u, f.data, wire_len(&f));
		break;
	case WIRE_PIPE:
		r = receive_pipe(u, pipe_fd,
				 ((const struct wire_pipe *)(const void *)f.data)->bytes);
		break;
	default:
		r = -EPROTO;
	}
	return r < 0 ? r : 1;
}

static int receive(struct fs *fs, struct fs_upload *u)
{
	int r;

	do {
		r = receive_some(fs, u);
	} while (r > 0);
	return r;
}

int fs_write(struct fs *fs)
{
	_cleanup_(fs_upload_done) struct fs_upload u = FS_UPLOAD_INIT;
	const char *path = fs->request->paths[0];
	int r = fs_upload_begin(&u, path);

	if (r == 0)
		r = receive(fs, &u);
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
