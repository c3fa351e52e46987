/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a port of a box. Its socket is born in the box's network, where the warden opens
 * it; from there on it is an operation like any other: hung up when the sandbox is paused or ends.
 */
#include "server/port/port.h"
#include "server/sandbox/link.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SOCKET_MS 5000  /* the warden may take so long to open one */
#define CONNECT_MS 5000 /* a program that listens and never accepts fills its queue */
#define RECV_US 20000
/* There is nothing on a loopback that BBR, if it is the default, could find out. */
#define PLAIN_TCP "reno"
#define TRIES 5
#define BETWEEN_TRIES_MS 100
#define HANDSHAKE_MS 5000 /* between two steps of it */

int port_link_wait(struct request *r, int fd, short events, int timeout_ms)
{
	struct pollfd p[] = {
		{ .fd = fd, .events = events },
		{ .fd = r->socket, .events = POLLRDHUP },
		{ .fd = r->server->stop_fd, .events = POLLIN },
	};
	int n;

	do {
		n = poll(p, ARRAY_SIZE(p), timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (p[0].revents)
		return p[0].revents;
	if (p[1].revents)
		return -ECANCELED;
	return p[2].revents ? -ESHUTDOWN : 0;
}

/* --- TLS to a program (httpsPorts) ------------------------------------------------------------ */

/*
 * The program's certificate is not looked at: whom we talk with is known from where the socket is,
 * and what could be in between could be the program itself.
 */

static gnutls_certificate_credentials_t credentials;

static void tls_make_credentials(void)
{
	if (gnutls_certificate_allocate_credentials(&credentials) < 0)
		credentials = NULL;
}

bool port_speaks_tls(struct sandbox *b, uint32_t port)
{
	const json_t *value;
	bool found = false;
	size_t i;

	pthread_mutex_lock(&b->lock);
	json_array_foreach(
		json_object_get(json_object_get(b->info.config, "network"), "httpsPorts"), i, value)
		found = found || json_integer_value(value) == (json_int_t)port;
	pthread_mutex_unlock(&b->lock);
	return found;
}

static int tls_set_up(struct port_link *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	gnutls_session_t session;
	int r;

	(void)pthread_once(&once, tls_make_credentials);
	if (!credentials ||
	    gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
		return -ENOMEM;
	l->tls = session;
	if (fcntl(l->op.sock, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = gnutls_set_default_priority(session);
	if (r == 0)
		r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
	gnutls_transport_set_int(session, l->op.sock);
	return r < 0 ? -ENOMEM : 0;
}

static short tls_events(const struct port_link *l)
{
	return gnutls_record_get_direction(l->tls) == 1 ? POLLOUT : POLLIN;
}

static int tls_start(struct request *r, struct port_link *l)
{
	int n = tls_set_up(l);

	if (n < 0)
		return n;
	for (;;) {
		n = gnutls_handshake(l->tls);
		if (n == 0)
			return 0;
		if (gnutls_error_is_fatal(n))
			return -EPROTO;
		n = port_link_wait(r, l->op.sock, tls_events(l), HANDSHAKE_MS);
		if (n <= 0)
			return n < 0 ? n : -ETIMEDOUT;
	}
}

static void tls_end(struct port_link *l)
{
	if (l->tls)
		gnutls_deinit(l->tls);
	l->tls = NULL;
}

ssize_t port_tls_result(ssize_t n)
{
	if (n >= 0)
		return n;
	if (n == GNUTLS_E_PREMATURE_TERMINATION)
		return 0; /* whether that is an end, HTTP knows */
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? -EAGAIN : -EPIPE;
}

static ssize_t tls_recv(struct port_link *l, char *data, size_t max)
{
	return port_tls_result(gnutls_record_recv(l->tls, data, max));
}

static ssize_t tls_send(struct port_link *l, const char *data, size_t len)
{
	return port_tls_result(gnutls_record_send(l->tls, data, len));
}

/* --- connecting ------------------------------------------------------------------------------- */

int port_link_socket(struct sandbox *b, uint32_t family)
{
	struct warden_frame f = { .as_SOCKET.family = family };
	struct warden_reply reply;
	_cleanup_(fd_closep) int fd = -EBADF;
	int on = 1, r;

	memcpy(f.as_SOCKET.id, b->info.id, sizeof(f.as_SOCKET.id));
	r = link_ask(b->server->link, WARDEN_SOCKET, &f, SOCKET_MS, &reply, &fd);
	if (r < 0)
		return r;
	if (reply.err)
		return reply.err == ENOENT ? -ENOTCONN : -reply.err;
	if (fd < 0)
		return -EPROTO;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, PLAIN_TCP, strlen(PLAIN_TCP));
	return take_fd(&fd);
}

int port_link_connect(int fd, uint32_t family, uint32_t port)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_port = htons((uint16_t)port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int r = family == 4 ? connect(fd, (const struct sockaddr *)&v4, sizeof(v4)) :
			      connect(fd, (const struct sockaddr *)&v6, sizeof(v6));

	return r < 0 ? -errno : 0;
}

static int link_connect(struct request *r, int fd, uint32_t family)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	socklen_t len = sizeof(int);
	int err = 0, n;

	/* A socket whose connection was refused must forget that before it can be used for the next
	 * try. */
	(void)connect(fd, &nobody, sizeof(nobody));
	n = port_link_connect(fd, family, r->port);
	if (n != -EINPROGRESS)
		return n;
	n = port_link_wait(r, fd, POLLOUT, CONNECT_MS);
	if (n <= 0)
		return n < 0 ? n : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

/* Does this say that nobody listens there? A box may be without IPv6. */
static bool says_closed(int r)
{
	return r == -ECONNREFUSED || r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT || r == -ENETUNREACH;
}

/* One of the two families: 0 and *fd is connected, or what it said. */
static int link_try_family(struct request *r, uint32_t family, int *fd)
{
	if (*fd < 0)
		*fd = port_link_socket(r->sandbox, family);
	return *fd < 0 ? *fd : link_connect(r, *fd, family);
}

static int link_connect_somehow(struct request *r)
{
	_cleanup_(fd_closep) int v4 = -EBADF, v6 = -EBADF;
	int n = 0;

	for (int i = 0; i < TRIES; i++) {
		n = link_try_family(r, 4, &v4);
		if (n == 0)
			return take_fd(&v4);
		if (!says_closed(n))
			return n;
		n = link_try_family(r, 6, &v6);
		if (n == 0)
			return take_fd(&v6);
		if (!says_closed(n))
			return n;
		if (i + 1 < TRIES)
			n = port_link_wait(r, -EBADF, 0, BETWEEN_TRIES_MS);
		if (n < 0 && !says_closed(n))
			return n;
	}
	return -ECONNREFUSED;
}

/* From here on recv() waits for a moment; MSG_DONTWAIT where it must not. */
static void link_become_patient(int fd)
{
	const struct timeval moment = { .tv_usec = RECV_US };

	(void)fcntl(fd, F_SETFL, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment));
}

static struct port_link *link_new(int fd, uint32_t port)
{
	struct port_link *l = malloc(sizeof(*l)); /* its buffer need not be zero */

	if (!l) {
		fd_close(fd);
		return NULL;
	}
	l->op = (struct op){ .sock = fd, .theirs = -EBADF };
	l->tls = NULL;
	l->port = port;
	l->used = false;
	l->idle_since_ms = 0;
	l->next = l->prev = NULL;
	l->start = l->end = 0;
	return l;
}

int port_link_adopt(int fd, struct sandbox *b, uint32_t port, struct port_link **ret)
{
	_cleanup_(port_link_closep) struct port_link *l = link_new(fd, port);
	int r;

	if (!l)
		return -ENOMEM;
	/* Only now: what is connected is hung up for sure, what is not yet would not be. */
	r = op_adopt(&l->op, b);
	if (r < 0)
		return r;
	link_become_patient(fd);
	*ret = take_ptr(l);
	return 0;
}

int port_link_open(struct request *r, struct port_link **ret)
{
	_cleanup_(port_link_closep) struct port_link *l = NULL;
	int n, fd = link_connect_somehow(r);

	if (fd < 0)
		return fd;
	n = port_link_adopt(fd, r->sandbox, r->port, &l);
	if (n == 0 && port_speaks_tls(r->sandbox, r->port))
		n = tls_start(r, l);
	if (n < 0)
		return n;
	*ret = take_ptr(l);
	return 0;
}

void port_link_close(struct port_link *l)
{
	if (!l)
		return;
	tls_end(l);
	op_close(&l->op);
	free(l);
}

void port_link_closep(struct port_link **l)
{
	port_link_close(*l);
	*l = NULL;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Takes n bytes off the front. */
static void iov_advance(struct iovec **iov, size_t *count, size_t n)
{
	while (*count > 0 && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
}

static ssize_t link_send_some(struct port_link *l, struct iovec *iov, size_t n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	if (l->tls)
		return tls_send(l, iov->iov_base, iov->iov_len);
	sent = sendmsg(l->op.sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? (errno == EINTR ? -EAGAIN : -errno) : sent;
}

/* Something has come. In TLS it may be nothing of the program's: a server sends tickets before it
 * reads anything. */
static bool link_has_answered(struct port_link *l)
{
	ssize_t n;

	if (!l->tls || l->end == sizeof(l->data))
		return true;
	n = tls_recv(l, l->data + l->end, sizeof(l->data) - l->end);
	l->end += n > 0 ? (size_t)n : 0;
	return n != -EAGAIN;
}

int port_link_send(struct request *r, struct port_link *l, struct iovec *iov, size_t n)
{
	while (n > 0) {
		ssize_t sent = link_send_some(l, iov, n);
		int events;

		if (sent >= 0) {
			iov_advance(&iov, &n, (size_t)sent);
			continue;
		}
		if (sent != -EAGAIN)
			return (int)sent;
		events = port_link_wait(r, l->op.sock, POLLIN | POLLOUT, -1);
		if (events < 0)
			return events;
		if (!(events & POLLOUT) && link_has_answered(l))
			return -EALREADY;
	}
	return 0;
}

/*
 * Waits for a moment in recv() itself: most answers come so soon that nobody could have gone away
 * meanwhile, and that saves a call for each. After that, for the client and for our own end, too.
 */
static ssize_t link_receive(struct request *r, struct port_link *l, char *data, size_t max)
{
	for (;;) {
		ssize_t n = l->tls ? tls_recv(l, data, max) : recv(l->op.sock, data, max, 0);
		int w;

		if (n < 0 && !l->tls)
			n = errno == EINTR ? -EAGAIN : -errno;
		if (n != -EAGAIN)
			return n;
		w = port_link_wait(r, l->op.sock, l->tls ? tls_events(l) : POLLIN, -1);
		if (w < 0)
			return w;
	}
}

ssize_t port_link_recv(struct request *r, struct port_link *l, char *data, size_t max)
{
	return link_receive(r, l, data, max);
}

ssize_t port_link_recv_head(struct request *r, struct port_link *l)
{
	size_t looked = 0; /* up to here there is no end of a head */

	if (l->start > 0) {
		memmove(l->data, l->data + l->start, l->end - l->start);
		l->end -= l->start;
		l->start = 0;
	}
	for (;;) {
		size_t from = looked > 3 ? looked - 3 : 0;
		size_t len = port_head_end(l->data + from, l->end - from);
		ssize_t n;

		if (len > 0)
			return from + len <= PORT_HEAD_MAX ? (ssize_t)(from + len) : -EPROTO;
		looked = l->end;
		if (l->end >= PORT_HEAD_MAX)
			return -EPROTO;
		n = link_receive(r, l, l->data + l->end, sizeof(l->data) - l->end);
		if (n == 0 || n == -ECONNRESET || n == -EPIPE)
			return l->end == 0 ? -ENODATA : -EPROTO;
		if (n < 0)
			return n;
		l->end += (size_t)n;
	}
}
