/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to programs, as the express way holds them. After an answer a line stays with its thread for a moment, watched, so that
 * the next request has it for nothing; then it goes to the pool. Other threads may take it at any time: a program that serves
 * one connection at a time must not be asked on another one while we hold the first.
 */
#include "server/port/express_priv.h"

#define KEEP_US UINT64_C(50000)
/* A program with a short queue makes the kernel try again after a second. */
#define CONNECT_US UINT64_C(2500000)

/* --- idle ones ------------------------------------------------------------------------------------------- */

static void idle_in(struct line *l)
{
	struct express_thread *t = l->thread;

	l->prev = NULL;
	l->next = t->idle_newest;
	if (l->next)
		l->next->prev = l;
	else
		t->idle_oldest = l;
	t->idle_newest = l;
}

static void idle_out(struct line *l)
{
	struct express_thread *t = l->thread;

	if (l->prev)
		l->prev->next = l->next;
	else
		t->idle_newest = l->next;
	if (l->next)
		l->next->prev = l->prev;
	else
		t->idle_oldest = l->prev;
	l->next = l->prev = NULL;
}

/* With the thread's lock held. */
static struct line *search_idle(struct express_thread *t, const struct visitor *v)
{
	struct line *l = t->idle_newest;

	while (l && (l->link->op.sandbox != v->sandbox || l->port != v->port))
		l = l->next;
	if (l) {
		idle_out(l);
		l->idle = false;
	}
	return l;
}

static struct line *find_idle(struct visitor *v)
{
	struct line *l;

	pthread_mutex_lock(&v->thread->lock);
	l = search_idle(v->thread, v);
	pthread_mutex_unlock(&v->thread->lock);
	return l;
}

/*
 * What another thread has idle. The line itself stays there, empty, until no event can be about it any more: nothing is
 * watched for it once it is in that list.
 */
static struct port_link *rob(struct express_thread *from, const struct visitor *v)
{
	struct port_link *link = NULL;
	struct line *l;

	pthread_mutex_lock(&from->lock);
	l = search_idle(from, v);
	if (l) {
		link = take_ptr(l->link);
		express_unwatch(from, link->op.sock);
		l->next = from->robbed;
		from->robbed = l;
	}
	pthread_mutex_unlock(&from->lock);
	return link;
}

/* --- making one -------------------------------------------------------------------------------------------- */

static struct line *new_line(struct visitor *v)
{
	struct line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->kind = EXPRESS_LINE;
	l->thread = v->thread;
	l->port = v->port;
	l->fd = -EBADF;
	return l;
}

static struct line *from_elsewhere(struct visitor *v)
{
	struct express_thread *t = NULL;
	struct port_link *link = NULL;
	struct line *l;

	while (!link && (t = express_other_thread(v->thread, t)))
		link = rob(t, v);
	if (!link)
		link = port_pool_take(v->thread->server->ports, v->sandbox, v->port);
	l = link ? new_line(v) : NULL;

	if (l && express_watch(l->thread, link->op.sock, l) == 0) {
		l->link = link;
		return l;
	}
	free(l);
	port_link_close(link);
	return NULL;
}

static struct line *dial(struct visitor *v)
{
	struct line *l = new_line(v);

	if (!l)
		return NULL;
	l->sandbox = v->sandbox;
	sandbox_ref(l->sandbox);
	l->dialing = true;
	express_dial(v->thread->express, l);
	return l;
}

struct line *line_take(struct visitor *v)
{
	struct line *l = find_idle(v);

	if (!l)
		l = from_elsewhere(v);
	if (!l)
		l = dial(v);
	if (l)
		l->visitor = v;
	return l;
}

/* --- connecting ----------------------------------------------------------------------------------------------- */

static void failed(struct line *l)
{
	visitor_line_ready(l->visitor, false);
}

void line_dialed(struct line *l)
{
	int r;

	l->dialing = false;
	if (!l->visitor) {
		line_drop(l);
		return;
	}
	l->since_us = l->thread->now_us;
	r = l->fd < 0 ? l->fd : port_link_connect(l->fd, 4, l->port);
	if ((r < 0 && r != -EINPROGRESS) || express_watch(l->thread, l->fd, l) < 0)
		failed(l);
}

bool line_is_stuck(const struct line *l)
{
	return !l->dialing && !l->link && l->thread->now_us - l->since_us >= CONNECT_US;
}

static bool is_connected(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err == 0;
}

/* It is connected, or was refused. Not watched while it is made a link, which closes it when it cannot. */
static void connected(struct line *l)
{
	if (!is_connected(l->fd)) {
		failed(l);
		return;
	}
	express_unwatch(l->thread, l->fd);
	if (port_link_adopt(take_fd(&l->fd), l->sandbox, l->port, &l->link) < 0 ||
	    express_watch(l->thread, l->link->op.sock, l) < 0) {
		failed(l);
		return;
	}
	sandbox_putp(&l->sandbox);
	visitor_line_ready(l->visitor, true);
}

/* There is nothing that an idle one may say. If it is not idle, another thread has just taken what was in it. */
static void idle_event(struct line *l)
{
	bool idle;

	pthread_mutex_lock(&l->thread->lock);
	idle = l->idle;
	if (idle)
		idle_out(l);
	l->idle = false;
	pthread_mutex_unlock(&l->thread->lock);
	if (idle)
		line_drop(l);
}

void line_event(struct line *l, uint32_t events)
{
	if (l->dead)
		return;
	l->hung_up = l->hung_up || (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP));
	if (!l->visitor)
		idle_event(l);
	else if (!l->link && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		connected(l);
	else if (l->link && (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
		relay_line(l->visitor);
}

/* --- the end of one -------------------------------------------------------------------------------------------- */

/* Closing would not do: the warden made the socket, and a child that it forked meanwhile has it, too. */
static void stop_watching(struct line *l)
{
	if (l->link)
		express_unwatch(l->thread, l->link->op.sock);
	else if (l->fd >= 0)
		express_unwatch(l->thread, l->fd);
}

void line_drop(struct line *l)
{
	stop_watching(l);
	l->dead = true;
	l->visitor = NULL;
	fd_closep(&l->fd);
	sandbox_putp(&l->sandbox);
	if (l->link)
		op_close(&l->link->op); /* at once; the rest at the end of the round */
	l->next = l->thread->dead_lines;
	l->thread->dead_lines = l;
}

void line_release(struct line *l, bool keep)
{
	l->visitor = NULL;
	if (l->dialing)
		return; /* it comes back, and finds nobody */
	/* That nobody writes there any more was told with the answer's last bytes, and is not told again. */
	if (!keep || l->hung_up) {
		line_drop(l);
		return;
	}
	l->link->used = true;
	l->since_us = l->thread->now_us;
	pthread_mutex_lock(&l->thread->lock);
	l->idle = true;
	idle_in(l);
	pthread_mutex_unlock(&l->thread->lock);
}

/* To all threads: from here on nobody watches it. */
static void to_pool(struct line *l)
{
	express_unwatch(l->thread, l->link->op.sock);
	port_pool_put(l->thread->server->ports, take_ptr(l->link));
}

/* With the thread's lock held. */
static struct line *take_oldest(struct express_thread *t, uint64_t idle_us)
{
	struct line *l = t->idle_oldest;

	if (!l || t->now_us - l->since_us < idle_us)
		return NULL;
	idle_out(l);
	l->idle = false;
	return l;
}

/* There is no moment in which it is neither here nor in the pool: who looked then would make another one. */
static struct line *oldest_to_pool(struct express_thread *t)
{
	struct line *l;

	pthread_mutex_lock(&t->lock);
	l = take_oldest(t, KEEP_US);
	if (l)
		to_pool(l);
	pthread_mutex_unlock(&t->lock);
	return l;
}

void lines_look_after(struct express_thread *t)
{
	struct line *l;

	while ((l = oldest_to_pool(t)))
		line_drop(l);
}

void lines_drop_idle(struct express_thread *t)
{
	struct line *l;

	do {
		pthread_mutex_lock(&t->lock);
		l = take_oldest(t, 0);
		pthread_mutex_unlock(&t->lock);
		if (l)
			line_drop(l);
	} while (l);
}

bool lines_any_idle(struct express_thread *t)
{
	bool any;

	pthread_mutex_lock(&t->lock);
	any = t->idle_oldest;
	pthread_mutex_unlock(&t->lock);
	return any;
}
