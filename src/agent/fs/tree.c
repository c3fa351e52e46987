/* SPDX-License-Identifier: Apache-2.0 */
/* Whole trees: removing them, and copying them where the kernel cannot rename. */
#include "agent/fs/fs_priv.h"

#include "base/dir.h"
#include "base/io.h"

#include <fcntl.h>
#include <sys/xattr.h>

#define USER_ATTRS "user."
#define BLOCK 65536

/* --- removing -------------------------------------------------------------------------------- */

/*
 * Removing a tree of any depth with two descriptors: one directory is in hand at a time. Down goes
 * by name without following links, up by "..", and up only into the directory that we came from:
 * somebody may move the one in hand elsewhere meanwhile, and ".." with it. Back in a directory, it
 * is read from its beginning, where the one just emptied can now be removed like an empty one. The
 * first thing that cannot be removed ends it.
 */
struct file_id {
	dev_t dev;
	ino_t ino;
};

struct removal {
	int fd;             /* the directory in hand */
	struct file_id *up; /* those above it, below which everything goes */
	size_t n_up, size;
	int sock;
};

static void removal_done(struct removal *w)
{
	fd_closep(&w->fd);
	free(w->up);
	w->up = NULL;
}

static int get_id(int fd, struct file_id *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct file_id){ .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

/* 1: a directory that is not empty. Not there is fine. */
static int remove_one(int dir_fd, const char *name, bool likely_dir)
{
	/* In the likely order; each says when it is the wrong one. */
	if (!likely_dir && (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT))
		return 0;
	if (!likely_dir && errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 1;
	if (errno != ENOTDIR)
		return -errno;
	return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

static int removal_down(struct removal *w, const char *name)
{
	struct file_id here = { 0 };
	int fd, r = get_id(w->fd, &here);

	if (r < 0)
		return r;
	if (w->n_up == w->size) {
		size_t size = MAX(w->size * 2, (size_t)64);
		struct file_id *up;

		if (size > FS_REMOVE_DEPTH_MAX)
			return -ELOOP;
		up = realloc(w->up, size * sizeof(*up));
		if (!up)
			return -ENOMEM;
		w->up = up;
		w->size = size;
	}
	fd = openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) /* if it has just become something else, the next look finds it as that */
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	w->up[w->n_up++] = here;
	fd_close(w->fd);
	w->fd = fd;
	return 0;
}

static int removal_up(struct removal *w)
{
	const struct file_id *want = &w->up[--w->n_up];
	struct file_id got = { 0 };
	int fd = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = get_id(fd, &got);
	if (r == 0 && (got.dev != want->dev || got.ino != want->ino))
		r = -ESTALE;
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	fd_close(w->fd);
	w->fd = fd;
	return 0;
}

/* Removes what can be removed at once. 1: ret_name is a directory that has to be emptied first. */
static int remove_entries(int dir_fd, char ret_name[WIRE_NAME_MAX + 1], bool *ret_removed)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	const struct dirent *d;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return -errno;
	}
	*ret_removed = false;
	while ((errno = 0, d = readdir(dir))) {
		size_t len = strlen(d->d_name);
		int r;

		if (!wire_name_ok((const unsigned char *)d->d_name, len))
			continue; /* "." and ".." */
		r = remove_one(dir_fd, d->d_name, d->d_type == DT_DIR);
		if (r > 0)
			memcpy(ret_name, d->d_name, len + 1);
		if (r != 0)
			return r;
		*ret_removed = true;
	}
	return -errno;
}

/* Empties the directory in hand. */
static int empty_tree(struct removal *w)
{
	char name[WIRE_NAME_MAX + 1];
	bool removed = false;
	int r;

	for (;;) {
		if (w->sock >= 0 && fs_hung_up(w->sock))
			return -ECANCELED;
		r = remove_entries(w->fd, name, &removed);
		if (r > 0)
			r = removal_down(w, name);
		else if (r == 0 && !removed && w->n_up == 0)
			return 0;
		else if (r == 0 && !removed)
			r = removal_up(w);
		if (r < 0)
			return r;
	}
}

int fs_remove_at(int dir_fd, const char *name, int sock)
{
	_cleanup_(removal_done) struct removal w = { .fd = -EBADF, .sock = sock };
	int r = remove_one(dir_fd, name, false);

	if (r == -ENOTDIR)
		return 0; /* something on the way is no directory: so it is not there */
	if (r <= 0)
		return r;
	w.fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w.fd < 0)
		return -errno;
	r = empty_tree(&w);
	if (r < 0)
		return r;
	r = remove_one(dir_fd, name, true);
	return r > 0 ? -ENOTEMPTY : r;
}

/* --- copying --------------------------------------------------------------------------------- */

/*
 * Copying a tree. Modes, times, links, attributes and holes are kept, owners where the user may;
 * two names of one file become two files. Pipes and sockets are made anew, as mv does.
 */
struct copy_level {
	DIR *from;
	int to_fd;
	struct stat st; /* what the copy of this directory gets when it is complete */
};

struct fs_copy {
	struct copy_level levels[FS_COPY_DEPTH_MAX];
	size_t n;
	int sock;
};

static void copy_done(struct fs_copy *c)
{
	while (c->n) {
		struct copy_level *level = &c->levels[--c->n];

		dir_closep(&level->from);
		fd_close(level->to_fd);
	}
}

static int copy_xattrs(int from_fd, int to_fd)
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
static int copy_make_alike(int from_fd, int to_fd, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	mode_t mode = st->st_mode & 07777;
	int r = copy_xattrs(from_fd, to_fd);

	if (r < 0)
		return r;
	/* Without the owner, the right to act as that user must not be kept either. */
	if (fchown(to_fd, st->st_uid, st->st_gid) < 0)
		mode &= 01777;
	if (fchmod(to_fd, mode) < 0 || futimens(to_fd, times) < 0)
		return -errno;
	return 0;
}

static bool all_zero(const unsigned char *data, size_t len)
{
	return len == 0 || (data[0] == 0 && memcmp(data, data + 1, len - 1) == 0);
}

static int copy_bytes(const struct fs_copy *c, int from_fd, int to_fd)
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
		if (all_zero(data, (size_t)n))
			r = lseek(to_fd, n, SEEK_CUR) < 0 ? -errno : 0;
		else
			r = io_write_all(to_fd, data, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int copy_regular(const struct fs_copy *c, int from_fd, const char *from, int to_fd,
			const char *to)
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
	return r < 0 ? r : copy_make_alike(in, out, &st);
}

static int copy_symlink_at(int from_fd, const char *from, int to_fd, const char *to,
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

static int copy_enter(struct fs_copy *c, int from_fd, const char *from, int to_fd, const char *to)
{
	struct copy_level *level = &c->levels[c->n];
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

static int copy_one(struct fs_copy *c, int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat st;

	if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_regular(c, from_fd, from, to_fd, to);
	case S_IFLNK:
		return copy_symlink_at(from_fd, from, to_fd, to, &st);
	case S_IFDIR:
		return copy_enter(c, from_fd, from, to_fd, to);
	case S_IFIFO:
	case S_IFSOCK:
		return mknodat(to_fd, to, st.st_mode & (S_IFMT | 0777), 0) < 0 ? -errno : 0;
	default:
		return -EINVAL;
	}
}

/* Leaves the innermost directory, whose copy is complete. */
static int copy_leave(struct fs_copy *c)
{
	struct copy_level *level = &c->levels[c->n - 1];
	int r = copy_make_alike(dirfd(level->from), level->to_fd, &level->st);

	c->n--;
	dir_closep(&level->from);
	fd_close(level->to_fd);
	return r;
}

static int copy_next(struct fs_copy *c)
{
	const struct copy_level *level = &c->levels[c->n - 1];
	const struct dirent *d;

	errno = 0;
	d = readdir(level->from);
	if (!d)
		return errno ? -errno : copy_leave(c);
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	return copy_one(c, dirfd(level->from), d->d_name, level->to_fd, d->d_name);
}

int fs_copy_at(const char *from, int dir_fd, const char *name, int sock)
{
	static struct fs_copy c;
	int r;

	c.sock = sock;
	r = copy_one(&c, AT_FDCWD, from, dir_fd, name);
	while (r == 0 && c.n)
		r = copy_next(&c);
	copy_done(&c);
	return r;
}
