/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the zygote: a library that kernels/python/zygote.py loads into an interpreter.
 * It needs nothing of the interpreter but that it is single-threaded.
 *
 *	serve.c    waits for the warden, keeps the contexts     walk.c    from here into a box
 *	clone.S    fork without copying memory                  arrive.c  what a context does first, in the box
 *	compact.c  memory that is cheap to fork
 */
#pragma once

#include "sys/sock.h"
#include "wire/zygote.h"

#include <linux/sched.h>
#include <sys/types.h>

#define ZYGOTE_FDS_MAX SOCK_FDS_MAX

/* One context on its way. What the process in between writes here, the zygote reads: they share memory.
 * */
struct walk {
	struct zygote_enter request;
	int fd[ZYGOTE_FDS_MAX];
	size_t n_fds;
	int sock;    /* to the warden, for what goes wrong */
	pid_t child; /* the context, as we see it; 0: there is none */

	/* Of this process, found once. */
	uint64_t all_caps; /* every capability this kernel knows */
	int *tid;          /* where the C library keeps the thread's number */
	void *robust;      /* and its list of robust locks */
	size_t robust_size;
};

static inline bool walk_has(const struct walk *w, enum zygote_namespace ns)
{
	return w->request.namespaces & 1u << ns;
}

/* Where in fd[] it is; the namespace must have come. */
static inline int walk_ns_fd(const struct walk *w, enum zygote_namespace ns)
{
	unsigned below = w->request.namespaces & ((1u << ns) - 1);

	return w->fd[_ZYGOTE_FD_MAX + __builtin_popcount(below)];
}

/* The directory to be born into, which must have come, and the files to write to. */
static inline int walk_born_fd(const struct walk *w)
{
	return w->fd[w->n_fds - w->request.n_join - 1];
}

static inline int walk_join_fd(const struct walk *w, uint32_t i)
{
	return w->fd[w->n_fds - w->request.n_join + i];
}

/* serve.c. Tells the warden what went wrong. */
void zygote_fail(const struct walk *w, enum zygote_step step, int err);

/* walk.c. Returns in two processes: true in the context, which is in the box and sealed, false here.
 * w->child is then its pid, or 0 when it did not come to that. */
bool zygote_walk(struct walk *w);

/* arrive.c, in the context: 0 when it is an ordinary process of the box, else -errno and the step. */
_must_check_ int zygote_arrive(struct walk *w, enum zygote_step *ret_step);

/*
 * clone.S: clone3 as vfork does it. The child shares our memory and our stack and we stand still until
 * it ends, so whoever calls this must not return in the child.
 */
long zygote_clone(const struct clone_args *args, size_t size) __attribute__((returns_twice));
