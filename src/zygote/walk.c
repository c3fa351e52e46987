/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the zygote into a box.
 *
 *	zygote ──zygote_clone──▶ between ──fork──▶ context
 *
 * Only children are born into the pid namespace that a process has entered, so there has to be one
 * in between. Copying the memory of a loaded interpreter is what a context costs, so the one in
 * between shares it, and the zygote stands still until it has ended. So nothing of the box may hold
 * it up: it enters the box's namespaces, but none of its cgroups, where it could be frozen, starved
 * or killed. The context is born into those that count for that; the others, and the namespaces
 * that cannot be entered here, it joins itself.
 *
 * From its first namespace on, the one in between has power over the box and over nothing else.
 *
 * The context's parent is gone at once, so it becomes ours (PR_SET_CHILD_SUBREAPER) and we can tell
 * how it ended.
 *
 * A command is to be the child of the box's agent, as all commands are. A process that loses its
 * parent becomes the child of its parent's pid 1, so there is one more in between, in the box's pid
 * namespace; nothing foreign runs there before a box's first command.
 */
#include "zygote/zygote_priv.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* In this order. A cgroup can only be cloned into from outside its namespace, and who shares memory
 * may not enter a time namespace: these two come later. */
static const struct {
	enum zygote_namespace ns;
	int kind;
} entered[] = {
	{ ZYGOTE_NS_USER, CLONE_NEWUSER }, { ZYGOTE_NS_IPC, CLONE_NEWIPC },
	{ ZYGOTE_NS_UTS, CLONE_NEWUTS },   { ZYGOTE_NS_NET, CLONE_NEWNET },
	{ ZYGOTE_NS_PID, CLONE_NEWPID },   { ZYGOTE_NS_MNT, CLONE_NEWNS },
};

static int enter_namespaces(const struct walk *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(entered); i++)
		if (walk_has(w, entered[i].ns) &&
		    setns(walk_ns_fd(w, entered[i].ns), entered[i].kind) < 0)
			return -errno;
	return 0;
}

/* fork() into a cgroup. The C library keeps the thread's number, so the kernel writes the new one
 * there. */
static pid_t fork_into_cgroup(const struct walk *w)
{
	struct clone_args args = {
		.flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.child_tid = (uint64_t)(uintptr_t)w->tid,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (w->request.flags & ZYGOTE_ENTER_BORN) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)walk_born_fd(w);
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	return pid < 0 ? -errno : (pid_t)pid;
}

static const struct clone_args between = { .flags = CLONE_VM | CLONE_VFORK | CLONE_FILES };

static void wait_for_between(pid_t pid)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

/* In between, the last of them. Returns in the context only. */
static void go_in(struct walk *w)
{
	pid_t pid = fork_into_cgroup(w);

	if (pid == 0)
		return;
	if (pid < 0)
		zygote_fail(w, ZYGOTE_STEP_FORK, pid);
	else if (!walk_is_command(w))
		w->child = pid;
	_exit(0);
}

/* In between. Returns in the context only. */
static void go_between(struct walk *w)
{
	int r = enter_namespaces(w);
	long pid = 0;

	if (r < 0) {
		zygote_fail(w, ZYGOTE_STEP_NAMESPACES, r);
		_exit(1);
	}
	if (walk_is_command(w))
		pid = zygote_clone(&between, sizeof(between));
	if (pid == 0) {
		go_in(w);
		return;
	}
	if (pid < 0)
		zygote_fail(w, ZYGOTE_STEP_BETWEEN, (int)pid);
	else
		wait_for_between((pid_t)pid);
	_exit(0);
}

bool zygote_walk(struct walk *w)
{
	enum zygote_step step;
	long pid;
	int r;

	w->child = 0;
	pid = zygote_clone(&between, sizeof(between));
	if (pid < 0)
		zygote_fail(w, ZYGOTE_STEP_BETWEEN, (int)pid);
	if (pid > 0)
		wait_for_between((pid_t)pid);
	if (pid != 0)
		return false;
	go_between(w);
	/* From here on it is the context, alone in its memory. */
	r = zygote_arrive(w, &step);
	if (r < 0) {
		zygote_fail(w, step, r);
		_exit(127);
	}
	return true;
}
