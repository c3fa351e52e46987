/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file. */
#include "agent/fs/fs_priv.h"

#include "base/io.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sendfile.h>
#include <sys/vfs.h>

#define PIPE_PIECE (UINT64_C(1) << 20)

/* The kernel's headers of the oldest distribution we build on have it; musl's package has none. */
#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

static int check_regular(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? 0 : -EINVAL;
}

/* FI-05: what is not a regular file is not even opened, because opening wakes what waits at the
 * other end of a pipe; should it change in between, O_NONBLOCK keeps us from waiting there. */
int fs_open_regular(const char *path, struct stat *ret)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	if (stat(path, ret) < 0)
		return -errno;
	r = check_regular(ret);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENXIO ? -EINVAL : -errno;
	if (fstat(fd, ret) < 0)
		return -errno;
	r = check_regular(ret);
	return r < 0 ? r : take_fd(&fd);
}

/* Files whose bytes are made up while they are read, and whose size says nothing. */
static bool is_pseudo(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	switch ((uint32_t)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
		return true;
	default:
		return false;
	}
}

static ssize_t read_part(int fd, void *data, size_t len)
{
	ssize_t n;

	do {
		n = read(fd, data, len);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* The part of a file of that size that is asked for. */
static void clip(const struct wire_fs *q, uint64_t size, uint64_t *ret_begin, uint64_t *ret_len)
{
	*ret_begin = MIN(q->offset, size);
	*ret_len = MIN(q->length, size - *ret_begin);
}

/* Reads all of it before its size is told. -EFBIG: it is larger than max, which is at most
 * FS_PSEUDO_MAX. */
static int read_whole(struct fs *fs, int fd, const char *path, size_t max)
{
	static struct fs_entry e;
	/* A page more, not a byte: some of them are read in whole words only. */
	static unsigned char text[FS_PSEUDO_MAX + 4096];
	uint64_t begin, left;
	size_t size = 0;
	ssize_t n = 0;
	int r;

	while (size <= max && (n = read_part(fd, text + size, max + 4096 - size)) > 0)
		size += (size_t)n;
	if (n < 0)
		return (int)n;
	if (size > max)
		return -EFBIG;
	r = fs_entry_opened(fd, size, path, &e);
	if (r == 0)
		r = fs_entry_send(fs->sock, &e);
	clip(&fs->request->fs, size, &begin, &left);
	if (r == 0 && fs->pipe_fd >= 0)
		return io_write_all(fs->pipe_fd, text + begin, left);
	while (r == 0 && left) {
		size_t len = MIN(left, WIRE_DATA_MAX);

		r = wire_send(fs->sock, WIRE_DATA, text + begin, len);
		begin += len;
		left -= len;
	}
	return r;
}

static int send_frames(int sock, int fd, uint64_t left)
{
	static unsigned char data[WIRE_DATA_MAX];
	int r = 0;

	while (r == 0 && left) {
		ssize_t n = read_part(fd, data, MIN(left, sizeof(data)));

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		r = wire_send(sock, WIRE_DATA, data, (size_t)n);
		left -= (uint64_t)n;
	}
	return r;
}

/* Closing the other end of the pipe ends us: nobody wants the rest. */
static int fill_pipe(int pipe_fd, int fd, uint64_t left)
{
	while (left) {
		ssize_t n = sendfile(pipe_fd, fd, NULL, MIN(left, PIPE_PIECE));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		left -= (uint64_t)n;
	}
	return 0;
}

/* FI-07, FI-08: how much comes is fixed here. Who makes the file shorter meanwhile breaks that
 * off. */
static int read_large(struct fs *fs, int fd, const char *path)
{
	static struct fs_entry e;
	uint64_t begin, left, size;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	r = fs_entry_opened(fd, size, path, &e);

	if (r == 0)
		r = fs_entry_send(fs->sock, &e);
	clip(&fs->request->fs, size, &begin, &left);
	if (r == 0 && left && lseek(fd, (off_t)begin, SEEK_SET) < 0)
		return -errno;
	if (r < 0)
		return r;
	return fs->pipe_fd >= 0 ? fill_pipe(fs->pipe_fd, fd, left) :
				  send_frames(fs->sock, fd, left);
}

int fs_read(struct fs *fs)
{
	const char *path = fs->request->paths[0];
	struct stat st;
	_cleanup_(fd_closep) int fd = fs_open_regular(path, &st);
	int r = -EFBIG;

	if (fd < 0)
		return fd;
	/* FI-06: people do read /proc/cpuinfo, and in a box's own, masked /proc that is harmless as
	 * long as it is bounded: one that does not end is refused. */
	if (is_pseudo(fd))
		return read_whole(fs, fd, path, FS_PSEUDO_MAX);
	/* Small files are those that are often written anew, and a reader must not meet one in the
	 * middle. */
	if (st.st_size <= FS_SMALL_MAX)
		r = read_whole(fs, fd, path, FS_SMALL_MAX);
	return r == -EFBIG ? read_large(fs, fd, path) : r;
}
