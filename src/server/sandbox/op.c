/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: the sockets on which the server talks with a box's agent, one for each command or
 * transfer. */
#include "server/sandbox/sandbox.h"

#include "sys/cgroup.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SEND_TIMEOUT_S 10

static void op_forget(struct op *op)
{
	struct sandbox *b = op->sandbox;

	pthread_mutex_lock(&b->lock);
	if (op->prev)
		op->prev->next = op->next;
	else
		b->ops = op->next;
	if (op->next)
		op->next->prev = op->prev;
	pthread_mutex_unlock(&b->lock);
}

/* With the lock held. */
static void op_insert(struct sandbox *b, struct op *op)
{
	op->prev = NULL;
	op->next = b->ops;
	if (b->ops)
		b->ops->prev = op;
	b->ops = op;
}

/*
 * From here on the operation is hung up with its sandbox. Returns a control descriptor of our own:
 * sending may take a while and must not be done under the lock, while the sandbox's own may be
 * closed by then.
 */
static int enlist(struct sandbox *b, struct op *op)
{
	int fd = -ENOTCONN;

	pthread_mutex_lock(&b->lock);
	if (b->info.state == STORE_RUNNING && b->control_fd >= 0) {
		fd = fcntl(b->control_fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			fd = -errno;
	}
	if (fd >= 0)
		op_insert(b, op);
	pthread_mutex_unlock(&b->lock);
	return fd;
}

int op_adopt(struct op *op, struct sandbox *b)
{
	bool running;

	pthread_mutex_lock(&b->lock);
	running = b->info.state == STORE_RUNNING;
	if (running)
		op_insert(b, op);
	pthread_mutex_unlock(&b->lock);
	if (!running)
		return -ENOTCONN;
	op->sandbox = b;
	sandbox_ref(b);
	return 0;
}

int op_make(struct op *ret)
{
	struct timeval tv = { .tv_sec = SEND_TIMEOUT_S };
	int pair[2];
	int r = sock_pair(pair);

	if (r < 0)
		return r;
	*ret = (struct op){ .sock = pair[0], .theirs = pair[1] };
	(void)setsockopt(ret->sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	return 0;
}

int op_give(struct op *op, struct sandbox *b, enum wire_type type, const void *data, size_t len)
{
	_cleanup_(fd_closep) int control = -EBADF, theirs = take_fd(&op->theirs);
	int r;

	op->sandbox = b;
	control = enlist(b, op);
	if (control < 0) {
		op->sandbox = NULL;
		op_close(op);
		return control;
	}
	sandbox_ref(b);
	r = wire_send_fds(control, type, data, len, &theirs, 1);
	if (r < 0)
		op_close(op);
	return r == -EPIPE ? -ENOTCONN : r;
}

int op_open(struct sandbox *b, enum wire_type type, const void *data, size_t len, struct op *ret)
{
	int r = op_make(ret);

	return r < 0 ? r : op_give(ret, b, type, data, len);
}

void op_close(struct op *op)
{
	if (op->sock < 0)
		return;
	if (op->sandbox)
		op_forget(op);
	fd_closep(&op->sock);
	fd_closep(&op->theirs);
	sandbox_putp(&op->sandbox);
}

void exec_limits(const struct isolation *has, const struct warden_limits *limits,
		 struct wire_exec *q)
{
	if (!(has->cgroup_features & CGROUP_MEMORY))
		q->data_max = limits->memory_bytes;
	if (!(has->cgroup_features & CGROUP_PIDS))
		q->nproc_max = limits->pids;
}

void sandbox_exec_limits(struct sandbox *b, struct wire_exec *q)
{
	struct isolation has;

	pthread_mutex_lock(&b->lock);
	has = b->isolation;
	pthread_mutex_unlock(&b->lock);
	exec_limits(&has, &b->limits, q);
}
