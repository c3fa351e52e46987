/* SPDX-License-Identifier: Apache-2.0 */
/* From a command's pipes to its followers. */
#include "agent/command/command.h"

#include "agent/loop.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

bool followers_any(const struct command *c)
{
	for (size_t i = 0; i < FOLLOWERS_MAX; i++)
		if (c->follower[i].sock >= 0)
			return true;
	return false;
}

void followers_close(struct command *c)
{
	writers_orphan(c);
	for (size_t i = 0; i < FOLLOWERS_MAX; i++) {
		fd_closep(&c->follower[i].sock);
		c->follower[i].owes = false;
	}
}

int follower_add(struct command *c, int sock)
{
	for (size_t i = 0; i < FOLLOWERS_MAX; i++) {
		if (c->follower[i].sock >= 0)
			continue;
		c->follower[i].sock = sock;
		return 0;
	}
	return -EAGAIN;
}

void follower_greet(struct command *c, int sock)
{
	const struct wire_process process = { .pid = (uint32_t)c->pid };

	/* The socket is new and takes this at once, or nobody is there any more: then the next
	 * thing that is sent finds out. */
	(void)fcntl(sock, F_SETFL, O_NONBLOCK);
	(void)!wire_send(sock, WIRE_STARTED, &process, sizeof(process));
}

void output_drop(struct command *c)
{
	freep(&c->out_data);
	c->out_len = 0;
}

static bool anybody_owes(const struct command *c)
{
	for (size_t i = 0; i < FOLLOWERS_MAX; i++)
		if (c->follower[i].owes)
			return true;
	return false;
}

/* It hung up or cannot be served: without it the rest goes on. */
static void follower_drop(struct follower *f)
{
	struct command *c = f->command;

	if (f == &c->follower[0])
		writers_orphan(c);
	fd_closep(&f->sock);
	f->owes = false;
	if (!anybody_owes(c))
		output_drop(c);
	if (!c->keep && !followers_any(c))
		command_cancel(c);
}

void followers_offer(struct command *c, enum wire_type type, const void *data, size_t len)
{
	for (size_t i = 0; i < FOLLOWERS_MAX; i++) {
		struct follower *f = &c->follower[i];
		int r = f->sock < 0 ? 0 : wire_send(f->sock, type, data, len);

		f->owes = r == -EAGAIN;
		if (r < 0 && r != -EAGAIN)
			follower_drop(f);
	}
	if (!anybody_owes(c))
		return;
	c->out_data = malloc(len);
	if (c->out_data) {
		memcpy(c->out_data, data, len);
		c->out_len = len;
		c->out_type = type;
		return;
	}
	/* Output must not get lost unnoticed: a follower that cannot have it is hung up on. */
	for (size_t i = 0; i < FOLLOWERS_MAX; i++)
		if (c->follower[i].owes)
			follower_drop(&c->follower[i]);
}

static void follower_ready(void *object, short events)
{
	struct follower *f = object;
	struct command *c = f->command;
	int r;

	if (f->sock < 0)
		return;
	if (events & (POLLHUP | POLLERR | POLLNVAL)) {
		follower_drop(f);
		return;
	}
	if (!f->owes || !c->out_data)
		return;
	r = wire_send(f->sock, c->out_type, c->out_data, c->out_len);
	if (r == -EAGAIN)
		return;
	f->owes = false;
	if (r < 0)
		follower_drop(f);
	else if (!anybody_owes(c))
		output_drop(c);
}

void followers_watch(struct command *c)
{
	/* Before it has executed, the child reads what to run from the same socket. */
	if (c->state == COMMAND_STARTING)
		return;
	for (size_t i = 0; i < FOLLOWERS_MAX; i++)
		loop_watch(c->follower[i].sock, c->follower[i].owes ? POLLOUT : 0, follower_ready,
			   &c->follower[i]);
}

/* The pipe broke in a way that pipes do not: the command cannot be served as it should. */
static void output_broken(struct command *c)
{
	if (!c->keep) {
		command_cancel(c);
		return;
	}
	command_signal(c, SIGKILL);
	command_hurry(c);
}

static void read_output(struct command *c, int *fd, enum wire_type type)
{
	static unsigned char chunk[WIRE_DATA_MAX];
	ssize_t n;

	if (*fd < 0 || c->out_data || c->state != COMMAND_RUNNING)
		return;
	n = read(*fd, chunk, c->pty ? PTY_CHUNK : sizeof(chunk));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		followers_offer(c, type, chunk, (size_t)n);
		return;
	}
	/* A terminal ends with EIO: nobody has its other side open any more. */
	if (n < 0 && !(c->pty && errno == EIO))
		output_broken(c);
	fd_closep(fd);
}

static void output_out_ready(void *object, short events)
{
	struct command *c = object;

	(void)events;
	read_output(c, &c->out_fd, c->pty ? WIRE_PTY : WIRE_OUT);
}

static void output_err_ready(void *object, short events)
{
	struct command *c = object;

	(void)events;
	read_output(c, &c->err_fd, WIRE_ERR);
}

void output_watch(struct command *c)
{
	if (c->state != COMMAND_RUNNING || c->out_data)
		return;
	loop_watch(c->out_fd, POLLIN, output_out_ready, c);
	loop_watch(c->err_fd, POLLIN, output_err_ready, c);
}
