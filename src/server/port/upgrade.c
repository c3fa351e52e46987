/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSockets. Once the program has said 101, the library hands the client's connection to us, in
 * the connection's own thread, which then carries bytes both ways until one side ends. With TLS we
 * go on with the library's session: what it offers instead, a pair of sockets that it shovels back
 * and forth itself, has buffers of a few bytes when its memory is used up, which it is after any
 * request (0.9.75).
 */
#include "server/port/port.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#define PIECE ((size_t)32 << 10)
#define KEEPALIVE_S 60 /* of quiet, before the client is asked whether it is still there */

/* One of the two ends. */
struct side {
	int fd;
	gnutls_session_t tls; /* or NULL */
};

/* What came from one side and is still to go to the other. */
struct way {
	size_t start, end, size;
	bool last; /* nothing more will come */
	char *data;
};

struct upgraded {
	const struct server *server;
	struct side client, box;
	struct way in, out;
};

/* --- one end ---------------------------------------------------------------------------------- */

/* These never wait: -EAGAIN. */
static ssize_t side_recv(const struct side *s, char *data, size_t max)
{
	ssize_t n;

	if (s->tls)
		return port_tls_result(gnutls_record_recv(s->tls, data, max));
	n = recv(s->fd, data, max, MSG_DONTWAIT);
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

static ssize_t side_send(const struct side *s, const char *data, size_t len)
{
	ssize_t n;

	if (s->tls)
		return port_tls_result(gnutls_record_send(s->tls, data, len));
	n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

/* Deciphered and not yet taken: no poll will tell of it. */
static bool side_has_more(const struct side *s)
{
	return s->tls && gnutls_record_check_pending(s->tls) > 0;
}

/* What to wait for; TLS may have to write something of its own before it can read. */
static short side_events(const struct side *s, bool reads, bool writes)
{
	bool must_write = s->tls && reads && gnutls_record_get_direction(s->tls) == 1;

	return (short)((reads ? POLLIN : 0) | (writes || must_write ? POLLOUT : 0));
}

/* --- both ways -------------------------------------------------------------------------------- */

/* What there is already, and space for what comes. */
static int way_make(struct way *w, const char *data, size_t len)
{
	w->size = MAX(PIECE, len);
	w->data = malloc(w->size);
	if (!w->data)
		return -ENOMEM;
	if (len > 0)
		memcpy(w->data, data, len);
	w->end = len;
	return 0;
}

static bool is_full(const struct way *w)
{
	return w->start < w->end;
}

/* As far as it goes without waiting. False when there is no use in going on. */
static bool carry(struct way *w, const struct side *from, const struct side *to)
{
	ssize_t n;

	if (!is_full(w) && !w->last) {
		n = side_recv(from, w->data, w->size);
		if (n < 0)
			return n == -EAGAIN;
		w->last = n == 0;
		w->start = 0;
		w->end = (size_t)n;
	}
	if (is_full(w)) {
		n = side_send(to, w->data + w->start, w->end - w->start);
		if (n < 0)
			return n == -EAGAIN;
		w->start += (size_t)n;
	}
	return is_full(w) || !w->last;
}

/* Reads a side only while there is space for what it says, and asks for space only where something
 * is to go. False when the service stops. */
static bool wait_for_either(const struct upgraded *u)
{
	short client = side_events(&u->client, !is_full(&u->in), is_full(&u->out));
	short box = side_events(&u->box, !is_full(&u->out), is_full(&u->in));
	bool at_once = (!is_full(&u->in) && side_has_more(&u->client)) ||
		       (!is_full(&u->out) && side_has_more(&u->box));
	struct pollfd p[] = {
		{ .fd = client ? u->client.fd : -EBADF, .events = client },
		{ .fd = box ? u->box.fd : -EBADF, .events = box },
		{ .fd = u->server->stop_fd, .events = POLLIN },
	};

	return poll(p, ARRAY_SIZE(p), at_once ? 0 : -1) >= 0 ? !p[2].revents : errno == EINTR;
}

static void carry_both_ways(struct upgraded *u)
{
	while (carry(&u->in, &u->client, &u->box) && carry(&u->out, &u->box, &u->client))
		if (!wait_for_either(u))
			return;
}

/* --- the client's connection ------------------------------------------------------------------ */

/* A client that has vanished without a word would be waited for for ever. */
static void upgrade_prepare(int fd)
{
	int on = 1, idle = KEEPALIVE_S;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static gnutls_session_t session_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

/* What the client said too early is in extra; what the program did, in its link. */
static void upgrade_run(struct port_visit *v, const char *extra, size_t len)
{
	struct port_link *l = v->link;
	struct upgraded u = {
		.server = v->r->server,
		.client = { .fd = v->r->socket, .tls = session_of(v->r->connection) },
		.box = { .fd = l->op.sock, .tls = l->tls },
	};

	upgrade_prepare(u.client.fd);
	if (way_make(&u.in, extra, len) == 0 &&
	    way_make(&u.out, l->data + l->start, l->end - l->start) == 0)
		carry_both_ways(&u);
	free(u.in.data);
	free(u.out.data);
}

static void on_upgrade(void *cls, struct MHD_Connection *c, void *con_cls, const char *extra,
		       size_t extra_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct port_visit *v = cls;

	(void)c;
	(void)con_cls;
	(void)fd; /* with TLS it is one of the pair; the connection itself is in the request */
	upgrade_run(v, extra, extra_len);
	if (!port_is_running(v->r->sandbox))
		connection_reset(v->r->socket);
	(void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

int port_reply_upgrade(struct port_visit *v)
{
	const char *to = port_answer_get(&v->answer, "Upgrade");
	struct MHD_Response *reply;
	int r;

	if (!to || strcasecmp(to, "websocket") != 0)
		return reply_sandbox(v->r, 502, v->r->sandbox->info.id, PORT_BROKEN,
				     "it changes to another protocol than WebSocket", true);
	reply = MHD_create_response_for_upgrade(on_upgrade, v);
	r = reply ? port_reply_fields(v, reply) : -ENOMEM;
	if (r == 0 && MHD_add_response_header(reply, "Upgrade", "websocket") != MHD_YES)
		r = -ENOMEM;
	if (r == 0)
		return reply_made(v->r, v->answer.status, reply);
	if (reply)
		MHD_destroy_response(reply);
	return r;
}
