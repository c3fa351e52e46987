/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warden.
 *
 * Runs as     root, or the user that called it; one thread.
 * Holds       the pidfd, control socket, cgroups and writable layer of every box; the state
 *             directory, the listening socket (which it never reads), a socket to the server.
 * Reads       messages of fixed size from the server, the reports of boxes being set up, counters
 *             of the kernel.
 * Must never  parse HTTP, JSON or a path from a client; follow a path inside a box; wait for
 *             anybody.
 *
 * If it dies, every box and the server die with it, and the next start removes what is left.
 */
#include "warden/warden_priv.h"

#include "base/clock.h"
#include "base/termsafe.h"
#include "warden/boxes/boxes.h"
#include "warden/layers/layers.h"
#include "warden/link/link.h"
#include "warden/net/net.h"
#include "warden/zygote/zygote.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define EMPTY_US (UINT64_C(10) * 1000000)
#define OTHER_TIMERS 16
#define FDS_PER_BOX 40       /* ten of them are doors, while it has network */
#define FDS_PER_CONNECTION 6 /* itself, an operation's socket, a pipe, and what is being sent */
#define FDS_BESIDE 4096

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	termsafe_say(fmt, args);
	va_end(args);
}

/* systemd's notification protocol: a line of text to a datagram socket. */
static void notify_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	_cleanup_(fd_closep) int fd = -EBADF;
	size_t len = path ? strlen(path) : 0;

	if ((path && path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* A supervisor that does not listen is no reason not to serve. */
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
			      (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

/* Boxes take one or two dozen descriptors each; the server inherits the limit for its
 * connections. */
static void raise_fd_limit(const struct config *c)
{
	rlim_t want = (rlim_t)(c->limits_sandboxes + c->pool_size) * FDS_PER_BOX +
		      (rlim_t)c->limits_connections * FDS_PER_CONNECTION + FDS_BESIDE;
	struct rlimit now, more;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return;
	want = MAX(want, now.rlim_cur);
	more = (struct rlimit){ .rlim_cur = want, .rlim_max = MAX(want, now.rlim_max) };
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	now.rlim_cur = MIN(want, now.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

static void on_emptied_late(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	(void)t;
	say("some boxes did not die in time; the next start removes them");
	w->phase = WARDEN_OVER;
}

static void begin_emptying(struct warden *w)
{
	w->phase = WARDEN_EMPTYING;
	timer_clear(&w->loop, &w->pool_timer);
	w->phase_timer.due = on_emptied_late;
	timer_set(&w->loop, &w->phase_timer, clock_boot_us() + EMPTY_US);
	for (size_t i = 0; i < w->n_used_wards; i++)
		ward_end(w, &w->wards[i], WARDEN_ENDED_STOPPED, false);
}

/* CR-09: first the server, which has a moment to end what it is doing, then all boxes. */
static void warden_stop(struct warden *w)
{
	if (w->phase == WARDEN_SERVING) {
		notify_systemd("STOPPING=1");
		w->phase = WARDEN_CLOSING;
		room_stop(w);
	} else if (w->room.pid) {
		room_kill(w); /* told twice */
	}
	if (w->phase == WARDEN_CLOSING && !w->room.pid)
		begin_emptying(w);
}

void warden_served(struct warden *w)
{
	pool_fill(w);
	if (w->served)
		return;
	w->served = true;
	zygote_start_all(w);
	place_publish(w);
	say("serving at %s; the key is in %s/local.key", w->url, w->state.path);
	notify_systemd("READY=1");
}

static void restart_server(struct warden *w)
{
	struct fail fail = { 0 };

	if (w->phase != WARDEN_SERVING)
		return;
	/* The one that is there now may be newer. */
	if (room_find(w, w->server_program, &fail) < 0)
		say("%s; going on with the old one", fail.msg);
	egress_reload(w);
	room_restart(w);
}

static void on_signal(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct signalfd_siginfo info;

	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		restart_server(w);
	else
		warden_stop(w);
}

static int warden_open_signals(struct warden *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	/* Ignored by our parent, it would take the ends of our children from us. */
	(void)sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signal_fd < 0 ?
		       -errno :
		       source_add(&w->loop, &w->signal_source, w->signal_fd, EPOLLIN, on_signal);
}

static int open_inside(struct warden *w, struct fail *fail)
{
	int r = wards_open(w);

	if (r == 0)
		r = loop_open(&w->loop, w->n_wards + OTHER_TIMERS);
	if (r == 0)
		r = warden_open_signals(w);
	pool_open(w);
	return r < 0 ? fail_set(fail, -r, "start", "cannot start: %s", strerror(-r)) : 0;
}

static int warden_start(struct warden *w, const struct warden_options *o, struct fail *fail)
{
	int r = open_inside(w, fail);

	if (r == 0)
		r = room_find(w, o->server, fail);
	if (r == 0)
		r = place_open(w, o->client, fail);
	if (r == 0)
		r = box_host_open(&w->host, fail);
	if (r == 0)
		r = box_host_agent(&w->host, fail);
	w->host.busy = true;
	if (r == 0)
		r = root_find(w, fail);
	if (r == 0)
		r = egress_open(w, fail);
	if (r == 0) {
		zygote_open(w);
		r = room_start(w, fail);
	}
	return r;
}

static bool warden_is_empty(const struct warden *w)
{
	return w->n_boxes == 0 && w->n_pool == 0 && w->n_dying == 0 && w->n_copies == 0;
}

static int warden_serve(struct warden *w, struct fail *fail)
{
	while (w->phase != WARDEN_OVER) {
		int r = loop_turn(&w->loop);

		if (r < 0)
			return fail_set(fail, -r, "loop", "cannot wait: %s", strerror(-r));
		if (w->phase == WARDEN_EMPTYING && warden_is_empty(w))
			w->phase = WARDEN_OVER;
	}
	*fail = w->fail;
	return w->result;
}

static void warden_finish(struct warden *w)
{
	place_unpublish(w);
	room_close(w);
	for (size_t i = 0; i < w->n_used_wards; i++)
		if (w->wards[i].state == WARD_DYING)
			box_give_up(&w->wards[i].box); /* it has had its time */
		else if (w->wards[i].state != WARD_FREE)
			box_destroy(&w->wards[i].box);
	egress_close(w);
	zygote_close(w);
	source_remove(&w->loop, &w->trash_source);
	fd_closep(&w->trash_fd); /* it ends with us; the next start goes on with its work */
	source_remove(&w->loop, &w->signal_source);
	fd_closep(&w->signal_fd);
	box_host_close(&w->host);
	place_close(w);
	loop_close(&w->loop);
	wards_close(w);
}

int warden_run(const struct warden_options *o, struct fail *fail)
{
	static struct warden w = {
		.loop = LOOP_INIT,
		.state = STATE_INIT,
		.lock_fd = -EBADF,
		.layers_fd = -EBADF,
		.listen_fd = -EBADF,
		.discovery_fd = -EBADF,
		.run_fd = -EBADF,
		.signal_source = SOURCE_INIT,
		.signal_fd = -EBADF,
		.room = ROOM_INIT,
		.trash_fd = -EBADF,
		.zygote_cgroup_fd = -EBADF,
		.trash_source = SOURCE_INIT,
		.egress = EGRESS_PLACE_INIT,
		.host = BOX_HOST_INIT,
		.hooks = {
			.request = request_handle,
			.server_over = warden_stop,
			.zygote_ready = pool_prepare,
		},
	};
	int r;

	w.config = o->config;
	w.pid = getpid();
	w.server_program = o->server;
	w.languages_fd = o->languages_fd;
	(void)umask(022);
	/* Nobody may look into us. Without root we could not, either: the files by which a box's
	 * ids are mapped would be root's. */
	if (geteuid() == 0)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	raise_fd_limit(o->config);
	r = warden_start(&w, o, fail);
	if (r == 0)
		r = warden_serve(&w, fail);
	warden_finish(&w);
	return r;
}
