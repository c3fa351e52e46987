/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on names: looking, making directories, moving. */
#include "agent/fs/fs_priv.h"

#include <fcntl.h>

int fs_stat(struct fs *fs)
{
	const char *path = fs->request->paths[0];

	return fs_entry_tell(fs->sock, path, path);
}

/* Why a directory cannot be made where something is. 0: nothing is there. */
static int check_vacant(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? -EEXIST : -ENOTDIR;
	if (errno != ENOENT)
		return -errno;
	return lstat(path, &st) == 0 ? -ENOTDIR : 0; /* a link that leads nowhere */
}

int fs_mkdir(struct fs *fs)
{
	static struct fs_parents parents;
	const char *path = fs->request->paths[0];
	int r = check_vacant(path);

	if (r == 0)
		r = fs_parents_make(path, &parents);
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0) {
		r = errno == EEXIST ? check_vacant(path) : -errno;
		fs_parents_unmake(&parents);
		return r < 0 ? r : -EAGAIN; /* there for a moment only */
	}
	return fs_entry_tell(fs->sock, path, path);
}

/*
 * To another file system, or where the kernel says it is one: a directory of the template's layer
 * is. It is copied beside the destination and renamed, so that the rules of a rename hold and half
 * of it is never seen.
 */
static int move_by_copy(struct fs *fs, const char *from, const char *to)
{
	static char dir[FS_PATH_SIZE];
	_cleanup_(fd_closep) int dir_fd = -EBADF;
	char temp[64];
	const char *base;
	int r = fs_path_split(to, dir, &base);

	if (r == 0)
		r = fs_temp_name(false, temp, sizeof(temp));
	if (r < 0)
		return r;
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	r = fs_copy_at(from, dir_fd, temp, fs->sock);
	if (r == 0 && renameat(dir_fd, temp, dir_fd, base) < 0)
		r = -errno;
	if (r < 0) {
		(void)!fs_remove_at(dir_fd, temp, -EBADF);
		return r;
	}
	return fs_remove_at(AT_FDCWD, from, -EBADF);
}

int fs_move(struct fs *fs)
{
	static struct fs_parents parents;
	const char *from = fs->request->paths[0], *to = fs->request->paths[1];
	struct stat st;
	int r;

	if (lstat(from, &st) < 0)
		return -errno;
	r = fs_parents_make(to, &parents);
	if (r < 0)
		return r;
	r = rename(from, to) < 0 ? -errno : 0;
	if (r == -EXDEV)
		r = move_by_copy(fs, from, to);
	if (r < 0) {
		fs_parents_unmake(&parents);
		return r;
	}
	return fs_entry_tell(fs->sock, to, to);
}

int fs_remove(struct fs *fs)
{
	const char *path = fs->request->paths[0];

	if (strcmp(path, "/") == 0)
		return -EINVAL;
	return fs_remove_at(AT_FDCWD, path, fs->sock);
}
