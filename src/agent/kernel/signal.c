/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupting and ending kernels, and their deadlines. */
#include "agent/kernel/kernel.h"

#include <signal.h>

#define AGAIN_US 3000000   /* from one interrupt to the next */
#define PRESUME_US 5000000 /* from the kill of one that is not our child to believing in it */
#define SPILL_US 10000000  /* how long a spill's helper may stand still */

/* It leads a session, and so a group, of its own number. Before it has got that far there is only itself. */
static void send_signal(const struct kernel *k, int sig)
{
	if (k->alive && k->pid > 1 && kernel_lives(k) && kill(-k->pid, sig) < 0)
		(void)kill(k->pid, sig);
}

/*
 * The cell ends as the language ends what is interrupted, and the kernel goes on; one that does not say so
 * in time is killed.
 */
void kernel_interrupt(struct kernel *k, enum wire_cell_reason reason, uint64_t patience_us)
{
	uint64_t now_us = kernel_now_us();

	if (!cell_is_on(k->cell))
		return;
	if (k->cell->end.reason == WIRE_CELL_DONE)
		k->cell->end.reason = reason;
	if (!k->again_us)
		k->again_us = now_us + AGAIN_US;
	if (!k->kill_us || k->kill_us > now_us + patience_us)
		k->kill_us = now_us + patience_us;
	/* Between cells an interrupt means nothing: one that came before the kernel takes the cell up is lost. */
	if (k->cell->heard)
		send_signal(k, SIGINT);
}

void kernel_interrupt_late(struct kernel *k)
{
	if (k->kill_us)
		send_signal(k, SIGINT);
}

void kernel_kill(struct kernel *k)
{
	if (k->killed)
		return;
	k->killed = true;
	k->presume_us = k->child ? 0 : kernel_now_us() + PRESUME_US;
	if (k->pid == 0) {
		/* It has not said its number: it ends when it finds that nobody listens. */
		k->alive = false;
		k->exit = (struct wire_exit){ .code = -1, .signal = SIGKILL };
		return;
	}
	send_signal(k, SIGKILL);
	kernel_sweep(k->pid);
}

void kernel_broken(struct kernel *k)
{
	k->broken = true;
	kernel_kill(k);
}

static bool is_past(uint64_t *when_us)
{
	if (!*when_us || kernel_now_us() < *when_us)
		return false;
	*when_us = 0;
	return true;
}

/* To be ready, to bring what is to run, or to take it. */
static void check_deadline(struct kernel *k)
{
	if (!is_past(&k->deadline_us))
		return;
	if (k->state != KERNEL_READY) {
		k->why.err = ETIMEDOUT;
		kernel_kill(k);
	} else if (k->cell && k->cell->state == CELL_GATHERING) {
		if (!kernel_may_gather(k)) {
			k->deadline_us =
				kernel_now_us() + CELL_GATHER_US; /* it is others who are slow */
			return;
		}
		cell_fail(k->cell, WIRE_STEP_REQUEST, ETIMEDOUT);
	} else {
		kernel_broken(k);
	}
}

static void check_spills(struct kernel *k)
{
	if (!k->spill_since_us || kernel_now_us() - k->spill_since_us < SPILL_US)
		return;
	k->spill_since_us = 0;
	for (unsigned i = 0; k->cell && i < CELL_STREAMS; i++)
		spill_lose(k->cell, i);
}

void kernel_check_deadlines(struct kernel *k)
{
	check_deadline(k);
	check_spills(k);
	if (is_past(&k->again_us))
		send_signal(k, SIGINT);
	if (is_past(&k->kill_us))
		kernel_kill(k);
	if (is_past(&k->presume_us)) {
		k->alive = false;
		k->exit = (struct wire_exit){ .code = -1, .signal = SIGKILL };
	}
	if (is_past(&k->look_us))
		kernel_usage_look(k);
}

void kernel_watch_deadlines(const struct kernel *k)
{
	kernel_wake_at(k->deadline_us);
	kernel_wake_at(k->again_us);
	kernel_wake_at(k->kill_us);
	kernel_wake_at(k->presume_us);
	kernel_wake_at(k->look_us);
	if (k->spill_since_us)
		kernel_wake_at(k->spill_since_us + SPILL_US);
	if (k->more)
		kernel_wake_at(1);
}
