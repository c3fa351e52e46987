/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's notification protocol: a line of text to a datagram socket. */
#include "warden/warden_priv.h"

#include <sys/socket.h>
#include <sys/un.h>

void notify_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t len = path ? strlen(path) : 0;

	if ((path && path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Whoever asked to be notified and does not listen is no reason not to serve. */
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
			      (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}
