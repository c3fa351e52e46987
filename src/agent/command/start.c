/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command: its pipes or terminal, the fork or the runner, and what the child says until
 * it has executed. */
#include "agent/command/command.h"

#include "agent/child.h"
#include "base/clock.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* [0] is the agent's end, [1] the command's. */
struct command_ends {
	int in[2];
	int out[2];
	int err[2];
	int status[2];
};

#define ENDS_INIT                                                                                  \
	{                                                                                          \
		{ -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF },                        \
		{                                                                                  \
			-EBADF, -EBADF                                                             \
		}                                                                                  \
	}

static void ends_close(struct command_ends *e, int which)
{
	fd_closep(&e->in[which]);
	fd_closep(&e->out[which]);
	fd_closep(&e->err[which]);
	fd_closep(&e->status[which]);
}

static void ends_done(struct command_ends *e)
{
	ends_close(e, 0);
	ends_close(e, 1);
}

int pty_resize(int fd, uint16_t rows, uint16_t cols)
{
	const struct winsize size = { .ws_row = rows, .ws_col = cols };

	return ioctl(fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* A terminal whose slave belongs to the user. */
static int pty_open(uint32_t uid, uint32_t gid, uint16_t rows, uint16_t cols, int *ret_master,
		    int *ret_slave)
{
	_cleanup_(fd_closep) int master = -EBADF;
	int unlocked = 0, slave, r;

	/* The new node belongs to the user that opens the multiplexer, as far as files are
	 * concerned. */
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	r = master < 0 ? -errno : 0;
	(void)setfsuid(getuid());
	(void)setfsgid(getgid());
	/* Which made the kernel forget that we die with the process that made the box, also when we
	 * are frozen. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r < 0)
		return r;
	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	/* Not by its path, which somebody in the box could have put something else at. */
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	r = pty_resize(master, rows, cols);
	if (r < 0) {
		fd_close(slave);
		return r;
	}
	*ret_master = take_fd(&master);
	*ret_slave = slave;
	return 0;
}

static int open_pipes(const struct wire_exec *q, struct command_ends *e)
{
	int r = 0;

	if (q->flags & WIRE_EXEC_STDIN)
		r = agent_pipe(q, &e->in[1], &e->in[0]);
	if (r == 0)
		r = agent_pipe(q, &e->out[0], &e->out[1]);
	return r < 0 ? r : agent_pipe(q, &e->err[0], &e->err[1]);
}

static int command_open_terminal(const struct wire_exec *q, struct command_ends *e)
{
	int r = pty_open(q->uid, q->gid, q->rows, q->cols, &e->out[0], &e->out[1]);

	if (r < 0)
		return r;
	/* The same descriptions again, so that each direction can be closed by itself. */
	e->in[0] = fcntl(e->out[0], F_DUPFD_CLOEXEC, 3);
	e->in[1] = fcntl(e->out[1], F_DUPFD_CLOEXEC, 3);
	e->err[1] = fcntl(e->out[1], F_DUPFD_CLOEXEC, 3);
	return e->in[0] < 0 || e->in[1] < 0 || e->err[1] < 0 ? -errno : 0;
}

static int unblock(int fd)
{
	return fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_ends(const struct wire_exec *q, struct command_ends *e)
{
	int r = q->flags & WIRE_EXEC_PTY ? command_open_terminal(q, e) : open_pipes(q, e);

	if (r == 0)
		r = sock_pair(e->status);
	if (r == 0)
		r = unblock(e->in[0]);
	if (r == 0)
		r = unblock(e->out[0]);
	if (r == 0)
		r = unblock(e->err[0]);
	return r < 0 ? r : unblock(e->status[0]);
}

static pid_t fork_child(const struct wire_exec *q, const struct command_ends *e, int sock,
			const int *join_fds, size_t n_join)
{
	const struct agent_child child = {
		.request = *q,
		.tty = q->flags & WIRE_EXEC_PTY,
		.own_stdio = true,
		.in_fd = e->in[1],
		.out_fd = e->out[1],
		.err_fd = e->err[1],
		.status_fd = e->status[1],
	};
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		agent_child_run(&child, sock, join_fds, n_join);
	return pid;
}

/* --- a runner -------------------------------------------------------------------------------- */

/*
 * A runner was forked outside, from an interpreter that is loaded, and has walked into the box. It
 * is our child, sealed and in the cgroup of commands as any of them, has run nothing foreign, and
 * waits for us to hand it what a command gets. It becomes the command, or executes it where it is
 * not what it was loaded for; there is one at most.
 */
/* How long it is waited for. It was sent before the host has heard of the box, so it is here, or
 * nearly; or something is wrong with it, and it is quicker to execute. Nothing else has to be done
 * in the box meanwhile. */
#define COME_MS 250

static int runner_sock = -EBADF;

void runner_keep(int sock)
{
	fd_close(runner_sock);
	runner_sock = sock;
}

/* It says who it is, in the box's own numbers. */
static pid_t runner_await(int sock)
{
	static struct wire_frame f;
	const struct wire_process *who = (const struct wire_process *)f.data;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int r = poll(&p, 1, COME_MS) == 1 ? wire_recv(sock, &f, WIRE_ON_FROM_OP) : -ETIMEDOUT;

	if (r < 0)
		return r;
	return r == 1 && f.head.type == WIRE_STARTED && who->pid > 1 && who->pid <= INT32_MAX ?
		       (pid_t)who->pid :
		       -EPROTO;
}

/* It becomes this one: its pid. Negative: there is none, or it has not come, and the command is
 * forked. */
static pid_t runner_take(const struct wire_exec *q, const int fds[_WIRE_RUNNER_MAX])
{
	/* Whatever comes of it, this was its chance: one that is not wanted sees its socket close,
	 * and ends. */
	_cleanup_(fd_closep) int sock = take_fd(&runner_sock);
	size_t n = q->flags & WIRE_EXEC_STDIN ? _WIRE_RUNNER_MAX : WIRE_RUNNER_IN;
	pid_t pid = sock < 0 ? -ENOENT : runner_await(sock);
	int r = pid < 0 ? pid : wire_send_fds(sock, WIRE_EXEC, q, sizeof(*q), fds, n);

	return r < 0 ? r : pid;
}

/* A runner is in the cgroups that commands join which bring none of their own. */
static pid_t hand_over(const struct wire_exec *q, const struct command_ends *e, int sock,
		       size_t n_join)
{
	const int fds[_WIRE_RUNNER_MAX] = {
		[WIRE_RUNNER_OP] = sock,       [WIRE_RUNNER_STATUS] = e->status[1],
		[WIRE_RUNNER_OUT] = e->out[1], [WIRE_RUNNER_ERR] = e->err[1],
		[WIRE_RUNNER_IN] = e->in[1],
	};

	return (q->flags & WIRE_EXEC_RUNNER) && n_join == 0 ? runner_take(q, fds) : -ENOENT;
}

int command_start(const struct wire_exec *q, int sock, const int *join_fds, size_t n_join)
{
	_cleanup_(ends_done) struct command_ends ends = ENDS_INIT;
	struct command *c;
	pid_t pid;
	int r = open_ends(q, &ends);

	if (r < 0)
		return r;
	c = command_new();
	if (!c)
		return -EAGAIN;
	pid = hand_over(q, &ends, sock, n_join);
	if (n_join == 0) {
		join_fds = agent_defaults.join_fds;
		n_join = agent_defaults.n_join;
	}
	agent_defaults.request = *q;
	if (pid < 0)
		pid = fork_child(q, &ends, sock, join_fds, n_join);
	if (pid < 0) {
		command_free(c);
		return pid;
	}
	c->pid = pid;
	c->alive = true;
	c->alone = q->flags & WIRE_EXEC_ALONE;
	c->last = q->flags & WIRE_EXEC_LAST;
	c->keep = q->flags & WIRE_EXEC_KEEP;
	c->pty = q->flags & WIRE_EXEC_PTY;
	c->wants_input = q->flags & WIRE_EXEC_STDIN;
	if (q->timeout_ms)
		c->deadline_us = clock_boot_us() + MIN(q->timeout_ms, TIMEOUT_MAX_MS) * 1000;
	c->follower[0].sock = sock;
	c->in_fd = take_fd(&ends.in[0]);
	c->out_fd = take_fd(&ends.out[0]);
	c->err_fd = take_fd(&ends.err[0]);
	c->status_fd = take_fd(&ends.status[0]);
	return 0;
}

static void keep_label(struct command *c, const struct wire_frame *f)
{
	size_t len = wire_len(f);
	unsigned char *label = malloc(len + 1); /* none is a label too */

	if (!label)
		return; /* a list without it is better than no command */
	memcpy(label, f->data, len);
	freep(&c->label);
	c->label = label;
	c->label_len = len;
}

/* It has executed: from here on only we read and write the socket. */
static void command_started(struct command *c)
{
	const struct wire_process process = { .pid = (uint32_t)c->pid, .forked = c->forked };
	int sock = c->follower[0].sock;

	c->state = COMMAND_RUNNING;
	(void)fcntl(sock, F_SETFL, O_NONBLOCK);
	if (c->wants_input && writer_add(c, sock, true) < 0)
		fd_closep(&c->in_fd); /* its input ends at once: better than never */
	followers_offer(c, WIRE_STARTED, &process, sizeof(process));
}

void command_status_ready(void *object, short events)
{
	static struct wire_frame f;
	struct command *c = object;
	int r;

	(void)events;
	if (c->status_fd < 0)
		return;
	r = wire_recv(c->status_fd, &f, WIRE_ON_TO_OP | WIRE_ON_FROM_OP);
	if (r == -EAGAIN)
		return;
	if (r == 1 && f.head.type == WIRE_LABEL) {
		keep_label(c, &f);
		return;
	}
	if (r == 1 && f.head.type == WIRE_STARTED) { /* a runner; it closes the socket next */
		c->forked = true;
		return;
	}
	fd_closep(&c->status_fd);
	if (c->cancelled)
		return;
	if (r == 0) {
		command_started(c);
		return;
	}
	/* It says why it could not. */
	followers_offer(c, WIRE_FAILED, f.data, wire_len(&f));
	c->keep = false;
	command_cancel(c);
}
