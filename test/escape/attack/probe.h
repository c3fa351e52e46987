/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the box's filter about a system call. A kernel refuses most of these to a payload anyway, for
 * want of a capability; such an answer looks like the filter's own. So each call is made twice:
 *
 *	call_errno()    for real, with pointers that lead nowhere: what gets through answers EFAULT or EBADF.
 *	filter_errno()  below a second filter of our own that says TRACE, which the kernel answers with
 *	                ENOSYS when nobody traces, and which an ERRNO of the box's filter outranks. So the
 *	                call is never made, and an EPERM is the filter's and nobody else's.
 */
#pragma once

#include "attack.h"

#include "../../../src/box/filter/syscall_nr.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NOWHERE 8UL /* a pointer that is never mapped */
#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))
#define KILLED(sig) (1000 + (sig))

struct call {
	const char *name;
	long nr;
	int want;
	unsigned long arg[6];
};

#define CALL(name, want, ...)                                                                      \
	{                                                                                          \
#name, __NR_##name, want,                                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static inline int ended(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED(WTERMSIG(status));
}

static inline int trace_call(long nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = N_ELEM(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* 0 when the call succeeds, its errno, KILLED(signal), or -1 when it could not be tried. */
static inline int try_call(const struct call *c, int only_ask)
{
	pid_t pid = fork();

	if (pid == 0) {
		const unsigned long *a = c->arg;

		alarm(5);
		if (only_ask && trace_call(c->nr) < 0)
			_exit(255);
		_exit(syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 ? errno : 0);
	}
	return ended(pid);
}

static inline int call_errno(const struct call *c)
{
	return try_call(c, 0);
}

static inline int filter_errno(const struct call *c)
{
	return try_call(c, 1);
}

/* All of them are refused with exactly the errno wanted, by the filter. 0 or 1. */
static inline int all_refused(const struct call *calls, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		const struct call *c = &calls[i];
		int got = call_errno(c);
		int said = c->want == ENOSYS ? ENOSYS : filter_errno(c);

		if (got != c->want)
			bad |= BREACH("%s(%#lx, %#lx, %#lx): %d, want %d", c->name, c->arg[0],
				      c->arg[1], c->arg[2], got, c->want);
		else if (said != c->want)
			bad |= BREACH("%s(%#lx, %#lx, %#lx): the filter lets it through", c->name,
				      c->arg[0], c->arg[1], c->arg[2]);
	}
	return bad ? 1 : SAFE("%zu calls refused", n);
}

#define ALL_REFUSED(...)                                                                           \
	({                                                                                         \
		static const struct call calls[] = { __VA_ARGS__ };                                \
		all_refused(calls, N_ELEM(calls));                                                 \
	})
