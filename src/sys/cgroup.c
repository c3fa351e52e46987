/* SPDX-License-Identifier: Apache-2.0 */
/* What both cgroup versions share: the interface, the life of a box, files and their formats. */
#include "sys/cgroup_priv.h"

#include "base/clock.h"
#include "base/parse.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>

#define REMOVE_WAIT_US 1000000

/* Without cgroups a box has none of the directories, and every step succeeds at nothing. */
static int none_box_create(struct cgroup_box *b)
{
	(void)b;
	return 0;
}

static int none_exec_create(const struct cgroup_box *b, const struct cgroup_limits *limits,
			    struct cgroup_exec *e)
{
	(void)b, (void)limits, (void)e;
	return 0;
}

static int none_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e,
			    struct cgroup_usage *u)
{
	(void)b, (void)e, (void)u;
	return 0;
}

static int none_exec_weigh(const struct cgroup_box *b, const struct cgroup_exec *e, uint32_t milli)
{
	(void)b, (void)e, (void)milli;
	return 0;
}

static int none_exec_rmdir(const struct cgroup_box *b, unsigned n)
{
	(void)b, (void)n;
	return 0;
}

static int none_box_rmdir(const struct cgroup_box *b)
{
	(void)b;
	return 0;
}

static const struct cgroup_driver none_driver = {
	.box_create = none_box_create,
	.box_finish = none_box_create,
	.exec_create = none_exec_create,
	.exec_sample = none_exec_sample,
	.exec_weigh = none_exec_weigh,
	.exec_rmdir = none_exec_rmdir,
	.box_rmdir = none_box_rmdir,
};

static const struct cgroup_driver *driver(const struct cgroup_host *h)
{
	switch (h->mode) {
	case CGROUP_V1:
	case CGROUP_HYBRID:
		return &cgroup_v1_driver;
	case CGROUP_V2:
		return &cgroup_v2_driver;
	case CGROUP_NONE:
		break;
	}
	return &none_driver;
}

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	switch (mode) {
	case CGROUP_NONE:
		return "none";
	case CGROUP_V1:
		return "v1";
	case CGROUP_HYBRID:
		return "hybrid";
	case CGROUP_V2:
		return "v2";
	}
	return "none";
}

void cgroup_host_add(struct cgroup_host *h, unsigned controllers, int fd)
{
	h->hier[h->n_hier++] = (struct cgroup_hier){ .controllers = controllers, .fd = fd };
	h->features |= controllers;
}

/* cgroup.kill came with 5.14, after CLONE_INTO_CGROUP (5.7), which cannot be seen in a file. */
unsigned cgroup_unified_features(int dir)
{
	if (faccessat(dir, "cgroup.kill", F_OK, 0) == 0)
		return CGROUP_KILL | CGROUP_FREEZE | CGROUP_CLONE_INTO;
	if (faccessat(dir, "cgroup.freeze", F_OK, 0) == 0)
		return CGROUP_FREEZE;
	return 0;
}

struct cgroup_limits cgroup_all_boxes(void)
{
	struct cgroup_limits l = { .memory_bytes = UINT64_MAX >> 1, .pids = 32768 };
	struct sysinfo info;
	char text[32];
	uint64_t pids;

	if (sysinfo(&info) == 0) {
		uint64_t total = (uint64_t)info.totalram * info.mem_unit;

		l.memory_bytes = total - MIN(total / 8, UINT64_C(2) << 30);
	}
	if (cgroup_read(AT_FDCWD, "/proc/sys/kernel/pid_max", text, sizeof(text)) == 0) {
		text[strcspn(text, "\n")] = '\0';
		if (parse_u64(text, &pids) == 0)
			l.pids = (uint32_t)(pids - pids / 4);
	}
	return l;
}

bool cgroup_is_passing(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EINTR || r == -EAGAIN ||
	       r == -EIO;
}

static const char *host_advice(const struct cgroup_host *h, bool v2, bool mounted)
{
	if ((h->features & CGROUP_MEMORY) && (h->features & CGROUP_PIDS))
		return "";
	if (!mounted)
		return "no cgroups at " CGROUP_MOUNT ": mount cgroup2 there";
	if (h->n_hier > 0)
		return "the memory or pids controller is not enabled for us: delegate them or run as root";
	if (v2)
		return "no cgroup is ours: run as root or under systemd-run --user --scope -p Delegate=yes";
	return "cgroup v1 is not writable for us: run as root";
}

int cgroup_host_open(struct cgroup_host *ret)
{
	struct cgroup_host h = { .mode = CGROUP_NONE };
	struct statfs fs = { 0 };
	bool mounted, v2;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h.hier); i++)
		h.hier[i].fd = -EBADF;
	mounted = statfs(CGROUP_MOUNT, &fs) == 0 && fs.f_type != SYSFS_MAGIC;
	v2 = mounted && fs.f_type == CGROUP2_SUPER_MAGIC;
	if (v2)
		r = cgroup_v2_host_open(&h);
	else if (mounted)
		r = cgroup_v1_host_open(&h);
	if (r < 0) {
		cgroup_host_close(&h);
		return r;
	}
	(void)snprintf(h.why_none, sizeof(h.why_none), "%s", host_advice(&h, v2, mounted));
	*ret = h;
	return 0;
}

void cgroup_host_close(struct cgroup_host *h)
{
	for (size_t i = 0; i < h->n_hier; i++)
		h->hier[i].fd = fd_close(h->hier[i].fd);
	h->n_hier = 0;
	h->features = 0;
	h->mode = CGROUP_NONE;
}

static bool name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len >= 1 && len <= 24 && name[len] == '\0';
}

/* Never a limit that silently does nothing. */
static bool limits_are_possible(const struct cgroup_host *h, const struct cgroup_limits *l)
{
	return (l->memory_bytes == 0 || (h->features & CGROUP_MEMORY)) &&
	       (l->pids == 0 || (h->features & CGROUP_PIDS)) &&
	       (l->cpu_milli == 0 || (h->features & CGROUP_CPU));
}

int cgroup_box_create(const struct cgroup_host *h, const char *name,
		      const struct cgroup_limits *cap, struct cgroup_box *ret)
{
	_cleanup_(cgroup_box_close) struct cgroup_box b = CGROUP_BOX_INIT;
	int r;

	if (!name_is_valid(name))
		return -EINVAL;
	if (!limits_are_possible(h, cap))
		return -EOPNOTSUPP;
	b.host = h;
	(void)snprintf(b.name, sizeof(b.name), "%s", name);
	b.cap = *cap;
	r = driver(h)->box_create(&b);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct cgroup_box)CGROUP_BOX_INIT;
	return 0;
}

int cgroup_box_finish(struct cgroup_box *b)
{
	return driver(b->host)->box_finish(b);
}

unsigned cgroup_can_share(const struct cgroup_host *h)
{
	unsigned shared = 0;

	for (size_t i = 0; h->mode != CGROUP_V2 && i < h->n_hier; i++)
		if (h->hier[i].controllers == CGROUP_MEMORY ||
		    h->hier[i].controllers == CGROUP_PIDS)
			shared |= h->hier[i].controllers;
	return shared;
}

int cgroup_exec_create(struct cgroup_box *b, const struct cgroup_limits *limits,
		       struct cgroup_exec *ret)
{
	_cleanup_(cgroup_exec_close) struct cgroup_exec e = CGROUP_EXEC_INIT;
	int r;

	if (!limits_are_possible(b->host, limits))
		return -EOPNOTSUPP;
	e.n = b->n_exec + 1;
	r = driver(b->host)->exec_create(b, limits, &e);
	if (r < 0)
		return r;
	b->n_exec = e.n;
	*ret = e;
	e = (struct cgroup_exec)CGROUP_EXEC_INIT;
	return 0;
}

int cgroup_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e, struct cgroup_usage *ret)
{
	struct cgroup_usage u = { 0 };
	int r;

	r = driver(b->host)->exec_sample(b, e, &u);
	if (r < 0)
		return r;
	u.cpu_us -= MIN(e->before.cpu_us, u.cpu_us);
	u.cpu_user_us -= MIN(e->before.cpu_user_us, u.cpu_user_us);
	u.cpu_system_us -= MIN(e->before.cpu_system_us, u.cpu_system_us);
	*ret = u;
	return 0;
}

int cgroup_exec_weigh(const struct cgroup_box *b, const struct cgroup_exec *e, uint32_t milli)
{
	return driver(b->host)->exec_weigh(b, e, milli);
}

int cgroup_exec_mark(const struct cgroup_box *b, struct cgroup_exec *e)
{
	e->before = (struct cgroup_usage){ 0 };
	if (b->host->mode != CGROUP_HYBRID)
		return 0; /* the leaf's own counters start with the command */
	return cgroup_v1_cpu_before(b, e);
}

int cgroup_exec_remove(struct cgroup_box *b, struct cgroup_exec *e)
{
	int r = driver(b->host)->exec_rmdir(b, e->n);

	if (r < 0)
		return r;
	cgroup_exec_close(e);
	return 0;
}

void cgroup_exec_close_files(struct cgroup_exec *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->join_fd); i++)
		e->join_fd[i] = fd_close(e->join_fd[i]);
	for (size_t i = 0; i < ARRAY_SIZE(e->stat_fd); i++)
		e->stat_fd[i] = fd_close(e->stat_fd[i]);
	e->n_join = 0;
}

void cgroup_exec_close(struct cgroup_exec *e)
{
	cgroup_exec_close_files(e);
	for (size_t i = 0; i < ARRAY_SIZE(e->fd); i++)
		e->fd[i] = fd_close(e->fd[i]);
}

int cgroup_box_kill(const struct cgroup_box *b)
{
	if (b->kill_fd < 0)
		return -EOPNOTSUPP;
	return write(b->kill_fd, "1", 1) == 1 ? 0 : -errno;
}

void cgroup_box_close_joins(struct cgroup_box *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(b->join_fd); i++)
		b->join_fd[i] = fd_close(b->join_fd[i]);
	b->n_join = 0;
	b->clone_fd = fd_close(b->clone_fd);
}

void cgroup_box_close(struct cgroup_box *b)
{
	cgroup_box_close_joins(b);
	for (size_t i = 0; i < ARRAY_SIZE(b->fd); i++)
		b->fd[i] = fd_close(b->fd[i]);
	b->kill_fd = fd_close(b->kill_fd);
	/* Its name may be another's from now on. */
	memset(b->had, 0, sizeof(b->had));
	b->n_exec = 0;
}

/* From the last one down, so that what is left is still counted. */
static int remove_leaves(struct cgroup_box *b)
{
	for (; b->n_exec > 0; b->n_exec--) {
		int r = driver(b->host)->exec_rmdir(b, b->n_exec);

		if (r < 0)
			return r;
	}
	return 0;
}

void cgroup_box_remove_leaves(struct cgroup_box *b)
{
	(void)remove_leaves(b);
}

int cgroup_box_try_remove(struct cgroup_box *b)
{
	int r = remove_leaves(b);

	if (r == 0)
		r = driver(b->host)->box_rmdir(b);
	if (r == 0)
		cgroup_box_close(b);
	return r;
}

/* CR-08: a killed process leaves its cgroup a moment after its parent has seen it die. */
int cgroup_box_remove(struct cgroup_box *b)
{
	uint64_t deadline_us = clock_boot_us() + REMOVE_WAIT_US;
	long wait_us = 100;
	int r;

	while ((r = cgroup_box_try_remove(b)) == -EBUSY && clock_boot_us() < deadline_us) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = wait_us * 1000 }, NULL);
		wait_us = MIN(wait_us * 2, 10000L);
	}
	return r;
}
