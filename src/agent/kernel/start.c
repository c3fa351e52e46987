/* SPDX-License-Identifier: Apache-2.0 */
/* Where kernels come from: started here as a command is, or forked outside and adopted. */
#include "agent/kernel/kernel.h"

#include "agent/child.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

/* [0] is the agent's end, [1] the kernel's. */
struct ends {
	int requests[2];
	int events[2];
	int out[2];
	int err[2];
	int status[2];
};

#define END_INIT                                                                                   \
	{                                                                                          \
		-EBADF, -EBADF                                                                     \
	}
#define ENDS_INIT                                                                                  \
	{                                                                                          \
		END_INIT, END_INIT, END_INIT, END_INIT, END_INIT                                   \
	}

static void ends_done(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		fd_closep(&e->requests[i]);
		fd_closep(&e->events[i]);
		fd_closep(&e->out[i]);
		fd_closep(&e->err[i]);
		fd_closep(&e->status[i]);
	}
}

/* All four belong to the user: some languages can only open /dev/fd/3 by its name. */
static int open_ends(const struct wire_exec *q, struct ends *e)
{
	int r = agent_pipe(q, &e->requests[1], &e->requests[0]);

	if (r == 0)
		r = agent_pipe(q, &e->events[0], &e->events[1]);
	if (r == 0)
		r = agent_pipe(q, &e->out[0], &e->out[1]);
	if (r == 0)
		r = agent_pipe(q, &e->err[0], &e->err[1]);
	return r < 0 ? r : sock_pair(e->status);
}

static pid_t fork_child(const struct wire_exec *q, const struct ends *e, int sock,
			const int *join_fds, size_t n_join)
{
	const struct agent_child child = {
		.request = *q,
		.own_stdio = true,
		.kernel = true,
		.in_fd = -EBADF,
		.out_fd = e->out[1],
		.err_fd = e->err[1],
		.requests_fd = e->requests[1],
		.events_fd = e->events[1],
		.status_fd = e->status[1],
	};
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		agent_child_run(&child, sock, join_fds, n_join);
	return pid;
}

/* From here on the pipes are the kernel's. None of them may make us wait. */
static void keep_pipes(struct kernel *k, const int fds[_WIRE_ADOPT_MAX])
{
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		(void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
	k->requests_fd = fds[WIRE_ADOPT_REQUESTS];
	k->events_fd = fds[WIRE_ADOPT_EVENTS];
	k->stream[CELL_OUT].fd = fds[WIRE_ADOPT_OUT];
	k->stream[CELL_ERR].fd = fds[WIRE_ADOPT_ERR];
	k->status_fd = fds[WIRE_ADOPT_STATUS];
}

void kernel_start(const struct wire_kernel *q, int sock, const int *join_fds, size_t n_join)
{
	_cleanup_(ends_done) struct ends ends = ENDS_INIT;
	struct kernel *k;
	pid_t pid;
	int r = kernel_new(&q->context, &k);

	if (r < 0) {
		kernel_failed(sock, WIRE_STEP_CONTEXT, r);
		return;
	}
	if (n_join == 0) {
		join_fds = agent_defaults.join_fds;
		n_join = agent_defaults.n_join;
	}
	agent_defaults.request = q->exec;
	r = open_ends(&q->exec, &ends);
	pid = r < 0 ? r : fork_child(&q->exec, &ends, sock, join_fds, n_join);
	if (pid < 0) {
		kernel_free(k);
		kernel_failed(sock, WIRE_STEP_REQUEST, pid);
		return;
	}
	keep_pipes(k, (const int[_WIRE_ADOPT_MAX]){
			      [WIRE_ADOPT_REQUESTS] = take_fd(&ends.requests[0]),
			      [WIRE_ADOPT_EVENTS] = take_fd(&ends.events[0]),
			      [WIRE_ADOPT_OUT] = take_fd(&ends.out[0]),
			      [WIRE_ADOPT_ERR] = take_fd(&ends.err[0]),
			      [WIRE_ADOPT_STATUS] = take_fd(&ends.status[0]),
		      });
	k->state = KERNEL_STARTING;
	k->pid = pid;
	k->child = true;
	k->starter = sock;
}

/* Nobody has used the one of that name yet, and a better one has come: it loses the name, and ends. */
static void make_way(const char *name)
{
	struct kernel *k = kernel_find(name);

	if (!k || k->child || k->begun || k->n_cells > 0)
		return;
	k->context.name[0] = '\0';
	kernel_kill(k);
}

/* Who is not wanted finds the end of its requests, and ends. */
void kernel_adopt(const struct wire_context *q, int fds[_WIRE_ADOPT_MAX])
{
	struct kernel *k;

	make_way(q->name);
	if (kernel_new(q, &k) == 0) {
		keep_pipes(k, fds);
		return;
	}
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		fd_close(fds[i]);
}

/* What our child says until it has executed. */
void kernel_read_status(struct kernel *k)
{
	static struct wire_frame f;
	const struct wire_process process = { .pid = (uint32_t)k->pid };
	int r = wire_recv(k->status_fd, &f, WIRE_ON_TO_OP | WIRE_ON_FROM_OP);

	if (r == -EAGAIN || (r == 1 && f.head.type == WIRE_LABEL))
		return;
	fd_closep(&k->status_fd);
	k->state = KERNEL_LOADING;
	if (r == 0) {
		(void)fcntl(k->starter, F_SETFL, O_NONBLOCK);
		(void)!wire_send(k->starter, WIRE_STARTED, &process, sizeof(process));
		return;
	}
	/* It says why it could not; the name is free when that is told. */
	if (r == 1 && f.head.type == WIRE_FAILED)
		memcpy(&k->why, f.data, sizeof(k->why));
	kernel_kill(k);
}

/* Whoever was to tell of its end is gone, and it is not: from now on its own descriptor tells, which cannot be read. */
static bool lives_on(struct kernel *k)
{
	_cleanup_(fd_closep) int fd = k->pid > 1 ? (int)syscall(SYS_pidfd_open, k->pid, 0) : -EBADF;
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd < 0 || poll(&ended, 1, 0) != 0)
		return false;
	fd_close(k->status_fd);
	k->status_fd = take_fd(&fd);
	return true;
}

/* How an adopted one ended, or only that it did: then nobody knows how. */
static void read_exit(struct kernel *k)
{
	struct wire_exit e;
	ssize_t n = read(k->status_fd, &e, sizeof(e));

	if ((n < 0 && (errno == EAGAIN || errno == EINTR)) || (n == 0 && lives_on(k)))
		return;
	if (n != (ssize_t)sizeof(e))
		e = (struct wire_exit){ .code = -1, .signal = k->killed ? SIGKILL : 0 };
	k->exit = e;
	k->alive = false;
	fd_closep(&k->status_fd);
}

void kernel_status_ready(void *object, short events)
{
	struct kernel *k = object;

	(void)events;
	/* Our own child's words are read by kernel_finish(), in every round. */
	if (!k->child && k->status_fd >= 0)
		read_exit(k);
}
