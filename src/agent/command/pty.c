/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/command/command.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

int pty_resize(int fd, uint16_t rows, uint16_t cols)
{
	const struct winsize size = { .ws_row = rows, .ws_col = cols };

	return ioctl(fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int pty_open(uint32_t uid, uint32_t gid, uint16_t rows, uint16_t cols, int *ret_master,
	     int *ret_slave)
{
	_cleanup_(fd_closep) int master = -EBADF;
	int unlocked = 0, slave, r;

	/* The new node belongs to whoever opens the multiplexer, as far as files are concerned. */
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	r = master < 0 ? -errno : 0;
	(void)setfsuid(getuid());
	(void)setfsgid(getgid());
	/* Which made the kernel forget that we die with whoever made the box, also when we are frozen. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r < 0)
		return r;
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	/* Not by its path, which somebody in the box could have put something else at. */
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	r = pty_resize(master, rows, cols);
	if (r < 0) {
		fd_close(slave);
		return r;
	}
	*ret_master = take_fd(&master);
	*ret_slave = slave;
	return 0;
}
