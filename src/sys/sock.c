/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sock.h"

#include <sys/socket.h>

int sock_pair(int ret[2])
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ret[0] = pair[0];
	ret[1] = pair[1];
	return 0;
}

static int send_packet(int fd, struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds,
		       int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SOCK_FDS_MAX)] = { 0 };
	struct msghdr msg = { .msg_iov = parts };

	/* Not an initializer: the C libraries disagree about the type of this and of the other
	 * lengths. */
	msg.msg_iovlen = (__typeof__(msg.msg_iovlen))n_parts;
	if (n_fds > SOCK_FDS_MAX)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *cmsg = (struct cmsghdr *)control;

		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = (__typeof__(cmsg->cmsg_len))CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
		msg.msg_control = control;
		msg.msg_controllen =
			(__typeof__(msg.msg_controllen))CMSG_SPACE(sizeof(int) * n_fds);
	}
	for (;;) {
		if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) >= 0)
			return 0; /* packets are sent whole or not at all */
		if (errno == ECONNRESET)
			return -EPIPE;
		if (errno != EINTR)
			return -errno;
	}
}

int sock_send(int fd, struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds)
{
	return send_packet(fd, parts, n_parts, fds, n_fds, 0);
}

int sock_send_now(int fd, struct iovec *parts, size_t n_parts, const int *fds, size_t n_fds)
{
	return send_packet(fd, parts, n_parts, fds, n_fds, MSG_DONTWAIT);
}

/* Collects the descriptors of a message; closes those there is no room for. */
static int take_fds(struct msghdr *msg, int *fds, size_t *n_fds)
{
	size_t room = fds ? *n_fds : 0, got = 0;
	bool cut = msg->msg_flags & MSG_CTRUNC, surplus = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got < room) {
				fds[got++] = fd;
			} else {
				fd_close(fd);
				surplus = true;
			}
		}
	}
	if (surplus || cut) {
		/* Cut off although there was room: the kernel found no number for one that was
		 * expected. */
		int r = !surplus && got < room ? -EMFILE : -EPROTO;

		while (got)
			fd_closep(&fds[--got]);
		return r;
	}
	if (fds)
		*n_fds = got;
	return 0;
}

ssize_t sock_recv(int fd, void *data, size_t size, int *fds, size_t *n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * SOCK_FDS_MAX)];
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;
	int r;

	if (fds) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
	}
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	r = take_fds(&msg, fds, n_fds);
	if (r < 0) /* with -EMFILE the caller has the whole packet */
		return r == -EMFILE && (msg.msg_flags & MSG_TRUNC) ? -EMSGSIZE : r;
	if (msg.msg_flags & MSG_TRUNC) {
		if (fds)
			while (*n_fds)
				fd_close(fds[--*n_fds]);
		return -EMSGSIZE;
	}
	return n;
}
