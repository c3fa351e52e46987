/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a box, in three parts, so that a process with many of them need not wait for one: kill
 * it, wait until its pidfd can be read, clean up after it.
 */
#include "box/box.h"

#include "sys/proc.h"

#include <sys/wait.h>

void box_kill(struct box *b)
{
	if (b->pid > 0) {
		/* Killing pid 1 of a pid namespace kills everybody in it; the second is a belt for
		 * a child that has not got that far. */
		(void)proc_kill(b->pidfd, SIGKILL);
		(void)cgroup_box_kill(&b->cgroup);
		/* What v1's freezer holds does not even die; on v2 a killed box ends frozen or
		 * not. */
		if (b->frozen)
			(void)!cgroup_box_freeze(&b->cgroup, false);
	}
	/* From here on nobody can talk to it any more. */
	fd_closep(&b->control_fd);
	fd_closep(&b->setup_fd);
}

/* Everything that a dead box still has; the number last: then its user ids are somebody else's. */
static void box_release(struct box *b)
{
	fd_closep(&b->pidfd);
	fd_closep(&b->scratch_fd);
	cgroup_box_close(&b->cgroup);
	ids_release(&b->ids);
}

int box_reap(struct box *b)
{
	siginfo_t info = { 0 };
	int r;

	if (b->pid > 0) {
		r = waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED | WNOHANG);
		if (r < 0 && errno != ECHILD)
			return -errno;
		if (r == 0 && info.si_pid == 0)
			return -EAGAIN;
		b->pid = 0;
	}
	r = b->cgroup.name[0] ? cgroup_box_try_remove(&b->cgroup) : 0;
	if (r < 0) /* what is closed cannot be tried again */
		return r == -EBUSY ? -EAGAIN : r;
	box_release(b);
	return 0;
}

void box_give_up(struct box *b)
{
	box_release(b);
}

void box_destroy(struct box *b)
{
	box_kill(b);
	if (b->pid > 0) {
		siginfo_t info;

		/* While the kernel takes its namespaces apart. */
		cgroup_box_remove_leaves(&b->cgroup);
		while (waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED) < 0 && errno == EINTR)
			;
	}
	b->pid = 0;
	if (b->cgroup.name[0])
		(void)cgroup_box_remove(&b->cgroup);
	box_release(b);
}
