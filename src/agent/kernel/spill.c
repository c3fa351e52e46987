/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output beyond a cell's limit goes into a file. A forked helper becomes the user, makes the file
 * and writes what we send it, so it can do nothing that the user could not do, the file's memory
 * counts as the user's, and a full disk or a slow one makes nobody wait but the helper. We never
 * see the file.
 */
#include "agent/kernel/kernel.h"

#include "agent/helper.h"
#include "agent/loop.h"
#include "base/io.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NAMES_MAX 100
#define NAME_SIZE 128

/* The first of a few names that nobody has. */
static int spill_make(const struct cell *c, unsigned stream, char name[NAME_SIZE])
{
	const char *suffix = stream == CELL_OUT ? "stdout" : "stderr";

	for (unsigned i = 1; i <= NAMES_MAX; i++) {
		char more[16] = "";
		int fd;

		if (i > 1)
			(void)snprintf(more, sizeof(more), "-%u", i);
		(void)snprintf(name, NAME_SIZE, "/tmp/cell-%s-%llu%s.%s", c->request.context,
			       (unsigned long long)c->number, more, suffix);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

/* Writes what comes, as long as it can, up to the bound; takes the rest as well, so that nobody
 * waits for us. */
static void spill_write(int sock, int fd)
{
	static struct wire_frame f;
	uint64_t left = SPILL_BYTES_MAX;

	while (wire_recv(sock, &f, WIRE_ON_TO_OP) == 1) {
		size_t len = (size_t)MIN(wire_len(&f), left);

		left = io_write_all(fd, f.data, len) < 0 ? 0 : left - len;
	}
}

static _noreturn_ void spill_run(const struct cell *c, unsigned stream, int sock)
{
	struct wire_spilled spilled = { .stream = stream == CELL_OUT ? 1 : 2 };
	const struct agent_user user = { .uid = c->kernel->uid, .gid = c->kernel->gid };
	char name[NAME_SIZE];
	int fd;

	(void)umask(022);
	if (helper_confine(sock) < 0 || agent_become_user(&user) < 0)
		_exit(1);
	fd = spill_make(c, stream, name);
	if (fd < 0 ||
	    wire_send2(sock, WIRE_SPILLED, &spilled, sizeof(spilled), name, strlen(name)) < 0)
		_exit(1);
	spill_write(sock, fd);
	fd_close(fd);
	_exit(wire_send(sock, WIRE_DONE, NULL, 0) < 0);
}

void spill_lose(struct cell *c, unsigned stream)
{
	struct spill *s = &c->spill[stream];

	if (s->state == SPILL_NONE)
		return;
	if (c->kernel->wait_fd == &s->sock)
		kernel_wait_drop(c->kernel);
	fd_closep(&s->sock);
	s->state = SPILL_LOST;
}

void spill_open(struct cell *c, unsigned stream)
{
	struct spill *s = &c->spill[stream];
	int pair[2];
	pid_t pid;

	s->state = SPILL_LOST;
	if (!c->kernel->knows_user || sock_pair(pair) < 0)
		return;
	pid = fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : helper_fork(HELPER_SPILL);
	if (pid == 0)
		spill_run(c, stream, pair[1]);
	fd_close(pair[1]);
	if (pid < 0) {
		fd_close(pair[0]);
		return;
	}
	s->sock = pair[0];
	s->state = SPILL_OPENING;
}

void spill_close(struct spill *s)
{
	if (s->state == SPILL_OPENING) {
		s->state = SPILL_LOST; /* nothing was sent */
		fd_closep(&s->sock);
	} else if (s->state == SPILL_OPEN) {
		(void)shutdown(s->sock, SHUT_WR);
		s->state = SPILL_CLOSING;
	}
}

bool spills_open(const struct cell *c)
{
	return c->spill[CELL_OUT].state == SPILL_CLOSING ||
	       c->spill[CELL_ERR].state == SPILL_CLOSING;
}

/* It will say which file there is, which we have to pass on, and one frame at a time can wait for
 * the cell's reader. */
static bool spill_has_to_wait(const struct cell *c, unsigned stream)
{
	return c->spill[stream].state == SPILL_OPENING && c->kernel->wait_fd;
}

static void spill_ready(struct cell *c, unsigned stream)
{
	static struct wire_frame f;
	struct spill *s = &c->spill[stream];
	int r;

	if (s->sock < 0 || spill_has_to_wait(c, stream))
		return;
	r = wire_recv(s->sock, &f, WIRE_ON_FROM_OP);
	if (r == -EAGAIN)
		return;
	if (r == 1 && f.head.type == WIRE_SPILLED && s->state == SPILL_OPENING) {
		s->state = SPILL_OPEN;
		kernel_say(c->kernel, WIRE_SPILLED, f.data, wire_len(&f));
		return;
	}
	spill_lose(c, stream); /* it has done its work, or cannot */
}

static void spill_out_ready(void *object, short events)
{
	(void)events;
	spill_ready(object, CELL_OUT);
}

static void spill_err_ready(void *object, short events)
{
	(void)events;
	spill_ready(object, CELL_ERR);
}

void spills_watch(struct cell *c)
{
	for (unsigned i = 0; i < CELL_STREAMS; i++) {
		const int *sock = &c->spill[i].sock;

		/* Not even for its end, which would keep us awake. */
		if (!spill_has_to_wait(c, i))
			loop_watch(*sock, POLLIN | (c->kernel->wait_fd == sock ? POLLOUT : 0),
				   i == CELL_OUT ? spill_out_ready : spill_err_ready, c);
	}
}
