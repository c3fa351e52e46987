/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1, and hybrid: v1 controllers with a controller-less cgroup2 tree beside them.
 *
 * Theory of operation: every directory and every attach costs tens of microseconds, so a box has
 * only what earns its keep. memory and pids: a directory for the box (cap; the agent sits in it, v1
 * allows that) and, unless they share it, a leaf per command. cpu: a leaf only, flat, unless the
 * box has a CPU cap. unified: one directory for the whole box, entered at clone time and inherited
 * by everybody in it, so that one write to cgroup.kill ends them all; it counts CPU time too, so
 * cpuacct is used only without it.
 *
 * Processes enter by writing "0" to `tasks`: for one thread that moves itself the kernel skips the
 * lock that makes every fork on the machine wait for a grace period (4 to 11 ms on Linux 6.18).
 */
#include "sys/cgroup_priv.h"

#include "sys/cpus.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define UNIFIED (CGROUP_KILL | CGROUP_FREEZE | CGROUP_CLONE_INTO) /* no v1 hierarchy has these */
#define CPU_SHARES 1024                                           /* the kernel's default */
#define CPU_PERIOD_US 100000 /* likewise: every kernel begins with it, so nobody writes it */

/* Where distributions mount the hierarchies; cpu and cpuacct may be links to one mount. */
static const struct v1_mount {
	const char *dir;
	const char *controller; /* as /proc/self/cgroup calls it */
	const char *probe;      /* a file that shows that the controller is really there */
	const char *last;       /* what v1_base_prepare() writes there last; NULL: nothing */
	unsigned bits;
} mounts[CGROUP_HIER_MAX] = {
	{ CGROUP_MOUNT "/memory", "memory", "memory.limit_in_bytes", "memory.limit_in_bytes",
	  CGROUP_MEMORY },
	{ CGROUP_MOUNT "/pids", "pids", "pids.max", "pids.max", CGROUP_PIDS },
	{ CGROUP_MOUNT "/cpu", "cpu", "cpu.cfs_quota_us", "cpu.shares", CGROUP_CPU },
	{ CGROUP_MOUNT "/unified", "", "cgroup.subtree_control", NULL, 0 },
	{ CGROUP_MOUNT "/cpuacct", "cpuacct", "cpuacct.usage_user", NULL, CGROUP_CPUACCT },
};

/*
 * What holds for all boxes together, written by the first that comes, or finds it missing. No
 * swapping (RX-21; each new cgroup inherits it). A share of the machine stays free (RX-23, RX-26).
 * A limit on TCP buffers makes the kernel count them from now on; switching that on for every box
 * would cost each of them.
 */
static int v1_base_prepare(int dir)
{
	struct cgroup_limits all = cgroup_all_boxes();
	char text[32];
	int r;

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)all.memory_bytes);
	r = cgroup_write_optional(dir, "memory.swappiness", "0");
	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.kmem.tcp.limit_in_bytes", text);
	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.limit_in_bytes", text);
	(void)snprintf(text, sizeof(text), "%u", all.pids);
	if (r >= 0)
		r = cgroup_write_optional(dir, "pids.max", text);
	/* All boxes together are weighed against each single process of the host, and against what
	 * sets up and takes down other boxes: let them count for two on each CPU. */
	(void)snprintf(text, sizeof(text), "%u", 2 * CPU_SHARES * cpus_online());
	if (r >= 0)
		r = cgroup_write_optional(dir, "cpu.shares", text);
	return r == -EACCES ? 0 : r; /* the one that gave it to us kept its limits */
}

/* Not when the process that made the directory got no further. */
static bool v1_is_prepared(int dir, const char *last)
{
	uint64_t limit = last ? cgroup_limit(dir, last) : 0;

	return limit != UINT64_MAX && limit != CPU_SHARES;
}

/* Opens <dir>/glovebox for use by us, making it when the parent is a cgroup and lets us. */
static int v1_base_open(const char *dir, const struct v1_mount *m)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char path[512];
	struct statfs fs;
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/" CGROUP_DIR, dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		if (statfs(dir, &fs) < 0)
			return -errno;
		if (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC)
			return -ENODEV;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	if (faccessat(fd, m->probe, F_OK, 0) < 0)
		return -errno;
	if (!cgroup_may_write(fd, "."))
		return -EACCES;
	if (!v1_is_prepared(fd, m->last))
		r = v1_base_prepare(fd);
	if (r < 0)
		(void)rmdir(path); /* fails, rightly, when somebody uses it */
	return r < 0 ? r : take_fd(&fd);
}

/* Where the root of the hierarchy is not ours (a user, a container): below our own cgroup. */
static int v1_base_find(const struct v1_mount *m)
{
	char own[256], path[320];
	int fd, r;

	fd = v1_base_open(m->dir, m);
	if (fd >= 0 || fd == -ENOENT || fd == -ENODEV)
		return fd;
	r = cgroup_read_own_path(m->controller, own, sizeof(own));
	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "%s%s", m->dir, own) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = v1_base_open(path, m);
	/* v2's rule: to move or clone from our cgroup into a box, both must be ours to write to. */
	if (fd >= 0 && m->bits == 0 && !cgroup_may_write(fd, "../cgroup.procs"))
		return fd_close(fd);
	return fd;
}

/* Two names of one mount are one hierarchy: true when fd's directory is already in the table. */
static bool host_merge(struct cgroup_host *h, unsigned bits, int fd)
{
	struct stat st, other;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < h->n_hier; i++) {
		if (fstat(h->hier[i].fd, &other) < 0 || other.st_dev != st.st_dev ||
		    other.st_ino != st.st_ino)
			continue;
		h->hier[i].controllers |= bits;
		h->features |= bits;
		return true;
	}
	return false;
}

/* Any cgroup2 directory counts CPU time, with or without controllers. */
static unsigned unified_bits(int fd)
{
	unsigned bits = cgroup_unified_features(fd);

	if ((bits & CGROUP_CLONE_INTO) && faccessat(fd, "cpu.stat", F_OK, 0) == 0)
		bits |= CGROUP_CPUACCT;
	return bits;
}

int cgroup_v1_host_open(struct cgroup_host *h)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		_cleanup_(fd_closep) int fd = -EBADF;
		unsigned bits = mounts[i].bits;

		if (bits && (h->features & bits) == bits)
			continue;
		fd = v1_base_find(&mounts[i]);
		if (cgroup_is_passing(fd))
			return fd;
		if (fd < 0)
			continue;
		if (bits == 0)
			bits = unified_bits(fd);
		if (bits == 0 || host_merge(h, bits, fd))
			continue;
		cgroup_host_add(h, bits, take_fd(&fd));
	}
	if (h->n_hier > 0)
		h->mode = (h->features & UNIFIED) ? CGROUP_HYBRID : CGROUP_V1;
	return 0;
}

static int memory_limit(int dir, uint64_t bytes)
{
	char text[32];
	int r;

	/* In this order: the kernel refuses a memory limit above the one for memory and swap. */
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	r = cgroup_write(dir, "memory.limit_in_bytes", text);
	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.memsw.limit_in_bytes", text);
	/* RX-07: v1 counts TCP buffers apart. */
	return r < 0 ? r : cgroup_write_optional(dir, "memory.kmem.tcp.limit_in_bytes", text);
}

static int v1_cpu_limit(int dir, uint32_t milli)
{
	return cgroup_write_u64(dir, "cpu.cfs_quota_us", (uint64_t)milli * CPU_PERIOD_US / 1000);
}

/* The limits that belong to one hierarchy's directory. RX-21: memory and swap together are limited
 * to the memory limit, so there is nothing to swap. */
static int v1_limits_write(unsigned controllers, int dir, const struct cgroup_limits *l)
{
	int r = 0;

	if ((controllers & CGROUP_MEMORY) && l->memory_bytes > 0)
		r = memory_limit(dir, l->memory_bytes);
	if (r >= 0 && (controllers & CGROUP_PIDS) && l->pids > 0)
		r = cgroup_write_u64(dir, "pids.max", l->pids);
	if (r >= 0 && (controllers & CGROUP_CPU) && l->cpu_milli > 0)
		r = v1_cpu_limit(dir, l->cpu_milli);
	return r;
}

static bool box_needs_dir(unsigned controllers, const struct cgroup_limits *cap)
{
	return (controllers & (CGROUP_MEMORY | CGROUP_PIDS | UNIFIED)) ||
	       ((controllers & CGROUP_CPU) && cap->cpu_milli > 0);
}

static int v1_box_rmdir(const struct cgroup_box *b)
{
	for (size_t i = 0; i < b->host->n_hier; i++) {
		int r = cgroup_box_has_dir(b, i) ? cgroup_rmdir(b->host->hier[i].fd, b->name) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* The agent's CPU time is not the command's, and clone_fd was entered at birth. */
static int box_open_join(struct cgroup_box *b, size_t i)
{
	unsigned controllers = b->host->hier[i].controllers;
	int fd;

	if (!(controllers & (CGROUP_MEMORY | CGROUP_PIDS)))
		return 0;
	fd = openat(b->fd[i], "tasks", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	b->join_fd[b->n_join++] = fd;
	return 0;
}

static int unified_handles(struct cgroup_box *b, size_t i)
{
	unsigned controllers = b->host->hier[i].controllers;

	if (controllers & CGROUP_KILL) {
		b->kill_fd = openat(b->fd[i], "cgroup.kill", O_WRONLY | O_CLOEXEC);
		if (b->kill_fd < 0)
			return -errno;
	}
	if (controllers & CGROUP_CLONE_INTO) {
		b->clone_fd = fcntl(b->fd[i], F_DUPFD_CLOEXEC, 0);
		if (b->clone_fd < 0)
			return -errno;
	}
	return 0;
}

static int box_create_in(struct cgroup_box *b, size_t i)
{
	const struct cgroup_hier *hier = &b->host->hier[i];
	int r;

	if (!box_needs_dir(hier->controllers, &b->cap))
		return 0;
	r = cgroup_mkdir(hier->fd, b->name, &b->fd[i]);
	if (r < 0)
		return r;
	if (hier->controllers & UNIFIED)
		return unified_handles(b, i);
	r = v1_limits_write(hier->controllers, b->fd[i], &b->cap);
	return r < 0 ? r : box_open_join(b, i);
}

static int box_create_where(struct cgroup_box *b, bool unified)
{
	for (size_t i = 0; i < b->host->n_hier; i++) {
		int r;

		if (!!(b->host->hier[i].controllers & UNIFIED) != unified)
			continue;
		r = box_create_in(b, i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int v1_box_create(struct cgroup_box *b)
{
	int r = box_create_where(b, true);

	if (r < 0)
		(void)v1_box_rmdir(b); /* just made and empty: only what has an fd is ours */
	return r;
}

/* A failure leaves it to the caller, who has to end the box anyway. */
static int v1_box_finish(struct cgroup_box *b)
{
	return box_create_where(b, false);
}

static bool exec_has_leaf(const struct cgroup_box *b, size_t i)
{
	unsigned controllers = b->host->hier[i].controllers;

	return !(controllers & UNIFIED) && !(controllers & b->shared);
}

/* What the command is counted by and the agent with it. */
static int exec_share(const struct cgroup_box *b, size_t i, struct cgroup_exec *e)
{
	if (b->fd[i] < 0 || !(b->host->hier[i].controllers & b->shared))
		return 0;
	e->fd[i] = fcntl(b->fd[i], F_DUPFD_CLOEXEC, 0);
	return e->fd[i] < 0 ? -errno : 0;
}

static int v1_exec_rmdir(const struct cgroup_box *b, unsigned n)
{
	struct cgroup_name nested = cgroup_exec_path(b->name, n);
	struct cgroup_name flat = cgroup_exec_name(b->name, n);

	for (size_t i = 0; i < b->host->n_hier; i++) {
		const char *leaf = cgroup_box_has_dir(b, i) ? nested.text : flat.text;
		int r = exec_has_leaf(b, i) ? cgroup_rmdir(b->host->hier[i].fd, leaf) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int exec_create_in(const struct cgroup_box *b, size_t i, const struct cgroup_limits *limits,
			  struct cgroup_exec *e)
{
	const struct cgroup_hier *hier = &b->host->hier[i];
	bool nested = b->fd[i] >= 0;
	struct cgroup_name name = cgroup_exec_name(nested ? NULL : b->name, e->n);
	int r;

	r = cgroup_mkdir(nested ? b->fd[i] : hier->fd, name.text, &e->fd[i]);
	if (r < 0)
		return r;
	r = v1_limits_write(hier->controllers, e->fd[i], limits);
	if (r < 0)
		return r;
	r = openat(e->fd[i], "tasks", O_WRONLY | O_CLOEXEC);
	if (r < 0)
		return -errno;
	e->join_fd[e->n_join++] = r;
	return 0;
}

static int v1_exec_create(const struct cgroup_box *b, const struct cgroup_limits *limits,
			  struct cgroup_exec *e)
{
	for (size_t i = 0; i < b->host->n_hier; i++) {
		int r = exec_has_leaf(b, i) ? exec_create_in(b, i, limits, e) : exec_share(b, i, e);

		if (r < 0) {
			(void)v1_exec_rmdir(b, e->n);
			return r;
		}
	}
	return 0;
}

static int v1_exec_weigh(const struct cgroup_box *b, const struct cgroup_exec *e, uint32_t milli)
{
	for (size_t i = 0; i < b->host->n_hier; i++)
		if ((b->host->hier[i].controllers & CGROUP_CPU) && e->fd[i] >= 0)
			return cgroup_write_u64(e->fd[i], "cpu.shares",
						MAX((uint64_t)milli * CPU_SHARES / 1000, 2));
	return 0;
}

const struct cgroup_driver cgroup_v1_driver = {
	.box_create = v1_box_create,
	.box_finish = v1_box_finish,
	.exec_create = v1_exec_create,
	.exec_sample = cgroup_v1_exec_sample,
	.exec_weigh = v1_exec_weigh,
	.exec_rmdir = v1_exec_rmdir,
	.box_rmdir = v1_box_rmdir,
};
