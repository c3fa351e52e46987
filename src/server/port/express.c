/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the express way, the one that asks the warden for sockets, and the calls to
 * programs. */
#include "server/port/express_priv.h"

#include "base/clock.h"

#include <sched.h>
#include <sys/eventfd.h>

#define THREADS_MAX 4
#define EVENTS 64
#define LOOK_US UINT64_C(25000) /* after the visitors, at most so often, */
#define LOOK_MS 1000            /* and at least */
#define STOP_US UINT64_C(50000) /* for what is under way when the service stops */
/* A program with a short queue makes the kernel try again after a second. */
#define CONNECT_US UINT64_C(2500000)

struct express {
	struct server *server;
	size_t n_threads;
	unsigned next; /* the thread that gets the next connection; atomic */
	pthread_t dialer;
	bool dialer_started;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t wanted;
	struct call *orders; /* oldest first */
	struct call **orders_end;
	bool stop;
	struct express_thread thread[];
};

int express_watch(struct express_thread *t, int fd, void *source)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.ptr = source };

	return epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* The same for the next event only, of a call; what was awaited before is forgotten. */
static int express_await(struct express_thread *t, int fd, uint32_t event, void *source)
{
	struct epoll_event e = { .events = event | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = source };

	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, fd, &e) == 0)
		return 0;
	return epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void express_unwatch(struct express_thread *t, int fd)
{
	(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* --- the dialer ------------------------------------------------------------------------------- */

static void express_dial(struct express *e, struct call *l)
{
	l->next = NULL;
	pthread_mutex_lock(&e->lock);
	*e->orders_end = l;
	e->orders_end = &l->next;
	pthread_cond_signal(&e->wanted);
	pthread_mutex_unlock(&e->lock);
}

static struct call *dialer_next(struct express *e)
{
	struct call *l;

	pthread_mutex_lock(&e->lock);
	while (!e->orders && !e->stop)
		pthread_cond_wait(&e->wanted, &e->lock);
	l = e->orders;
	if (l) {
		e->orders = l->next;
		if (!e->orders)
			e->orders_end = &e->orders;
	}
	pthread_mutex_unlock(&e->lock);
	return l;
}

static void dialer_bring(struct call *l)
{
	struct express_thread *t = l->thread;

	pthread_mutex_lock(&t->lock);
	l->next = t->dialed;
	t->dialed = l;
	pthread_mutex_unlock(&t->lock);
	(void)eventfd_write(t->wake_fd, 1);
}

/* One order after the other: the warden, which they are for, does one thing after the other. */
static void *dialer_run(void *arg)
{
	struct express *e = arg;
	struct call *l;

	while ((l = dialer_next(e))) {
		l->fd = port_link_socket(l->sandbox, 4);
		dialer_bring(l);
	}
	return NULL;
}

/* --- a call ----------------------------------------------------------------------------------- */

static struct call *call_new(struct visitor *v)
{
	struct call *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->kind = EXPRESS_CALL;
	l->thread = v->thread;
	l->port = v->port;
	l->fd = -EBADF;
	return l;
}

static struct call *call_from_pool(struct visitor *v)
{
	struct port_link *link = port_pool_take(v->thread->server->ports, v->sandbox, v->port);
	struct call *l = link ? call_new(v) : NULL;

	if (l)
		l->link = link;
	else
		port_link_close(link);
	return l;
}

static struct call *call_dial(struct visitor *v)
{
	struct call *l = call_new(v);

	if (!l)
		return NULL;
	l->sandbox = v->sandbox;
	sandbox_ref(l->sandbox);
	l->dialing = true;
	express_dial(v->thread->express, l);
	return l;
}

struct call *call_take(struct visitor *v)
{
	struct call *l = call_from_pool(v);

	if (!l)
		l = call_dial(v);
	if (l)
		l->visitor = v;
	return l;
}

/* --- its end ---------------------------------------------------------------------------------- */

static void call_drop(struct call *l)
{
	/* Closing would not do: the warden made the socket, and a child that it forked
	 * meanwhile has it, too. */
	if (l->link || l->fd >= 0)
		express_unwatch(l->thread, l->link ? l->link->op.sock : l->fd);
	l->visitor = NULL;
	fd_closep(&l->fd);
	sandbox_putp(&l->sandbox);
	if (l->link)
		op_close(&l->link->op); /* at once; the rest at the end of the round */
	l->next = l->thread->dead_calls;
	l->thread->dead_calls = l;
}

void call_release(struct call *l, bool keep)
{
	l->visitor = NULL;
	if (l->dialing)
		return; /* it comes back, and finds nobody */
	if (keep)       /* its last event has come, and it awaits no other */
		port_pool_put(l->thread->server->ports, take_ptr(l->link));
	call_drop(l);
}

/* --- connecting ------------------------------------------------------------------------------- */

static void call_failed(struct call *l)
{
	visitor_call_ready(l->visitor, false);
}

static void call_dialed(struct call *l)
{
	int r;

	l->dialing = false;
	if (!l->visitor) {
		call_drop(l);
		return;
	}
	l->since_us = l->thread->now_us;
	r = l->fd < 0 ? l->fd : port_link_connect(l->fd, 4, l->port);
	if ((r < 0 && r != -EINPROGRESS) || express_await(l->thread, l->fd, EPOLLOUT, l) < 0)
		call_failed(l);
}

bool call_is_stuck(const struct call *l)
{
	return !l->dialing && !l->link && l->thread->now_us - l->since_us >= CONNECT_US;
}

static bool call_is_connected(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err == 0;
}

/* It is connected, or was refused. */
static void call_connected(struct call *l)
{
	if (!call_is_connected(l->fd) ||
	    port_link_adopt(take_fd(&l->fd), l->sandbox, l->port, &l->link) < 0) {
		call_failed(l);
		return;
	}
	sandbox_putp(&l->sandbox);
	visitor_call_ready(l->visitor, true);
}

int call_await(struct call *l)
{
	return express_await(l->thread, l->link->op.sock, EPOLLIN, l);
}

static void call_event(struct call *l)
{
	if (!l->visitor)
		return; /* it was dropped in this round */
	if (l->link)
		visitor_hear(l->visitor);
	else
		call_connected(l);
}

/* --- a thread --------------------------------------------------------------------------------- */

static void thread_take_dialed(struct express_thread *t)
{
	struct call *list;

	pthread_mutex_lock(&t->lock);
	list = t->dialed;
	t->dialed = NULL;
	pthread_mutex_unlock(&t->lock);
	while (list) {
		struct call *l = list;

		list = l->next;
		l->next = NULL;
		call_dialed(l);
	}
}

static void thread_take_event(struct express_thread *t, const struct epoll_event *e)
{
	eventfd_t n;

	switch (*(enum express_kind *)e->data.ptr) {
	case EXPRESS_VISITOR:
		visitor_event(e->data.ptr, e->events);
		break;
	case EXPRESS_CALL:
		call_event(e->data.ptr);
		break;
	case EXPRESS_WAKE:
	default:
		(void)eventfd_read(t->wake_fd, &n);
		break;
	}
}

static void thread_bury(struct express_thread *t)
{
	while (t->dead_visitors) {
		struct visitor *v = t->dead_visitors;

		t->dead_visitors = v->next;
		buf_done(&v->out);
		free(v);
	}
	while (t->dead_calls) {
		struct call *l = t->dead_calls;

		t->dead_calls = l->next;
		port_link_close(l->link);
		free(l);
	}
}

static void thread_look_after(struct express_thread *t)
{
	if (t->now_us - t->looked_us < LOOK_US)
		return;
	t->looked_us = t->now_us;
	for (struct visitor *v = visitors_first(t), *next; v; v = next) {
		next = v->next;
		visitor_look_after(v);
	}
}

static bool express_is_stopping(struct express *e)
{
	bool stop;

	pthread_mutex_lock(&e->lock);
	stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	return stop;
}

static void thread_round(struct express_thread *t)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(t->epoll_fd, events, EVENTS, LOOK_MS);

	t->now_us = clock_boot_us();
	for (int i = 0; i < n; i++)
		thread_take_event(t, &events[i]);
	thread_take_dialed(t);
	thread_look_after(t);
	thread_bury(t);
}

static void *thread_run(void *arg)
{
	struct express_thread *t = arg;
	uint64_t stopped_us = 0;

	while (!stopped_us || (visitors_first(t) && t->now_us - stopped_us < STOP_US)) {
		thread_round(t);
		if (!stopped_us && express_is_stopping(t->express))
			stopped_us = t->now_us;
	}
	while (visitors_first(t))
		visitor_break_off(visitors_first(t));
	thread_bury(t);
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------------ */

int express_take(struct server *s, struct connection *c, const struct sockaddr_storage *peer)
{
	struct express *e = s->express;
	unsigned n = __atomic_fetch_add(&e->next, 1, __ATOMIC_RELAXED);

	return visitor_new(&e->thread[n % e->n_threads], c, peer);
}

static int thread_start(struct express *e, struct express_thread *t)
{
	struct epoll_event wake = { .events = EPOLLIN, .data.ptr = t };
	int r;

	t->kind = EXPRESS_WAKE;
	t->express = e;
	t->server = e->server;
	t->head.max = PORT_ASK_MAX;
	pthread_mutex_init(&t->lock, NULL);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->epoll_fd < 0 || t->wake_fd < 0 ||
	    epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->wake_fd, &wake) < 0)
		return -errno;
	r = pthread_create(&t->pthread, NULL, thread_run, t);
	t->started = r == 0;
	return -r;
}

static void thread_free(struct express_thread *t)
{
	thread_take_dialed(t); /* nobody waits for them */
	thread_bury(t);
	buf_done(&t->head);
	fd_close(t->wake_fd);
	fd_close(t->epoll_fd);
	pthread_mutex_destroy(&t->lock);
}

static size_t threads_wanted(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);

	return (size_t)MIN(MAX(n, 1), THREADS_MAX);
}

int express_start(struct server *s, struct express **ret)
{
	size_t n = threads_wanted();
	struct express *e = calloc(1, sizeof(*e) + n * sizeof(e->thread[0]));
	int r;

	if (!e)
		return -ENOMEM;
	e->server = s;
	e->orders_end = &e->orders;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->wanted, NULL);
	r = -pthread_create(&e->dialer, NULL, dialer_run, e);
	e->dialer_started = r == 0;
	for (; r == 0 && e->n_threads < n; e->n_threads++)
		r = thread_start(e, &e->thread[e->n_threads]);
	if (r < 0) {
		express_stop(e);
		return r;
	}
	*ret = e;
	return 0;
}

void express_stop(struct express *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_signal(&e->wanted);
	pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < e->n_threads; i++)
		(void)eventfd_write(e->thread[i].wake_fd, 1);
	for (size_t i = 0; i < e->n_threads; i++)
		if (e->thread[i].started)
			pthread_join(e->thread[i].pthread, NULL);
	if (e->dialer_started)
		pthread_join(e->dialer, NULL);
	for (size_t i = 0; i < e->n_threads; i++)
		thread_free(&e->thread[i]);
	pthread_cond_destroy(&e->wanted);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
