/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb needs, and the front (front.c) as well. */
#include "cli/cli.h"

#include "base/termsafe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/signalfd.h>

int cli_error(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	termsafe_say(fmt, args);
	va_end(args);
	return status;
}

int cli_ensure_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	return 0;
}

int cli_hold_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
