/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's process: its own user, no capabilities, nothing inherited but the descriptors it needs. It may
 * die at any time; boxes go on and the next one is told of them.
 */
#include "warden/warden_priv.h"

#include "base/clock.h"
#include "service/program.h"
#include "sys/proc.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define STOP_US (UINT64_C(2) * 1000000)
#define BACKOFF_FIRST_US 100000
#define BACKOFF_LAST_US 5000000
#define STEADY_US (UINT64_C(30) * 1000000) /* a server that ran so long may start again at once */
#define ABOVE_FDS 16                       /* out of the way of the numbers that are given out */
#define CAN_NOT_START 127

int room_find(struct warden *w, const char *program, struct fail *fail)
{
	char path[PATH_MAX];
	int fd, r = 0;

	if (!program)
		r = program_find("server", "glovebox-server", path, sizeof(path));
	if (r < 0)
		return fail_set(fail, -r, "server",
				"there is no glovebox-server beside this program; is glovebox "
				"installed completely?");
	fd = open(program ? program : path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return fail_set(fail, errno, "server", "cannot use %s as the server: %s",
				program ? program : path, strerror(errno));
	fd_close(w->room.program_fd);
	w->room.program_fd = fd;
	return 0;
}

/* "--section.key=value" for each setting: the server needs no file of its own. */
static char **make_argv(const struct config *c)
{
	size_t n = config_count();
	char **argv = calloc(n + 2, sizeof(*argv));
	bool ok = argv && (argv[0] = strdup("glovebox-server"));

	for (size_t i = 0; ok && i < n; i++) {
		char value[CONFIG_TEXT_SIZE];

		ok = config_text(c, i, value, sizeof(value)) == 0 &&
		     asprintf(&argv[i + 1], "--%s=%s", config_name(i), value) >= 0;
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

/* Puts the descriptors at their numbers; everything else closes with exec. */
static int give_fds(const int *fds, size_t n)
{
	int moved[8];

	for (size_t i = 0; i < n; i++) {
		moved[i] = fds[i] < 0 ? -EBADF : fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE_FDS);
		if (fds[i] >= 0 && moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (moved[i] >= 0 && dup2(moved[i], WARDEN_SERVER_FD + (int)i) < 0)
			return -errno;
	for (size_t i = 0; i < n; i++)
		if (moved[i] < 0)
			(void)close(WARDEN_SERVER_FD + (int)i);
	return syscall(SYS_close_range, WARDEN_SERVER_FD + (unsigned)n, ~0U, CLOSE_RANGE_CLOEXEC) <
			       0 ?
		       -errno :
		       0;
}

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_SETFCAP ? 0 : -errno; /* the last one */
	return 0;
}

/* No user of power, no capability in any set, none to be had (AP-18). */
static int drop_privileges(const struct state *state)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r = 0;

	if (geteuid() == 0) {
		if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
			return -errno;
		r = drop_bounding_set();
		if (r == 0 &&
		    (setgroups(0, NULL) < 0 || setresgid(state->gid, state->gid, state->gid) < 0 ||
		     setresuid(state->uid, state->uid, state->uid) < 0))
			r = -errno;
	}
	if (r == 0 && syscall(SYS_capset, &head, none) < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

static _noreturn_ void become_server(struct warden *w, pid_t parent, const int *fds, size_t n_fds,
				     char **argv)
{
	/* Of ours only where the language files are, if somebody said so. */
	const char *languages = getenv("GLOVEBOX_LANGUAGES");
	char languages_text[PATH_MAX + 32];
	char *env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "LANG=C.UTF-8" },
			languages && *languages ? languages_text : NULL, NULL };
	int program_fd = fcntl(w->room.program_fd, F_DUPFD_CLOEXEC, ABOVE_FDS);
	int r = program_fd < 0 ? -errno : give_fds(fds, n_fds);

	(void)snprintf(languages_text, sizeof(languages_text), "GLOVEBOX_LANGUAGES=%s",
		       languages ? languages : "");
	reset_signals();
	(void)setsid();
	(void)umask(077);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	if (r == 0)
		r = drop_privileges(&w->state);
	/* After the last change of user, which would undo it. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && getppid() != parent)
		_exit(0);
	if (r == 0) {
		(void)syscall(SYS_execveat, program_fd, "", argv, env, AT_EMPTY_PATH);
		r = -errno;
	}
	say("cannot start the server: %s", strerror(-r));
	_exit(CAN_NOT_START);
}

static int spawn(struct warden *w, int sock, struct fail *fail)
{
	_cleanup_(fd_closep) int cert_fd = open_secret(w->config->server_tls_cert);
	_cleanup_(fd_closep) int key_fd = open_secret(w->config->server_tls_key);
	_cleanup_(argv_freep) char **argv = make_argv(w->config);
	const int fds[] = { sock, w->listen_fd, w->state.db_fd, cert_fd, key_fd };
	pid_t parent = getpid(), pid;
	int pidfd = -EBADF;

	_Static_assert(WARDEN_TLS_KEY_FD - WARDEN_SERVER_FD + 1 == ARRAY_SIZE(fds), "by number");
	if (!argv)
		return fail_set(fail, ENOMEM, "server", "out of memory");
	if ((cert_fd < 0 && cert_fd != -EBADF) || (key_fd < 0 && key_fd != -EBADF))
		return fail_set(fail, cert_fd < 0 ? -cert_fd : -key_fd, "server",
				"cannot read the TLS certificate or its key");
	pid = proc_clone(0, -EBADF, &pidfd);
	if (pid == 0)
		become_server(w, parent, fds, ARRAY_SIZE(fds), argv);
	if (pid < 0)
		return fail_set(fail, -pid, "server", "cannot start the server: %s",
				strerror(-pid));
	w->room.pid = pid;
	w->room.pidfd = pidfd;
	return 0;
}

/* Why did it end? For people. */
static void tell_end(const siginfo_t *info, uint64_t again_us)
{
	bool exited = info->si_code == CLD_EXITED;

	say("the server %s %d; boxes go on, it starts again in %llu ms",
	    exited ? "ended with status" : "was killed by signal", info->si_status,
	    (unsigned long long)(again_us / 1000));
}

static void close_room(struct warden *w)
{
	struct room *room = &w->room;

	watch_remove(w, &room->pid_watch);
	watch_remove(w, &room->sock_watch);
	timer_clear(w, &room->timer);
	talk_close(w);
	fd_closep(&room->pidfd);
	fd_closep(&room->sock);
	room->pid = 0;
	room->greeted = false;
}

static void give_up(struct warden *w, const siginfo_t *info)
{
	bool refused = info->si_code == CLD_EXITED && info->si_status == WARDEN_EXIT_REFUSED;

	/* What it refused it has said itself. */
	w->result = fail_set(&w->fail, refused ? EINVAL : EIO, "server",
			     refused ? "the server will not run like this" :
				       "the server did not start");
	warden_stop(w);
}

static void on_pid(struct warden *w, struct watch *watch)
{
	struct room *room = &w->room;
	siginfo_t info = { 0 };
	bool restart = room->restart;

	(void)watch;
	(void)waitid(P_PIDFD, (id_t)room->pidfd, &info, WEXITED | WNOHANG);
	close_room(w);
	room->restart = false;
	if (w->phase != WARDEN_SERVING) {
		warden_stop(w);
		return;
	}
	if (!w->served) {
		give_up(w, &info);
		return;
	}
	if (restart) {
		timer_set(w, &room->timer, clock_boot_us());
		return;
	}
	if (clock_boot_us() - room->started_us > STEADY_US)
		room->backoff_us = 0;
	room->backoff_us = MIN(MAX(room->backoff_us * 2, BACKOFF_FIRST_US), BACKOFF_LAST_US);
	tell_end(&info, room->backoff_us);
	timer_set(w, &room->timer, clock_boot_us() + room->backoff_us);
}

/* Either it is time to start it, or it was asked to end and did not. */
static void on_timer(struct warden *w, struct timer *t)
{
	struct fail fail = { 0 };

	(void)t;
	if (w->room.pid) {
		(void)proc_kill(w->room.pidfd, SIGKILL);
	} else if (w->phase == WARDEN_SERVING && room_start(w, &fail) < 0) {
		say("%s", fail.msg);
		timer_set(w, &w->room.timer, clock_boot_us() + BACKOFF_LAST_US);
	}
}

int room_start(struct warden *w, struct fail *fail)
{
	struct room *room = &w->room;
	int pair[2], r = sock_pair(pair);

	if (r < 0)
		return fail_set(fail, -r, "server", "cannot make a socket: %s", strerror(-r));
	room->timer.due = on_timer;
	r = spawn(w, pair[1], fail);
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
	r = watch_add(w, &room->sock_watch, room->sock, talk_ready);
	if (r == 0)
		r = watch_add(w, &room->pid_watch, room->pidfd, on_pid);
	if (r < 0) {
		(void)proc_kill(room->pidfd, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)room->pidfd, &(siginfo_t){ 0 }, WEXITED);
		close_room(w);
		return fail_set(fail, -r, "server", "cannot watch the server: %s", strerror(-r));
	}
	return 0;
}

void room_greeted(struct warden *w)
{
	w->room.greeted = true;
	warden_served(w);
}

void room_stop(struct warden *w)
{
	if (!w->room.pid)
		return;
	(void)proc_kill(w->room.pidfd, SIGTERM);
	timer_set(w, &w->room.timer, clock_boot_us() + STOP_US);
}

void room_restart(struct warden *w)
{
	if (w->room.pid) {
		w->room.restart = true;
		room_stop(w);
	} else {
		timer_set(w, &w->room.timer, clock_boot_us());
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
		close_room(w);
	}
	fd_closep(&w->room.program_fd);
}

void room_refuse(struct warden *w, const char *why)
{
	if (w->room.refused || !w->room.pid)
		return;
	say("the server is ended: %s", why);
	w->room.refused = true;
	watch_remove(w, &w->room.sock_watch);
	room_kill(w);
}
