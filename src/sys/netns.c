/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include "base/util.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int netns_lo_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	_cleanup_(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}
