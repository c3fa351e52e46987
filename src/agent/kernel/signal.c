/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupting and ending kernels, and their deadlines. */
#include "agent/kernel/kernel.h"

#include "base/dir.h"
#include "base/parse.h"

#include <fcntl.h>
#include <signal.h>

#define PASSES_MAX 8       /* over a session, until it has no members left */
#define AGAIN_US 3000000   /* from one interrupt to the next */
#define PRESUME_US 5000000 /* from the kill of one that is not our child to believing in it */
#define SPILL_US 10000000  /* how long a spill's helper may stand still */

static bool kill_if_member(const char *name, pid_t session)
{
	struct kernel_proc p;
	uint64_t pid;

	if (parse_u64(name, &pid) < 0 || pid <= 1 || pid > INT32_MAX ||
	    kernel_proc_stat((pid_t)pid, &p) < 0)
		return false;
	return p.session == session && p.state != 'Z' && p.state != 'X' &&
	       kill((pid_t)pid, SIGKILL) == 0;
}

/* True when there was somebody. */
static bool sweep_once(pid_t session)
{
	int fd = openat(agent_pids(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(dir_closep) DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir)
		fd_close(fd);
	while (dir && (entry = readdir(dir)))
		found |= kill_if_member(entry->d_name, session);
	return found;
}

/*
 * SIGKILL for everything that a kernel left behind in its session: background jobs of a shell have
 * groups of their own. What started a new session is out of reach, as with nohup or a daemon, and
 * what forks faster than we look may get away; the box's end ends them all.
 */
void kernel_sweep(pid_t session)
{
	for (int i = 0; session > 1 && i < PASSES_MAX; i++)
		if (!sweep_once(session))
			return;
}

/* It leads a session, and so a group, of its own number. Before it has got that far there is only
 * itself. */
static void send_signal(const struct kernel *k, int sig)
{
	if (k->alive && k->pid > 1 && kernel_lives(k) && kill(-k->pid, sig) < 0)
		(void)kill(k->pid, sig);
}

/*
 * The cell ends as the language ends what is interrupted, and the kernel goes on; one that does not
 * say so in time is killed.
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
	/* Between cells an interrupt means nothing: one that came before the kernel takes the cell
	 * up is lost. */
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
static void kernel_check_deadline(struct kernel *k)
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
	kernel_check_deadline(k);
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
