/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box: sealed namespaces with an agent inside, and the handles by which it is driven and ended.
 * Its identity on this side is descriptors (pidfd, control socket, cgroups), never something it
 * says.
 */
#pragma once

#include "base/fail.h"
#include "box/ids.h"
#include "sys/cgroup.h"

#include <sys/types.h>

/* What boxes need of this machine, found once. */
struct box_host {
	struct cgroup_host cgroups;
	struct ids_host ids;
	/* the agent's image, a sealed memfd: made for the first box, see box_host_agent() */
	int agent_fd;
	/* As root: the user that owns the boxes' user namespaces. A process of it, without any
	 * power over the host, can go into those that it is given the descriptors of (src/zygote).
	 * 0: we own them, and none goes in. */
	uid_t owner;
	/* Boxes are made all the time: what makes a single one ready sooner by another CPU's work
	 * is not worth it. */
	bool busy;
};

#define BOX_LAYERS_MAX 8 /* above the template's own */

struct box_template {
	const char *root; /* directory: the lower layer of / */
	const char *usr;  /* directory for /usr, or NULL when root has its own */
	/* What other boxes have written, over that; the lowest first. */
	struct {
		const char *root;
		const char *usr;
	} layer[BOX_LAYERS_MAX];
	size_t n_layers;
	/* its commands may run as the box's uid 0, with the short list of setup/process.c */
	bool root_user;
	/* Only the ordinary user is ever in it, the template has nothing in that user's places
	 * (/home/user, /tmp, /var/tmp), and no snapshot is taken: then nothing of the template need
	 * be writable. Not with root_user or layers. */
	bool fixed;
	/* For one command, after which nothing is asked of it: no interpreter will be in it, so its
	 * agent needs no view of every process, and both may be counted together
	 * (cgroup_can_share()). */
	bool one_command;
};

struct box_limits {
	uint64_t memory_bytes; /* of commands; the files they write are counted by disk_bytes */
	uint64_t disk_bytes;
	uint64_t files;
	uint32_t pids;
	uint32_t cpu_milli;
};

/* What the set-up says when it is done, or cannot go on. */
struct setup_report {
	uint32_t step; /* of setup/steps.def: the one that failed, or SETUP_DONE */
	int32_t err;
	uint32_t features;
	int32_t landlock_abi;
	uint32_t masks;
};

struct box {
	struct ids ids;
	struct cgroup_box cgroup;
	pid_t pid; /* of the agent; valid until box_destroy() reaps it */
	int pidfd;
	int control_fd;
	int setup_fd; /* where the set-up reports, until box_await() */
	/* root of the writable layer: for fstatfs() only, nothing resolves paths here */
	int scratch_fd;
	uint64_t disk_bytes;
	bool frozen;
	struct setup_report report;
};

#define BOX_HOST_INIT                                                                              \
	{                                                                                          \
		.ids = IDS_HOST_INIT, .agent_fd = -EBADF                                           \
	}
#define BOX_INIT                                                                                   \
	{                                                                                          \
		.ids = IDS_INIT, .cgroup = CGROUP_BOX_INIT, .pidfd = -EBADF, .control_fd = -EBADF, \
		.setup_fd = -EBADF, .scratch_fd = -EBADF,                                          \
	}

/* Opens what boxes need and removes what boxes of dead processes left behind. */
_must_check_ int box_host_open(struct box_host *ret, struct fail *fail);
/* Makes the agent's image, if that has not been done: for who wants to know before the first
 * box. */
_must_check_ int box_host_agent(struct box_host *h, struct fail *fail);
void box_host_close(struct box_host *h);

/*
 * Starts to build a box; limits is what everything in it together may use. On failure nothing is
 * left. Commands and files may be sent at once: the agent finds them when it comes up. box_await()
 * must be called before anything is believed: it says whether the box was built as it should.
 */
_must_check_ int box_create(struct box_host *h, const struct box_template *t,
			    const struct box_limits *limits, struct box *ret, struct fail *fail);

_must_check_ int box_await(struct box *b, struct fail *fail);

/* Ends everything in it, waits for the end, removes every trace. Safe on BOX_INIT. */
void box_destroy(struct box *b);

/*
 * The same without waiting. After box_kill() nothing in it runs on and nobody can talk to it; once
 * its pidfd can be read, box_reap() removes every trace. -EAGAIN: the kernel is not done with it,
 * come back in a moment; a caller that has had enough of that says box_give_up(), and a later
 * box_host_open() does the rest.
 */
void box_kill(struct box *b);
_must_check_ int box_reap(struct box *b);
void box_give_up(struct box *b);

/* A command in a box. */
struct box_command {
	const char *const *argv;
	const char *const *env;
	const char *cwd;
	uint64_t memory_bytes;
	uint64_t cpu_time_us; /* backs up the cgroup's counter where there is no cgroup */
	uint32_t pids;
	uint32_t cpu_milli;
	bool with_stdin;
	bool last; /* nothing will be asked of the box afterwards */
};

struct box_exec {
	int sock; /* the operation: WIRE_IN to it, WIRE_STARTED, _OUT, _ERR, _EXIT from it */
	struct cgroup_exec cgroup;
};

#define BOX_EXEC_INIT                                                                              \
	{                                                                                          \
		.sock = -EBADF, .cgroup = CGROUP_EXEC_INIT                                         \
	}

_must_check_ int box_exec(struct box *b, const struct box_command *c, struct box_exec *ret,
			  struct fail *fail);
void box_exec_close(struct box_exec *e);

/* For a box that many commands run in: one leaf for all of them, which the agent makes them
 * join. */
_must_check_ int box_leaf(struct box *b, const struct box_limits *limits, struct cgroup_exec *ret,
			  struct fail *fail);

/* Starts a file transfer (WIRE_PUT or WIRE_GET) with a directory of the box as its root: a
 * socket. */
_must_check_ int box_files(struct box *b, uint32_t type, const char *root, struct fail *fail);

/*
 * Interpreters that keep their state, for a box that has a leaf. box_kernel() starts one: on the
 * socket come STARTED and, when it is loaded, DONE; or FAILED. box_cell() gives it something to do
 * (cell->context says to which one): STARTED, output and events, CELL_END; or FAILED. Closing a
 * cell's socket interrupts it. box_tell_context() interrupts or ends: DONE or FAILED.
 */
struct wire_context;
struct wire_cell;
_must_check_ int box_kernel(struct box *b, const struct box_command *c,
			    const struct wire_context *context, struct fail *fail);
_must_check_ int box_cell(struct box *b, const struct wire_cell *cell, const char *code, size_t len,
			  struct fail *fail);
_must_check_ int box_tell_context(struct box *b, const char *context, uint32_t signal,
				  struct fail *fail);

/* The limits given to a command are the kernel's for memory and files together. */
uint64_t box_memory_cap(uint64_t memory_bytes, uint64_t disk_bytes);

/* Those of the limits that this host's cgroups can enforce; which that is, a run's result says. */
struct cgroup_limits box_enforced(const struct cgroup_host *h, const struct cgroup_limits *wanted);

/*
 * RX-18: how much a box counts where CPUs are contended, in thousandths. A quota says how much CPU
 * it gets, not that it is taken from one CPU: a thousand threads spread over all of them and claim
 * an equal share of each beside what runs there. So a box weighs less the more it runs at once
 * beyond what its quota can use.
 */
uint32_t box_weight(uint32_t cpu_milli, uint32_t tasks);

struct box_disk {
	uint64_t used_bytes;
	uint64_t free_bytes;
	uint64_t free_files;
};
_must_check_ int box_disk_usage(const struct box *b, struct box_disk *ret);

/* Bytes that everything reaped in the box so far has read and written. */
_must_check_ int box_io_bytes(const struct box *b, uint64_t *ret_read, uint64_t *ret_written);
