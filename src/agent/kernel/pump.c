/* SPDX-License-Identifier: Apache-2.0 */
/* From a kernel's pipes to the cell that runs. */
#include "agent/kernel/kernel.h"

#include "agent/loop.h"

#include <poll.h>
#include <sys/ioctl.h>

#define STEPS_PER_TURN 64

void kernel_wait_drop(struct kernel *k)
{
	freep(&k->wait_data);
	k->wait_len = 0;
	k->wait_fd = NULL;
}

/* Its reader cannot have it: then the cell is nobody's, or the output without its file. */
static void kernel_say_failed(struct kernel *k, const int *fd)
{
	struct cell *c = k->cell;

	if (fd == &c->sock)
		cell_hung_up(c);
	for (unsigned i = 0; i < CELL_STREAMS; i++)
		if (fd == &c->spill[i].sock)
			spill_lose(c, i);
}

/* fd is the cell's or one of its spills'; nothing may be waiting already. */
void kernel_say_to(struct kernel *k, int *fd, enum wire_type type, const void *data, size_t len)
{
	int r = *fd < 0 ? 0 : wire_send(*fd, type, data, len);

	if (r == -EAGAIN) {
		k->wait_data = malloc(len + 1); /* no bytes are a frame too */
		if (k->wait_data) {
			memcpy(k->wait_data, data, len);
			k->wait_len = len;
			k->wait_type = type;
			k->wait_fd = fd;
			return;
		}
	}
	if (r < 0)
		kernel_say_failed(k, fd);
}

void kernel_say(struct kernel *k, enum wire_type type, const void *data, size_t len)
{
	if (k->cell)
		kernel_say_to(k, &k->cell->sock, type, data, len);
}

/* False: it still waits. */
static bool flush_wait(struct kernel *k)
{
	int *fd = k->wait_fd, r;

	if (!fd)
		return true;
	r = *fd < 0 ? 0 : wire_send(*fd, k->wait_type, k->wait_data, k->wait_len);
	if (r == -EAGAIN)
		return false;
	kernel_wait_drop(k);
	if (r < 0)
		kernel_say_failed(k, fd);
	return true;
}

static size_t in_pipe(int fd)
{
	int n = 0;

	return fd < 0 || ioctl(fd, FIONREAD, &n) < 0 || n < 0 ? 0 : (size_t)n;
}

/* How much of the stream may still be sent. */
static uint64_t stream_space(const struct cell *c, unsigned stream)
{
	uint64_t most = c->request.output_bytes;

	if (most == 0 || c->sock < 0)
		return UINT64_MAX;
	return most - MIN(most, c->bytes[stream]);
}

static void stream_pass_on(struct kernel *k, unsigned stream, bool spills, const void *data,
			   size_t len)
{
	struct cell *c = k->cell;
	struct spill *s = &c->spill[stream];

	c->bytes[stream] += len;
	if (!spills)
		kernel_say(k, stream == CELL_OUT ? WIRE_OUT : WIRE_ERR, data, len);
	else if (s->state == SPILL_OPEN)
		kernel_say_to(k, &s->sock, WIRE_DATA, data, len);
}

/* Reads what there is, or what is owed. False: its spill has to be there first. */
static bool stream_step(struct kernel *k, unsigned stream)
{
	static unsigned char chunk[WIRE_DATA_MAX];
	struct kernel_stream *s = &k->stream[stream];
	uint64_t left = stream_space(k->cell, stream);
	size_t most = s->owed ? MIN(s->owed, sizeof(chunk)) : sizeof(chunk);
	bool spills = left == 0;
	ssize_t n;

	if (spills && k->cell->spill[stream].state == SPILL_NONE) {
		if (in_pipe(s->fd) == 0) {
			s->readable = false;
			s->owed = 0;
			return true;
		}
		spill_open(k->cell, stream);
	}
	if (spills && k->cell->spill[stream].state == SPILL_OPENING)
		return false;
	if (!spills)
		most = (size_t)MIN(most, left); /* so that no read belongs to both */
	n = s->fd < 0 ? 0 : read(s->fd, chunk, most);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < (ssize_t)most)
		s->readable = false; /* it says so when there is more */
	if (n <= 0) {
		s->owed = 0;
		if (n == 0)
			fd_closep(&s->fd);
		return true;
	}
	s->owed -= MIN(s->owed, (size_t)n);
	stream_pass_on(k, stream, spills, chunk, (size_t)n);
	return true;
}

/* Whatever was written before what we have just read is in the pipes. */
static void owe_output(struct kernel *k)
{
	for (unsigned i = 0; i < CELL_STREAMS; i++)
		k->stream[i].owed = in_pipe(k->stream[i].fd);
}

/*
 * A kernel may wait until a result has been read before it prints more, so that what it prints then
 * does not overtake the result: what counts is what was there before we read. Of several that were
 * read at once the first has it all.
 */
static void owe_before_result(struct kernel *k)
{
	for (unsigned i = 0; i < CELL_STREAMS; i++) {
		k->stream[i].owed = k->stream[i].before;
		k->stream[i].before = 0;
	}
}

/* A message's line has come. */
static void event_begin(struct kernel *k)
{
	enum kernel_word word = k->event.word;
	bool loading = k->state == KERNEL_LOADING;

	k->dropping = false;
	if (loading != (word == KERNEL_WORD_READY)) {
		kernel_broken(k);
		return;
	}
	if (loading)
		return;
	if (k->cell && k->cell->state == CELL_RUNNING) {
		/* The number comes first; what is in the pipes already may be the cell's own. */
		if (word == KERNEL_WORD_COUNT)
			return;
		k->cell->heard = true;
		k->dropping = word == KERNEL_WORD_ERROR && k->cell->erred;
		k->cell->erred |= word == KERNEL_WORD_ERROR;
		if (word == KERNEL_WORD_RESULT)
			owe_before_result(k);
		else
			owe_output(k);
		return;
	}
	/* What a cell left running in the background belongs to no cell. */
	if (word == KERNEL_WORD_END)
		kernel_broken(k);
	else
		k->dropping = true;
}

static void say_event_end(struct kernel *k, enum wire_event_kind kind)
{
	const struct wire_event end = { .kind = kind };

	kernel_say(k, WIRE_EVENT_END, &end, sizeof(end));
}

static void event_finish(struct kernel *k)
{
	if (!k->cell && k->event.word != KERNEL_WORD_READY)
		return;
	switch (k->event.word) {
	case KERNEL_WORD_READY:
		kernel_ready(k, k->event.number);
		return;
	case KERNEL_WORD_COUNT:
		k->cell->heard = true;
		k->cell->number = k->event.number;
		kernel_interrupt_late(k);
		say_event_end(k, WIRE_EVENT_COUNT);
		return;
	case KERNEL_WORD_RESULT:
		say_event_end(k, WIRE_EVENT_RESULT);
		return;
	case KERNEL_WORD_ERROR:
		say_event_end(k, WIRE_EVENT_ERROR);
		return;
	case KERNEL_WORD_END:
		cell_over(k);
		return;
	case _KERNEL_WORD_MAX:
		return;
	}
}

/* What others say in its name from now on is not told: it would have no end. */
void kernel_pump_last(struct kernel *k)
{
	k->events_left = in_pipe(k->events_fd);
	k->events_readable = k->events_left > 0;
}

/* No more than was there before the streams were looked at: what came before it is in them. */
static void events_read(struct kernel *k)
{
	size_t left = k->state == KERNEL_ENDED ? k->events_left : SIZE_MAX;
	size_t space = MIN(left, sizeof(k->bytes)), most = MIN(in_pipe(k->events_fd), space);
	ssize_t n;

	for (unsigned i = 0; i < CELL_STREAMS; i++)
		k->stream[i].before = in_pipe(k->stream[i].fd);
	n = read(k->events_fd, k->bytes, most ? most : space);
	if (n < 0 && errno == EINTR)
		return;
	if (n < (ssize_t)sizeof(k->bytes) || (size_t)n == left)
		k->events_readable = false;
	if (n > 0) {
		k->events_left -= MIN(k->events_left, (size_t)n);
		k->in = (struct kernel_bytes){ .at = k->bytes, .len = (size_t)n };
	} else if (n == 0 || errno != EAGAIN) {
		fd_closep(&k->events_fd);
		/* It cannot say when a cell is over: it is of no use any more. */
		if (k->state != KERNEL_ENDED)
			kernel_broken(k);
	}
}

/* False: it has said nothing more. */
static bool event_step(struct kernel *k)
{
	struct kernel_bytes piece = { 0 };
	int token;

	if (k->broken)
		return false;
	token = kernel_event_next(&k->event, &k->in, &piece);
	if (token < 0)
		kernel_broken(k);
	else if (token == KERNEL_TOKEN_BEGIN)
		event_begin(k);
	else if (token == KERNEL_TOKEN_PIECE && k->event.word != KERNEL_WORD_READY && !k->dropping)
		kernel_say(k, WIRE_EVENT, piece.at, piece.len);
	else if (token == KERNEL_TOKEN_FINISH && !k->dropping)
		event_finish(k);
	else if (token == KERNEL_TOKEN_NONE && k->events_readable)
		events_read(k);
	else
		return token != KERNEL_TOKEN_NONE;
	return true;
}

/* After its end: once everything it said has been told, what it printed; then that it died. */
static bool last_step(struct kernel *k)
{
	if (!cell_is_on(k->cell))
		return false;
	if (k->drained)
		cell_over(k);
	else
		owe_output(k);
	k->drained = true;
	return true;
}

/* Nothing comes before a cell's number, nor between the pieces of an event. */
static bool may_print(const struct kernel *k)
{
	return cell_is_on(k->cell) && k->cell->heard && !k->event.in_bytes;
}

/* False: nothing can be done until something happens. */
static bool pump_step(struct kernel *k)
{
	if (!flush_wait(k))
		return false;
	if (k->cell && k->cell->state == CELL_ENDING)
		return cell_end_step(k->cell);
	for (unsigned i = 0; cell_is_on(k->cell) && i < CELL_STREAMS; i++)
		if (k->stream[i].owed)
			return stream_step(k, i);
	if (event_step(k))
		return true;
	if (k->state == KERNEL_ENDED)
		return last_step(k);
	for (unsigned i = 0; may_print(k) && i < CELL_STREAMS; i++)
		if (k->stream[i].readable)
			return stream_step(k, i);
	return false;
}

static bool waits_for_spill(const struct kernel *k)
{
	if (!k->cell || k->wait_fd == &k->cell->sock)
		return false; /* a helper is not slow while we do not listen to it */
	return k->wait_fd || k->cell->spill[CELL_OUT].state == SPILL_OPENING ||
	       k->cell->spill[CELL_ERR].state == SPILL_OPENING ||
	       (k->cell->state == CELL_ENDING && spills_open(k->cell));
}

void kernel_pump(struct kernel *k)
{
	size_t steps = 0;

	if (k->state == KERNEL_STARTING)
		return;
	while (steps < STEPS_PER_TURN && pump_step(k))
		steps++;
	k->more = steps == STEPS_PER_TURN;
	if (!waits_for_spill(k))
		k->spill_since_us = 0;
	else if (!k->spill_since_us)
		k->spill_since_us = kernel_now_us();
}

static void events_ready(void *object, short events)
{
	struct kernel *k = object;

	(void)events;
	k->events_readable = k->events_fd >= 0;
}

static void stream_ready(struct kernel_stream *s, short events)
{
	/* Without anything in it, what is left to tell is that nobody writes any more. */
	if (s->fd >= 0 && (events & POLLIN))
		s->readable = true;
	else
		fd_closep(&s->fd);
}

static void stream_out_ready(void *object, short events)
{
	stream_ready(&((struct kernel *)object)->stream[CELL_OUT], events);
}

static void stream_err_ready(void *object, short events)
{
	stream_ready(&((struct kernel *)object)->stream[CELL_ERR], events);
}

void kernel_pump_watch(struct kernel *k)
{
	if (k->state == KERNEL_STARTING || k->state == KERNEL_ENDED || k->wait_fd ||
	    waits_for_spill(k) || (k->cell && k->cell->state == CELL_ENDING))
		return;
	if (!k->broken)
		loop_watch(k->events_fd, POLLIN, events_ready, k);
	if (!may_print(k))
		return;
	loop_watch(k->stream[CELL_OUT].fd, POLLIN, stream_out_ready, k);
	loop_watch(k->stream[CELL_ERR].fd, POLLIN, stream_err_ready, k);
}
