/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the zygote: a library that kernels/python/zygote.py loads into an
 * interpreter. It needs nothing of the interpreter but that it is single-threaded.
 *
 *	serve.c    waits for the warden, keeps the contexts     walk.c    from here into a box
 *	clone.S    fork without copying memory                  arrive.c  what it does first, there
 *	memory.c   memory that is cheap to fork
 *
 * Another library is for an interpreter that is stopped just before it runs a script; it has all of
 * these and
 *
 *	script.c   where the interpreter is stopped, and goes on     command.c  what it is to be
 */
#pragma once

#include "sys/sock.h"
#include "wire/zygote.h"

#include <linux/sched.h>
#include <sys/types.h>

#define ZYGOTE_FDS_MAX SOCK_FDS_MAX

/* One context on its way. What the process in between writes here, the zygote reads: they share
 * memory. */
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

static inline bool walk_is_command(const struct walk *w)
{
	return w->request.flags & ZYGOTE_ENTER_COMMAND;
}

/* How many of enum zygote_fd have come. */
static inline size_t walk_own_fds(const struct zygote_enter *q)
{
	return q->flags & ZYGOTE_ENTER_COMMAND ? ZYGOTE_COMMAND_FDS : _ZYGOTE_FD_MAX;
}

/* Where in fd[] it is; the namespace must have come. */
static inline int walk_ns_fd(const struct walk *w, enum zygote_namespace ns)
{
	unsigned below = w->request.namespaces & ((1u << ns) - 1);

	return w->fd[walk_own_fds(&w->request) + (size_t)__builtin_popcount(below)];
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

/* walk.c. Returns in two processes: true in the context, which is in the box and sealed, false
 * here. w->child is then its pid, or 0 when it did not come to that. */
bool zygote_walk(struct walk *w);

/* arrive.c, in the context: 0 when it is an ordinary process of the box, else -errno and the
 * step. */
_must_check_ int zygote_arrive(struct walk *w, enum zygote_step *ret_step);

/* memory.c. Before the forks: what they will write to. proc_fd is the process's own directory, and
 * is closed. */
void ahead_find(int proc_fd);
void ahead_copy(void); /* in a fork */

/* command.c. Before anybody has changed the variables: where the kernel has them. */
void command_find_variables(void);
/* In a command. Waits for the agent and reads what to be; ends when it is not wanted. */
void command_take(void);
/* Is that the script which this interpreter was loaded for, with the variables it was started
 * with? */
bool command_is_script(void);
char *const *command_variables(void);
bool command_has_input(void);
_noreturn_ void command_execute(void); /* it, as the agent would have */
void command_go_on(void);              /* the interpreter runs it: nothing of ours is left open */

/*
 * clone.S: clone3 as vfork does it. The child shares our memory and our stack and we stand still
 * until it ends, so the caller must not return in the child.
 */
long zygote_clone(const struct clone_args *args, size_t size) __attribute__((returns_twice));
