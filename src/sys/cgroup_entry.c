/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into a box's cgroups from outside. v1's `tasks` files are opened by us, and the kernel looks at the
 * opener. In the cgroup2 tree moving is not an option: for a whole process the kernel makes every fork
 * on the machine wait for a grace period. Being cloned into it is cheap, but then the kernel looks at
 * who clones: it must be allowed to write cgroup.procs of the directory, which is given to it, and of
 * what that has in common with where it comes from: that is the top of all boxes, where services with
 * other owners of boxes may be at home, so everybody may. By the same rule that is worth nothing to a
 * process that is not below it already, and one that is, is a zygote or in a box, where no cgroup can
 * be named.
 */
#include "sys/cgroup_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The hierarchy in which processes are cloned into their place, or -1. */
static int clone_hier(const struct cgroup_host *h)
{
	for (size_t i = 0; i < h->n_hier; i++)
		if (h->hier[i].controllers & CGROUP_CLONE_INTO)
			return (int)i;
	return -1;
}

static int give_procs(int dir, uid_t who)
{
	return fchownat(dir, "cgroup.procs", who, (gid_t)-1, 0) < 0 ? -errno : 0;
}

/* In v2 the leaf itself; beside v1 the box's one directory. */
static int open_clone_dir(const struct cgroup_box *b, const struct cgroup_exec *e, int hier,
			  uid_t who)
{
	int dir = b->host->mode == CGROUP_V2 ? e->fd[hier] : b->fd[hier];
	int r = dir < 0 ? -EBADF : give_procs(dir, who), fd;

	if (r < 0)
		return r;
	fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int open_joins(const struct cgroup_box *b, const struct cgroup_exec *e,
		      struct cgroup_entry *ret)
{
	for (size_t i = 0; i < b->host->n_hier; i++) {
		int fd;

		if (e->fd[i] < 0 || b->host->mode == CGROUP_V2)
			continue;
		fd = openat(e->fd[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		ret->join_fd[ret->n_join++] = fd;
	}
	return 0;
}

int cgroup_entry_open(struct cgroup_box *b, struct cgroup_exec *e, uid_t who,
		      struct cgroup_entry *ret)
{
	_cleanup_(cgroup_entry_close) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
	int hier = clone_hier(b->host), r = 0;

	if (b->host->mode == CGROUP_V2 && hier < 0)
		return -EOPNOTSUPP;
	r = cgroup_box_reopen(b);
	if (r == 0)
		r = cgroup_exec_reopen(b, e);
	if (r == 0 && hier >= 0) {
		entry.clone_fd = open_clone_dir(b, e, hier, who);
		r = entry.clone_fd < 0 ? entry.clone_fd : 0;
	}
	if (r == 0)
		r = open_joins(b, e, &entry);
	if (r < 0)
		return r;
	*ret = entry;
	entry = (struct cgroup_entry)CGROUP_ENTRY_INIT;
	return 0;
}

void cgroup_entry_close(struct cgroup_entry *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->join_fd); i++)
		e->join_fd[i] = fd_close(e->join_fd[i]);
	e->n_join = 0;
	e->clone_fd = fd_close(e->clone_fd);
}

int cgroup_host_admit(const struct cgroup_host *h, const char *place, int *ret_fd)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int hier = clone_hier(h), r;

	if (hier < 0) {
		*ret_fd = -EBADF; /* there is nothing to be cloned into */
		return h->mode == CGROUP_V2 ? -EOPNOTSUPP : 0;
	}
	r = fchmodat(h->hier[hier].fd, "cgroup.procs", 0666, 0) < 0 ? -errno : 0;
	if (r == 0)
		r = cgroup_mkdir(h->hier[hier].fd, place, &fd);
	if (r == -EEXIST) {
		fd = openat(h->hier[hier].fd, place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return r;
	*ret_fd = take_fd(&fd);
	return 0;
}

void cgroup_host_dismiss(const struct cgroup_host *h, const char *place)
{
	int hier = clone_hier(h);

	if (hier >= 0)
		(void)cgroup_rmdir(h->hier[hier].fd, place);
}
