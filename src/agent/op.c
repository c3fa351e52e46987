/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that run: a fixed table. Each has its own socket to the host and at most one packet
 * waiting in each direction; while one waits, its source is not read, so a slow reader slows its own
 * command and nobody else.
 */
#include "agent/agent.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/wait.h>

#define DRAIN_US 250000 /* how long output may still come after a command's own end */

struct op {
	pid_t pid; /* 0: the slot is free, -1: the process is gone */
	bool alone;
	bool last;
	bool started;
	bool cancelled;
	uint64_t ended_us;
	struct wire_exit exit;
	int sock;
	int in_fd;
	int out_fd;
	int err_fd;
	int status_fd;
	bool in_end;
	size_t in_at, in_len;    /* bytes of in_data still to write to the command */
	enum wire_type out_type; /* what waits to be sent to the host */
	size_t out_len;
	unsigned char in_data[WIRE_DATA_MAX];
	unsigned char out_data[WIRE_DATA_MAX];
};

static struct op ops[AGENT_OPS_MAX];

static void op_free(struct op *op)
{
	fd_closep(&op->sock);
	fd_closep(&op->in_fd);
	fd_closep(&op->out_fd);
	fd_closep(&op->err_fd);
	fd_closep(&op->status_fd);
	op->pid = 0;
}

static struct op *op_new(void)
{
	for (size_t i = 0; i < AGENT_OPS_MAX; i++) {
		struct op *op = &ops[i];

		if (op->pid)
			continue;
		/* Not the whole struct: that would touch 128 KiB of data for each command. */
		op->pid = -1;
		op->alone = op->last = op->started = op->cancelled = op->in_end = false;
		op->ended_us = 0;
		op->sock = op->in_fd = op->out_fd = op->err_fd = op->status_fd = -EBADF;
		op->in_at = op->in_len = op->out_len = 0;
		return op;
	}
	return NULL;
}

static void kill_everything(void)
{
	/* From pid 1 this is everybody else in the box, in one step that no fork can outrun. */
	(void)kill(-1, SIGKILL);
}

/* The host hung up: the command is not wanted any more. */
static void op_cancel(struct op *op)
{
	op->cancelled = true;
	if (op->alone) {
		kill_everything();
	} else if (op->pid > 0) {
		(void)kill(-op->pid, SIGKILL);
		(void)kill(op->pid, SIGKILL);
	}
	fd_closep(&op->in_fd);
	fd_closep(&op->out_fd);
	fd_closep(&op->err_fd);
	fd_closep(&op->sock);
}

/* Sends what waits; false when it still waits. */
static bool op_flush(struct op *op)
{
	int r;

	if (!op->out_len)
		return true;
	r = wire_send(op->sock, op->out_type, op->out_data, op->out_len);
	if (r == -EAGAIN)
		return false;
	op->out_len = 0;
	if (r < 0)
		op_cancel(op);
	return true;
}

static void op_read_output(struct op *op, int *fd, enum wire_type type)
{
	ssize_t n;

	if (op->out_len)
		return;
	n = read(*fd, op->out_data, sizeof(op->out_data));
	if (n > 0) {
		op->out_type = type;
		op->out_len = (size_t)n;
		(void)op_flush(op);
	} else if (n == 0) {
		fd_closep(fd);
	} else if (errno != EAGAIN && errno != EINTR) {
		op_cancel(op); /* output must not get lost unnoticed */
	}
}

static void op_write_input(struct op *op)
{
	while (op->in_at < op->in_len) {
		ssize_t n = write(op->in_fd, op->in_data + op->in_at, op->in_len - op->in_at);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			fd_closep(&op->in_fd); /* nobody reads it */
			break;
		}
		op->in_at += (size_t)n;
	}
	op->in_at = op->in_len = 0;
	if (op->in_end)
		fd_closep(&op->in_fd);
}

static void op_read_host(struct op *op)
{
	static struct wire_frame f;
	int r = wire_recv(op->sock, &f, WIRE_ON_TO_OP);

	if (r == -EAGAIN)
		return;
	if (r <= 0 || op->in_end || (f.head.type != WIRE_IN && f.head.type != WIRE_IN_END)) {
		op_cancel(op);
		return;
	}
	if (op->in_fd < 0)
		return; /* the command closed its input: the rest of it goes nowhere */
	if (f.head.type == WIRE_IN_END) {
		op->in_end = true;
	} else {
		memcpy(op->in_data, f.data, wire_len(&f));
		op->in_at = 0;
		op->in_len = wire_len(&f);
	}
	op_write_input(op);
}

/* The child has executed (its end of the pipe is closed) or says why it could not. */
static void op_read_status(struct op *op)
{
	struct wire_failed failed;
	ssize_t n = read(op->status_fd, &failed, sizeof(failed));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	fd_closep(&op->status_fd);
	if (n == (ssize_t)sizeof(failed)) {
		(void)!wire_send(op->sock, WIRE_FAILED, &failed, sizeof(failed));
		op_cancel(op);
		return;
	}
	op->started = true;
	/* From here on only we read and write this end; the child has closed its copy. */
	(void)fcntl(op->sock, F_SETFL, O_NONBLOCK);
	if (wire_send(op->sock, WIRE_STARTED, NULL, 0) < 0)
		op_cancel(op);
}

static void op_finish(struct op *op)
{
	if (op->pid > 0)
		return;
	if (op->cancelled) {
		if (op->status_fd < 0)
			op_free(op);
		return;
	}
	if (op->status_fd >= 0 || !op_flush(op) || op->cancelled)
		return;
	if (op->out_fd >= 0 || op->err_fd >= 0) {
		if (op->alone) {
			kill_everything();
			return;
		}
		if (clock_boot_us() - op->ended_us < DRAIN_US)
			return;
	}
	if (wire_send(op->sock, WIRE_EXIT, &op->exit, sizeof(op->exit)) == -EAGAIN)
		return;
	if (op->last)
		_exit(0); /* the kernel starts to take the box apart while the host reads the counters */
	op_free(op);
}

void agent_reap(void)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 && errno != ECHILD)
			_exit(1); /* the host must not wait for an end that we missed */
		if (pid <= 0)
			return;
		for (size_t i = 0; i < AGENT_OPS_MAX; i++) {
			struct op *op = &ops[i];

			if (op->pid != pid)
				continue;
			op->pid = -1;
			op->ended_us = clock_boot_us();
			op->exit = (struct wire_exit){ .code = -1 };
			if (WIFEXITED(status)) {
				op->exit.code = WEXITSTATUS(status);
			} else {
				op->exit.signal = WTERMSIG(status);
				op->exit.core = WCOREDUMP(status) ? 1 : 0;
			}
			if (op->alone && !op->cancelled)
				kill_everything();
		}
	}
}

/* A pipe that belongs to the user, so that /dev/stdout and /dev/stderr can be opened by name. */
static int user_pipe(uint32_t uid, uint32_t gid, int ret[2])
{
	int r;

	(void)setfsgid(gid);
	(void)setfsuid(uid);
	r = pipe2(ret, O_CLOEXEC) < 0 ? -errno : 0;
	(void)setfsuid(getuid());
	(void)setfsgid(getgid());
	return r;
}

int agent_exec(const struct wire_exec *request, int sock, const int *join_fds, size_t n_join)
{
	struct agent_child c = {
		.request = *request,
		.sock = sock,
		.in_fd = -EBADF,
		.join_fds = join_fds,
		.n_join = n_join,
	};
	int in[2] = { -EBADF, -EBADF }, out[2] = { -EBADF, -EBADF }, err[2] = { -EBADF, -EBADF },
	    status[2] = { -EBADF, -EBADF };
	struct op *op = op_new();
	int r = op ? 0 : -EBUSY;
	pid_t pid = -1;

	if (r == 0 && (request->flags & ~WIRE_EXEC_FLAGS))
		r = -EINVAL;
	if (r == 0 && (request->flags & WIRE_EXEC_STDIN))
		r = user_pipe(request->uid, request->gid, in);
	if (r == 0)
		r = user_pipe(request->uid, request->gid, out);
	if (r == 0)
		r = user_pipe(request->uid, request->gid, err);
	if (r == 0)
		r = pipe2(status, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0) {
		pid = fork();
		r = pid < 0 ? -errno : 0;
	}
	if (pid == 0) {
		c.in_fd = in[0];
		c.out_fd = out[1];
		c.err_fd = err[1];
		c.status_fd = status[1];
		agent_child_run(&c);
	}
	fd_close(in[0]);
	fd_close(out[1]);
	fd_close(err[1]);
	fd_close(status[1]);
	if (r < 0) {
		fd_close(in[1]);
		fd_close(out[0]);
		fd_close(err[0]);
		fd_close(status[0]);
		if (op)
			op->pid = 0;
		return r;
	}
	op->pid = pid;
	op->alone = request->flags & WIRE_EXEC_ALONE;
	op->last = request->flags & WIRE_EXEC_LAST;
	op->sock = sock;
	op->in_fd = in[1];
	op->out_fd = out[0];
	op->err_fd = err[0];
	op->status_fd = status[0];
	(void)fcntl(op->out_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(op->err_fd, F_SETFL, O_NONBLOCK);
	if (op->in_fd >= 0)
		(void)fcntl(op->in_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

/* What each command waits for. Closed descriptors are negative, which poll() ignores. */
enum { WAIT_SOCK, WAIT_IN, WAIT_OUT, WAIT_ERR, WAIT_STATUS, _WAIT_MAX };
_Static_assert(_WAIT_MAX == AGENT_POLLS_PER_OP, "one entry each");

static void op_prepare(const struct op *op, struct pollfd *p)
{
	bool reads_host = op->started && !op->in_len && !op->in_end;

	p[WAIT_SOCK].fd = op->started ? op->sock : -1;
	p[WAIT_SOCK].events = (short)((op->out_len ? POLLOUT : 0) | (reads_host ? POLLIN : 0));
	p[WAIT_IN].fd = op->in_len ? op->in_fd : -1;
	p[WAIT_IN].events = POLLOUT;
	p[WAIT_OUT].fd = op->out_len ? -1 : op->out_fd;
	p[WAIT_ERR].fd = op->out_len ? -1 : op->err_fd;
	p[WAIT_STATUS].fd = op->status_fd;
	p[WAIT_OUT].events = p[WAIT_ERR].events = p[WAIT_STATUS].events = POLLIN;
}

static void op_handle(struct op *op, const struct pollfd *p)
{
	if (p[WAIT_STATUS].revents)
		op_read_status(op);
	if (p[WAIT_SOCK].revents & POLLOUT)
		(void)op_flush(op);
	if (op->sock >= 0 && (p[WAIT_SOCK].revents & (POLLIN | POLLHUP | POLLERR)))
		op_read_host(op);
	if (op->in_fd >= 0 && p[WAIT_IN].revents)
		op_write_input(op);
	if (op->started && op->out_fd >= 0 && p[WAIT_OUT].revents)
		op_read_output(op, &op->out_fd, WIRE_OUT);
	if (op->started && op->err_fd >= 0 && p[WAIT_ERR].revents)
		op_read_output(op, &op->err_fd, WIRE_ERR);
}

size_t agent_poll_prepare(struct pollfd *polls, size_t *ret_used, bool *ret_draining)
{
	size_t n = 0;

	*ret_draining = false;
	for (size_t i = 0; i < AGENT_OPS_MAX; i++) {
		if (!ops[i].pid)
			continue;
		op_prepare(&ops[i], polls + n * AGENT_POLLS_PER_OP);
		*ret_draining |= ops[i].pid < 0;
		ret_used[n++] = i;
	}
	return n;
}

void agent_poll_handle(const struct pollfd *polls, const size_t *used, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		op_handle(&ops[used[i]], polls + i * AGENT_POLLS_PER_OP);
		op_finish(&ops[used[i]]);
	}
}
