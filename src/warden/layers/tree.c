/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of files by descriptor: nothing that was put into one leads out of it.
 *
 * A copy is of the upper layer of a box's overlay. It runs in the box's user namespace, so it can
 * do no more than the box's own root, and creates each file as its owner (setfsuid): no chown ever
 * runs. Overlayfs keeps what was deleted as character devices 0:0 and as marks on directories:
 * these are kept. Other devices, sockets, pipes, set-uid bits and attributes outside user.* are not
 * (FI-14).
 */
#include "warden/layers/tree.h"

#include "base/dir.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* A copy of the deepest tree lies a few below the top. */
#define REMOVE_DEPTH_MAX (LAYER_DEPTH_MAX + 8)
#define LINKS_BYTES_MAX                                                                            \
	(16 << 20)      /* that the names of linked files may take: this memory is not the box's */
#define LINK_BYTES 128  /* about what one takes beside its name */
#define ATTRS_MAX 65536 /* the kernel's own bound on a list and on a value */
#define CHUNK (256 << 10)
#define ENTRY_BYTES 4096     /* a name may take a block of the disk */
#define LOOK_BYTES (4 << 20) /* are written before we look how much is left */

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

struct tree_link {
	ino_t inode;
	char path[];
};

static int copy_tree_entry(struct tree_copy *c, int from_fd, int to_fd, const char *name,
			   unsigned depth);

/* What is made from here on belongs to the file's owner. */
static int act_as_owner(struct tree_copy *c, const struct stat *st)
{
	if (c->is_owner && c->uid == st->st_uid && c->gid == st->st_gid)
		return 0;
	(void)setfsgid(st->st_gid);
	(void)setfsuid(st->st_uid);
	c->uid = st->st_uid;
	c->gid = st->st_gid;
	c->is_owner = true;
	/* The kernel has just forgotten with whom we end. */
	if (c->parent && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != c->parent))
		return -ECANCELED;
	return 0;
}

/* Before something is written: is there space for it? What others write meanwhile counts. */
static int take_space(struct tree_copy *c, uint64_t bytes)
{
	struct statfs fs;

	c->written += bytes;
	if (c->written < LOOK_BYTES)
		return 0;
	c->written = 0;
	if (fstatfs(c->root_fd, &fs) < 0)
		return -errno;
	return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < c->leave_bytes ||
			       (fs.f_files && fs.f_ffree < c->leave_files) ?
		       -ENOSPC :
		       0;
}

/* Of overlayfs's own marks only those that say what is not there; the others point to where it
 * was. */
static bool attr_is_kept(const char *name)
{
	if (strncmp(name, "user.overlay.", 13) == 0)
		return strcmp(name, "user.overlay.opaque") == 0 ||
		       strcmp(name, "user.overlay.whiteout") == 0 ||
		       strncmp(name, "user.overlay.overlay.", 21) == 0;
	return strncmp(name, "user.", 5) == 0;
}

static int copy_tree_attrs(int from_fd, int to_fd)
{
	static char names[ATTRS_MAX], value[ATTRS_MAX];
	ssize_t n = flistxattr(from_fd, names, sizeof(names));

	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (char *name = names; name < names + n; name += strlen(name) + 1) {
		ssize_t len;

		if (!attr_is_kept(name))
			continue;
		len = fgetxattr(from_fd, name, value, sizeof(value));
		if (len < 0 || fsetxattr(to_fd, name, value, (size_t)len, 0) < 0)
			return -errno;
	}
	return 0;
}

static int copy_times(int fd, const struct stat *st)
{
	return futimens(fd, (const struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno : 0;
}

static int copy_range(struct tree_copy *c, int from_fd, int to_fd, off_t at, off_t end)
{
	static char chunk[CHUNK];

	while (at < end) {
		ssize_t n = pread(from_fd, chunk, MIN(sizeof(chunk), (size_t)(end - at)), at);
		int r;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		if ((uint64_t)n > c->bytes_left)
			return -EFBIG;
		c->bytes_left -= (uint64_t)n;
		r = take_space(c, (uint64_t)n);
		if (r < 0)
			return r;
		if (pwrite(to_fd, chunk, (size_t)n, at) != n)
			return errno ? -errno : -ENOSPC;
		at += n;
	}
	return 0;
}

/* Holes stay holes. */
static int copy_data(struct tree_copy *c, int from_fd, int to_fd, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t begin = lseek(from_fd, at, SEEK_DATA), end;
		int r;

		if (begin < 0 && errno == ENXIO)
			break;
		end = begin < 0 ? -1 : lseek(from_fd, begin, SEEK_HOLE);
		if (end < 0)
			return -errno;
		r = copy_range(c, from_fd, to_fd, begin, MIN(end, size));
		if (r < 0)
			return r;
		at = end;
	}
	return ftruncate(to_fd, size) < 0 ? -errno : 0;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct tree_link *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* 1: it is there now, as another name of a file that was copied before. */
static int copy_tree_link(struct tree_copy *c, int to_fd, const char *name, const struct stat *st)
{
	const struct tree_link key = { .inode = st->st_ino };
	struct tree_link *const *found = tfind(&key, &c->links, compare_inodes);

	if (!found)
		return 0;
	/* Every part of the path is a directory that we have made. */
	return linkat(c->root_fd, (*found)->path, to_fd, name, 0) < 0 ? -errno : 1;
}

/* A box with more links than we can remember gets copies. */
static void remember_link(struct tree_copy *c, const char *name, const struct stat *st)
{
	size_t size = c->path_len + strlen(name) + 1;
	struct tree_link *link;

	if (st->st_nlink < 2 || c->path_lost || size > sizeof(c->path) ||
	    c->links_bytes + size + LINK_BYTES > LINKS_BYTES_MAX)
		return;
	link = malloc(sizeof(*link) + size);
	if (!link)
		return;
	link->inode = st->st_ino;
	(void)snprintf(link->path, size, "%.*s%s", (int)c->path_len, c->path, name);
	if (tsearch(link, &c->links, compare_inodes))
		c->links_bytes += size + LINK_BYTES;
	else
		free(link);
}

static void forget_links(struct tree_copy *c)
{
	tdestroy(c->links, free);
	c->links = NULL;
	c->links_bytes = 0;
}

static int copy_tree_file(struct tree_copy *c, int from_fd, int to_fd, const char *name,
			  const struct stat *st)
{
	_cleanup_(fd_closep) int in = -EBADF;
	_cleanup_(fd_closep) int out = -EBADF;
	int r = st->st_nlink > 1 ? copy_tree_link(c, to_fd, name, st) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	in = tree_open(from_fd, name, O_RDONLY, 0);
	if (in < 0)
		return in;
	out = tree_open(to_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (out < 0)
		return out;
	r = copy_data(c, in, out, st->st_size);
	if (r == 0)
		r = copy_tree_attrs(in, out);
	if (r == 0 && fchmod(out, st->st_mode & 0777) < 0)
		r = -errno;
	if (r == 0)
		r = copy_times(out, st);
	if (r == 0)
		remember_link(c, name, st);
	return r;
}

static int copy_tree_symlink(int from_fd, int to_fd, const char *name, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	char target[4096];
	ssize_t n = readlinkat(from_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (symlinkat(target, to_fd, name) < 0 ||
	    utimensat(to_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static bool is_skipped(const struct tree_copy *c, const char *name, unsigned depth)
{
	for (const char *const *s = c->skip; depth == 0 && s && *s; s++)
		if (strcmp(*s, name) == 0)
			return true;
	return false;
}

static int copy_tree_entries(struct tree_copy *c, int from_fd, int to_fd, unsigned depth)
{
	int fd = tree_open(from_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	_cleanup_(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		fd_close(fd);
		return fd < 0 ? fd : -errno;
	}
	while ((entry = readdir(dir))) {
		int r;

		if (tree_is_dots(entry->d_name) || is_skipped(c, entry->d_name, depth))
			continue;
		r = copy_tree_entry(c, from_fd, to_fd, entry->d_name, depth);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What a directory is, once all is in it: until then it is ours to write to. */
static int finish_dir(int from_fd, int to_fd, const struct stat *st)
{
	int r = copy_tree_attrs(from_fd, to_fd);

	if (r == 0 && fchmod(to_fd, st->st_mode & 03777) < 0)
		r = -errno;
	return r < 0 ? r : copy_times(to_fd, st);
}

static int copy_tree_dir(struct tree_copy *c, int from_fd, int to_fd, const char *name,
			 const struct stat *st, unsigned depth)
{
	_cleanup_(fd_closep) int in = -EBADF;
	_cleanup_(fd_closep) int out = -EBADF;
	size_t path_len = c->path_len;
	bool path_lost = c->path_lost;
	int r;

	if (depth >= LAYER_DEPTH_MAX)
		return -ELOOP;
	if (mkdirat(to_fd, name, 0700) < 0)
		return -errno;
	in = tree_open(from_fd, name, O_RDONLY | O_DIRECTORY, 0);
	out = tree_open(to_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (in < 0 || out < 0)
		return in < 0 ? in : out;
	/* A path that becomes too long is no path: links below it are copied as files. */
	if (path_len + strlen(name) + 1 < sizeof(c->path))
		c->path_len += (size_t)snprintf(c->path + path_len, sizeof(c->path) - path_len,
						"%s/", name);
	else
		c->path_lost = true;
	r = copy_tree_entries(c, in, out, depth + 1);
	c->path_len = path_len;
	c->path_lost = path_lost;
	if (r == 0)
		r = act_as_owner(c, st);
	return r < 0 ? r : finish_dir(in, out, st);
}

static int copy_tree_entry(struct tree_copy *c, int from_fd, int to_fd, const char *name,
			   unsigned depth)
{
	struct stat st;
	int r;

	if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (c->files_left-- == 0)
		return -EFBIG;
	r = take_space(c, ENTRY_BYTES);
	if (r == 0)
		r = act_as_owner(c, &st);
	if (r < 0)
		return r;
	if (S_ISREG(st.st_mode))
		return copy_tree_file(c, from_fd, to_fd, name, &st);
	if (S_ISDIR(st.st_mode))
		return copy_tree_dir(c, from_fd, to_fd, name, &st, depth);
	if (S_ISLNK(st.st_mode))
		return copy_tree_symlink(from_fd, to_fd, name, &st);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
		return mknodat(to_fd, name, S_IFCHR | 0600, makedev(0, 0)) < 0 ? -errno : 0;
	return 0; /* a socket or a pipe is nothing without those who had it open */
}

int tree_copy(struct tree_copy *c, int from_fd, int to_fd)
{
	_cleanup_(fd_closep) int in = tree_open(from_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	_cleanup_(fd_closep) int out = tree_open(to_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	int r;

	if (in < 0 || out < 0)
		return in < 0 ? in : out;
	if (fstat(in, &st) < 0)
		return -errno;
	c->root_fd = out;
	c->path_len = 0;
	c->path_lost = false;
	r = copy_tree_entries(c, in, out, 0);
	if (r == 0)
		r = act_as_owner(c, &st);
	if (r == 0)
		r = finish_dir(in, out, &st);
	forget_links(c);
	return r;
}
