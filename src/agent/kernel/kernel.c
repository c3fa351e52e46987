/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels. They are started here as a command is, or forked outside and adopted. */
#include "agent/kernel/kernel.h"

#include "agent/child.h"
#include "agent/loop.h"
#include "base/clock.h"
#include "sys/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LOAD_US 60000000 /* how long a kernel may take to be ready */
#define LOOK_US 1000000  /* how often we look at the clock while there is something to time */
#define PAUSE_US 3000000 /* a step of the clock that is larger was a pause of the box */

static struct kernel table[KERNEL_SLOTS];
/* Every slot that is in use lies below: the others are never touched, so they are not there. */
static size_t n_table;
static uint64_t n_made;

/*
 * A frozen box's clock goes on, and so do the deadlines of those that sleep in it. A kernel with
 * one here looks at this clock every LOOK_US, so a step that is much larger means that nobody was
 * awake. A pause of less than PAUSE_US counts as if there had been none.
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

static struct kernel *kernel_slot(void)
{
	for (size_t i = 0; i < KERNEL_SLOTS; i++)
		if (table[i].state == KERNEL_FREE)
			return &table[i];
	return NULL;
}

static int kernel_new(const struct wire_context *context, struct kernel **ret)
{
	struct kernel *k = kernel_slot();

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

static void kernel_free(struct kernel *k)
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

/* These sockets are new, or have got one small packet at most: a send that fails means that nobody
 * is there. */
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

/* --- where they come from -------------------------------------------------------------------- */

/* [0] is the agent's end, [1] the kernel's. */
struct kernel_ends {
	int requests[2];
	int events[2];
	int out[2];
	int err[2];
	int status[2];
};

#define END_INIT                                                                                   \
	{                                                                                          \
		-EBADF, -EBADF                                                                     \
	}
#define KERNEL_ENDS_INIT                                                                           \
	{                                                                                          \
		END_INIT, END_INIT, END_INIT, END_INIT, END_INIT                                   \
	}

static void kernel_ends_done(struct kernel_ends *e)
{
	for (int i = 0; i < 2; i++) {
		fd_closep(&e->requests[i]);
		fd_closep(&e->events[i]);
		fd_closep(&e->out[i]);
		fd_closep(&e->err[i]);
		fd_closep(&e->status[i]);
	}
}

/* All four belong to the user: some languages can only open /dev/fd/3 by its name. */
static int kernel_open_ends(const struct wire_exec *q, struct kernel_ends *e)
{
	int r = agent_pipe(q, &e->requests[1], &e->requests[0]);

	if (r == 0)
		r = agent_pipe(q, &e->events[0], &e->events[1]);
	if (r == 0)
		r = agent_pipe(q, &e->out[0], &e->out[1]);
	if (r == 0)
		r = agent_pipe(q, &e->err[0], &e->err[1]);
	return r < 0 ? r : sock_pair(e->status);
}

static pid_t kernel_fork(const struct wire_exec *q, const struct kernel_ends *e, int sock,
			 const int *join_fds, size_t n_join)
{
	const struct agent_child child = {
		.request = *q,
		.own_stdio = true,
		.kernel = true,
		.in_fd = -EBADF,
		.out_fd = e->out[1],
		.err_fd = e->err[1],
		.requests_fd = e->requests[1],
		.events_fd = e->events[1],
		.status_fd = e->status[1],
	};
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		agent_child_run(&child, sock, join_fds, n_join);
	return pid;
}

/* From here on the pipes are the kernel's. None of them may make us wait. */
static void keep_pipes(struct kernel *k, const int fds[_WIRE_ADOPT_MAX])
{
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		(void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
	k->requests_fd = fds[WIRE_ADOPT_REQUESTS];
	k->events_fd = fds[WIRE_ADOPT_EVENTS];
	k->stream[CELL_OUT].fd = fds[WIRE_ADOPT_OUT];
	k->stream[CELL_ERR].fd = fds[WIRE_ADOPT_ERR];
	k->status_fd = fds[WIRE_ADOPT_STATUS];
}

void kernel_start(const struct wire_kernel *q, int sock, const int *join_fds, size_t n_join)
{
	_cleanup_(kernel_ends_done) struct kernel_ends ends = KERNEL_ENDS_INIT;
	struct kernel *k;
	pid_t pid;
	int r = kernel_new(&q->context, &k);

	if (r < 0) {
		kernel_failed(sock, WIRE_STEP_CONTEXT, r);
		return;
	}
	if (n_join == 0) {
		join_fds = agent_defaults.join_fds;
		n_join = agent_defaults.n_join;
	}
	agent_defaults.request = q->exec;
	r = kernel_open_ends(&q->exec, &ends);
	pid = r < 0 ? r : kernel_fork(&q->exec, &ends, sock, join_fds, n_join);
	if (pid < 0) {
		kernel_free(k);
		kernel_failed(sock, WIRE_STEP_REQUEST, pid);
		return;
	}
	keep_pipes(k, (const int[_WIRE_ADOPT_MAX]){
			      [WIRE_ADOPT_REQUESTS] = take_fd(&ends.requests[0]),
			      [WIRE_ADOPT_EVENTS] = take_fd(&ends.events[0]),
			      [WIRE_ADOPT_OUT] = take_fd(&ends.out[0]),
			      [WIRE_ADOPT_ERR] = take_fd(&ends.err[0]),
			      [WIRE_ADOPT_STATUS] = take_fd(&ends.status[0]),
		      });
	k->state = KERNEL_STARTING;
	k->pid = pid;
	k->child = true;
	k->starter = sock;
}

/* Nobody has used the one of that name yet, and a better one has come: it loses the name, and
 * ends. */
static void make_way(const char *name)
{
	struct kernel *k = kernel_find(name);

	if (!k || k->child || k->begun || k->n_cells > 0)
		return;
	k->context.name[0] = '\0';
	kernel_kill(k);
}

/* One that is not wanted finds the end of its requests, and ends. */
void kernel_adopt(const struct wire_context *q, int fds[_WIRE_ADOPT_MAX])
{
	struct kernel *k;

	make_way(q->name);
	if (kernel_new(q, &k) == 0) {
		keep_pipes(k, fds);
		return;
	}
	for (size_t i = 0; i < _WIRE_ADOPT_MAX; i++)
		fd_close(fds[i]);
}

/* What our child says until it has executed. */
static void kernel_read_status(struct kernel *k)
{
	static struct wire_frame f;
	const struct wire_process process = { .pid = (uint32_t)k->pid };
	int r = wire_recv(k->status_fd, &f, WIRE_ON_TO_OP | WIRE_ON_FROM_OP);

	if (r == -EAGAIN || (r == 1 && f.head.type == WIRE_LABEL))
		return;
	fd_closep(&k->status_fd);
	k->state = KERNEL_LOADING;
	if (r == 0) {
		(void)fcntl(k->starter, F_SETFL, O_NONBLOCK);
		(void)!wire_send(k->starter, WIRE_STARTED, &process, sizeof(process));
		return;
	}
	/* It says why it could not; the name is free when that is told. */
	if (r == 1 && f.head.type == WIRE_FAILED)
		memcpy(&k->why, f.data, sizeof(k->why));
	kernel_kill(k);
}

/* What was to tell of its end is gone, and it is not: from now on its own descriptor tells, which
 * cannot be read. */
static bool lives_on(struct kernel *k)
{
	_cleanup_(fd_closep) int fd = k->pid > 1 ? (int)syscall(SYS_pidfd_open, k->pid, 0) : -EBADF;
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd < 0 || poll(&ended, 1, 0) != 0)
		return false;
	fd_close(k->status_fd);
	k->status_fd = take_fd(&fd);
	return true;
}

/* How an adopted one ended, or only that it did: then nobody knows how. */
static void read_exit(struct kernel *k)
{
	struct wire_exit e;
	ssize_t n = read(k->status_fd, &e, sizeof(e));

	if ((n < 0 && (errno == EAGAIN || errno == EINTR)) || (n == 0 && lives_on(k)))
		return;
	if (n != (ssize_t)sizeof(e))
		e = (struct wire_exit){ .code = -1, .signal = k->killed ? SIGKILL : 0 };
	k->exit = e;
	k->alive = false;
	fd_closep(&k->status_fd);
}

static void kernel_status_ready(void *object, short events)
{
	struct kernel *k = object;

	(void)events;
	/* Our own child's words are read by kernel_finish(), in every round. */
	if (!k->child && k->status_fd >= 0)
		read_exit(k);
}

/* --- how they end ---------------------------------------------------------------------------- */

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
