/* SPDX-License-Identifier: Apache-2.0 */
#include "box/doors.h"

#include "box/doors_priv.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

/*
 * A visit of our own process, which root can make: ten microseconds where a fork takes half a millisecond and more, for
 * every connection to a port of a box. Nothing but socket() is called over there. A process that could not come back
 * would go on working in a box's network, so it does not go on.
 */
static int visit_socket(const struct box *b, int family)
{
	_cleanup_(fd_closep) int home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd;

	if (home_fd < 0)
		return -errno;
	if (setns(b->pidfd, CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	if (setns(home_fd, CLONE_NEWNET) < 0)
		abort();
	return fd;
}

static _noreturn_ void help_socket(const struct box *b, int family, const struct doors_helper *h)
{
	int r = doors_enter(b, h), fd = -EBADF;
	int32_t err;
	struct iovec part = { .iov_base = &err, .iov_len = sizeof(err) };

	if (r == 0) {
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -errno : 0;
	}
	err = -r;
	_exit(sock_send(h->sock, &part, 1, &fd, r < 0 ? 0 : 1) < 0);
}

static int fetch_socket(const struct box *b, int family)
{
	struct doors_helper h = DOORS_HELPER_INIT;
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t n_fds = 1;
	int32_t err;
	pid_t pid;
	ssize_t n;

	pid = doors_fork(b, &h);
	if (pid == 0)
		help_socket(b, family, &h);
	if (pid < 0)
		return (int)pid;
	n = sock_recv(h.sock, &err, sizeof(err), &fd, &n_fds);
	doors_done(&h);
	if (n != (ssize_t)sizeof(err))
		return n < 0 ? (int)n : -EIO;
	if (n_fds != 1)
		return err > 0 ? -err : -EPROTO;
	return take_fd(&fd);
}

int doors_socket(const struct box *b, int family, int *ret_fd)
{
	int af = family == 6 ? AF_INET6 : AF_INET;
	int fd = visit_socket(b, af);

	/* Without root one must give up his own user namespace for a box's, for good: that is for a helper. */
	if (fd == -EPERM)
		fd = fetch_socket(b, af);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
