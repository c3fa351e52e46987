/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a box, which is its doors to egress: NET and SOCKET. A helper opens them; nobody
 * waits for it, and one that was killed may be deep in the kernel, so it is cleaned up after when
 * it is really gone.
 *
 *	NET ─▶ the helper opens ─▶ the doors are ours ─▶ egress has been told: REPLY
 *
 * We keep the doors too: for the next egress, and so that nobody in the box can take their places
 * meanwhile.
 */
#include "warden/net/net.h"

#include "sys/proc.h"
#include "warden/link/link.h"

struct opening {
	struct ward *ward; /* NULL: nobody wants them any more */
	struct doors_helper helper;
	struct source sock_source;
	struct source pid_source;
};

static void net_refuse_all(struct warden *w, struct ward *d, int err, const char *msg)
{
	for (size_t i = 0; i < NET_WAITING; i++)
		talk_refuse(w, &d->net_pending[i], err, "network", msg);
}

void net_told(struct warden *w, struct ward *d)
{
	uint32_t flags = d->doors.catches ? WARDEN_NET_CATCHES : 0;

	for (size_t i = 0; i < NET_WAITING; i++)
		talk_reply_net(w, &d->net_pending[i], d, flags);
}

void net_not_told(struct warden *w, struct ward *d)
{
	net_refuse_all(w, d, EAGAIN, "what carries out connections has ended; it starts again");
}

static void on_helper_gone(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct opening *o = container_of(source, struct opening, pid_source);

	source_remove(&w->loop, &o->sock_source);
	source_remove(&w->loop, &o->pid_source);
	doors_done(&o->helper);
	if (o->ward)
		o->ward->opening = NULL;
	free(o);
}

/* The answer has come, or the helper has ended without one. */
static void net_on_answer(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct opening *o = container_of(source, struct opening, sock_source);
	struct doors doors = DOORS_INIT;
	struct ward *d = o->ward;
	struct fail fail = { 0 };
	int r = doors_take(&o->helper, &doors, &fail);

	source_remove(&w->loop, source);
	o->ward = NULL;
	if (!d) {
		doors_close(&doors);
		return;
	}
	d->opening = NULL;
	if (r < 0) {
		net_refuse_all(w, d, fail.err, fail.msg);
		return;
	}
	d->doors = doors;
	w->n_networks++;
	egress_add(w, d);
}

static int watch_opening(struct warden *w, struct opening *o)
{
	int r = source_add(&w->loop, &o->sock_source, o->helper.sock, EPOLLIN, net_on_answer);

	return r < 0 ? r :
		       source_add(&w->loop, &o->pid_source, o->helper.pidfd, EPOLLIN,
				  on_helper_gone);
}

static int net_open_doors(struct warden *w, struct ward *d, struct fail *fail)
{
	struct opening *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return fail_set(fail, ENOMEM, "network", "out of memory");
	*o = (struct opening){ .ward = d,
			       .helper = DOORS_HELPER_INIT,
			       .sock_source = SOURCE_INIT,
			       .pid_source = SOURCE_INIT };
	r = doors_start(&d->box, &o->helper, fail);
	if (r == 0) {
		r = watch_opening(w, o);
		if (r < 0)
			(void)fail_set(fail, -r, "network", "cannot watch a helper: %s",
				       strerror(-r));
	}
	if (r < 0) {
		on_helper_gone(&w->loop, &o->pid_source);
		return r;
	}
	d->opening = o;
	return 0;
}

/* Among those who wait for the doors of this box: there is one server, which has little reason to
 * ask often. */
static bool net_wait(struct ward *d, const struct warden *w, struct pending *p)
{
	for (size_t i = 0; i < NET_WAITING; i++)
		if (d->net_pending[i].server != w->room.number) {
			d->net_pending[i] = *p;
			return true;
		}
	return false;
}

void net_begin(struct warden *w, struct ward *d, struct pending *p)
{
	struct fail fail = { 0 };
	int r;

	if (!w->config->egress_enabled) {
		talk_refuse(w, p, EOPNOTSUPP, "network", "sandboxes have no network here");
		return;
	}
	if (!net_wait(d, w, p)) {
		talk_refuse(w, p, EAGAIN, "network", "too many wait for it already");
		return;
	}
	if (d->doors.n && d->doors_told) {
		net_told(w, d);
		return;
	}
	r = egress_need(w, &fail);
	if (r == 0 && !d->doors.n && !d->opening)
		r = net_open_doors(w, d, &fail);
	if (r < 0) {
		say("a box gets no network: %s", fail.msg);
		/* ENOENT would be about the box. */
		net_refuse_all(w, d, fail.err == ENOENT ? EOPNOTSUPP : fail.err,
			       "the network could not be started");
	}
}

void net_end(struct warden *w, struct ward *d)
{
	if (d->opening) {
		/* The rest when it is gone. */
		d->opening->ward = NULL;
		(void)proc_kill(d->opening->helper.pidfd, SIGKILL);
		d->opening = NULL;
	}
	net_refuse_all(w, d, ECANCELED, "the sandbox ended meanwhile");
	if (!d->doors.n)
		return;
	egress_remove(w, d);
	doors_close(&d->doors);
	d->doors_told = false;
	w->n_networks--;
}

void net_socket(struct warden *w, struct ward *d, uint32_t family, struct pending *p)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r = doors_socket(&d->box, (int)family, &fd);

	if (r < 0)
		talk_refuse(w, p, -r, "socket",
			    r == -ESRCH        ? "the sandbox is ending" :
			    r == -EAFNOSUPPORT ? "this machine has no network of that kind" :
						 "no socket could be made in the sandbox");
	else
		talk_reply(w, p, d, fd);
}
