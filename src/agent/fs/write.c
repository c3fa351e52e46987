/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a file from what the host sends, or from other files. It appears in one step (FI-18):
 * written beside its final name, then renamed over it. A link at the final name is followed first,
 * so that the file it leads to is replaced and not the link.
 *
 * Who watches the directory must be able to tell a new file from a new version of one. A rename
 * does not say which it was, but it says what the file was called before: there are two kinds of
 * names.
 */
#include "agent/fs/fs_priv.h"

#include "base/io.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#define KIND_NEW "new-"
#define KIND_REPLACES "old-"
#define TRIES 16 /* for a name that is free */
/* What is taken from a pipe at once: the host's end of it holds several times as much. */
#define PIPE_PIECE (UINT64_C(256) << 10)

struct fs_upload {
	struct fs_parents parents;
	int dir_fd;
	int fd;
	char base[WIRE_NAME_MAX + 1]; /* its name to be */
	char temp[64];                /* its name until then; "": there is none */
};

#define UPLOAD_INIT                                                                                \
	{                                                                                          \
		.dir_fd = -EBADF, .fd = -EBADF                                                     \
	}

int fs_temp_name(bool replaces, char *ret, size_t size)
{
	uint64_t number;
	int n;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	n = snprintf(ret, size, FS_UPLOAD_PREFIX "%s%016llx", replaces ? KIND_REPLACES : KIND_NEW,
		     (unsigned long long)number);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool fs_is_temp_name(const char *name, bool *ret_replaces)
{
	const char *kind = name + strlen(FS_UPLOAD_PREFIX);

	if (strncmp(name, FS_UPLOAD_PREFIX, strlen(FS_UPLOAD_PREFIX)) != 0)
		return false;
	*ret_replaces = strncmp(kind, KIND_REPLACES, strlen(KIND_REPLACES)) == 0;
	return true;
}

/* FI-04: only a regular file may be there already. 1: there is one, 0: there is nothing. */
static int upload_check(int dir_fd, const char *name, struct stat *ret)
{
	if (fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(ret->st_mode))
		return -EISDIR;
	return S_ISREG(ret->st_mode) ? 1 : -EINVAL;
}

static int open_temp(struct fs_upload *u)
{
	int r = -EEXIST;

	for (unsigned i = 0; r == -EEXIST && i < TRIES; i++) {
		r = fs_temp_name(false, u->temp, sizeof(u->temp));
		if (r < 0)
			break;
		u->fd = openat(u->dir_fd, u->temp,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		r = u->fd < 0 ? -errno : 0;
	}
	if (r < 0)
		u->temp[0] = '\0';
	return r;
}

static int upload_begin(struct fs_upload *u, const char *path)
{
	static char target[FS_PATH_SIZE], dir[FS_PATH_SIZE];
	const char *base;
	struct stat st;
	int r;

	memcpy(target, path, strlen(path) + 1);
	r = fs_path_follow(target);
	if (r == 0)
		r = upload_check(AT_FDCWD, target, &st);
	if (r >= 0)
		r = fs_path_split(target, dir, &base);
	if (r < 0)
		return r;
	memcpy(u->base, base, strlen(base) + 1); /* a checked name */
	r = fs_parents_make(target, &u->parents);
	if (r < 0)
		return r;
	u->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return u->dir_fd < 0 ? -errno : open_temp(u);
}

static int upload_add(struct fs_upload *u, const void *data, size_t len)
{
	return io_write_all(u->fd, data, len);
}

/* The new file has no attributes yet, so these become the whole set. */
static int set_attrs(int fd, const char *attrs, size_t len)
{
	for (const char *key = attrs; key < attrs + len;) {
		const char *value = key + strlen(key) + 1;
		char name[sizeof(FS_ATTR_PREFIX) + FS_ATTR_KEY_MAX];

		(void)snprintf(name, sizeof(name), FS_ATTR_PREFIX "%s", key);
		if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
			return -errno;
		key = value + strlen(value) + 1;
	}
	return 0;
}

/* Writing to a file changes neither its owner nor its mode, but takes the setuid and setgid bits
 * away. */
static int keep_mode(int fd, const struct stat *old)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* An ordinary user cannot give files away; then it is the writer's. */
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	return fchmod(fd, old->st_mode & 0777) < 0 ? -errno : 0;
}

static int rename_new(int dir_fd, const char *from, const char *to)
{
	return syscall(SYS_renameat2, dir_fd, from, dir_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* 1: done. 0: there is nothing to replace. */
static int upload_replace(struct fs_upload *u)
{
	char name[sizeof(u->temp)];
	struct stat old;
	int r = upload_check(u->dir_fd, u->base, &old);

	if (r <= 0)
		return r;
	r = keep_mode(u->fd, &old);
	if (r == 0)
		r = fs_temp_name(true, name, sizeof(name));
	if (r == 0)
		r = rename_new(u->dir_fd, u->temp, name);
	if (r < 0)
		return r;
	memcpy(u->temp, name, sizeof(name));
	return renameat(u->dir_fd, u->temp, u->dir_fd, u->base) < 0 ? -errno : 1;
}

/* Afterwards it is there, with these attributes and no others of ours. */
static int upload_commit(struct fs_upload *u, const char *attrs, size_t attrs_len)
{
	int r = set_attrs(u->fd, attrs, attrs_len);

	if (r < 0)
		return r;
	r = -EEXIST;
	/* Again when a file of that name appears between looking and renaming. */
	for (unsigned i = 0; r == -EEXIST && i < TRIES; i++) {
		r = upload_replace(u);
		if (r == 0)
			r = rename_new(u->dir_fd, u->temp, u->base);
	}
	if (r < 0)
		return r;
	u->temp[0] = '\0';
	u->parents.first = 0;
	return 0;
}

/* Leaves nothing of it, unless it was committed. */
static void upload_done(struct fs_upload *u)
{
	if (u->temp[0])
		(void)unlinkat(u->dir_fd, u->temp, 0);
	u->temp[0] = '\0';
	fd_closep(&u->fd);
	fd_closep(&u->dir_fd);
	fs_parents_unmake(&u->parents);
}

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
		r = upload_add(u, piece, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One frame, and what it brings: 1 when the file goes on, 0 at its end. Only PIPE has a
 * descriptor. */
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
		r = upload_add(u, f.data, wire_len(&f));
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

static int upload_receive(struct fs *fs, struct fs_upload *u)
{
	int r;

	do {
		r = receive_some(fs, u);
	} while (r > 0);
	return r;
}

int fs_write(struct fs *fs)
{
	_cleanup_(upload_done) struct fs_upload u = UPLOAD_INIT;
	const char *path = fs->request->paths[0];
	int r = upload_begin(&u, path);

	if (r == 0)
		r = upload_receive(fs, &u);
	if (r == 0)
		r = upload_commit(&u, fs->request->attrs, fs->request->attrs_len);
	return r < 0 ? r : fs_entry_tell(fs->sock, path, path);
}

/* All of a file as long as it was when it was opened. */
static int upload_append(struct fs *fs, struct fs_upload *u, const char *path)
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
		r = fs_hung_up(fs->sock) ? -ECANCELED : upload_add(u, data, (size_t)n);
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
	_cleanup_(upload_done) struct fs_upload u = UPLOAD_INIT;
	const struct fs_request *q = fs->request;
	int r = upload_begin(&u, q->paths[0]);

	for (size_t i = 1; r == 0 && i < q->n_paths; i++)
		r = upload_append(fs, &u, q->paths[i]);
	if (r == 0)
		r = upload_commit(&u, q->attrs, q->attrs_len);
	for (size_t i = 1; r == 0 && i < q->n_paths; i++)
		r = remove_source(q->paths[i], q->paths[0]);
	return r < 0 ? r : fs_entry_tell(fs->sock, q->paths[0], q->paths[0]);
}
