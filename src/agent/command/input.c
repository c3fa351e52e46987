/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To a command's standard input or terminal. Several writers may bring frames; each frame is
 * written whole before the next one is taken, and what a command does not read waits with its
 * writer, not here.
 */
#include "agent/command/command.h"

#include "agent/loop.h"

#include <poll.h>

#define FRAMES_PER_TURN 16

static struct writer {
	int sock;
	bool used;
	/* in this round: what is said of one that was not is about the one that had the slot
	 * before */
	bool watched;
	/* it started the command: the first follower has the socket, and IN_END closes the input */
	bool own;
	struct command
		*command; /* NULL: it has ended, and the writer has only to hear how far it came */
} writers[WRITERS_MAX];
static size_t n_writers; /* every one in use lies below */

static void writer_free(struct writer *w)
{
	if (!w->own)
		fd_closep(&w->sock);
	w->used = false;
	while (n_writers && !writers[n_writers - 1].used)
		n_writers--;
}

int writer_add(struct command *c, int sock, bool own)
{
	for (size_t i = 0; i < WRITERS_MAX; i++) {
		if (writers[i].used)
			continue;
		writers[i] =
			(struct writer){ .sock = sock, .used = true, .own = own, .command = c };
		n_writers = MAX(n_writers, i + 1);
		return 0;
	}
	return -EAGAIN;
}

static void writer_fail(struct writer *w, int err)
{
	const struct wire_failed failed = { .step = WIRE_STEP_PROCESS, .err = err };

	/* Its socket was empty: if this cannot be sent, nobody is there. */
	if (!w->own)
		(void)!wire_send(w->sock, WIRE_FAILED, &failed, sizeof(failed));
	writer_free(w);
}

/* All of it has been written, or we would not have read on. */
static void writer_end(struct writer *w)
{
	if (w->own)
		input_close(w->command);
	else
		(void)!wire_send(w->sock, WIRE_DONE, NULL, 0);
	writer_free(w);
}

/*
 * The command has ended. What a writer sent and we took has been written, unless it still waits; a
 * writer whose next word is its end has lost nothing, even if that word is still on its way.
 */
void writers_drop(struct command *c)
{
	for (size_t i = n_writers; i-- > 0;) {
		struct writer *w = &writers[i];

		if (!w->used || w->command != c)
			continue;
		if (w->own || c->in_data)
			writer_fail(w, EPIPE);
		else
			w->command = NULL;
	}
}

static bool writer_has_to_wait(const struct writer *w)
{
	return w->command && w->command->in_data;
}

void writers_orphan(struct command *c)
{
	for (size_t i = n_writers; i-- > 0;)
		if (writers[i].used && writers[i].own && writers[i].command == c)
			writer_free(&writers[i]);
}

/* Nobody reads it: what waits goes nowhere, and so does what the starter still sends. */
static void input_broken(struct command *c)
{
	fd_closep(&c->in_fd);
	freep(&c->in_data);
	for (size_t i = n_writers; i-- > 0;)
		if (writers[i].used && writers[i].command == c && !writers[i].own)
			writer_fail(&writers[i], EPIPE);
}

void input_close(struct command *c)
{
	c->close_input = true;
	if (!c->in_data)
		fd_closep(&c->in_fd);
}

/* Writes what fits; what does not waits in in_data. */
static void write_input(struct command *c, const unsigned char *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = write(c->in_fd, data + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			input_broken(c);
			return;
		}
		at += (size_t)n;
	}
	if (at == len)
		return;
	c->in_data = malloc(len - at);
	if (!c->in_data) {
		input_broken(c);
		return;
	}
	memcpy(c->in_data, data + at, len - at);
	c->in_at = 0;
	c->in_len = len - at;
}

static void input_ready(void *object, short events)
{
	struct command *c = object;
	ssize_t n;

	(void)events;
	if (c->in_fd < 0 || !c->in_data)
		return;
	n = write(c->in_fd, c->in_data + c->in_at, c->in_len - c->in_at);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		input_broken(c);
		return;
	}
	c->in_at += (size_t)n;
	if (c->in_at < c->in_len)
		return;
	freep(&c->in_data);
	if (c->close_input)
		fd_closep(&c->in_fd);
}

void input_watch(struct command *c)
{
	if (c->in_data)
		loop_watch(c->in_fd, POLLOUT, input_ready, c);
}

/* Nonsense on the socket that started the command: it is not wanted any more, as if it had hung
 * up. */
static void writer_broken(struct writer *w)
{
	struct command *c = w->command;
	bool cancel = w->own && c && !c->keep;

	writer_free(w);
	if (cancel)
		command_cancel(c);
}

/* One frame: false when there is none, or the writer is done. */
static bool writer_read(struct writer *w)
{
	static struct wire_frame f;
	struct command *c = w->command;
	int r = wire_recv(w->sock, &f, WIRE_ON_TO_OP);

	if (r == -EAGAIN)
		return false;
	if (r == 0) {
		writer_free(w);
	} else if (r < 0 || (f.head.type != WIRE_IN && f.head.type != WIRE_IN_END)) {
		writer_broken(w);
	} else if (f.head.type == WIRE_IN_END) {
		writer_end(w);
	} else if (c && c->in_fd >= 0 && !c->close_input) {
		write_input(c, f.data, wire_len(&f));
	} else if (!w->own) {
		writer_fail(w, EPIPE);
	}
	return w->used;
}

static void writer_ready(void *object, short events)
{
	struct writer *w = object;

	if (!w->watched)
		return;
	for (int i = 0; i < FRAMES_PER_TURN && w->used && !writer_has_to_wait(w); i++)
		if (!writer_read(w))
			return;
	/* Hung up while its turn has not come: it does not want to know. */
	if (w->used && writer_has_to_wait(w) && (events & (POLLHUP | POLLERR)))
		writer_free(w);
}

void writers_watch(void)
{
	for (size_t i = 0; i < n_writers; i++) {
		struct writer *w = &writers[i];

		if (!w->used)
			continue;
		w->watched = true;
		loop_watch(w->sock, writer_has_to_wait(w) ? 0 : POLLIN, writer_ready, w);
	}
}
