/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every process that runs foreign code goes through, whether the agent started it or it walked
 * in from a zygote: its limits, its place among those that die for want of memory, and the loss of
 * all power.
 */
#pragma once

#include "base/util.h"

#include <sys/types.h>

#define PAYLOAD_USER                                                                               \
	1000u /* the box's user, and its group. Where one id is mapped there is no box root */
#define PAYLOAD_HOME "/home/user"
#define PAYLOAD_NOFILE_MAX 4096
/* An interpreter dies after the commands, and the agent, which has to tell of it, last. */
#define PAYLOAD_OOM_SCORE 800
#define PAYLOAD_OOM_SCORE_KERNEL 700

struct payload_limits {
	uint64_t fsize_max;  /* RLIMIT_FSIZE */
	uint64_t data_max;   /* RLIMIT_DATA, 0: none, likewise below */
	uint64_t nproc_max;  /* RLIMIT_NPROC */
	uint64_t cpu_max_s;  /* RLIMIT_CPU */
	uint64_t nofile_max; /* RLIMIT_NOFILE; always one */
};

_must_check_ int payload_set_limits(const struct payload_limits *l);

/* A process that outgrows the box's memory must die before the agent does. Leaves the caller not
 * dumpable. */
_must_check_ int payload_set_oom_score(int score);

/* Who it becomes and which capabilities it keeps, in all sets; usually none. */
struct payload_user {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t n_groups;
	uint64_t keep;
	unsigned long securebits;
};

/* Programs of uid != 0, and file operations, which execute nothing: uid 0 is worth nothing by
 * itself. */
extern const unsigned long payload_locked_bits;

/* The bounding set as bits. It can only shrink, so who starts many processes asks once: it is forty
 * calls. */
_must_check_ int payload_bounding_set(uint64_t *ret);

/* Empties the bounding set (which has at least what bounding says) but for what is kept, locks the
 * securebits, drops groups, ids and capabilities. */
_must_check_ int payload_become(const struct payload_user *user, uint64_t bounding);
