/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's half: it accepts, and forks a child for each sudo. The child runs as the box's root
 * in the cgroups of commands. Everything that comes on the connection is hostile; it passes
 * wire_check() and the bounds of request.h.
 */
#include "agent/sudo/sudo.h"

#include "agent/child.h"
#include "agent/helper.h"
#include "agent/loop.h"
#include "sys/payload.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#define REQUEST_SECONDS 10 /* how long a request may take to come */
#define BACKLOG 16
#define REST_US 1000000

static struct wire_frame frame;

static _noreturn_ void sudo_refuse(int conn, enum wire_step step, int err)
{
	const struct wire_failed failed = { .step = step, .err = err < 0 ? -err : err };

	(void)!wire_send(conn, WIRE_FAILED, &failed, sizeof(failed));
	_exit(1);
}

/* The box's user, and its root. A service's user that somebody broke into is neither. */
static int check_peer(int conn)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return peer.uid == 0 || peer.uid == PAYLOAD_USER ? 0 : -EPERM;
}

static int sudo_limit_waiting(int conn)
{
	const struct timeval t = { .tv_sec = REQUEST_SECONDS };

	if (setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
	    setsockopt(conn, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0)
		return -errno;
	return 0;
}

/* The streams, and then what to run. */
static int sudo_read_request(int conn, int fds[SUDO_FDS], bool *ret_tty, struct agent_request *q)
{
	size_t n_fds = SUDO_FDS;
	int r = wire_recv_fds(conn, &frame, WIRE_ON_SUDO, fds, &n_fds);

	if (r <= 0)
		return r < 0 ? r : -ECANCELED;
	if (frame.head.type != WIRE_SUDO || n_fds != SUDO_FDS)
		return -EPROTO;
	*ret_tty = ((const struct wire_sudo *)frame.data)->flags & WIRE_SUDO_TTY;
	q->label_fd = -EBADF;
	r = agent_request_read(conn, q);
	return r == 0 && !q->user[0] ? -EINVAL : r;
}

static pid_t sudo_start(const int fds[SUDO_FDS], bool tty, struct agent_request *q,
			const int status[2])
{
	struct agent_child child = {
		.request = agent_defaults.request,
		.tty = tty,
		.in_fd = fds[0],
		.out_fd = fds[1],
		.err_fd = fds[2],
		.status_fd = status[1],
	};
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	fd_close(status[0]);
	agent_unblock_signals();
	(void)setsid();
	agent_child_exec(&child, q);
}

/* Waits for exec, or for the reason why there was none. */
static void await_start(int conn, int status_fd, pid_t pid)
{
	const struct wire_process process = { .pid = (uint32_t)pid };
	int r = wire_recv(status_fd, &frame, WIRE_ON_FROM_OP);

	if (r == 1 && frame.head.type == WIRE_FAILED) {
		(void)!wire_send(conn, WIRE_FAILED, frame.data, wire_len(&frame));
		_exit(1);
	}
	if (wire_send(conn, WIRE_STARTED, &process, sizeof(process)) < 0)
		(void)kill(-pid, SIGKILL);
}

/* A signal to pass on; false when the connection is over. */
static bool read_signal(int conn, pid_t pid)
{
	int r = wire_recv(conn, &frame, WIRE_ON_SUDO);

	if (r == -EAGAIN)
		return true;
	if (r <= 0 || frame.head.type != WIRE_SIGNAL)
		return false;
	(void)kill(-pid, (int)((const struct wire_signal *)frame.data)->signal);
	return true;
}

static void pass_signals(int conn, int pidfd, pid_t pid)
{
	struct pollfd polls[] = {
		{ .fd = pidfd, .events = POLLIN },
		{ .fd = conn, .events = POLLIN },
	};

	for (;;) {
		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			_exit(1);
		if (polls[0].revents)
			return;
		if (polls[1].revents && !read_signal(conn, pid)) {
			/* Its sudo is gone, killed perhaps: what it started must not go on. */
			(void)kill(-pid, SIGKILL);
			polls[1].fd = -1;
		}
	}
}

static void send_exit(int conn, pid_t pid)
{
	struct wire_exit e = { .code = -1 };
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	if (WIFEXITED(status)) {
		e.code = WEXITSTATUS(status);
	} else {
		e.signal = WTERMSIG(status);
		e.core = WCOREDUMP(status) ? 1 : 0;
	}
	(void)!wire_send(conn, WIRE_EXIT, &e, sizeof(e));
}

static _noreturn_ void sudo_serve(int conn)
{
	static struct agent_request q;
	int fds[SUDO_FDS] = { -EBADF, -EBADF, -EBADF }, status[2] = { -EBADF, -EBADF }, pidfd;
	bool tty = false;
	pid_t pid;
	int r;

	(void)umask(022);
	r = helper_confine(conn);
	if (r == 0)
		r = sudo_limit_waiting(conn);
	if (r < 0)
		sudo_refuse(conn, WIRE_STEP_CGROUP, r);
	r = check_peer(conn);
	if (r < 0)
		sudo_refuse(conn, WIRE_STEP_USER, r);
	r = sudo_read_request(conn, fds, &tty, &q);
	if (r == 0)
		r = sock_pair(status);
	if (r < 0)
		sudo_refuse(conn, WIRE_STEP_REQUEST, r);
	pid = sudo_start(fds, tty, &q, status);
	pidfd = pid < 0 ? -EBADF : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		sudo_refuse(conn, WIRE_STEP_REQUEST, pid < 0 ? pid : errno);
	/* Its streams are the command's alone, or their readers would wait for us. */
	agent_keep_fds((const int[]){ conn, pidfd, status[0] }, 3);
	r = agent_keep_kill();
	if (r < 0) {
		(void)kill(pid, SIGKILL);
		sudo_refuse(conn, WIRE_STEP_DROP, r);
	}
	await_start(conn, status[0], pid);
	pass_signals(conn, pidfd, pid);
	send_exit(conn, pid);
	_exit(0);
}

/* --- in the agent itself --------------------------------------------------------------------- */

static int listen_fd = -EBADF;
static uint64_t rest_until_us; /* until then connections wait */

static int make_socket(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SUDO_SOCKET };
	_cleanup_(fd_closep) int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (mkdir(SUDO_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (unlink(SUDO_SOCKET) < 0 && errno != ENOENT)
		return -errno;
	/* Anybody may connect; who may ask is decided by who it is. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(SUDO_SOCKET, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

void sudo_open(void)
{
	/* A box whose /run is no good runs all the same: sudo says that it cannot connect. */
	if (agent_has_root())
		listen_fd = make_socket();
}

/* Of memory or descriptors, ours or everybody's. It passes. */
static bool is_want(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

static void sudo_ready(void *object, short events)
{
	_cleanup_(fd_closep) int conn = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	(void)object;
	(void)events;
	if (conn < 0) {
		if (is_want(errno))
			rest_until_us = loop_now() + REST_US;
		/* For anything that does not pass by itself: no sudo is better than no rest. */
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			fd_closep(&listen_fd);
		return;
	}
	/* Too many, or no memory: hanging up tells. */
	if (helper_fork(HELPER_SUDO) == 0)
		sudo_serve(take_fd(&conn));
}

void sudo_watch(void)
{
	if (listen_fd >= 0 && loop_now() < rest_until_us)
		loop_wake_at(rest_until_us);
	else
		loop_watch(listen_fd, POLLIN, sudo_ready, NULL);
}
