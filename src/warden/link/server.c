/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's process: its own user, no capabilities, nothing inherited but the descriptors it
 * needs. It may die at any time; boxes go on and the next one is told of them.
 */
#include "warden/link/link.h"

#include "base/clock.h"
#include "service/spawn.h"
#include "sys/proc.h"
#include "sys/sock.h"

#include <fcntl.h>

#define STOP_US (UINT64_C(2) * 1000000)
#define BACKOFF_FIRST_US 100000
#define BACKOFF_LAST_US 5000000
#define STEADY_US (UINT64_C(30) * 1000000) /* a server that ran so long may start again at once */

int room_find(struct warden *w, const char *program, struct fail *fail)
{
	int fd, r = spawn_find("server", "glovebox-server", program, &fd, fail);

	if (r < 0)
		return r;
	if (w->room.previous_fd < 0)
		w->room.previous_fd = take_fd(&w->room.program_fd);
	fd_close(w->room.program_fd);
	w->room.program_fd = fd;
	return 0;
}

/* What the server need not know: it is not the one who dials, and arguments can be seen by
 * everybody. */
static bool is_kept_back(size_t setting)
{
	return setting == CONFIG_egress_proxy;
}

/* "--section.key=value" for each setting: the server needs no file of its own. */
static char **server_argv(const struct config *c)
{
	size_t n = config_count(), at = 1;
	char **argv = calloc(n + 2, sizeof(*argv));
	bool ok = argv && (argv[0] = strdup("glovebox-server"));

	for (size_t i = 0; ok && i < n; i++) {
		char value[CONFIG_TEXT_SIZE];

		if (is_kept_back(i))
			continue;
		ok = config_text(c, i, value, sizeof(value)) == 0 &&
		     asprintf(&argv[at++], "--%s=%s", config_name(i), value) >= 0;
	}
	if (ok)
		return argv;
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
	return NULL;
}

static void argv_freep(char ***argv)
{
	for (char **a = *argv; a && *a; a++)
		free(*a);
	free(*argv);
}

/* -EBADF when there is none; the file may be root's own. */
static int open_secret(const char *path)
{
	int fd = path[0] ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -EBADF;

	return path[0] && fd < 0 ? -errno : fd;
}

static int room_spawn(struct warden *w, int sock, struct fail *fail)
{
	_cleanup_(fd_closep) int cert_fd = open_secret(w->config->server_tls_cert);
	_cleanup_(fd_closep) int key_fd = open_secret(w->config->server_tls_key);
	_cleanup_(argv_freep) char **argv = server_argv(w->config);
	const int fds[] = { sock, w->listen_fd, w->state.db_fd, cert_fd, key_fd, w->languages_fd };
	char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "LANG=C.UTF-8" },
			(char[]){ "GLOVEBOX_LANGUAGES=/proc/self/fd/8" }, NULL };
	const struct spawn s = {
		.name = "the server",
		.program_fd = w->room.program_fd,
		.argv = argv,
		.env = env,
		.fds = fds,
		.n_fds = ARRAY_SIZE(fds),
		.uid = w->state.uid,
		.gid = w->state.gid,
	};

	_Static_assert(WARDEN_SERVER_FD == SPAWN_FIRST_FD && WARDEN_LANGUAGES_FD == 8 &&
			       WARDEN_LANGUAGES_FD - WARDEN_SERVER_FD + 1 == ARRAY_SIZE(fds),
		       "by number");
	if (!argv)
		return fail_set(fail, ENOMEM, "server", "out of memory");
	if ((cert_fd < 0 && cert_fd != -EBADF) || (key_fd < 0 && key_fd != -EBADF))
		return fail_set(fail, cert_fd < 0 ? -cert_fd : -key_fd, "server",
				"cannot read the TLS certificate or its key");
	return spawn_room(&s, &w->room.pid, &w->room.pidfd, fail);
}

/* Why did it end? For people. */
static void room_tell_end(const siginfo_t *info, uint64_t again_us)
{
	bool exited = info->si_code == CLD_EXITED;

	say("the server %s %d; boxes go on, it starts again in %llu ms",
	    exited ? "ended with status" : "was killed by signal", info->si_status,
	    (unsigned long long)(again_us / 1000));
}

static void room_ended(struct warden *w)
{
	struct room *room = &w->room;

	source_remove(&w->loop, &room->pid_source);
	source_remove(&w->loop, &room->sock_source);
	timer_clear(&w->loop, &room->timer);
	talk_close(w);
	fd_closep(&room->pidfd);
	fd_closep(&room->sock);
	room->pid = 0;
	room->greeted = false;
}

static void room_give_up(struct warden *w, const siginfo_t *info)
{
	bool refused = info->si_code == CLD_EXITED && info->si_status == WARDEN_EXIT_REFUSED;

	/* What it refused it has said itself. */
	w->result = fail_set(&w->fail, refused ? EINVAL : EIO, "server",
			     refused ? "the server will not run like this" :
				       "the server did not start");
	w->hooks.server_over(w);
}

static void room_on_pid(struct loop *l, struct source *source)
{
	struct warden *w = warden_of(l);
	struct room *room = &w->room;
	siginfo_t info = { 0 };
	bool restart = room->restart;

	(void)source;
	(void)waitid(P_PIDFD, (id_t)room->pidfd, &info, WEXITED | WNOHANG);
	room_ended(w);
	room->restart = false;
	if (w->phase != WARDEN_SERVING) {
		w->hooks.server_over(w);
		return;
	}
	if (!w->served && !restart) {
		room_give_up(w, &info);
		return;
	}
	if (restart) {
		timer_set(&w->loop, &room->timer, clock_boot_us());
		return;
	}
	if (clock_boot_us() - room->started_us > STEADY_US)
		room->backoff_us = 0;
	room->backoff_us = MIN(MAX(room->backoff_us * 2, BACKOFF_FIRST_US), BACKOFF_LAST_US);
	room_tell_end(&info, room->backoff_us);
	timer_set(&w->loop, &room->timer, clock_boot_us() + room->backoff_us);
}

/* Either it is time to start it, or it was asked to end and did not. */
static void room_on_timer(struct loop *l, struct timer *t)
{
	struct warden *w = warden_of(l);
	struct fail fail = { 0 };

	(void)t;
	if (w->room.pid) {
		(void)proc_kill(w->room.pidfd, SIGKILL);
	} else if (w->phase == WARDEN_SERVING && room_start(w, &fail) < 0) {
		say("%s", fail.msg);
		timer_set(&w->loop, &w->room.timer, clock_boot_us() + BACKOFF_LAST_US);
	}
}

int room_start(struct warden *w, struct fail *fail)
{
	struct room *room = &w->room;
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return fail_set(fail, -r, "server", "cannot make a socket: %s", strerror(-r));
	room->timer.due = room_on_timer;
	r = room_spawn(w, pair[1], fail);
	fd_close(pair[1]);
	if (r < 0) {
		fd_close(pair[0]);
		return r;
	}
	room->sock = pair[0];
	room->number++;
	room->refused = false;
	room->started_us = clock_boot_us();
	(void)fcntl(room->sock, F_SETFL, O_NONBLOCK);
	talk_open(w);
	r = source_add(&w->loop, &room->sock_source, room->sock, EPOLLIN, talk_ready);
	if (r == 0)
		r = source_add(&w->loop, &room->pid_source, room->pidfd, EPOLLIN, room_on_pid);
	if (r < 0) {
		(void)proc_kill(room->pidfd, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)room->pidfd, &(siginfo_t){ 0 }, WEXITED);
		room_ended(w);
		return fail_set(fail, -r, "server", "cannot watch the server: %s", strerror(-r));
	}
	return 0;
}

void room_greeted(struct warden *w)
{
	w->room.greeted = true;
	fd_closep(&w->room.previous_fd);
}

void room_stop(struct warden *w)
{
	if (!w->room.pid)
		return;
	(void)proc_kill(w->room.pidfd, SIGTERM);
	timer_set(&w->loop, &w->room.timer, clock_boot_us() + STOP_US);
}

void room_restart(struct warden *w)
{
	if (w->room.pid) {
		w->room.restart = true;
		room_stop(w);
	} else {
		timer_set(&w->loop, &w->room.timer, clock_boot_us());
	}
}

void room_kill(struct warden *w)
{
	if (w->room.pid)
		(void)proc_kill(w->room.pidfd, SIGKILL);
}

/* At the end of everything. */
void room_close(struct warden *w)
{
	if (w->room.pid) {
		room_kill(w);
		(void)waitid(P_PIDFD, (id_t)w->room.pidfd, &(siginfo_t){ 0 }, WEXITED);
		room_ended(w);
	}
	fd_closep(&w->room.program_fd);
	fd_closep(&w->room.previous_fd);
}

void room_refuse_version(struct warden *w)
{
	bool go_back = w->room.previous_fd >= 0;

	if (go_back) {
		fd_close(w->room.program_fd);
		w->room.program_fd = take_fd(&w->room.previous_fd);
	}
	room_refuse(w, go_back ? "it is of another version, for which the whole service has to be "
				 "started again; until then the one before goes on" :
				 "it is of another version");
}

void room_refuse(struct warden *w, const char *why)
{
	if (w->room.refused || !w->room.pid)
		return;
	say("the server is ended: %s", why);
	w->room.refused = true;
	source_remove(&w->loop, &w->room.sock_source);
	room_kill(w);
}
