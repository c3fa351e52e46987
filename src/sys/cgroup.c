/* SPDX-License-Identifier: Apache-2.0 */
/* What both cgroup versions share: the interface and the life of a box. */
#include "sys/cgroup_priv.h"

#include "base/clock.h"
#include "base/parse.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static void exec_close_files(struct cgroup_exec *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->join_fd); i++)
		e->join_fd[i] = fd_close(e->join_fd[i]);
	for (size_t i = 0; i < ARRAY_SIZE(e->stat_fd); i++)
		e->stat_fd[i] = fd_close(e->stat_fd[i]);
	e->n_join = 0;
}

void cgroup_exec_close(struct cgroup_exec *e)
{
	exec_close_files(e);
	for (size_t i = 0; i < ARRAY_SIZE(e->fd); i++)
		e->fd[i] = fd_close(e->fd[i]);
}

int cgroup_box_kill(const struct cgroup_box *b)
{
	if (b->kill_fd < 0)
		return -EOPNOTSUPP;
	return write(b->kill_fd, "1", 1) == 1 ? 0 : -errno;
}

static void box_close_joins(struct cgroup_box *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(b->join_fd); i++)
		b->join_fd[i] = fd_close(b->join_fd[i]);
	b->n_join = 0;
	b->clone_fd = fd_close(b->clone_fd);
}

void cgroup_box_close(struct cgroup_box *b)
{
	box_close_joins(b);
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

/* --- few descriptors ------------------------------------------------------------------------ */

/*
 * Few descriptors for each of many boxes. Every process that is started gets a copy of all our
 * descriptors and closes them again, so ten of them for each of a thousand boxes would cost every
 * new box a millisecond.
 */
void cgroup_box_settle(struct cgroup_box *b)
{
	box_close_joins(b);
	for (size_t i = 0; i < ARRAY_SIZE(b->fd); i++) {
		b->had[i] |= b->fd[i] >= 0;
		b->fd[i] = fd_close(b->fd[i]);
	}
	b->kill_fd = fd_close(b->kill_fd);
}

void cgroup_exec_settle(struct cgroup_exec *e)
{
	exec_close_files(e);
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

/* --- freezing ------------------------------------------------------------------------------- */

/*
 * Freezing: only cgroup2 can (its own tree on v2, the tree beside the v1 ones in hybrid mode). v1's
 * freezer is another hierarchy to make and to enter for every box, on machines that hardly exist
 * any more.
 */
static int freezer_dir(const struct cgroup_box *b)
{
	for (size_t i = 0; b->host && i < b->host->n_hier; i++)
		if ((b->host->hier[i].controllers & CGROUP_FREEZE) && b->fd[i] >= 0)
			return b->fd[i];
	return -EOPNOTSUPP;
}

int cgroup_box_freeze(const struct cgroup_box *b, bool frozen)
{
	int dir = freezer_dir(b);

	return dir < 0 ? dir : cgroup_write(dir, "cgroup.freeze", frozen ? "1" : "0");
}

int cgroup_box_is_frozen(const struct cgroup_box *b)
{
	int dir = freezer_dir(b), r;
	uint64_t frozen = 0;
	char text[256];

	if (dir < 0)
		return dir;
	r = cgroup_read(dir, "cgroup.events", text, sizeof(text));
	if (r < 0)
		return r;
	return cgroup_keyed_u64(text, "frozen", &frozen) ? frozen == 1 : -ENODATA;
}

/* --- entering ------------------------------------------------------------------------------- */

/*
 * Into a box's cgroups from outside. v1's `tasks` files are opened by us, and the kernel looks at
 * the opener. In the cgroup2 tree moving is not an option: for a whole process the kernel makes
 * every fork on the machine wait for a grace period. Being cloned into it is cheap, but then the
 * kernel looks at who clones: that user must be allowed to write cgroup.procs of the directory,
 * which is given to it, and of what it has in common with where the process comes from: that is the
 * top of all boxes, where services of other owners of boxes may be at home, so everybody may. By
 * the same rule that is worth nothing to anybody who is not below it already, and what is below it
 * is a zygote or a box, where no cgroup can be named.
 */
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

/* --- killing one ---------------------------------------------------------------------------- */

/* Ending the largest process of a command's cgroup, as the kernel does when its memory is used
 * up. */
#define MEMBERS_TEXT 65536 /* some nine thousand processes; who is beyond them is small */

/* Pages that a process has to itself in memory; 0 when it is gone. */
static uint64_t resident_pages(const char *pid)
{
	char path[40], text[128], *save = NULL, *field = NULL;
	uint64_t pages = 0;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/statm", pid);
	if (cgroup_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	for (int i = 0; i < 2; i++)
		field = strtok_r(i ? NULL : text, " \n", &save);
	return field && parse_u64(field, &pages) == 0 ? pages : 0;
}

static int members_read(const struct cgroup_box *b, const struct cgroup_exec *e, char *text,
			size_t size)
{
	for (size_t i = 0; i < b->host->n_hier; i++)
		if (e->fd[i] >= 0 && (b->host->hier[i].controllers & CGROUP_MEMORY))
			return cgroup_read_lines(e->fd[i], "cgroup.procs", text, size);
	return -EOPNOTSUPP;
}

int cgroup_exec_kill_largest(const struct cgroup_box *b, const struct cgroup_exec *e,
			     int *ret_pidfd)
{
	static char members[MEMBERS_TEXT], again[MEMBERS_TEXT];
	char largest[24] = "", *save = NULL;
	_cleanup_(fd_closep) int pidfd = -EBADF;
	uint64_t most = 0, number;
	int r = members_read(b, e, members, sizeof(members));

	if (r < 0)
		return r;
	for (char *pid = strtok_r(members, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		uint64_t pages = resident_pages(pid);

		if (pages > most) {
			most = pages;
			(void)snprintf(largest, sizeof(largest), "%s", pid);
		}
	}
	if (most == 0 || parse_u64(largest, &number) < 0)
		return -ESRCH;
	/* PL-09: held by descriptor, and still a member, it is not a stranger with the same
	 * number. */
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
	if (pidfd < 0) /* the kernel has several words for a process that is gone */
		return cgroup_is_passing(-errno) ? -errno : -ESRCH;
	r = members_read(b, e, again, sizeof(again));
	if (r < 0 || !cgroup_has_word(again, largest))
		return r < 0 ? r : -ESRCH;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
		return -errno;
	if (ret_pidfd)
		*ret_pidfd = take_fd(&pidfd);
	return 0;
}
