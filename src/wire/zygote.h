/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the warden and a zygote say to each other, over one SEQPACKET socket. A zygote is an
 * interpreter that is loaded and has run nothing of anybody's; for each ENTER it forks, and the
 * child walks into the box whose namespaces came with the message. Both ends come from one build.
 */
#pragma once

#include "base/util.h"
#include "sys/payload.h"

#define ZYGOTE_SOCK_FD 3 /* it finds its socket here, */
#define ZYGOTE_PROC_FD 4 /* and its own directory of /proc, for its memory map */

/* Its exit status when this template cannot have one: trying again will not help. */
#define ZYGOTE_EXIT_CANNOT 78

/*
 * The descriptors of an ENTER, in this order: those of enum zygote_fd, then the box's namespaces
 * that the mask names, in the order of enum zygote_namespace, then the cgroup's directory to be
 * born into, if flagged, then files to write "0" to.
 */
enum zygote_fd {
	ZYGOTE_FD_REQUESTS, /* the context's 3, */
	ZYGOTE_FD_EVENTS,   /* 4, */
	ZYGOTE_FD_OUT,      /* 1 */
	ZYGOTE_FD_ERR,      /* and 2 */
	ZYGOTE_FD_STATUS,   /* where its end is told */
	_ZYGOTE_FD_MAX,
};

enum zygote_namespace {
	ZYGOTE_NS_USER, /* first: it is what gives the right to the others */
	ZYGOTE_NS_CGROUP,
	ZYGOTE_NS_IPC,
	ZYGOTE_NS_UTS,
	ZYGOTE_NS_NET,
	ZYGOTE_NS_PID,
	ZYGOTE_NS_MNT,
	ZYGOTE_NS_TIME,
	_ZYGOTE_NS_MAX,
};

/* Of a command, only the first of them comes: its socket to the agent, at 3 too. */
#define ZYGOTE_COMMAND_FDS (ZYGOTE_FD_REQUESTS + 1)

#define ZYGOTE_JOIN_MAX 5

struct zygote_enter {
	uint32_t namespaces; /* 1 << enum zygote_namespace */
	uint32_t n_join;
	uint32_t flags; /* ZYGOTE_ENTER_* */
	int32_t oom_score_adj;
	struct payload_limits limits;
};

#define ZYGOTE_ENTER_ROOT 1u /* the box has a root */
#define ZYGOTE_ENTER_BORN 2u /* there is a cgroup to be born into */
#define ZYGOTE_ENTER_COMMAND                                                                       \
	4u /* no context: the next command of the box, and a child of its agent */

/* What it says: once that it is loaded, then only what went wrong. */
struct zygote_said {
	uint32_t what; /* enum zygote_word */
	int32_t err;
	uint32_t step; /* enum zygote_step */
	uint32_t zero;
};

enum zygote_word { ZYGOTE_READY = 1, ZYGOTE_FAILED = 2 };

enum zygote_step {
	ZYGOTE_STEP_NONE,
#define STEP(name, text) ZYGOTE_STEP_##name,
#include "wire/zygote_steps.def"
#undef STEP
	_ZYGOTE_STEP_MAX,
};
