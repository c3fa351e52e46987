/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting a tree, by descriptor: nothing that somebody has put into it leads out of it. */
#include "warden/warden_priv.h"

#include "base/dir.h"
#include "warden/layers/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define REMOVE_DEPTH_MAX                                                                           \
	(TREE_DEPTH_MAX + 8) /* a copy of the deepest tree lies a few below the top */

int tree_open(int dir_fd, const char *name, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

bool tree_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int empty_dir(int dir_fd, unsigned depth)
{
	_cleanup_(dir_closep) DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(dir_fd);
		return -errno;
	}
	while ((entry = readdir(dir))) {
		int fd, r;

		if (tree_is_dots(entry->d_name) || unlinkat(dirfd(dir), entry->d_name, 0) == 0 ||
		    errno == ENOENT)
			continue;
		if (errno != EISDIR || depth > REMOVE_DEPTH_MAX)
			return -errno;
		fd = tree_open(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY, 0);
		r = fd < 0 ? fd : empty_dir(fd, depth + 1);
		if (r == 0 && unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

int tree_remove(int dir_fd, const char *name)
{
	int fd = tree_open(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : empty_dir(fd, 0);

	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}
