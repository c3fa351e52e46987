/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree.h"

#include "base/clock.h"
#include "base/dir.h"
#include "base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

/* --- sending --------------------------------------------------------------------------------- */

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
static int receiver_refuse(int sock, const char *name, uint32_t type, struct tree_inward *in)
{
	if (!in)
		return send_entry(sock, WIRE_REFUSED, name, 0, type);
	(void)snprintf(in->refused, sizeof(in->refused), "%s", name);
	return -EOPNOTSUPP;
}

static int tree_send_entries(int sock, int dir_fd, struct tree_inward *in, unsigned depth);

static int tree_send_name(int sock, int dir_fd, const char *name, struct tree_inward *in,
			  unsigned depth)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	struct stat st;
	int r;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode) && in)
		return send_link(sock, dir_fd, name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return receiver_refuse(sock, name, st.st_mode & S_IFMT, in);
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
		return receiver_refuse(sock, name, st.st_mode & S_IFMT, in);
	r = tree_send_enter(sock, name, st.st_mode);
	if (r == 0)
		r = tree_send_entries(sock, fd, in, depth + 1);
	return r < 0 ? r : wire_send(sock, WIRE_DIR_END, NULL, 0);
}

static int tree_send_entries(int sock, int dir_fd, struct tree_inward *in, unsigned depth)
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
		r = tree_send_name(sock, dirfd(dir), entry->d_name, in, depth);
		if (r < 0)
			return r;
	}
}

int tree_send_dir(int sock, int dir_fd, struct tree_inward *in)
{
	return tree_send_entries(sock, dir_fd, in, 0);
}

/* --- receiving ------------------------------------------------------------------------------- */

struct tree_receiver {
	const struct tree_limits *limits;
	const struct tree_events *events;
	uint64_t bytes;
	uint64_t entries;
	unsigned depth;
	int dir_fd[TREE_DEPTH_MAX + 1]; /* [0] is borrowed */
	size_t path_len[TREE_DEPTH_MAX + 1];
	int file_fd;
	uint64_t file_size;           /* received so far */
	size_t file_name_at;          /* in path */
	char path[WIRE_PATH_MAX + 1]; /* of what is being received */
};

/* Puts the entry's name behind the directory's path; the name is checked before. */
static int receiver_set_path(struct tree_receiver *t, const unsigned char *name, size_t len)
{
	size_t at = t->path_len[t->depth];

	if (at + len + 1 > WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	if (at)
		t->path[at++] = '/';
	memcpy(t->path + at, name, len);
	t->path[at + len] = '\0';
	return 0;
}

/* Counts an entry and takes its name; ret_name points into t->path. */
static int begin_entry(struct tree_receiver *t, const unsigned char *name, size_t len,
		       const char **ret_name)
{
	int r;

	if (!wire_name_ok(name, len))
		return -EPROTO;
	if (++t->entries > t->limits->entries)
		return -E2BIG;
	r = receiver_set_path(t, name, len);
	if (r < 0)
		return r;
	*ret_name = t->path + strlen(t->path) - len;
	return 0;
}

static int on_dir(struct tree_receiver *t, const struct wire_entry *entry, const char *name)
{
	int fd;

	if (t->depth >= TREE_DEPTH_MAX)
		return -ELOOP;
	if (mkdirat(t->dir_fd[t->depth], name, (entry->mode & 0777) | 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(t->dir_fd[t->depth], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	t->dir_fd[++t->depth] = fd;
	t->path_len[t->depth] = strlen(t->path);
	return 0;
}

static int receiver_file(struct tree_receiver *t, const struct wire_entry *entry, const char *name)
{
	t->file_fd = openat(t->dir_fd[t->depth], name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    entry->mode & 0777);
	t->file_size = 0;
	t->file_name_at = (size_t)(name - t->path);
	return t->file_fd < 0 ? -errno : 0;
}

static int receiver_data(struct tree_receiver *t, const unsigned char *data, size_t len)
{
	if (len > t->limits->bytes - t->bytes)
		return -EFBIG;
	t->bytes += len;
	t->file_size += len;
	if (t->events->data)
		t->events->data(t->events->arg, data, len);
	return io_write_all(t->file_fd, data, len);
}

static int on_file_end(struct tree_receiver *t)
{
	t->file_fd = fd_close(t->file_fd);
	return t->events->file ? t->events->file(t->events->arg, t->path, t->file_size) : 0;
}

static int on_link(struct tree_receiver *t, const unsigned char *data, size_t len)
{
	const unsigned char *nul = memchr(data, '\0', len);
	char target[WIRE_PATH_MAX + 1];
	const char *name;
	size_t target_len;
	int r;

	if (!nul)
		return -EPROTO;
	target_len = len - (size_t)(nul - data) - 1;
	if (target_len == 0 || target_len > WIRE_PATH_MAX || memchr(nul + 1, '\0', target_len))
		return -EPROTO;
	r = begin_entry(t, data, (size_t)(nul - data), &name);
	if (r < 0)
		return r;
	memcpy(target, nul + 1, target_len);
	target[target_len] = '\0';
	return symlinkat(target, t->dir_fd[t->depth], name) < 0 ? -errno : 0;
}

/* One message of the tree. While a file is open only its data and its end are permitted. */
static int receiver_message(struct tree_receiver *t, const struct wire_frame *f)
{
	const struct wire_entry *entry = (const struct wire_entry *)f->data;
	const char *name = NULL;
	int r = 0;

	if ((f->head.type == WIRE_DATA || f->head.type == WIRE_FILE_END) != (t->file_fd >= 0))
		return -EPROTO;
	if (f->head.type == WIRE_DIR || f->head.type == WIRE_FILE || f->head.type == WIRE_REFUSED)
		r = begin_entry(t, f->data + sizeof(*entry), wire_len(f) - sizeof(*entry), &name);
	if (r < 0)
		return r;

	switch (f->head.type) {
	case WIRE_DIR:
		return on_dir(t, entry, name);
	case WIRE_DIR_END:
		if (t->depth == 0)
			return -EPROTO;
		fd_closep(&t->dir_fd[t->depth--]);
		return 0;
	case WIRE_FILE:
		return receiver_file(t, entry, name);
	case WIRE_DATA:
		return receiver_data(t, f->data, wire_len(f));
	case WIRE_FILE_END:
		return on_file_end(t);
	case WIRE_LINK:
		return on_link(t, f->data, wire_len(f));
	case WIRE_REFUSED:
		return t->events->refused ?
			       t->events->refused(t->events->arg, t->path, entry->mode & S_IFMT) :
			       -EPROTO;
	default:
		return -EPROTO;
	}
}

/* Waits until something can be received, or the deadline. */
static int wait_readable(int sock, const struct tree_limits *limits)
{
	struct pollfd p[] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = limits->cancel_fd, .events = POLLIN },
	};

	if (!limits->deadline_boot_us)
		return 0;
	for (;;) {
		uint64_t now = clock_boot_us(), left;
		int n;

		if (now >= limits->deadline_boot_us)
			return -ETIME;
		left = limits->deadline_boot_us - now;
		n = poll(p, ARRAY_SIZE(p), (int)MIN(left / 1000 + 1, (uint64_t)60000));
		if (n > 0)
			return p[1].revents ? -ECANCELED : 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

int tree_recv(int sock, enum wire_socket where, int dir_fd, const struct tree_limits *limits,
	      const struct tree_events *events)
{
	static struct wire_frame frame;
	struct tree_receiver t = {
		.limits = limits,
		.events = events,
		.dir_fd = { dir_fd },
		.file_fd = -EBADF,
	};
	int r;

	for (;;) {
		r = wait_readable(sock, limits);
		if (r < 0)
			break;
		r = wire_recv(sock, &frame, where);
		if (r == 0)
			r = -EPROTO; /* ended before TREE_END */
		if (r < 0)
			break;
		if (frame.head.type == WIRE_FAILED &&
		    wire_len(&frame) >= sizeof(struct wire_failed)) {
			int err = ((const struct wire_failed *)frame.data)->err;

			r = err > 0 && err < 4096 ? -err : -EPROTO;
			break;
		}
		if (frame.head.type == WIRE_TREE_END) {
			r = t.depth || t.file_fd >= 0 ? -EPROTO : 0;
			break;
		}
		r = receiver_message(&t, &frame);
		if (r < 0)
			break;
	}
	if (t.file_fd >= 0) {
		/* FI-18: half a file is not left behind. */
		fd_closep(&t.file_fd);
		(void)unlinkat(t.dir_fd[t.depth], t.path + t.file_name_at, 0);
	}
	while (t.depth)
		fd_closep(&t.dir_fd[t.depth--]);
	return r;
}
