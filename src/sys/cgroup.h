/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups behind one interface: unified (v2), v1, and hybrid (limits on v1, a cgroup2 tree beside
 * them that can be cloned into, killed and frozen).
 *
 *	<base>/glovebox/<name>            the box: the cap for everything in it
 *	<base>/glovebox/<name>/agent      v2 only (v2 forbids processes in inner nodes)
 *	<base>/glovebox/<name>/exec-<n>   one command and its descendants, with its own limits
 *	<base>/glovebox/<name>.exec-<n>   the same on v1's cpu and cpuacct, where a box without a
 *	                                  CPU cap needs no directory of its own
 *
 * A box may do without the leaves in v1's memory and pids: see cgroup_can_share().
 *
 * The agent sits outside exec-<n>, so a command that eats its own limits cannot starve it. A
 * command joins its leaf by writing "0" to descriptors that were opened out here
 * and passed in: the kernel checks the opener's credentials, so a box sees no cgroup file system.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

enum cgroup_mode {
	CGROUP_NONE, /* nothing usable: limits are per process only, and the result says so */
	CGROUP_V1,
	CGROUP_HYBRID,
	CGROUP_V2,
};

/* What the host's cgroups can really do for a box. */
enum cgroup_feature {
	CGROUP_MEMORY = 1 << 0,
	CGROUP_PIDS = 1 << 1,
	CGROUP_CPU = 1 << 2,     /* quota */
	CGROUP_CPUACCT = 1 << 3, /* CPU time of the whole group */
	CGROUP_KILL = 1 << 4,    /* cgroup.kill */
	CGROUP_FREEZE = 1 << 5,
	CGROUP_CLONE_INTO = 1 << 6,
};

/* At most: memory, pids, cpu, cpuacct, unified. */
#define CGROUP_HIER_MAX 5

/* The most files a driver reads for one sample. */
#define CGROUP_STAT_MAX 10

/* Found once at start. */
struct cgroup_host {
	enum cgroup_mode mode;
	unsigned features; /* enum cgroup_feature */
	size_t n_hier;
	struct cgroup_hier {
		unsigned controllers; /* enum cgroup_feature bits this hierarchy provides */
		int fd;               /* <base>/glovebox */
	} hier[CGROUP_HIER_MAX];
	char why_none[96]; /* without memory or pids: what to do about it, for people */
};

struct cgroup_limits {
	uint64_t memory_bytes; /* 0: not limited, likewise below */
	uint32_t pids;
	uint32_t cpu_milli;
};

struct cgroup_usage {
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t cpu_us;       /* both, from the precise counter */
	uint64_t memory_now;   /* anonymous, kernel and socket memory, and shared memory */
	uint64_t memory_shmem; /* the part of memory_now that is tmpfs or shared memory */
	uint64_t memory_cache; /* pages of files on disks */
	uint64_t memory_peak;  /* the kernel's own high-water mark (page cache included) */
	uint64_t oom_kills;    /* more than one may mean one: a group kill counts some twice */
	uint32_t pids_now;
	uint32_t pids_peak;   /* 0 where the kernel keeps none (before 6.1) */
	uint64_t pids_denied; /* forks refused at the limit */
};

struct cgroup_box {
	const struct cgroup_host *host;
	char name[32];
	unsigned n_exec;
	unsigned shared;         /* controllers: see cgroup_can_share(); set before finish */
	int fd[CGROUP_HIER_MAX]; /* <base>/glovebox/<name> in each hierarchy that needs it */
	struct cgroup_limits cap;
	size_t n_join;
	int join_fd[CGROUP_HIER_MAX]; /* where the agent writes "0"; open from finish to close */
	int clone_fd;                 /* for CLONE_INTO_CGROUP, or -EBADF */
	int kill_fd;                  /* cgroup.kill, or -EBADF */
	bool had[CGROUP_HIER_MAX];    /* settled: which of fd to open again */
};

struct cgroup_exec {
	unsigned n;
	size_t n_join;
	int join_fd[CGROUP_HIER_MAX]; /* opened for writing; sent to the agent, which writes "0" */
	int fd[CGROUP_HIER_MAX];      /* the leaf in each hierarchy that has one */
	bool had[CGROUP_HIER_MAX];
	struct cgroup_usage before;   /* CPU time that is not this command's */
	int stat_fd[CGROUP_STAT_MAX]; /* the driver's files for samples, opened at the first one */
};

#define CGROUP_BOX_INIT                                                                            \
	{                                                                                          \
		.fd = { [0 ... CGROUP_HIER_MAX - 1] = -EBADF },                                    \
		.join_fd = { [0 ... CGROUP_HIER_MAX - 1] = -EBADF }, .clone_fd = -EBADF,           \
		.kill_fd = -EBADF                                                                  \
	}
#define CGROUP_EXEC_INIT                                                                           \
	{                                                                                          \
		.join_fd = { [0 ... CGROUP_HIER_MAX - 1] = -EBADF },                               \
		.fd = { [0 ... CGROUP_HIER_MAX - 1] = -EBADF },                                    \
		.stat_fd = { [0 ... CGROUP_STAT_MAX - 1] = -EBADF },                               \
	}

/*
 * Finds the mode and opens (making it if need be) <base>/glovebox. Not being able to use cgroups is
 * not an error: mode is CGROUP_NONE then. features tell what can really be limited and counted.
 */
int cgroup_host_open(struct cgroup_host *ret);
void cgroup_host_close(struct cgroup_host *h);

/*
 * A name is [a-z0-9-]{1,24}, else -EINVAL. -EEXIST when a box of that name is there. -EOPNOTSUPP
 * when a limit is asked for that the host cannot enforce (see features): nothing is dropped
 * silently. On failure nothing is left. The host must stay open as long as the box.
 */
_must_check_ int cgroup_box_create(const struct cgroup_host *h, const char *name,
				   const struct cgroup_limits *cap, struct cgroup_box *ret);

/*
 * The rest of it: in hybrid mode cgroup_box_create() makes only what a process is cloned into, so
 * that the v1 directories can be made while that process is already at work. The agent must write
 * "0" to each of join_fd before anything foreign runs. It moves itself because moving another
 * process makes the kernel wait for all CPUs: milliseconds, not microseconds.
 */
_must_check_ int cgroup_box_finish(struct cgroup_box *b);

/*
 * The controllers (of memory and pids) for which a box in which there will be one command can do
 * with one directory, in which the agent is as well. The caps are for both then. Another directory
 * costs 0.2 ms, most of it in the kernel's workers afterwards. When memory is short the kernel ends
 * the command, whose oom score is the higher one; but whatever it ends, that is the end of the run.
 * An agent that could not start a process while the command has as many as it may would not be fit
 * for more than that command: see box_template.one_command. Not on v2, where processes are in
 * leaves only, nor where a directory counts other things too.
 */
unsigned cgroup_can_share(const struct cgroup_host *h);

/* Errors like cgroup_box_create. */
_must_check_ int cgroup_exec_create(struct cgroup_box *b, const struct cgroup_limits *limits,
				    struct cgroup_exec *ret);
_must_check_ int cgroup_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e,
				    struct cgroup_usage *ret);

/* The least that tells whether a sample is worth its while: all memory that is charged to it, page
 * cache and all, and its tasks. What the host does not count is 0. Of a settled box too. */
_must_check_ int cgroup_exec_glance(const struct cgroup_box *b, const struct cgroup_exec *e,
				    uint64_t *ret_memory, uint32_t *ret_tasks);

/* Kills the process that has most in memory. -ESRCH: none has any, or it was gone before we came.
 * Its pidfd, unless NULL, tells when it is gone. */
_must_check_ int cgroup_exec_kill_largest(const struct cgroup_box *b, const struct cgroup_exec *e,
					  int *ret_pidfd);

/*
 * How much the command counts where CPUs are contended, in thousandths of an ordinary one. Without
 * a cpu controller it is not an error: there is nothing to weigh.
 */
_must_check_ int cgroup_exec_weigh(const struct cgroup_box *b, const struct cgroup_exec *e,
				   uint32_t milli);

/*
 * The command is about to start: what the box has used up to now is not its own. In hybrid mode CPU
 * time is counted for the box as a whole (a hierarchy less to make and to enter); elsewhere by the
 * leaf.
 */
_must_check_ int cgroup_exec_mark(const struct cgroup_box *b, struct cgroup_exec *e);

/*
 * Removes the leaf of a command that has ended and closes e. -EBUSY while something still runs in
 * it: then it stays, open, and the box removes it at the latest.
 */
int cgroup_exec_remove(struct cgroup_box *b, struct cgroup_exec *e);
void cgroup_exec_close(struct cgroup_exec *e); /* descriptors only; the box removes the leaf */

/*
 * A process with a thousand boxes keeps no descriptors for them: settle closes all, and nothing else
 * here may be called before reopen, the box first.
 */
void cgroup_box_settle(struct cgroup_box *b);
void cgroup_exec_settle(struct cgroup_exec *e);
_must_check_ int cgroup_box_reopen(struct cgroup_box *b);
_must_check_ int cgroup_exec_reopen(const struct cgroup_box *b, struct cgroup_exec *e);

/*
 * How a process of `who`, a user without power of its own, gets to where a box's commands are: it
 * is cloned into one directory and writes "0" to the files of the others. Of a settled box too. The
 * host must have been opened to such users once: cgroup_host_admit() makes the place that their
 * processes must be cloned from, and returns it. -EOPNOTSUPP: these cgroups cannot.
 */
struct cgroup_entry {
	size_t n_join;
	int join_fd[CGROUP_HIER_MAX];
	int clone_fd; /* for CLONE_INTO_CGROUP, or -EBADF */
};
#define CGROUP_ENTRY_INIT                                                                          \
	{                                                                                          \
		.join_fd = { [0 ... CGROUP_HIER_MAX - 1] = -EBADF }, .clone_fd = -EBADF            \
	}
_must_check_ int cgroup_entry_open(struct cgroup_box *b, struct cgroup_exec *e, uid_t who,
				   struct cgroup_entry *ret);
void cgroup_entry_close(struct cgroup_entry *e);
_must_check_ int cgroup_host_admit(const struct cgroup_host *h, const char *place, int *ret_fd);
void cgroup_host_dismiss(const struct cgroup_host *h, const char *place);

/*
 * Stops everything in the box where it stands, or lets it go on. -EOPNOTSUPP without CGROUP_FREEZE.
 * Stopping takes a moment: cgroup_box_is_frozen() tells when it is done (1), 0 before, or an error.
 */
_must_check_ int cgroup_box_freeze(const struct cgroup_box *b, bool frozen);
_must_check_ int cgroup_box_is_frozen(const struct cgroup_box *b);

/* How often the kernel killed in the box's own cgroup, where its agent is, for want of memory (v2:
 * anywhere in it). */
_must_check_ int cgroup_box_oom_kills(const struct cgroup_box *b, uint64_t *ret);

/* Kills everything in the box in one operation where the kernel can (else -EOPNOTSUPP). */
int cgroup_box_kill(const struct cgroup_box *b);

/* Removes the leaves that are empty by now; the rest is for cgroup_box_remove(). */
void cgroup_box_remove_leaves(struct cgroup_box *b);

/*
 * Removes leaves and box once they are empty, waiting up to a second for the last exits, and closes
 * b. On failure (-EBUSY: it never emptied) b stays as it is, to be tried again or closed.
 */
int cgroup_box_remove(struct cgroup_box *b);
int cgroup_box_try_remove(struct cgroup_box *b); /* without waiting */
void cgroup_box_close(struct cgroup_box *b);     /* descriptors only; a later reap removes it */

/*
 * Calls stale(name) for each box left in the tree; where it answers true, kills what is inside and
 * removes it. Returns how many were removed, or the first error after having tried all of them.
 */
int cgroup_reap(const struct cgroup_host *h, bool (*stale)(const char *name, void *arg), void *arg);

const char *cgroup_mode_name(enum cgroup_mode mode);
