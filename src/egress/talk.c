/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two conversations. The warden is believed: if what it says cannot be understood, egress ends.
 * The server is believed about rules only: if it cannot be understood, it is hung up on and what
 * holds stays.
 *
 * Each COMMIT is answered by one APPLIED. When the server does not take it, or there is no memory
 * for it, nothing more is read from the server until it is sent, so that at most one answer waits.
 */
#include "base/clock.h"
#include "egress/door/door.h"
#include "egress/report/report.h"
#include "egress/start.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BATCH 64              /* messages of the server in one go; boxes want their turn */
#define SERVER_ROOM (1 << 20) /* bytes of events that wait for it */
#define RETRY_US 50000        /* when there was no memory for an answer */

struct egress_talk {
	struct source warden, server;
	int warden_fd;
	uint64_t servers; /* that there have been */
	bool answer_waits;
	struct timer retry; /* the answer's */
	struct egress_frame answer;
};

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* --- the server ----------------------------------------------------------------------------- */

static void server_hang_up(struct egress *g, struct egress_talk *t)
{
	source_remove(&g->loop, &t->server);
	fd_closep(&g->server_fd);
	timer_clear(&g->loop, &t->retry);
	t->answer_waits = false;
}

static void send_answer(struct egress *g, struct egress_talk *t)
{
	int r = egress_send(g->server_fd, EGRESS_APPLIED, &t->answer, NULL, 0);
	bool no_memory = r == -ENOBUFS || r == -ENOMEM;

	t->answer_waits = r == -EAGAIN || no_memory;
	if (r < 0 && !t->answer_waits) {
		server_hang_up(g, t);
		return;
	}
	if (no_memory) /* that the socket can be written to says nothing now */
		timer_set(&g->loop, &t->retry, clock_boot_us() + RETRY_US);
	source_change(&g->loop, &t->server, no_memory ? 0 : r < 0 ? EPOLLOUT : EPOLLIN);
}

static void retry_due(struct loop *l, struct timer *self)
{
	struct egress *g = egress_of(l);

	(void)self;
	send_answer(g, g->talk);
}

static void warden_read(struct egress *g, struct egress_talk *t);

static void commit(struct egress *g, struct egress_talk *t, struct net *n, const char *id)
{
	uint32_t cut = 0;
	int err = n ? apply_commit(g, n, &cut) : ENOENT;

	t->answer = (struct egress_frame){ .as_APPLIED = { .err = err, .cut = cut } };
	memcpy(t->answer.as_APPLIED.id, id, WARDEN_ID_SIZE);
	send_answer(g, t);
}

/* A box of that id may have been made anew, and egress too: what was used before still counts. */
static void begin_policy(struct net *n, const struct egress_policy *p)
{
	n->bytes_up = MAX(n->bytes_up, p->limits.used_up);
	n->bytes_down = MAX(n->bytes_down, p->limits.used_down);
	apply_begin(n, p);
}

static void server_said(struct egress *g, struct egress_talk *t, const struct egress_frame *f)
{
	uint64_t speaker = t->servers;
	struct net *n;

	/* What the warden said about boxes before the server said this is in the other socket by
	 * now. */
	if (f->head.type == EGRESS_POLICY || f->head.type == EGRESS_COMMIT)
		warden_read(g, t);
	if (t->servers != speaker)
		return; /* among it, that there is another server now */
	n = net_find(g, f->as_COMMIT.id);
	if (f->head.type == EGRESS_COMMIT)
		commit(g, t, n, f->as_COMMIT.id);
	else if (!n)
		return; /* COMMIT will say so */
	else if (f->head.type == EGRESS_POLICY)
		begin_policy(n, &f->as_POLICY);
	else if (f->head.type == EGRESS_USE)
		apply_use(n, &f->as_USE);
	else if (f->head.type == EGRESS_RULE)
		apply_rule(n, &f->as_RULE);
	else if (f->head.type == EGRESS_HEADER)
		apply_header(n, &f->as_HEADER);
}

static void server_read(struct egress *g, struct egress_talk *t)
{
	static struct egress_frame f;

	for (unsigned i = 0; i < BATCH && g->server_fd >= 0 && !t->answer_waits; i++) {
		int r = egress_recv(g->server_fd, &f, EGRESS_FROM_SERVER, NULL, NULL);

		if (r == -EAGAIN)
			return;
		if (r == -EPROTO)
			say_log("the server sent what is no message; it is not listened to any more");
		if (r <= 0) {
			server_hang_up(g, t);
			return;
		}
		server_said(g, t, &f);
		explicit_bzero(&f, sizeof(f)); /* a header's value may be secret */
	}
}

static void server_ready(struct loop *l, struct source *self)
{
	struct egress *g = egress_of(l);
	struct egress_talk *t = g->talk;

	if (t->answer_waits && (self->came & EPOLLOUT))
		send_answer(g, t);
	else if (t->answer_waits)
		server_hang_up(g, t); /* an error, and nobody takes the answer */
	else
		server_read(g, t);
}

static int meet_server(struct egress *g, struct egress_talk *t, int fd)
{
	int r = set_nonblocking(fd), room = SERVER_ROOM;

	/* For a burst of events; the kernel gives what it allows. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	server_hang_up(g, t);
	t->servers++;
	if (r == 0)
		r = source_add(&g->loop, &t->server, fd, EPOLLIN, server_ready);
	if (r < 0)
		fd_close(fd);
	else
		g->server_fd = fd;
	return r;
}

/* --- the warden ----------------------------------------------------------------------------- */

/* What cannot be used changes nothing (NW-15). Without any, nobody knows what the operator denies:
 * better no egress at all. */
static int take_operator(struct egress *g, int fd)
{
	struct fail fail;
	int r = apply_operator(g, fd, &fail);

	fd_close(fd);
	if (r < 0)
		say_log("the operator's rule sets cannot be used: %s", fail.msg);
	return r < 0 && g->sets.n == 0 ? r : 0;
}

static int warden_said(struct egress *g, struct egress_talk *t, const struct egress_frame *f,
		       const int *fds)
{
	int r;

	switch (f->head.type) {
	case EGRESS_OPERATOR:
		return take_operator(g, fds[0]);
	case EGRESS_SERVER:
		return meet_server(g, t, fds[0]);
	case EGRESS_OPEN:
		r = net_open(g, &f->as_OPEN, fds);
		if (r < 0)
			say_log("sandbox %s gets no network: %s", f->as_OPEN.id, strerror(-r));
		return 0;
	default:
		net_close(g, f->as_CLOSE.id);
		return 0;
	}
}

/* Its descriptors are lost, because we have too many: a box can be left without a network. Nothing
 * else can be left out. */
static int warden_lost(struct egress *g, const struct egress_frame *f)
{
	if (f->head.type != EGRESS_OPEN)
		return -EMFILE;
	net_close(g, f->as_OPEN.id);
	say_log("sandbox %s gets no network: %s", f->as_OPEN.id, strerror(EMFILE));
	return 1;
}

static void warden_read(struct egress *g, struct egress_talk *t)
{
	struct egress_frame f;
	int fds[EGRESS_DOORS_MAX], r;
	size_t n_fds;

	for (;;) {
		r = egress_recv(t->warden_fd, &f, EGRESS_FROM_WARDEN, fds, &n_fds);
		if (r > 0)
			r = warden_said(g, t, &f, fds) < 0 ? -EPROTO : 1;
		else if (r == -EMFILE)
			r = warden_lost(g, &f);
		if (r == -EAGAIN)
			return;
		if (r <= 0)
			break;
	}
	if (r < 0)
		say_log("the warden cannot be understood: %s", strerror(-r));
	g->is_over = true;
	g->status = r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void warden_ready(struct loop *l, struct source *self)
{
	struct egress *g = egress_of(l);

	(void)self;
	warden_read(g, g->talk);
}

int talk_open(struct egress *g, int warden_fd)
{
	static struct egress_talk t = { .warden = SOURCE_INIT, .server = SOURCE_INIT };
	int r = set_nonblocking(warden_fd);

	t.warden_fd = warden_fd;
	t.retry.due = retry_due;
	g->talk = &t;
	g->server_fd = -EBADF;
	return r < 0 ? r : source_add(&g->loop, &t.warden, warden_fd, EPOLLIN, warden_ready);
}
