/* SPDX-License-Identifier: Apache-2.0 */
#include "box/net.h"

#include "sys/netns.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int make(int userns_fd, int *ret_fd)
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

pid_t net_start(int userns_fd, int sock)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int fd = -EBADF, r;
		int32_t err;
		struct iovec part = { .iov_base = &err, .iov_len = sizeof(err) };

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		r = make(userns_fd, &fd);
		err = -r;
		r = sock_send(sock, &part, 1, &fd, r < 0 ? 0 : 1);
		_exit(r < 0);
	}
	return pid;
}

void net_reap(pid_t *pid, int sig)
{
	if (*pid <= 0)
		return;
	if (sig)
		(void)kill(*pid, sig);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
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
