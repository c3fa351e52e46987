/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree.h"

#include "base/dir.h"

#include <fcntl.h>
#include <sys/stat.h>

static int send_entry(int sock, enum wire_type type, const char *name, uint64_t size, uint32_t mode)
{
	struct wire_entry entry = { .size = size, .mode = mode };

	return wire_send2(sock, type, &entry, sizeof(entry), name, strlen(name));
}

int tree_send_enter(int sock, const char *name, uint32_t mode)
{
	return send_entry(sock, WIRE_DIR, name, 0, mode & 0777);
}

int tree_send_file(int sock, const char *name, int fd)
{
	static unsigned char chunk[WIRE_DATA_MAX];
	struct stat st;
	uint64_t left;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* A file that grows while it is read is sent as long as it was when it was opened. */
	left = (uint64_t)st.st_size;
	r = send_entry(sock, WIRE_FILE, name, left, st.st_mode & 0777);
	while (r == 0 && left > 0) {
		ssize_t n = read(fd, chunk, (size_t)MIN(left, (uint64_t)sizeof(chunk)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		left -= (uint64_t)n;
		r = wire_send(sock, WIRE_DATA, chunk, (size_t)n);
	}
	return r < 0 ? r : wire_send(sock, WIRE_FILE_END, NULL, 0);
}

static int send_link(int sock, int dir_fd, const char *name)
{
	char target[WIRE_PATH_MAX + 1];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	if ((size_t)n > WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	/* name, NUL, target */
	return wire_send2(sock, WIRE_LINK, name, strlen(name) + 1, target, (size_t)n);
}

/* Neither a file nor a directory nor, inward, a link. */
static int refuse(int sock, const char *name, uint32_t type, struct tree_inward *in)
{
	if (!in)
		return send_entry(sock, WIRE_REFUSED, name, 0, type);
	(void)snprintf(in->refused, sizeof(in->refused), "%s", name);
	return -EOPNOTSUPP;
}

static int send_dir(int sock, int dir_fd, struct tree_inward *in, unsigned depth);

static int send_name(int sock, int dir_fd, const char *name, struct tree_inward *in, unsigned depth)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	struct stat st;
	int r;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode) && in)
		return send_link(sock, dir_fd, name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return refuse(sock, name, st.st_mode & S_IFMT, in);
	if (S_ISDIR(st.st_mode) && depth >= TREE_DEPTH_MAX)
		return -ELOOP;

	/* The name may have become something else meanwhile: what counts is what was opened. */
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return tree_send_file(sock, name, fd);
	if (!S_ISDIR(st.st_mode))
		return refuse(sock, name, st.st_mode & S_IFMT, in);
	r = tree_send_enter(sock, name, st.st_mode);
	if (r == 0)
		r = send_dir(sock, fd, in, depth + 1);
	return r < 0 ? r : wire_send(sock, WIRE_DIR_END, NULL, 0);
}

static int send_dir(int sock, int dir_fd, struct tree_inward *in, unsigned depth)
{
	_cleanup_(fd_closep) int own_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(dir_closep) DIR *dir = NULL;

	if (own_fd < 0)
		return -errno;
	dir = fdopendir(own_fd);
	if (!dir)
		return -errno;
	(void)take_fd(&own_fd); /* closedir closes it */
	for (;;) {
		struct dirent *entry;
		int r;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = send_name(sock, dirfd(dir), entry->d_name, in, depth);
		if (r < 0)
			return r;
	}
}

int tree_send_dir(int sock, int dir_fd, struct tree_inward *in)
{
	return send_dir(sock, dir_fd, in, 0);
}
