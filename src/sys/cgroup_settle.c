/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few descriptors for each of many boxes. Every process that is started gets a copy of all our descriptors and
 * closes them again, so ten of them for each of a thousand boxes would cost every new box a millisecond.
 */
#include "sys/cgroup_priv.h"

#include <fcntl.h>

void cgroup_box_settle(struct cgroup_box *b)
{
	cgroup_box_close_joins(b);
	for (size_t i = 0; i < ARRAY_SIZE(b->fd); i++) {
		b->had[i] |= b->fd[i] >= 0;
		b->fd[i] = fd_close(b->fd[i]);
	}
	b->kill_fd = fd_close(b->kill_fd);
}

void cgroup_exec_settle(struct cgroup_exec *e)
{
	cgroup_exec_close_files(e);
	for (size_t i = 0; i < ARRAY_SIZE(e->fd); i++) {
		e->had[i] |= e->fd[i] >= 0;
		e->fd[i] = fd_close(e->fd[i]);
	}
}

bool cgroup_box_has_dir(const struct cgroup_box *b, size_t i)
{
	return b->fd[i] >= 0 || b->had[i];
}

static int open_again(int *fd, int at, const char *name, int flags)
{
	if (*fd < 0)
		*fd = openat(at, name, flags | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

int cgroup_box_reopen(struct cgroup_box *b)
{
	int r = 0;

	for (size_t i = 0; b->host && i < b->host->n_hier && r == 0; i++) {
		if (!b->had[i])
			continue;
		r = open_again(&b->fd[i], b->host->hier[i].fd, b->name, O_RDONLY | O_DIRECTORY);
		if (r == 0 && (b->host->hier[i].controllers & CGROUP_KILL))
			r = open_again(&b->kill_fd, b->fd[i], "cgroup.kill", O_WRONLY);
	}
	return r;
}

int cgroup_exec_reopen(const struct cgroup_box *b, struct cgroup_exec *e)
{
	int r = 0;

	for (size_t i = 0; b->host && i < b->host->n_hier && r == 0; i++) {
		bool nested = b->fd[i] >= 0;

		if (e->had[i])
			r = open_again(&e->fd[i], nested ? b->fd[i] : b->host->hier[i].fd,
				       cgroup_exec_name(nested ? NULL : b->name, e->n).text,
				       O_RDONLY | O_DIRECTORY);
	}
	return r;
}
