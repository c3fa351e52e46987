/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/daemon.h"

#include "server/http/connection.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define SHORT_OF_MS 100 /* descriptors or memory: somebody may have closed something by then */

struct acceptor {
	struct server *server;
	connection_taker *take;
	int listen_fd, stop_fd;
	pthread_t thread;
};

/* A connection is known to http/connection.h before anybody serves it, and until it is closed. */
static int acceptor_admit(struct acceptor *a, int fd, const struct sockaddr_storage *peer)
{
	struct server *s = a->server;
	struct connection *c;
	int r = connection_add(s->connections, fd, (const struct sockaddr *)peer, &c);

	if (r < 0)
		return r;
	r = a->take(s, c, peer);
	if (r < 0)
		connection_remove(s->connections, c);
	return r;
}

/* Waits for whatever comes first, or the time; false when it is to stop. */
static bool acceptor_wait(const struct acceptor *a, int fd, int timeout_ms)
{
	struct pollfd p[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = a->stop_fd, .events = POLLIN },
	};

	return poll(p, ARRAY_SIZE(p), timeout_ms) < 0 || !p[1].revents;
}

/* There are as many as there may be: this one waits, and with it those in the queue of the
 * listening socket. */
static bool acceptor_admit_when_possible(struct acceptor *a, int fd,
					 const struct sockaddr_storage *peer)
{
	int space_fd = connections_space_fd(a->server->connections), r;
	eventfd_t n;

	while ((r = acceptor_admit(a, fd, peer)) == -EAGAIN) {
		if (!acceptor_wait(a, space_fd, -1))
			break;
		(void)eventfd_read(space_fd, &n);
	}
	if (r < 0)
		fd_close(fd);
	return r != -EAGAIN;
}

static bool acceptor_take_one(struct acceptor *a)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd =
		accept4(a->listen_fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		return acceptor_admit_when_possible(a, fd, &peer);
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		return acceptor_wait(a, -EBADF, SHORT_OF_MS);
	return true; /* it went away before it was taken */
}

static void *acceptor_run(void *arg)
{
	struct acceptor *a = arg;

	while (acceptor_wait(a, a->listen_fd, -1))
		if (!acceptor_take_one(a))
			break;
	return NULL;
}

int acceptor_start(struct server *s, int listen_fd, connection_taker *take, struct acceptor **ret)
{
	struct acceptor *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->server = s;
	a->take = take;
	a->listen_fd = listen_fd;
	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	r = a->stop_fd < 0 ? -errno : -pthread_create(&a->thread, NULL, acceptor_run, a);
	if (r < 0) {
		fd_close(a->stop_fd);
		free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void acceptor_stop(struct acceptor *a)
{
	(void)eventfd_write(a->stop_fd, 1);
	pthread_join(a->thread, NULL);
	fd_close(a->listen_fd);
	fd_close(a->stop_fd);
	free(a);
}
