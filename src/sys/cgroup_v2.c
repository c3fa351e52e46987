/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2, the only hierarchy.
 *
 * Theory of operation: v2 allows processes in leaves only, so a box is an inner node with the cap
 * and the controllers handed on, and has a leaf for the agent (entered at clone time) and one for
 * each command. The node above <base>/glovebox must hand on controllers too. As root that is the
 * root of the mount; for anybody else it is the nearest cgroup above us that was delegated to us.
 */
#include "sys/cgroup_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CPU_WEIGHT 100 /* the kernel's default */
#define CPU_PERIOD_US 100000
#define AGENT "agent"
#define SUPERVISOR "supervisor"

static const struct {
	const char *word;
	const char *enable;
	unsigned bit;
} controllers[] = {
	{ "memory", "+memory", CGROUP_MEMORY },
	{ "pids", "+pids", CGROUP_PIDS },
	{ "cpu", "+cpu", CGROUP_CPU },
};
#define ALL_CONTROLLERS (CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU)

/* A list of controllers as bits, 0 when it cannot be read. */
static unsigned controllers_read(int dir, const char *file)
{
	char text[256];
	unsigned bits = 0;

	if (cgroup_read(dir, file, text, sizeof(text)) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (cgroup_has_word(text, controllers[i].word))
			bits |= controllers[i].bit;
	return bits;
}

/* The root of all may have members and hand on controllers; it alone has no type. */
static bool node_is_occupied(int node)
{
	char text[32];

	return faccessat(node, "cgroup.type", F_OK, 0) == 0 &&
	       cgroup_read(node, "cgroup.procs", text, sizeof(text)) == 0 && text[0] != '\0';
}

/*
 * Hands controllers on to dir's children; one by one, since one that fails must not cost the
 * others. Never with members in it: for some controllers the kernel would not refuse but turn the
 * node into a threaded one, which is of no use to anybody afterwards.
 */
static int controllers_enable(int dir, unsigned bits)
{
	int r = 0;

	bits &= ~controllers_read(dir, "cgroup.subtree_control");
	if (bits != 0 && node_is_occupied(dir))
		return -EBUSY;
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		int q;

		if (!(bits & controllers[i].bit))
			continue;
		q = cgroup_write(dir, "cgroup.subtree_control", controllers[i].enable);
		r = r < 0 ? r : q;
	}
	return r;
}

/*
 * The node hands nothing on while we sit in it ourselves: step aside into a leaf. Where others sit
 * in it as well that does not help, and we go back.
 */
static int step_aside(int node, unsigned bits)
{
	int r;

	if (mkdirat(node, SUPERVISOR, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = cgroup_write(node, SUPERVISOR "/cgroup.procs", "0");
	if (r >= 0)
		r = controllers_enable(node, bits);
	if (r < 0 && cgroup_write(node, "cgroup.procs", "0") >= 0)
		(void)cgroup_rmdir(node, SUPERVISOR);
	return r;
}

/*
 * What holds for all boxes together, written by the first that comes, or finds it missing: a share
 * of the machine stays free (RX-23, RX-26), and nobody swaps (RX-21). A controller that is not here
 * has no files.
 */
static int v2_base_prepare(int dir)
{
	struct cgroup_limits all = cgroup_all_boxes();
	char text[32];
	int r;

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)all.memory_bytes);
	r = cgroup_write_optional(dir, "memory.swap.max", "0");
	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.max", text);
	(void)snprintf(text, sizeof(text), "%u", all.pids);
	if (r >= 0)
		r = cgroup_write_optional(dir, "pids.max", text);
	return r == -EACCES ? 0 : r; /* the one that gave it to us kept its limits */
}

/* Not when the process that made the directory got no further, or had no controllers. */
static bool v2_is_prepared(int dir)
{
	return cgroup_limit(dir, "memory.max") != UINT64_MAX &&
	       cgroup_limit(dir, "pids.max") != UINT64_MAX;
}

/* Opens node/glovebox, making it when it is not there. */
static int base_dir(int node, int *ret_fd)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r = cgroup_mkdir(node, CGROUP_DIR, &fd);

	if (r == -EEXIST) {
		fd = openat(node, CGROUP_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r >= 0 && !v2_is_prepared(fd)) {
		r = v2_base_prepare(fd);
		if (r < 0)
			(void)cgroup_rmdir(node,
					   CGROUP_DIR); /* fails, rightly, when somebody uses it */
	}
	if (r >= 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* Makes node/glovebox with the controllers on for its children, and returns it. */
static int base_make(int node, unsigned need, bool ours)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	unsigned available = controllers_read(node, "cgroup.controllers");
	int r;

	if ((available & need) != need)
		return -ENODEV;
	r = controllers_enable(node, available);
	if (r == -EBUSY && ours)
		r = step_aside(node, available);
	if ((controllers_read(node, "cgroup.subtree_control") & need) != need)
		return r < 0 ? r : -ENODEV;
	r = base_dir(node, &fd);
	if (r < 0)
		return r;
	r = controllers_enable(fd, controllers_read(fd, "cgroup.controllers"));
	if ((controllers_read(fd, "cgroup.subtree_control") & need) != need) {
		(void)cgroup_rmdir(node, CGROUP_DIR); /* fails, rightly, when somebody uses it */
		return r < 0 ? r : -ENODEV;
	}
	return take_fd(&fd);
}

/* Everything we would write to when handing on controllers and moving processes. */
static bool node_is_ours(int node)
{
	return cgroup_may_write(node, "cgroup.procs") &&
	       cgroup_may_write(node, "cgroup.subtree_control") && cgroup_may_write(node, ".");
}

/* need: what the node must be able to limit; ours: whether we sit in the node itself. */
static int v2_base_open(const char *path, unsigned need, bool ours)
{
	_cleanup_(fd_closep) int node = -EBADF, fd = -EBADF;

	node = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (node < 0)
		return -errno;
	if (!node_is_ours(node))
		return -EACCES;
	fd = openat(node, CGROUP_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && cgroup_may_write(fd, ".") &&
	    controllers_read(fd, "cgroup.subtree_control") == ALL_CONTROLLERS && v2_is_prepared(fd))
		return take_fd(&fd);
	return base_make(node, need, ours);
}

/* From our own cgroup upwards, the first that will do. */
static int base_find_above(const char *own, unsigned need)
{
	char path[512];
	size_t top = strlen(CGROUP_MOUNT);
	int fd;

	if (snprintf(path, sizeof(path), CGROUP_MOUNT "%s", own) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = v2_base_open(path, need, true);
	while (fd < 0 && strlen(path) > top) {
		*strrchr(path, '/') = '\0';
		if (strlen(path) < top)
			break;
		fd = v2_base_open(path, need, false);
	}
	return fd;
}

static int v2_base_find(unsigned need)
{
	char own[384];
	int fd = -EACCES, r;

	r = cgroup_read_own_path("", own, sizeof(own));
	if (r < 0)
		return r;
	if (geteuid() == 0)
		fd = v2_base_open(CGROUP_MOUNT, need, strcmp(own, "/") == 0);
	return fd >= 0 ? fd : base_find_above(own, need);
}

int cgroup_v2_host_open(struct cgroup_host *h)
{
	_cleanup_(fd_closep) int fd = v2_base_find(CGROUP_MEMORY | CGROUP_PIDS);

	if (fd < 0 && !cgroup_is_passing(fd))
		fd = v2_base_find(0);
	if (fd < 0)
		return cgroup_is_passing(fd) ? fd : 0;
	h->mode = CGROUP_V2;
	cgroup_host_add(h,
			controllers_read(fd, "cgroup.subtree_control") |
				cgroup_unified_features(fd) | CGROUP_CPUACCT,
			fd);
	(void)take_fd(&fd);
	return 0;
}

static int v2_cpu_limit(int dir, uint32_t milli)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%llu %d",
		       (unsigned long long)milli * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
	return cgroup_write(dir, "cpu.max", text);
}

static int v2_limits_write(int dir, const struct cgroup_limits *l)
{
	int r = 0;

	if (l->memory_bytes > 0)
		r = cgroup_write_u64(dir, "memory.max", l->memory_bytes);
	if (r >= 0 && l->pids > 0)
		r = cgroup_write_u64(dir, "pids.max", l->pids);
	if (r >= 0 && l->cpu_milli > 0)
		r = v2_cpu_limit(dir, l->cpu_milli);
	return r;
}

static int v2_box_rmdir(const struct cgroup_box *b)
{
	char agent[sizeof(b->name) + sizeof("/" AGENT)];
	int r;

	if (!cgroup_box_has_dir(b, 0))
		return 0;
	(void)snprintf(agent, sizeof(agent), "%s/" AGENT, b->name);
	r = cgroup_rmdir(b->host->hier[0].fd, agent);
	return r < 0 ? r : cgroup_rmdir(b->host->hier[0].fd, b->name);
}

/* The cap holds for all leaves together, so swap (RX-21) is refused here once for all. */
static int box_limits(const struct cgroup_box *b, const struct cgroup_limits *cap)
{
	int dir = b->fd[0];
	int r = v2_limits_write(dir, cap);

	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.swap.max", "0");
	if (r >= 0)
		r = cgroup_write_optional(dir, "memory.zswap.max", "0");
	return r;
}

/* A new directory has no members, and must have what the host has: all in one write. */
static int box_controllers(const struct cgroup_box *b)
{
	unsigned bits = b->host->features & ALL_CONTROLLERS;
	char text[32];

	if (bits == 0)
		return 0;
	(void)snprintf(text, sizeof(text), "%s %s %s", (bits & CGROUP_MEMORY) ? "+memory" : "",
		       (bits & CGROUP_PIDS) ? "+pids" : "", (bits & CGROUP_CPU) ? "+cpu" : "");
	return cgroup_write(b->fd[0], "cgroup.subtree_control", text);
}

static int box_handles(struct cgroup_box *b, int *agent)
{
	if (b->host->features & CGROUP_KILL) {
		b->kill_fd = openat(b->fd[0], "cgroup.kill", O_WRONLY | O_CLOEXEC);
		if (b->kill_fd < 0)
			return -errno;
	}
	if (b->host->features & CGROUP_CLONE_INTO)
		b->clone_fd = take_fd(agent);
	return 0;
}

static int v2_box_create(struct cgroup_box *b)
{
	_cleanup_(fd_closep) int agent = -EBADF;
	int r;

	r = cgroup_mkdir(b->host->hier[0].fd, b->name, &b->fd[0]);
	if (r < 0)
		return r;
	r = box_limits(b, &b->cap);
	if (r >= 0)
		r = box_controllers(b);
	if (r >= 0)
		r = cgroup_mkdir(b->fd[0], AGENT, &agent);
	if (r >= 0)
		r = box_handles(b, &agent);
	if (r < 0)
		(void)v2_box_rmdir(b);
	return r;
}

/* Everything is there; only a kernel that cannot clone into a cgroup has to be entered by hand. */
static int v2_box_finish(struct cgroup_box *b)
{
	if (b->clone_fd >= 0)
		return 0;
	b->join_fd[0] = openat(b->fd[0], AGENT "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (b->join_fd[0] < 0)
		return -errno;
	b->n_join = 1;
	return 0;
}

static int v2_exec_rmdir(const struct cgroup_box *b, unsigned n)
{
	return cgroup_rmdir(b->host->hier[0].fd, cgroup_exec_path(b->name, n).text);
}

static int v2_exec_create(const struct cgroup_box *b, const struct cgroup_limits *limits,
			  struct cgroup_exec *e)
{
	int r = cgroup_mkdir(b->fd[0], cgroup_exec_name(NULL, e->n).text, &e->fd[0]);

	if (r < 0)
		return r;
	r = v2_limits_write(e->fd[0], limits);
	if (r >= 0 && (b->host->features & CGROUP_MEMORY))
		/* RX-03: half of a command that ran out of memory is of no use to anybody. */
		r = cgroup_write(e->fd[0], "memory.oom.group", "1");
	if (r >= 0) {
		r = openat(e->fd[0], "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (r < 0)
			r = -errno;
		else
			e->join_fd[e->n_join++] = r;
	}
	if (r < 0)
		(void)v2_exec_rmdir(b, e->n);
	return r < 0 ? r : 0;
}

static int v2_exec_weigh(const struct cgroup_box *b, const struct cgroup_exec *e, uint32_t milli)
{
	if (!(b->host->features & CGROUP_CPU))
		return 0;
	return cgroup_write_u64(e->fd[0], "cpu.weight",
				MAX((uint64_t)milli * CPU_WEIGHT / 1000, 1));
}

const struct cgroup_driver cgroup_v2_driver = {
	.box_create = v2_box_create,
	.box_finish = v2_box_finish,
	.exec_create = v2_exec_create,
	.exec_sample = cgroup_v2_exec_sample,
	.exec_weigh = v2_exec_weigh,
	.exec_rmdir = v2_exec_rmdir,
	.box_rmdir = v2_box_rmdir,
};
