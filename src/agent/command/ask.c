/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about commands that were started before: join, feed, tell, list. Each is answered
 * once. */
#include "agent/command/command.h"

#include "agent/loop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

static struct lister {
	int sock;
	bool used;
	size_t at; /* the slot of the table that comes next */
} listers[LISTERS_MAX];

/* A new socket takes a few small packets without waiting, so these never block. */
static void command_failed(int sock, int err)
{
	const struct wire_failed failed = { .step = WIRE_STEP_PROCESS,
					    .err = err < 0 ? -err : err };

	(void)!wire_send(sock, WIRE_FAILED, &failed, sizeof(failed));
	fd_close(sock);
}

static void command_answer(int sock, int r)
{
	if (r < 0) {
		command_failed(sock, r);
		return;
	}
	(void)!wire_send(sock, WIRE_DONE, NULL, 0);
	fd_close(sock);
}

void ask_attach(const struct wire_process *q, int sock)
{
	struct command *c = command_find(q->pid);
	const struct wire_process process = { .pid = q->pid };
	int r;

	if (!c) {
		command_failed(sock, ESRCH);
		return;
	}
	if (c->state == COMMAND_RUNNING) {
		r = follower_add(c, sock);
		if (r < 0)
			command_failed(sock, r);
		else
			follower_greet(c, sock);
		return;
	}
	/* It has ended. */
	if (wire_send(sock, WIRE_STARTED, &process, sizeof(process)) == 0)
		(void)!wire_send(sock, WIRE_EXIT, &c->exit, sizeof(c->exit));
	fd_close(sock);
}

void ask_input(const struct wire_input *q, int sock)
{
	struct command *c = command_find(q->pid);
	int r = 0;

	if (!c || c->state != COMMAND_RUNNING)
		r = -ESRCH;
	else if (q->kind != WIRE_INPUT_ANY && c->pty != (q->kind == WIRE_INPUT_PTY))
		r = -ENOTTY;
	else if (c->in_fd < 0 || c->close_input)
		r = -EPIPE;
	if (r == 0 && fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = writer_add(c, sock, false);
	if (r < 0)
		command_failed(sock, r);
}

static int tell_signal(struct command *c, int sig)
{
	/* These mean all of it: what else holds its output is not waited for. */
	if (sig == SIGKILL || sig == SIGTERM)
		command_hurry(c);
	command_signal(c, sig);
	return 0;
}

static int tell_close_input(struct command *c)
{
	if (c->pty)
		return -ENOTTY; /* a terminal has no end: ^D is input like any other */
	if (c->in_fd < 0 || c->close_input)
		return -EPIPE;
	input_close(c);
	return 0;
}

void ask_tell(const struct wire_tell *q, int sock)
{
	struct command *c = command_find(q->pid);
	int r = -ESRCH;

	if (c && c->state == COMMAND_RUNNING) {
		if (q->what == WIRE_TELL_SIGNAL)
			r = tell_signal(c, (int)q->signal);
		else if (q->what == WIRE_TELL_CLOSE_INPUT)
			r = tell_close_input(c);
		else
			r = c->pty && c->out_fd >= 0 ? pty_resize(c->out_fd, q->rows, q->cols) :
						       -ENOTTY;
	}
	command_answer(sock, r);
}

static void command_lister_end(struct lister *l)
{
	fd_closep(&l->sock);
	l->used = false;
}

/* Sends on until the socket is full. */
static void command_lister_run(struct lister *l)
{
	for (; l->at < COMMANDS_MAX; l->at++) {
		const struct command *c = command_at(l->at);
		const struct wire_process process = { .pid = (uint32_t)c->pid };
		size_t len = MIN(c->label_len, WIRE_DATA_MAX - sizeof(process));
		int r;

		if (c->state != COMMAND_RUNNING || c->cancelled)
			continue;
		r = wire_send2(l->sock, WIRE_PROCESS, &process, sizeof(process), c->label,
			       c->label ? len : 0);
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			command_lister_end(l);
			return;
		}
	}
	if (wire_send(l->sock, WIRE_DONE, NULL, 0) != -EAGAIN)
		command_lister_end(l);
}

static void command_lister_ready(void *object, short events)
{
	struct lister *l = object;

	if (!l->used)
		return;
	if (events & (POLLHUP | POLLERR))
		command_lister_end(l);
	else
		command_lister_run(l);
}

void listers_watch(void)
{
	for (size_t i = 0; i < LISTERS_MAX; i++)
		if (listers[i].used)
			loop_watch(listers[i].sock, POLLOUT, command_lister_ready, &listers[i]);
}

void ask_list(int sock)
{
	if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(sock);
		return;
	}
	for (size_t i = 0; i < LISTERS_MAX; i++) {
		if (listers[i].used)
			continue;
		listers[i] = (struct lister){ .sock = sock, .used = true };
		command_lister_run(&listers[i]);
		return;
	}
	command_failed(sock, EAGAIN);
}
