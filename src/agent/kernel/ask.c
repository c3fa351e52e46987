/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about contexts: which there are, interrupt one, end one. */
#include "agent/kernel/kernel.h"

#include "agent/loop.h"
#include "sys/payload.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

static struct context_lister {
	int sock;
	bool used;
	uint64_t after; /* the order of the one that was told last */
} listers[KERNEL_LISTERS_MAX];

static int tell_kill(struct kernel *k, int sock)
{
	for (size_t i = 0; i < KERNEL_KILLERS_MAX; i++) {
		if (k->killers[i] >= 0)
			continue;
		k->killers[i] = sock;
		if (cell_is_on(k->cell) && k->cell->end.reason == WIRE_CELL_DONE)
			k->cell->end.reason = WIRE_CELL_INTERRUPTED;
		kernel_kill(k);
		return 0;
	}
	return -EAGAIN;
}

void kernel_ask_tell(const struct wire_context_tell *q, int sock)
{
	struct kernel *k = kernel_find(q->context);
	int r = k ? 0 : -ENOENT;

	if (k && q->signal == SIGKILL) {
		r = tell_kill(k, sock);
		if (r == 0)
			return; /* it is answered when the kernel is gone */
	} else if (k) {
		kernel_interrupt(k, WIRE_CELL_INTERRUPTED, KERNEL_PATIENCE_US);
	}
	kernel_answer(&sock, WIRE_STEP_CONTEXT, r);
}

static void context_lister_end(struct context_lister *l)
{
	fd_closep(&l->sock);
	l->used = false;
}

/* The one that was made next; those that come and go meanwhile do not disturb the order. */
static const struct kernel *context_after(uint64_t order)
{
	const struct kernel *next = NULL;

	for (size_t i = 0; i < kernels_count(); i++) {
		const struct kernel *k = kernel_at(i);

		if (k->state != KERNEL_FREE && k->state != KERNEL_ENDED && k->context.name[0] &&
		    k->order > order && (!next || k->order < next->order))
			next = k;
	}
	return next;
}

static int context_tell(int sock, const struct kernel *k)
{
	const struct wire_context_info info = {
		.context = k->context,
		.pid = (uint32_t)k->pid,
		.busy = (uint32_t)k->n_cells,
	};
	const char *cwd = k->cwd ? k->cwd : PAYLOAD_HOME;

	return wire_send2(sock, WIRE_CONTEXT, &info, sizeof(info), cwd, strlen(cwd));
}

/* Sends on until the socket is full. */
static void context_lister_run(struct context_lister *l)
{
	const struct kernel *k;

	while ((k = context_after(l->after))) {
		int r = context_tell(l->sock, k);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			context_lister_end(l);
			return;
		}
		l->after = k->order;
	}
	if (wire_send(l->sock, WIRE_DONE, NULL, 0) != -EAGAIN)
		context_lister_end(l);
}

static void context_lister_ready(void *object, short events)
{
	struct context_lister *l = object;

	if (!l->used)
		return;
	if (events & (POLLHUP | POLLERR))
		context_lister_end(l);
	else
		context_lister_run(l);
}

void kernel_listers_watch(void)
{
	for (size_t i = 0; i < KERNEL_LISTERS_MAX; i++)
		if (listers[i].used)
			loop_watch(listers[i].sock, POLLOUT, context_lister_ready, &listers[i]);
}

void kernel_ask_list(int sock)
{
	if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(sock);
		return;
	}
	for (size_t i = 0; i < KERNEL_LISTERS_MAX; i++) {
		if (listers[i].used)
			continue;
		listers[i] = (struct context_lister){ .sock = sock, .used = true };
		context_lister_run(&listers[i]);
		return;
	}
	kernel_failed(sock, WIRE_STEP_CONTEXT, EAGAIN);
}
