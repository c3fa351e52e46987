/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversation with the server. It never makes us wait: what does not fit into the socket stays
 * in a list, and while there is one nothing more is read from the server, so the list can only grow
 * by what happens to boxes there are. Answers go to the server that asked, not to the one that came
 * after it.
 */
#include "warden/link/link.h"

#include <fcntl.h>
#include <sys/socket.h>

#define SEND_BUFFER (4 << 20)

struct outgoing {
	struct outgoing *next;
	enum warden_type type;
	int fd;
	struct warden_frame frame;
};

static void outgoing_free(struct outgoing *o)
{
	fd_close(o->fd);
	free(o);
}

void talk_open(struct warden *w)
{
	struct room *room = &w->room;
	int size = SEND_BUFFER;

	room->first = NULL;
	room->last = &room->first;
	/* Only so that a thousand boxes can be told of at once; without it the list does. */
	if (setsockopt(room->sock, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(room->sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

void talk_close(struct warden *w)
{
	struct room *room = &w->room;

	while (room->first) {
		struct outgoing *o = room->first;

		room->first = o->next;
		outgoing_free(o);
	}
	room->last = &room->first;
}

static void talk_flush(struct warden *w)
{
	struct room *room = &w->room;

	while (room->first) {
		struct outgoing *o = room->first;
		int r = warden_send(room->sock, o->type, &o->frame, o->fd);

		if (r == -EAGAIN)
			break;
		if (r < 0 && r != -EPIPE) {
			room_refuse(w, "it cannot be talked to");
			return;
		}
		room->first = o->next;
		if (!room->first)
			room->last = &room->first;
		outgoing_free(o);
	}
	source_change(&w->loop, &room->sock_source, room->first ? EPOLLOUT : EPOLLIN);
}

void talk_send(struct warden *w, enum warden_type type, const struct warden_frame *f, int fd)
{
	struct room *room = &w->room;
	struct outgoing *o;

	if (!room->greeted || room->refused)
		return;
	o = malloc(sizeof(*o));
	if (!o) {
		room_refuse(w, "there is no memory for what it should know");
		return;
	}
	*o = (struct outgoing){ .type = type, .frame = *f, .fd = -EBADF };
	if (fd >= 0) {
		/* The box may be gone before this is sent. */
		o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (o->fd < 0) {
			free(o);
			room_refuse(w, "there are no descriptors for what it should know");
			return;
		}
	}
	*room->last = o;
	room->last = &o->next;
	talk_flush(w);
}

static bool takes_answer(struct warden *w, struct pending *p, uint64_t *ret_request)
{
	bool current = p->server != 0 && p->server == w->room.number;

	*ret_request = p->request;
	*p = (struct pending){ 0 };
	return current;
}

void talk_reply(struct warden *w, struct pending *p, const struct ward *d, int fd)
{
	struct warden_frame f = { 0 };

	if (!takes_answer(w, p, &f.head.request))
		return;
	if (d)
		ward_describe(d, &f.as_REPLY.box);
	talk_send(w, WARDEN_REPLY, &f, fd);
}

void talk_reply_usage(struct warden *w, struct pending *p, struct ward *d)
{
	struct warden_frame f = { 0 };

	if (!takes_answer(w, p, &f.head.request))
		return;
	ward_describe(d, &f.as_REPLY.box);
	ward_usage(d, &f.as_REPLY.usage);
	talk_send(w, WARDEN_REPLY, &f, -EBADF);
}

void talk_reply_net(struct warden *w, struct pending *p, const struct ward *d, uint32_t flags)
{
	struct warden_frame f = { 0 };

	if (!takes_answer(w, p, &f.head.request))
		return;
	if (d)
		ward_describe(d, &f.as_REPLY.box);
	f.as_REPLY.flags = flags;
	talk_send(w, WARDEN_REPLY, &f, -EBADF);
}

void talk_reply_layer(struct warden *w, struct pending *p, const char layer[static WARDEN_ID_SIZE])
{
	struct warden_frame f = { 0 };

	if (!takes_answer(w, p, &f.head.request))
		return;
	memcpy(f.as_REPLY.layer, layer, sizeof(f.as_REPLY.layer));
	talk_send(w, WARDEN_REPLY, &f, -EBADF);
}

void talk_refuse(struct warden *w, struct pending *p, int err, const char *where, const char *msg)
{
	struct warden_frame f = { 0 };

	if (!takes_answer(w, p, &f.head.request))
		return;
	f.as_REPLY.err = err > 0 ? err : EIO;
	(void)snprintf(f.as_REPLY.where, sizeof(f.as_REPLY.where), "%s", where);
	(void)snprintf(f.as_REPLY.msg, sizeof(f.as_REPLY.msg), "%s", msg);
	talk_send(w, WARDEN_REPLY, &f, -EBADF);
}

void talk_ended(struct warden *w, const struct warden_ended *ended, bool told)
{
	struct warden_frame f = { .as_ENDED = *ended };

	w->ended[w->n_ended++ % ENDED_KEPT] = *ended;
	if (!told)
		talk_send(w, WARDEN_ENDED, &f, -EBADF);
}

void talk_ready(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	static struct warden_frame f;
	int r;

	if (source->events == EPOLLOUT) {
		talk_flush(w);
		return;
	}
	r = warden_recv(w->room.sock, &f, WARDEN_TO_WARDEN, NULL);
	if (r == -EAGAIN)
		return;
	if (r == 1)
		w->hooks.request(w, &f);
	else if (r == 0)
		source_remove(&w->loop, source); /* it is ending: its pidfd will say so */
	else
		room_refuse(w, "it broke the protocol");
}
