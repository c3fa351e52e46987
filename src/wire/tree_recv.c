/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tree.h"

#include "base/clock.h"
#include "base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

struct receiver {
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
static int set_path(struct receiver *t, const unsigned char *name, size_t len)
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
static int begin_entry(struct receiver *t, const unsigned char *name, size_t len,
		       const char **ret_name)
{
	int r;

	if (!wire_name_ok(name, len))
		return -EPROTO;
	if (++t->entries > t->limits->entries)
		return -E2BIG;
	r = set_path(t, name, len);
	if (r < 0)
		return r;
	*ret_name = t->path + strlen(t->path) - len;
	return 0;
}

static int on_dir(struct receiver *t, const struct wire_entry *entry, const char *name)
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

static int on_file(struct receiver *t, const struct wire_entry *entry, const char *name)
{
	t->file_fd = openat(t->dir_fd[t->depth], name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    entry->mode & 0777);
	t->file_size = 0;
	t->file_name_at = (size_t)(name - t->path);
	return t->file_fd < 0 ? -errno : 0;
}

static int on_data(struct receiver *t, const unsigned char *data, size_t len)
{
	if (len > t->limits->bytes - t->bytes)
		return -EFBIG;
	t->bytes += len;
	t->file_size += len;
	if (t->events->data)
		t->events->data(t->events->arg, data, len);
	return io_write_all(t->file_fd, data, len);
}

static int on_file_end(struct receiver *t)
{
	t->file_fd = fd_close(t->file_fd);
	return t->events->file ? t->events->file(t->events->arg, t->path, t->file_size) : 0;
}

static int on_link(struct receiver *t, const unsigned char *data, size_t len)
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
static int on_message(struct receiver *t, const struct wire_frame *f)
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
		return on_file(t, entry, name);
	case WIRE_DATA:
		return on_data(t, f->data, wire_len(f));
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
	struct receiver t = {
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
		r = on_message(&t, &frame);
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
