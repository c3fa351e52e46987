/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int connect_agent(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SUDO_SOCKET };
	_cleanup_(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* A terminal like the one we are on. */
static int open_terminal(int *ret_master, int *ret_slave)
{
	_cleanup_(fd_closep) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize size;
	struct termios settings;
	int unlocked = 0, slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if (tcgetattr(0, &settings) == 0)
		(void)tcsetattr(slave, TCSANOW, &settings);
	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(slave, TIOCSWINSZ, &size);
	*ret_master = take_fd(&master);
	*ret_slave = slave;
	return 0;
}

static int complain(const char *what, int err)
{
	(void)fprintf(stderr, "sudo: %s: %s\n", what, strerror(-err));
	return 1;
}

static int run(const struct sudo_options *o, const struct agent_user *target, int sock)
{
	_cleanup_(fd_closep) int master = -EBADF;
	_cleanup_(fd_closep) int slave = -EBADF;
	bool tty = isatty(0) && isatty(1) && isatty(2) && open_terminal(&master, &slave) == 0;
	const int fds[SUDO_FDS] = { tty ? slave : 0, tty ? slave : 1, tty ? slave : 2 };
	int r = sudo_send(sock, o, target, fds, tty);

	if (r == -EMSGSIZE)
		r = -E2BIG;
	/* When the agent does not take it all, it has said why. */
	if (r < 0 && r != -EPIPE)
		return complain("cannot ask the box's agent", r);
	fd_closep(&slave);
	return sudo_wait(sock, o, master);
}

int sudo_main(int argc, char **argv)
{
	_cleanup_(fd_closep) int sock = -EBADF;
	struct agent_user target;
	struct sudo_options o;
	int r = sudo_parse(argc, argv, &o);

	if (r != 0)
		return r < 0 ? 1 : 0;
	if (o.n_command == 0 && o.nothing)
		return 0;
	r = strlen(o.user) > WIRE_USER_MAX ? -ENOENT : agent_user_lookup(o.user, &target);
	if (r == -ENOENT) {
		(void)fprintf(stderr, "sudo: unknown user %s\n", o.user);
		return 1;
	}
	if (r < 0)
		return complain("cannot read /etc/passwd", r);
	sock = connect_agent();
	if (sock == -ENOENT || sock == -ECONNREFUSED) {
		(void)fputs("sudo: this box was made without a root user\n", stderr);
		return 1;
	}
	if (sock < 0)
		return complain("cannot reach the box's agent", sock);
	return run(&o, &target, sock);
}
