/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/slot.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The file's first bytes are the rotation's hint; the locked bytes start behind it. */
#define LOCKS_AT 64

int slots_open(int dir_fd, const char *name, uint32_t count, struct slots *ret)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	*ret = (struct slots){ .fd = fd, .count = count };
	return 0;
}

void slots_close(struct slots *s)
{
	fd_closep(&s->fd);
}

/* Locks belong to the open file description, so each number needs a description of its own. */
static int reopen(const struct slots *s)
{
	char path[40];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int lock_number(int fd, uint32_t number)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LOCKS_AT + (off_t)number,
		.l_len = 1,
	};

	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
	return 0;
}

int slots_take_number(struct slots *s, uint32_t number)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	if (number >= s->count)
		return -EINVAL;
	fd = reopen(s);
	if (fd < 0)
		return fd;
	r = lock_number(fd, number);
	return r < 0 ? r : take_fd(&fd);
}

int slots_take(struct slots *s, uint32_t *ret_number)
{
	_cleanup_(fd_closep) int fd = reopen(s);
	uint32_t next = 0;

	if (fd < 0)
		return fd;
	/* Two takers may read the same hint: the lock decides, the loser goes one further. */
	if (pread(fd, &next, sizeof(next), 0) != sizeof(next))
		next = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t number = (uint32_t)(((uint64_t)next + i) % s->count);
		int r = lock_number(fd, number);

		if (r == -EBUSY)
			continue;
		if (r < 0)
			return r;
		next = number + 1;
		if (pwrite(fd, &next, sizeof(next), 0) != sizeof(next))
			return -EIO;
		*ret_number = number;
		return take_fd(&fd);
	}
	return -EUSERS;
}
