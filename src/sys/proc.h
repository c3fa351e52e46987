/* SPDX-License-Identifier: Apache-2.0 */
/* Processes by descriptor. */
#pragma once

#include "base/util.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP UINT64_C(0x200000000)
#endif

/* fork() into new namespaces and, when cgroup_fd is valid, into that cgroup. */
static inline pid_t proc_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
	int pidfd = -EBADF; /* the kernel leaves a number here even when it refuses afterwards */
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid > 0)
		*ret_pidfd = pidfd;
	return pid < 0 ? -errno : (pid_t)pid;
}

/* What our parent ignored must not be ignored by what we execute. */
static inline void proc_reset_signals(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &usual, NULL);
}

static inline int proc_kill(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}
