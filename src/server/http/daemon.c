/* SPDX-License-Identifier: Apache-2.0 */
/* Connections come in here, and the HTTP library serves them: its callbacks and its options. */
#include "server/http/daemon.h"

#include "server/http/connection.h"
#include "server/http/exchange.h"
#include "server/http/request_log.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define SHORT_OF_MS 100 /* descriptors or memory: somebody may have closed something by then */
#define THREAD_STACK (512L << 10)      /* frames of 64 KiB are on it */
#define CONNECTION_MEMORY (128L << 10) /* half of it reads: a piece of a body becomes a frame */

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

#if MHD_VERSION >= 0x00097701
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* --- the thread that accepts ------------------------------------------------------------------ */

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

/* --- between the library and http/exchange.c -------------------------------------------------- */

static struct connection *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = cls;
	const union MHD_ConnectionInfo *fd;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		connection_remove(s->connections, *context);
		*context = NULL;
		return;
	}
	fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	*context = connection_find(s->connections, fd->connect_fd);
}

/* The only place where the library shows the target as it came. NULL makes on_request() close the
 * connection. */
static void *on_request_target(void *cls, const char *target, struct MHD_Connection *c)
{
	struct connection *peer = peer_of(c);

	return peer ? exchange_new(cls, c, peer, target) : NULL;
}

static int handle(struct exchange *x, const char *method, const char *version, const char *data,
		  size_t len)
{
	int r;

	if (!x->begun) {
		x->begun = true;
		r = exchange_begin(x, method, version);
		if (r == 0 && exchange_cannot_wait(x))
			return exchange_queue(x);
		if (r == 0 && x->has_body)
			connection_set(x->peer, CONNECTION_BODY);
		return r;
	}
	if (len > 0) {
		r = exchange_data(x, data, len);
		if (r == 0 && x->taken)
			return body_finish(x);
		connection_set(x->peer, CONNECTION_BODY);
		return r;
	}
	r = exchange_end(x);
	return r < 0 ? r : exchange_queue(x);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **state)
{
	struct exchange *x = *state;
	size_t n = *len;

	(void)cls;
	(void)c;
	(void)url;
	if (!x)
		return MHD_NO;
	connection_set(x->peer, CONNECTION_BUSY);
	*len = 0; /* all of it is taken */
	return handle(x, method, version, data, n) < 0 ? MHD_NO : MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct exchange *x = *state;
	struct connection *peer;

	(void)cls;
	(void)c;
	if (!x)
		return;
	peer = x->peer;
	request_log_write(x, how == MHD_REQUEST_TERMINATED_COMPLETED_OK || x->sent);
	exchange_free(x);
	*state = NULL;
	connection_wait(peer);
}

/* We decode the target ourselves, so that what was checked is what is used. */
static size_t leave_escaped(void *cls, struct MHD_Connection *c, char *text)
{
	(void)cls;
	(void)c;
	return strlen(text);
}

int http_start(struct server *s, const struct http_tls *tls)
{
	unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
			 MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE | MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem tls_options[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, tls->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	struct MHD_OptionItem options[] = {
		/* http/connection.c counts them. The library forgets one a little later than we
		 * do. */
		{ MHD_OPTION_CONNECTION_LIMIT, 2 * (intptr_t)s->config.limits_connections, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL }, /* http/connection.c has better ones */
		{ MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK, NULL },
		{ STRICTNESS, 1, NULL },
		{ MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL },
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)on_request_target, s },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, s },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)on_completed, s },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (tls->cert)
		flags |= MHD_USE_TLS;
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_ARRAY, options,
				     MHD_OPTION_ARRAY,
				     tls->cert ? tls_options : &options[ARRAY_SIZE(options) - 1],
				     MHD_OPTION_END);
	return s->daemon ? 0 : -EIO;
}

int http_take(struct server *s, struct connection *c, const struct sockaddr_storage *peer)
{
	uint64_t cookie = connection_cookie(c);
	int fd = connection_fd(c);

	/* It closes the descriptor when it cannot, and says nothing to on_connection(). */
	if (MHD_add_connection(s->daemon, fd, (const struct sockaddr *)peer, sizeof(*peer)) !=
	    MHD_YES)
		connection_forget(s->connections, fd, cookie);
	return 0;
}
