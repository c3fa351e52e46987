/* SPDX-License-Identifier: Apache-2.0 */
/* What leads connections to the doors although nobody meant them: see tools/mkredirect.c. */
#include "box/doors.h"

#include "box/doors_priv.h"
#include "redirect_data.h"
#include "sys/netns.h"
#include "sys/proc.h"

#include <sched.h>
#include <sys/socket.h>

bool doors_cannot_catch(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -EPROTONOSUPPORT ||
	       err == -EAFNOSUPPORT || err == -EPERM;
}

int doors_catch(bool with_ipv6)
{
	int r = netns_rules(redirect_batch, sizeof(redirect_batch), REDIRECT_ACKS);

	if (r == 0)
		r = netns_route_all_to_lo(AF_INET);
	return r == 0 && with_ipv6 ? netns_route_all_to_lo(AF_INET6) : r;
}

int doors_probe_catching(void)
{
	_cleanup_(fd_closep) int pidfd = -EBADF;
	siginfo_t info = { 0 };
	pid_t pid = proc_clone(CLONE_NEWUSER | CLONE_NEWNET, -EBADF, &pidfd);
	int r;

	if (pid < 0)
		return (int)pid;
	if (pid == 0) {
		r = netns_lo_up();
		if (r == 0)
			r = doors_catch(false);
		_exit(-r); /* an errno fits in an exit status */
	}
	while ((r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED)) < 0 && errno == EINTR)
		;
	if (r < 0)
		return -errno;
	return info.si_code == CLD_EXITED ? -info.si_status : -ECHILD;
}
