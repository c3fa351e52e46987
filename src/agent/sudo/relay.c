/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

#define CHUNK 4096
#define LEFT_MAX (1 << 20) /* of output that comes after the command's end */

static int master = -EBADF;
static struct termios before;
static bool stdin_open = true;
static bool master_open = true;
static char pending[CHUNK]; /* typed, and not taken by the inner terminal yet */
static size_t n_pending;

void relay_resize(void)
{
	struct winsize size;

	if (ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(master, TIOCSWINSZ, &size);
}

/* What is typed goes to the inner terminal as it is: that one makes signals and echo of it. */
void relay_begin(int master_fd)
{
	struct termios raw;

	master = master_fd;
	(void)fcntl(master, F_SETFL, O_NONBLOCK);
	if (tcgetattr(0, &before) < 0)
		return;
	raw = before;
	raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON);
	raw.c_oflag &= ~(tcflag_t)OPOST;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(0, TCSADRAIN, &raw);
}

short relay_stdin_events(void)
{
	return stdin_open && n_pending == 0 ? POLLIN : 0;
}

short relay_master_events(void)
{
	return (short)((master_open ? POLLIN : 0) | (n_pending ? POLLOUT : 0));
}

static void flush_pending(void)
{
	ssize_t n = n_pending ? write(master, pending, n_pending) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		n_pending = 0; /* nobody is there */
	if (n <= 0)
		return;
	n_pending -= (size_t)n;
	memmove(pending, pending + n, n_pending);
}

void relay_stdin(void)
{
	ssize_t n = read(0, pending, sizeof(pending));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stdin_open = false;
		return;
	}
	n_pending = (size_t)n;
	flush_pending();
}

static void write_all(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(1, data, len);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ .fd = 1, .events = POLLOUT }, 1, -1);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
}

/* Passes on one read; false when there is nothing. */
static bool pass_output(void)
{
	char chunk[CHUNK];
	ssize_t n = read(master, chunk, sizeof(chunk));

	if (n > 0)
		write_all(chunk, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		master_open = false;
	return n > 0;
}

void relay_master(void)
{
	flush_pending();
	if (master_open)
		(void)pass_output();
}

void relay_end(void)
{
	for (int i = 0; i < LEFT_MAX / CHUNK && master_open && pass_output(); i++)
		;
	(void)tcsetattr(0, TCSADRAIN, &before);
}
