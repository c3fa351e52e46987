/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: the line they wait in, their turn, their end. */
#include "agent/kernel/kernel.h"

#include "agent/loop.h"

#include <fcntl.h>
#include <poll.h>

static struct cell cells[CELLS_MAX];
static size_t n_cells; /* every one in use lies below */
static uint64_t n_came;

static struct cell *cell_slot(void)
{
	for (size_t i = 0; i < CELLS_MAX; i++)
		if (cells[i].state == CELL_FREE)
			return &cells[i];
	return NULL;
}

static int cell_new(struct kernel *k, const struct wire_cell *q, int sock)
{
	struct cell *c = cell_slot();

	if (!c || k->n_cells >= CELLS_PER_KERNEL)
		return -EBUSY;
	if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	*c = (struct cell){
		.state = CELL_WAITING,
		.kernel = k,
		.order = ++n_came,
		.sock = sock,
		.request = *q,
		.spill = { { .sock = -EBADF }, { .sock = -EBADF } },
	};
	k->n_cells++;
	n_cells = MAX(n_cells, (size_t)(c - cells) + 1);
	return 0;
}

void cell_queue(const struct wire_cell *q, int sock)
{
	struct kernel *k = kernel_find(q->context);
	int r = k ? cell_new(k, q, sock) : -ENOENT;

	if (r < 0)
		kernel_failed(sock, WIRE_STEP_CONTEXT, r);
}

static void cell_free(struct cell *c)
{
	struct kernel *k = c->kernel;

	if (k->cell == c) {
		kernel_wait_drop(k);
		kernel_request_free(k);
		k->cell = NULL;
		k->deadline_us = k->again_us = k->kill_us = k->look_us = k->spill_since_us = 0;
	}
	k->n_cells--;
	fd_closep(&c->sock);
	for (unsigned i = 0; i < CELL_STREAMS; i++)
		fd_closep(&c->spill[i].sock);
	c->state = CELL_FREE;
	while (n_cells && cells[n_cells - 1].state == CELL_FREE)
		n_cells--;
}

void cell_fail(struct cell *c, enum wire_step step, int err)
{
	kernel_failed(take_fd(&c->sock), step, err);
	cell_free(c);
}

/* Nobody wants it any more. */
void cell_hung_up(struct cell *c)
{
	struct kernel *k = c->kernel;

	if (c->state == CELL_WAITING || c->state == CELL_GATHERING ||
	    (c->state == CELL_FEEDING && k->request_at == 0)) {
		cell_free(c); /* and the kernel has not heard of it */
		return;
	}
	if (k->wait_fd == &c->sock)
		kernel_wait_drop(k);
	fd_closep(&c->sock);
	for (unsigned i = 0; i < CELL_STREAMS; i++)
		spill_lose(c, i);
	kernel_interrupt(k, WIRE_CELL_INTERRUPTED, KERNEL_PATIENCE_US);
}

static struct cell *first_waiting(const struct kernel *k)
{
	struct cell *first = NULL;

	for (size_t i = 0; i < n_cells; i++)
		if (cells[i].state == CELL_WAITING && cells[i].kernel == k &&
		    (!first || cells[i].order < first->order))
			first = &cells[i];
	return first;
}

void cells_fail_waiting(struct kernel *k)
{
	struct cell *c;

	if (k->cell && k->cell->state == CELL_GATHERING)
		cell_fail(k->cell, WIRE_STEP_CONTEXT, EPIPE);
	while ((c = first_waiting(k)))
		cell_fail(c, WIRE_STEP_CONTEXT, EPIPE);
}

/* A cell that fails or only prepares makes way at once. */
void cells_turn(struct kernel *k)
{
	struct cell *c;

	while (k->state == KERNEL_READY && !k->killed && !k->cell && (c = first_waiting(k))) {
		k->cell = c;
		c->state = CELL_GATHERING;
		k->deadline_us = kernel_now_us() + CELL_GATHER_US;
		kernel_gather(k);
	}
}

void cell_over(struct kernel *k)
{
	struct cell *c = k->cell;

	kernel_usage_end(k);
	c->end.wall_us = kernel_now_us() - c->begun_us;
	c->end.out_bytes = c->bytes[CELL_OUT];
	c->end.err_bytes = c->bytes[CELL_ERR];
	if (k->state == KERNEL_ENDED) {
		c->end.died = 1;
		c->end.exit = k->exit;
	}
	c->state = CELL_ENDING;
	kernel_request_free(k);
	k->deadline_us = k->again_us = k->kill_us = k->look_us = 0;
	for (unsigned i = 0; i < CELL_STREAMS; i++)
		spill_close(&c->spill[i]);
}

bool cell_end_step(struct cell *c)
{
	if (spills_open(c))
		return false;
	if (!c->told) {
		c->told = true;
		kernel_say(c->kernel, WIRE_CELL_END, &c->end, sizeof(c->end));
		return true;
	}
	cell_free(c);
	return true;
}

static void cell_ready(void *object, short events)
{
	struct cell *c = object;

	if (c->sock < 0)
		return;
	if (c->state == CELL_GATHERING && (events & POLLIN))
		kernel_gather(c->kernel); /* also finds out that nobody is there any more */
	else if (events & (POLLHUP | POLLERR | POLLNVAL))
		cell_hung_up(c);
}

static short cell_events(const struct cell *c)
{
	if (c->state == CELL_GATHERING)
		return kernel_may_gather(c->kernel) ? POLLIN : 0;
	return c->kernel->wait_fd == &c->sock ? POLLOUT : 0;
}

void cells_watch(void)
{
	for (size_t i = 0; i < n_cells; i++) {
		struct cell *c = &cells[i];

		if (c->state == CELL_FREE)
			continue;
		loop_watch(c->sock, cell_events(c), cell_ready, c);
		spills_watch(c);
	}
}
