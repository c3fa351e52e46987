/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of egress, and what it is told. It is started when the first box is to have network:
 * a service whose boxes have none never has one, and that one request pays a few milliseconds. It
 * may die at any time: a new one gets the operator's rules, the doors of all boxes and a new socket
 * to the server, which then sends it the boxes' policies. Until then it refuses everything.
 *
 * It never makes us wait: what does not fit into the socket stays in a list. The list is in order,
 * so egress knows a box before the server is told that it does.
 */
#include "warden/net/net.h"

#include "base/clock.h"
#include "sys/proc.h"
#include "sys/sock.h"
#include "warden/link/link.h"

#include <fcntl.h>
#include <sys/socket.h>

#define BACKOFF_FIRST_US 50000
#define BACKOFF_LAST_US 5000000
#define STEADY_US (UINT64_C(30) * 1000000)
#define CROWDED_US 10000
#define SEND_BUFFER (4 << 20)

/* Something to tell it. */
struct telling {
	struct telling *next;
	enum egress_type type;
	char id[WARDEN_ID_SIZE]; /* CLOSE */
	struct ward *ward;       /* OPEN */
	unsigned server;         /* SERVER: for which one */
};

static void forget_all(struct egress_place *e)
{
	while (e->first) {
		struct telling *t = e->first;

		e->first = t->next;
		free(t);
	}
	e->last = &e->first;
}

/* It is killed; the next one is told everything anew. */
static void egress_give_up(struct warden *w, const char *why)
{
	say("egress is ended: %s", why);
	source_remove(&w->loop, &w->egress.sock_source);
	forget_all(&w->egress);
	(void)proc_kill(w->egress.room.pidfd, SIGKILL);
}

static int tell_open(struct warden *w, struct ward *d)
{
	struct egress_frame f = { .as_OPEN = { .n_doors = (uint32_t)d->doors.n } };
	int r;

	memcpy(f.as_OPEN.id, d->id, sizeof(f.as_OPEN.id));
	memcpy(f.as_OPEN.door, d->doors.kind, d->doors.n * sizeof(f.as_OPEN.door[0]));
	r = egress_send(w->egress.room.sock, EGRESS_OPEN, &f, d->doors.fd, d->doors.n);
	if (r < 0)
		return r;
	d->doors_told = true;
	net_told(w, d);
	return 0;
}

static int tell_close(struct warden *w, const char id[static WARDEN_ID_SIZE])
{
	struct egress_frame f = { 0 };

	memcpy(f.as_CLOSE.id, id, sizeof(f.as_CLOSE.id));
	return egress_send(w->egress.room.sock, EGRESS_CLOSE, &f, NULL, 0);
}

/* Each gets an end of a new pair of sockets: what they say to each other is not our business. */
static int tell_server(struct warden *w, unsigned server)
{
	struct warden_frame to_server = { 0 };
	struct egress_frame f = { 0 };
	_cleanup_(fd_closep) int ours = -EBADF;
	_cleanup_(fd_closep) int theirs = -EBADF;
	int pair[2], r;

	if (server != w->room.number || !w->room.greeted)
		return 0; /* another one has come, and will be told */
	r = sock_pair(pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	r = egress_send(w->egress.room.sock, EGRESS_SERVER, &f, &theirs, 1);
	if (r == 0)
		talk_send(w, WARDEN_EGRESS, &to_server, ours);
	return r;
}

static int egress_tell_one(struct warden *w, const struct telling *t)
{
	struct egress_frame f = { 0 };

	if (t->type == EGRESS_OPEN)
		return tell_open(w, t->ward);
	if (t->type == EGRESS_CLOSE)
		return tell_close(w, t->id);
	if (t->type == EGRESS_SERVER)
		return tell_server(w, t->server);
	if (lseek(w->egress.operator_fd, 0, SEEK_SET) < 0) /* the last one has read it */
		return -errno;
	return egress_send(w->egress.room.sock, EGRESS_OPERATOR, &f, &w->egress.operator_fd, 1);
}

static void egress_flush(struct warden *w)
{
	struct egress_place *e = &w->egress;

	while (e->first) {
		struct telling *t = e->first;
		int r = egress_tell_one(w, t);

		if (r == -EAGAIN)
			break;
		/* Without root only so many descriptors may be on their way at once. */
		if (r == -ETOOMANYREFS) {
			timer_set(&w->loop, &e->timer, clock_boot_us() + CROWDED_US);
			return;
		}
		if (r == -EPIPE) {
			forget_all(e); /* it has ended: its pidfd will say so */
			break;
		}
		if (r < 0) {
			egress_give_up(w, strerror(-r));
			return;
		}
		e->first = t->next;
		if (!e->first)
			e->last = &e->first;
		free(t);
	}
	source_change(&w->loop, &e->sock_source, e->first ? EPOLLOUT : EPOLLIN);
}

/* Puts it at the end of the list; flush() says it. */
static void egress_tell(struct warden *w, const struct telling *what)
{
	struct egress_place *e = &w->egress;
	struct telling *t;

	if (!e->room.pid || e->sock_source.fd < 0)
		return; /* the next one is told everything */
	t = malloc(sizeof(*t));
	if (!t) {
		egress_give_up(w, "there is no memory for what it should know");
		return;
	}
	*t = *what;
	t->next = NULL;
	*e->last = t;
	e->last = &t->next;
}

/* It says nothing to us: there is something to read only when it has ended. */
static void egress_on_sock(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	char byte;
	ssize_t n;

	if (source->events == EPOLLOUT) {
		egress_flush(w);
		return;
	}
	n = recv(source->fd, &byte, sizeof(byte), MSG_DONTWAIT);
	if (n > 0)
		egress_give_up(w, "it broke the protocol");
	else if (n == 0)
		egress_give_up(w, "it hung up");
	else if (errno != EAGAIN && errno != EINTR)
		source_remove(&w->loop, source);
}

static void egress_ended(struct warden *w)
{
	struct egress_place *e = &w->egress;

	source_remove(&w->loop, &e->pid_source);
	source_remove(&w->loop, &e->sock_source);
	timer_clear(&w->loop, &e->timer);
	forget_all(e);
	egress_end(&e->room);
}

static void egress_tell_end(const siginfo_t *info, uint64_t again_us)
{
	bool exited = info->si_code == CLD_EXITED;

	say("egress %s %d; connections are cut, it starts again in %llu ms",
	    exited ? "ended with status" : "was killed by signal", info->si_status,
	    (unsigned long long)(again_us / 1000));
}

static void start_later(struct warden *w)
{
	struct egress_place *e = &w->egress;

	if (clock_boot_us() - e->started_us > STEADY_US)
		e->backoff_us = 0;
	e->backoff_us = MIN(MAX(e->backoff_us * 2, BACKOFF_FIRST_US), BACKOFF_LAST_US);
	timer_set(&w->loop, &e->timer, clock_boot_us() + e->backoff_us);
}

static void egress_on_pid(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	siginfo_t info = { 0 };

	(void)waitid(P_PIDFD, (id_t)source->fd, &info, WEXITED | WNOHANG | WNOWAIT);
	egress_ended(w);
	for (size_t i = 0; i < w->n_used_wards; i++) {
		struct ward *d = &w->wards[i];

		if (d->state == WARD_FREE || d->state == WARD_DYING || !d->doors.n)
			continue;
		d->doors_told = false;
		net_not_told(w, d);
	}
	if (w->phase != WARDEN_SERVING)
		return;
	start_later(w);
	egress_tell_end(&info, w->egress.backoff_us);
}

static void egress_tell_all(struct warden *w)
{
	egress_tell(w, &(struct telling){ .type = EGRESS_OPERATOR });
	for (size_t i = 0; i < w->n_used_wards; i++)
		if (w->wards[i].state != WARD_FREE && w->wards[i].doors.n)
			egress_tell(w,
				    &(struct telling){ .type = EGRESS_OPEN, .ward = &w->wards[i] });
	egress_tell(w, &(struct telling){ .type = EGRESS_SERVER, .server = w->room.number });
	egress_flush(w);
}

static int egress_begin(struct warden *w, struct fail *fail)
{
	struct egress_place *e = &w->egress;
	int size = SEND_BUFFER, r = egress_start(w->config, false, &e->room, fail);

	if (r < 0)
		return r;
	e->started_us = clock_boot_us();
	(void)fcntl(e->room.sock, F_SETFL, O_NONBLOCK);
	/* Only so that a thousand boxes can be told of at once; without it the list does. */
	if (setsockopt(e->room.sock, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(e->room.sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r = source_add(&w->loop, &e->sock_source, e->room.sock, EPOLLIN, egress_on_sock);
	if (r == 0)
		r = source_add(&w->loop, &e->pid_source, e->room.pidfd, EPOLLIN, egress_on_pid);
	if (r < 0) {
		egress_ended(w);
		return fail_set(fail, -r, "egress", "cannot watch egress: %s", strerror(-r));
	}
	egress_tell_all(w);
	return 0;
}

/* Tell it what it could not be told, or start it; that only if a box needs it: the next one starts
 * it otherwise. */
static void egress_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	struct fail fail = { 0 };

	(void)t;
	if (w->egress.room.pid)
		egress_flush(w);
	else if (w->phase == WARDEN_SERVING && w->n_networks > 0 && egress_begin(w, &fail) < 0) {
		say("%s", fail.msg);
		start_later(w);
	}
}

int egress_need(struct warden *w, struct fail *fail)
{
	if (w->egress.room.pid || w->egress.timer.place)
		return 0; /* it runs, or will: in the latter case those who wait are told then */
	return egress_begin(w, fail);
}

void egress_add(struct warden *w, struct ward *d)
{
	struct fail fail = { 0 };

	if (w->egress.room.pid) {
		egress_tell(w, &(struct telling){ .type = EGRESS_OPEN, .ward = d });
		egress_flush(w);
	} else if (egress_need(w, &fail) <
		   0) { /* it has ended meanwhile; the new one is told of all */
		say("%s", fail.msg);
		net_not_told(w, d);
	}
}

void egress_remove(struct warden *w, struct ward *d)
{
	struct telling close = { .type = EGRESS_CLOSE };
	struct telling **at = &w->egress.first;

	if (d->doors_told) {
		memcpy(close.id, d->id, sizeof(close.id));
		egress_tell(w, &close);
		egress_flush(w);
		return;
	}
	while (*at && (*at)->ward != d)
		at = &(*at)->next;
	if (*at) {
		struct telling *t = *at;

		*at = t->next;
		if (!t->next)
			w->egress.last = at;
		free(t);
	}
}

void egress_greet_server(struct warden *w)
{
	egress_tell(w, &(struct telling){ .type = EGRESS_SERVER, .server = w->room.number });
	egress_flush(w);
}

int egress_open(struct warden *w, struct fail *fail)
{
	w->egress.last = &w->egress.first;
	w->egress.timer.due = egress_on_timer;
	if (!w->config->egress_enabled)
		return 0;
	w->egress.catches = doors_probe_catching() == 0;
	return egress_operator_file(w->config, &w->egress.operator_fd, fail);
}

void egress_reload(struct warden *w)
{
	struct fail fail = { 0 };
	int fd = -EBADF;

	if (!w->config->egress_enabled)
		return;
	if (egress_operator_file(w->config, &fd, &fail) < 0) {
		say("%s; the rule sets stay as they were", fail.msg);
		return;
	}
	fd_close(w->egress.operator_fd);
	w->egress.operator_fd = fd;
	egress_tell(w, &(struct telling){ .type = EGRESS_OPERATOR });
	egress_flush(w);
}

void egress_close(struct warden *w)
{
	egress_ended(w);
	fd_closep(&w->egress.operator_fd);
}
