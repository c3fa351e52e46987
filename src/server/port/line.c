/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to programs, as the express way holds them: one for each request that is under way. They come from the
 * pool and go back to it with the end of the answer, so that a program that serves one connection at a time is never
 * asked on another one while we hold the first.
 */
#include "server/port/express_priv.h"

/* A program with a short queue makes the kernel try again after a second. */
#define CONNECT_US UINT64_C(2500000)

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

static struct line *from_pool(struct visitor *v)
{
	struct port_link *link = port_pool_take(v->thread->server->ports, v->sandbox, v->port);
	struct line *l = link ? new_line(v) : NULL;

	if (l)
		l->link = link;
	else
		port_link_close(link);
	return l;
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
	struct line *l = from_pool(v);

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
	if ((r < 0 && r != -EINPROGRESS) || express_await(l->thread, l->fd, EPOLLOUT, l) < 0)
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

/* It is connected, or was refused. */
static void connected(struct line *l)
{
	if (!is_connected(l->fd) ||
	    port_link_adopt(take_fd(&l->fd), l->sandbox, l->port, &l->link) < 0) {
		failed(l);
		return;
	}
	sandbox_putp(&l->sandbox);
	visitor_line_ready(l->visitor, true);
}

int line_await(struct line *l)
{
	return express_await(l->thread, l->link->op.sock, EPOLLIN, l);
}

void line_event(struct line *l)
{
	if (!l->visitor)
		return; /* it was dropped in this round */
	if (l->link)
		relay_line(l->visitor);
	else
		connected(l);
}

/* --- the end of one -------------------------------------------------------------------------------------------- */

void line_drop(struct line *l)
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
	l->next = l->thread->dead_lines;
	l->thread->dead_lines = l;
}

void line_release(struct line *l, bool keep)
{
	l->visitor = NULL;
	if (l->dialing)
		return; /* it comes back, and finds nobody */
	if (keep)       /* its last event has come, and it awaits no other */
		port_pool_put(l->thread->server->ports, take_ptr(l->link));
	line_drop(l);
}
