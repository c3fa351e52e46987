/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a thread that asks puts a slip (on its own stack) into a list, sends, and
 * sleeps on the slip's condition. The reader thread matches replies with slips by their number. A
 * reply whose slip is gone came too late; its descriptor is closed and nothing else happens.
 */
#include "server/sandbox/link.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define HELLO_TIMEOUT_S 30
#define SEND_TIMEOUT_S 10

struct slip {
	uint64_t request;
	struct warden_reply *reply;
	int fd;
	bool done;
	pthread_cond_t answered;
	struct slip *next;
};

struct link {
	int sock;
	const struct link_events *events;
	void *arg;
	pthread_t reader;
	bool has_reader;
	uint32_t flags;       /* of the reply to HELLO */
	pthread_mutex_t lock; /* for what follows */
	uint64_t last_request;
	struct slip *waiting;
	bool lost;
};

static int set_timeout(int sock, int option, unsigned seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	return setsockopt(sock, SOL_SOCKET, option, &tv, sizeof(tv)) < 0 ? -errno : 0;
}

static void link_deliver(struct link *l, const struct warden_frame *f, int *fd)
{
	pthread_mutex_lock(&l->lock);
	for (struct slip *w = l->waiting; w; w = w->next) {
		if (w->request != f->head.request || w->done)
			continue;
		*w->reply = f->as_REPLY;
		w->fd = take_fd(fd);
		w->done = true;
		pthread_cond_signal(&w->answered);
		break;
	}
	pthread_mutex_unlock(&l->lock);
}

static void handle_event(struct link *l, const struct warden_frame *f, int *fd)
{
	switch (f->head.type) {
	case WARDEN_BOX:
		l->events->box(l->arg, &f->as_BOX, take_fd(fd));
		break;
	case WARDEN_ENDED:
		l->events->ended(l->arg, &f->as_ENDED);
		break;
	case WARDEN_PAUSED:
		l->events->paused(l->arg, f->as_PAUSED.id);
		break;
	case WARDEN_EGRESS:
		l->events->egress(l->arg, take_fd(fd));
		break;
	default:
		break; /* warden_recv() lets nothing else through */
	}
}

static void *link_thread(void *arg)
{
	struct link *l = arg;

	for (;;) {
		struct warden_frame f;
		_cleanup_(fd_closep) int fd = -EBADF;

		if (warden_recv(l->sock, &f, WARDEN_FROM_WARDEN, &fd) <= 0)
			break;
		if (f.head.type == WARDEN_REPLY)
			link_deliver(l, &f, &fd);
		else
			handle_event(l, &f, &fd);
	}
	pthread_mutex_lock(&l->lock);
	l->lost = true;
	for (struct slip *w = l->waiting; w; w = w->next)
		pthread_cond_signal(&w->answered);
	pthread_mutex_unlock(&l->lock);
	l->events->lost(l->arg);
	return NULL;
}

/* Everything up to the reply to HELLO. */
static int say_hello(struct link *l)
{
	struct warden_frame f = { .head.request = ++l->last_request,
				  .as_HELLO.version = WARDEN_VERSION };
	int r = warden_send(l->sock, WARDEN_HELLO, &f, -EBADF);

	while (r >= 0) {
		_cleanup_(fd_closep) int fd = -EBADF;

		r = warden_recv(l->sock, &f, WARDEN_FROM_WARDEN, &fd);
		if (r <= 0)
			return r < 0 ? r : -ENOTCONN;
		if (f.head.type == WARDEN_REPLY) {
			l->flags = f.as_REPLY.flags;
			return f.head.request == l->last_request ? -f.as_REPLY.err : -EPROTO;
		}
		handle_event(l, &f, &fd);
	}
	return r;
}

int link_open(int sock, const struct link_events *events, void *arg, struct link **ret)
{
	struct link *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	*l = (struct link){ .sock = sock, .events = events, .arg = arg };
	pthread_mutex_init(&l->lock, NULL);
	r = set_timeout(sock, SO_SNDTIMEO, SEND_TIMEOUT_S);
	if (r == 0)
		r = set_timeout(sock, SO_RCVTIMEO, HELLO_TIMEOUT_S);
	if (r == 0)
		r = say_hello(l);
	if (r == 0)
		r = set_timeout(sock, SO_RCVTIMEO, 0);
	if (r < 0) {
		pthread_mutex_destroy(&l->lock);
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

uint32_t link_flags(const struct link *l)
{
	return l->flags;
}

int link_start(struct link *l)
{
	int r = pthread_create(&l->reader, NULL, link_thread, l);

	l->has_reader = r == 0;
	return -r;
}

void link_close(struct link *l)
{
	if (!l)
		return;
	(void)shutdown(l->sock, SHUT_RDWR);
	if (l->has_reader)
		pthread_join(l->reader, NULL);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void add_waiting(struct link *l, struct slip *w)
{
	pthread_condattr_t attr;

	/* A deadline that does not move when somebody sets the clock. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->answered, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&l->lock);
	w->request = ++l->last_request;
	w->next = l->waiting;
	l->waiting = w;
	pthread_mutex_unlock(&l->lock);
}

static void remove_waiting(struct link *l, const struct slip *w)
{
	for (struct slip **p = &l->waiting; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			return;
		}
}

/* Waits on the slip and takes it out of the list: afterwards nobody knows of it. */
static int link_await(struct link *l, struct slip *w, unsigned timeout_ms)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&l->lock);
	while (!w->done && !l->lost && r == 0)
		r = -pthread_cond_timedwait(&w->answered, &l->lock, &until);
	if (w->done)
		r = 0;
	else if (r == 0)
		r = -ENOTCONN;
	remove_waiting(l, w);
	pthread_mutex_unlock(&l->lock);
	return r;
}

int link_ask(struct link *l, enum warden_type type, struct warden_frame *request,
	     unsigned timeout_ms, struct warden_reply *ret, int *ret_fd)
{
	struct slip w = { .reply = ret, .fd = -EBADF };
	int r, sent;

	add_waiting(l, &w);
	request->head.request = w.request;
	sent = warden_send(l->sock, type, request, -EBADF);
	r = link_await(l, &w, sent < 0 ? 0 : timeout_ms);
	pthread_cond_destroy(&w.answered);
	if (r < 0)
		return sent < 0 ? sent : r;
	if (ret_fd)
		*ret_fd = take_fd(&w.fd);
	fd_close(w.fd);
	return 0;
}
