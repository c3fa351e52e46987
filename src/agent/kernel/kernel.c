/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels, and how they end. */
#include "agent/kernel/kernel.h"

#include "agent/loop.h"
#include "base/clock.h"

#include <poll.h>
#include <sys/wait.h>

#define LOAD_US 60000000 /* how long a kernel may take to be ready */
#define LOOK_US 1000000  /* how often we look at the clock while there is something to time */
#define PAUSE_US 3000000 /* a step of the clock that is larger was a pause of the box */

static struct kernel table[KERNEL_SLOTS];
static size_t
	n_table; /* every slot that is in use lies below: the others are never touched, so they are not there */
static uint64_t n_made;

/*
 * A frozen box's clock goes on, and so do the deadlines of those who sleep in it. Whoever has one here looks
 * at this clock every LOOK_US, so a step that is much larger means that nobody was awake. A pause of less
 * than PAUSE_US counts as if there had been none.
 */
uint64_t kernel_now_us(void)
{
	static uint64_t last_us, awake_us = 1;
	uint64_t now_us = clock_boot_us();

	if (now_us - last_us < PAUSE_US)
		awake_us += now_us - last_us;
	last_us = now_us;
	return awake_us;
}

void kernel_wake_at(uint64_t when_us)
{
	uint64_t now_us = kernel_now_us();

	if (when_us)
		loop_wake_at(clock_boot_us() +
			     (when_us <= now_us ? 0 : MIN(when_us - now_us, LOOK_US)));
}

struct kernel *kernel_at(size_t i)
{
	return &table[i];
}

size_t kernels_count(void)
{
	return n_table;
}

struct kernel *kernel_find(const char *name)
{
	for (size_t i = 0; i < n_table; i++)
		if (table[i].state != KERNEL_FREE && table[i].state != KERNEL_ENDED &&
		    strcmp(table[i].context.name, name) == 0)
			return &table[i];
	return NULL;
}

static size_t count_living(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_table; i++)
		n += table[i].state != KERNEL_FREE && table[i].state != KERNEL_ENDED;
	return n;
}

static struct kernel *find_slot(void)
{
	for (size_t i = 0; i < KERNEL_SLOTS; i++)
		if (table[i].state == KERNEL_FREE)
			return &table[i];
	return NULL;
}

int kernel_new(const struct wire_context *context, struct kernel **ret)
{
	struct kernel *k = find_slot();

	if (kernel_find(context->name))
		return -EEXIST;
	if (!k || count_living() >= KERNELS_MAX)
		return -EAGAIN;
	*k = (struct kernel){
		.state = KERNEL_LOADING,
		.context = *context,
		.order = ++n_made,
		.alive = true,
		.starter = -EBADF,
		.why = { .step = WIRE_STEP_CONTEXT, .err = EPIPE },
		.status_fd = -EBADF,
		.requests_fd = -EBADF,
		.events_fd = -EBADF,
		.stream = { { .fd = -EBADF }, { .fd = -EBADF } },
		.deadline_us = kernel_now_us() + LOAD_US,
	};
	for (size_t i = 0; i < KERNEL_KILLERS_MAX; i++)
		k->killers[i] = -EBADF;
	n_table = MAX(n_table, (size_t)(k - table) + 1);
	*ret = k;
	return 0;
}

void kernel_free(struct kernel *k)
{
	fd_closep(&k->starter);
	fd_closep(&k->status_fd);
	fd_closep(&k->requests_fd);
	fd_closep(&k->events_fd);
	fd_closep(&k->stream[CELL_OUT].fd);
	fd_closep(&k->stream[CELL_ERR].fd);
	kernel_wait_drop(k);
	kernel_request_free(k);
	freep(&k->cwd);
	k->state = KERNEL_FREE;
	while (n_table && table[n_table - 1].state == KERNEL_FREE)
		n_table--;
}

/* These sockets are new, or have got one small packet at most: a send that fails means that nobody is there. */
void kernel_failed(int sock, enum wire_step step, int err)
{
	const struct wire_failed failed = { .step = step, .err = err < 0 ? -err : err };

	(void)!wire_send(sock, WIRE_FAILED, &failed, sizeof(failed));
	fd_close(sock);
}

void kernel_answer(int *sock, enum wire_step step, int err)
{
	int fd = take_fd(sock);

	if (fd < 0)
		return;
	if (err) {
		kernel_failed(fd, step, err);
		return;
	}
	(void)!wire_send(fd, WIRE_DONE, NULL, 0);
	fd_close(fd);
}

void kernel_ready(struct kernel *k, uint64_t pid)
{
	if (pid <= 1 || pid > INT32_MAX) {
		kernel_broken(k);
		return;
	}
	/* Nothing foreign has run in an adopted one yet. Our own child's number we know better. */
	if (!k->child)
		k->pid = (pid_t)pid;
	k->state = KERNEL_READY;
	k->deadline_us = 0;
	kernel_usage_ready(k);
	kernel_answer(&k->starter, WIRE_STEP_NONE, 0);
}

void kernels_reaped(pid_t pid, int status, const struct rusage *used)
{
	for (size_t i = 0; i < n_table; i++) {
		struct kernel *k = &table[i];

		if (k->state == KERNEL_FREE || !k->child || !k->alive || k->pid != pid)
			continue;
		k->alive = false;
		k->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		k->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		k->exit.core = WIFSIGNALED(status) && WCOREDUMP(status) ? 1 : 0;
		kernel_usage_reaped(k, used);
	}
}

/* Its process has ended. What it left in the pipes is still to be told. */
static void kernel_gone(struct kernel *k)
{
	k->state = KERNEL_ENDED;
	k->deadline_us = k->again_us = k->kill_us = k->presume_us = k->look_us = 0;
	kernel_pump_last(k);
	fd_closep(&k->requests_fd);
	fd_closep(&k->status_fd);
	kernel_answer(&k->starter, k->why.step, k->why.err);
	/* What was forked between the kill and the end. */
	if (k->killed)
		kernel_sweep(k->pid);
	for (size_t i = 0; i < KERNEL_KILLERS_MAX; i++)
		kernel_answer(&k->killers[i], WIRE_STEP_NONE, 0);
	cells_fail_waiting(k);
}

static void kernel_finish(struct kernel *k)
{
	if (k->state == KERNEL_STARTING)
		kernel_read_status(k);
	kernel_check_deadlines(k);
	if (!k->alive && k->state != KERNEL_ENDED)
		kernel_gone(k);
	/* What a cell leaves undone is for the next round, when the others had theirs. */
	kernel_feed(k);
	kernel_pump(k);
	cells_turn(k);
	if (k->state == KERNEL_ENDED && !k->cell)
		kernel_free(k);
	else if (k->state != KERNEL_ENDED && !k->alive)
		k->more = true; /* no signal will tell of it */
}

void kernels_finish(void)
{
	for (size_t i = 0; i < n_table; i++)
		if (table[i].state != KERNEL_FREE)
			kernel_finish(&table[i]);
}

static void requests_ready(void *object, short events)
{
	(void)object; /* kernel_finish() writes on */
	(void)events;
}

void kernels_watch(void)
{
	for (size_t i = 0; i < n_table; i++) {
		struct kernel *k = &table[i];

		if (k->state == KERNEL_FREE)
			continue;
		if (k->state == KERNEL_STARTING || !k->child)
			loop_watch(k->status_fd, POLLIN, kernel_status_ready, k);
		if (k->cell && k->cell->state == CELL_FEEDING)
			loop_watch(k->requests_fd, POLLOUT, requests_ready, k);
		kernel_pump_watch(k);
		kernel_watch_deadlines(k);
	}
	cells_watch();
	kernel_listers_watch();
}
