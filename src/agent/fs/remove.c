/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a tree of any depth with two descriptors: one directory is in hand at a time. Down goes
 * by name without following links, up by "..", and up only into the directory that we came from:
 * somebody may move the one in hand elsewhere meanwhile, and ".." with it. Back in a directory, it
 * is read from its beginning, where the one just emptied can now be removed like an empty one. The
 * first thing that cannot be removed ends it.
 */
#include "agent/fs/priv.h"

#include "base/dir.h"

#include <fcntl.h>

struct id {
	dev_t dev;
	ino_t ino;
};

struct walk {
	int fd;        /* the directory in hand */
	struct id *up; /* those above it, below which everything goes */
	size_t n_up, size;
	int sock;
};

static void walk_done(struct walk *w)
{
	fd_closep(&w->fd);
	free(w->up);
	w->up = NULL;
}

static int get_id(int fd, struct id *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct id){ .dev = st.st_dev, .ino = st.st_ino };
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

static int go_down(struct walk *w, const char *name)
{
	struct id here = { 0 };
	int fd, r = get_id(w->fd, &here);

	if (r < 0)
		return r;
	if (w->n_up == w->size) {
		size_t size = MAX(w->size * 2, (size_t)64);
		struct id *up;

		if (size > FS_REMOVE_DEPTH_MAX)
			return -ELOOP;
		up = realloc(w->up, size * sizeof(*up));
		if (!up)
			return -ENOMEM;
		w->up = up;
		w->size = size;
	}
	fd = openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) /* if it has just become something else, the next sweep finds it as that */
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	w->up[w->n_up++] = here;
	fd_close(w->fd);
	w->fd = fd;
	return 0;
}

static int go_up(struct walk *w)
{
	const struct id *want = &w->up[--w->n_up];
	struct id got = { 0 };
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
static int sweep(int dir_fd, char ret_name[WIRE_NAME_MAX + 1], bool *ret_removed)
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
static int empty(struct walk *w)
{
	char name[WIRE_NAME_MAX + 1];
	bool removed = false;
	int r;

	for (;;) {
		if (w->sock >= 0 && fs_hung_up(w->sock))
			return -ECANCELED;
		r = sweep(w->fd, name, &removed);
		if (r > 0)
			r = go_down(w, name);
		else if (r == 0 && !removed && w->n_up == 0)
			return 0;
		else if (r == 0 && !removed)
			r = go_up(w);
		if (r < 0)
			return r;
	}
}

int fs_remove_at(int dir_fd, const char *name, int sock)
{
	_cleanup_(walk_done) struct walk w = { .fd = -EBADF, .sock = sock };
	int r = remove_one(dir_fd, name, false);

	if (r == -ENOTDIR)
		return 0; /* something on the way is no directory: so it is not there */
	if (r <= 0)
		return r;
	w.fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w.fd < 0)
		return -errno;
	r = empty(&w);
	if (r < 0)
		return r;
	r = remove_one(dir_fd, name, true);
	return r > 0 ? -ENOTEMPTY : r;
}
