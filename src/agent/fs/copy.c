/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a tree, for a move that the kernel cannot do by renaming. Modes, times, links,
 * attributes and holes are kept, owners where the user may; two names of one file become two
 * files. Pipes and sockets are made anew, as mv does.
 */
#include "agent/fs/priv.h"

#include "base/dir.h"
#include "base/io.h"

#include <fcntl.h>
#include <sys/xattr.h>

#define USER_ATTRS "user."
#define BLOCK 65536

struct level {
	DIR *from;
	int to_fd;
	struct stat st; /* what the copy of this directory gets when it is complete */
};

struct copy {
	struct level levels[FS_COPY_DEPTH_MAX];
	size_t n;
	int sock;
};

static void copy_done(struct copy *c)
{
	while (c->n) {
		struct level *level = &c->levels[--c->n];

		dir_closep(&level->from);
		fd_close(level->to_fd);
	}
}

static int copy_attrs(int from_fd, int to_fd)
{
	static char list[65536], value[65536]; /* the kernel's largest */
	ssize_t len = flistxattr(from_fd, list, sizeof(list));

	for (const char *name = list; len > 0 && name < list + len; name += strlen(name) + 1) {
		ssize_t n;

		if (strncmp(name, USER_ATTRS, strlen(USER_ATTRS)) != 0)
			continue;
		n = fgetxattr(from_fd, name, value, sizeof(value));
		/* A file system that keeps none is no reason not to move there. */
		if (n >= 0 && fsetxattr(to_fd, name, value, (size_t)n, 0) < 0 && errno == ENOSPC)
			return -ENOSPC;
	}
	return 0;
}

/* The copy becomes like the original in all but its bytes. */
static int finish(int from_fd, int to_fd, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	mode_t mode = st->st_mode & 07777;
	int r = copy_attrs(from_fd, to_fd);

	if (r < 0)
		return r;
	/* Without the owner, the right to act as him must not be kept either. */
	if (fchown(to_fd, st->st_uid, st->st_gid) < 0)
		mode &= 01777;
	if (fchmod(to_fd, mode) < 0 || futimens(to_fd, times) < 0)
		return -errno;
	return 0;
}

static bool is_zero(const unsigned char *data, size_t len)
{
	return len == 0 || (data[0] == 0 && memcmp(data, data + 1, len - 1) == 0);
}

static int copy_bytes(const struct copy *c, int from_fd, int to_fd)
{
	static unsigned char data[BLOCK];
	off_t size = 0;

	for (;;) {
		ssize_t n = read(from_fd, data, sizeof(data));
		int r = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return ftruncate(to_fd, size) < 0 ? -errno : 0;
		if (fs_hung_up(c->sock))
			return -ECANCELED;
		size += n;
		if (is_zero(data, (size_t)n))
			r = lseek(to_fd, n, SEEK_CUR) < 0 ? -errno : 0;
		else
			r = io_write_all(to_fd, data, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int copy_file(const struct copy *c, int from_fd, const char *from, int to_fd, const char *to)
{
	_cleanup_(fd_closep) int in =
		openat(from_fd, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_(fd_closep) int out = -EBADF;
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL; /* it was one a moment ago */
	out = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_bytes(c, in, out);
	return r < 0 ? r : finish(in, out, &st);
}

static int copy_link(int from_fd, const char *from, int to_fd, const char *to,
		     const struct stat *st)
{
	static char target[FS_PATH_SIZE];
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	ssize_t n = readlinkat(from_fd, from, target, sizeof(target));

	if (n < 0 || (size_t)n >= sizeof(target))
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	if (symlinkat(target, to_fd, to) < 0)
		return -errno;
	(void)!fchownat(to_fd, to, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
	(void)utimensat(to_fd, to, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int enter(struct copy *c, int from_fd, const char *from, int to_fd, const char *to)
{
	struct level *level = &c->levels[c->n];
	int fd;

	if (c->n == FS_COPY_DEPTH_MAX)
		return -ELOOP;
	if (mkdirat(to_fd, to, 0700) < 0)
		return -errno;
	level->to_fd = openat(to_fd, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = openat(from_fd, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	level->from = fd < 0 || fstat(fd, &level->st) < 0 ? NULL : fdopendir(fd);
	if (level->to_fd < 0 || !level->from) {
		int r = -errno;

		if (level->from)
			dir_closep(&level->from);
		else
			fd_close(fd);
		fd_close(level->to_fd);
		return r;
	}
	c->n++;
	return 0;
}

static int copy_one(struct copy *c, int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat st;

	if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(c, from_fd, from, to_fd, to);
	case S_IFLNK:
		return copy_link(from_fd, from, to_fd, to, &st);
	case S_IFDIR:
		return enter(c, from_fd, from, to_fd, to);
	case S_IFIFO:
	case S_IFSOCK:
		return mknodat(to_fd, to, st.st_mode & (S_IFMT | 0777), 0) < 0 ? -errno : 0;
	default:
		return -EINVAL;
	}
}

/* Leaves the innermost directory, whose copy is complete. */
static int leave(struct copy *c)
{
	struct level *level = &c->levels[c->n - 1];
	int r = finish(dirfd(level->from), level->to_fd, &level->st);

	c->n--;
	dir_closep(&level->from);
	fd_close(level->to_fd);
	return r;
}

static int copy_next(struct copy *c)
{
	const struct level *level = &c->levels[c->n - 1];
	const struct dirent *d;

	errno = 0;
	d = readdir(level->from);
	if (!d)
		return errno ? -errno : leave(c);
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	return copy_one(c, dirfd(level->from), d->d_name, level->to_fd, d->d_name);
}

int fs_copy_at(const char *from, int dir_fd, const char *name, int sock)
{
	static struct copy c;
	int r;

	c.sock = sock;
	r = copy_one(&c, AT_FDCWD, from, dir_fd, name);
	while (r == 0 && c.n)
		r = copy_next(&c);
	copy_done(&c);
	return r;
}
