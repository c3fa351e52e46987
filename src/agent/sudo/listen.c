/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

#include "agent/helper.h"
#include "agent/loop.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 16
#define REST_US 1000000

static int listen_fd = -EBADF;
static uint64_t rest_until_us; /* until then whoever connects waits */

static int make_socket(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SUDO_SOCKET };
	_cleanup_(fd_closep) int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (mkdir(SUDO_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (unlink(SUDO_SOCKET) < 0 && errno != ENOENT)
		return -errno;
	/* Anybody may connect; who may ask is decided by who it is. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(SUDO_SOCKET, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

void sudo_open(void)
{
	/* A box whose /run is no good runs all the same: sudo says that it cannot connect. */
	if (agent_has_root())
		listen_fd = make_socket();
}

/* Of memory or descriptors, ours or everybody's. It passes. */
static bool is_want(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

static void sudo_ready(void *object, short events)
{
	_cleanup_(fd_closep) int conn = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	(void)object;
	(void)events;
	if (conn < 0) {
		if (is_want(errno))
			rest_until_us = loop_now() + REST_US;
		/* For anything that does not pass by itself: no sudo is better than no rest. */
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			fd_closep(&listen_fd);
		return;
	}
	/* Too many, or no memory: hanging up tells. */
	if (helper_fork(HELPER_SUDO) == 0)
		sudo_serve(take_fd(&conn));
}

void sudo_watch(void)
{
	if (listen_fd >= 0 && loop_now() < rest_until_us)
		loop_wake_at(rest_until_us);
	else
		loop_watch(listen_fd, POLLIN, sudo_ready, NULL);
}
