/* SPDX-License-Identifier: Apache-2.0 */
#include "box/net.h"

#include "sys/netns.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define STACK_SIZE 65536 /* of the helper */

struct net_job {
	int userns_fd;
	int sock;
};

static int net_make_here(int userns_fd, int *ret_fd)
{
	int r;

	/* Owned by the box's user namespace, or nobody in the box could use or leave it. */
	if (setns(userns_fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = netns_lo_up();
	if (r < 0)
		return r;
	*ret_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int net_help(void *arg)
{
	const struct net_job *job = arg;
	int fd = -EBADF, r;
	int32_t err;
	struct iovec part = { .iov_base = &err, .iov_len = sizeof(err) };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	r = net_make_here(job->userns_fd, &fd);
	err = -r;
	r = sock_send(job->sock, &part, 1, &fd, r < 0 ? 0 : 1);
	fd_close(fd);
	return r < 0;
}

/*
 * The helper uses our memory, on a stack of its own, while we stand still: to copy our pages, and
 * then again each one that we write to, would cost more than what the rest of us could do meanwhile
 * is worth.
 */
int net_make(int userns_fd, int sock)
{
	static _Alignas(16) char stack[STACK_SIZE];
	struct net_job job = { .userns_fd = userns_fd, .sock = sock };
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	pid_t pid = clone(net_help, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &job);

	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	/* Which is a property of the memory, and entering another user namespace may change it. */
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != dumpable)
		(void)prctl(PR_SET_DUMPABLE, (unsigned long)dumpable, 0, 0, 0);
	return 0;
}

int net_enter(int sock)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t n_fds = 1;
	int32_t err;
	ssize_t n = sock_recv(sock, &err, sizeof(err), &fd, &n_fds);

	if (n != (ssize_t)sizeof(err))
		return n < 0 ? (int)n : -ECANCELED;
	if (n_fds != 1)
		return err > 0 ? -err : -EPROTO;
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}
