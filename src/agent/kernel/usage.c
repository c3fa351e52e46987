/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cell uses, as far as it can be seen from here: CPU time of the kernel and of the children
 * it has reaped, and memory of the kernel. What runs in the kernel can deceive us about neither,
 * but can have the work done by children it does not reap; the box's own limits hold for those.
 */
#include "agent/kernel/kernel.h"

#include <fcntl.h>
#include <time.h>

#define LOOK_US 50000    /* how often a cell with limits is looked at */
#define AWAKE_US 1000000 /* and any other, so that a pause of the box is not counted as its time */

/* --- what the system knows of a process ------------------------------------------------------ */

/* Only what the system itself writes is read: never a name. */

/* The fields of /proc/PID/stat, as proc(5) counts them. */
enum {
	FIELD_STATE = 3,
	FIELD_SESSION = 6,
	FIELD_CUTIME = 16,
	FIELD_CSTIME = 17,
	FIELD_START = 22,
	FIELD_RSS = 24,
};

struct kernel_proc_status {
	uint32_t uid, gid;
	uint64_t peak; /* of rss */
};

static int proc_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[32];
	_cleanup_(fd_closep) int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	fd = openat(agent_pids(), path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* The digits there, or 0. */
static uint64_t proc_number(const char *at)
{
	uint64_t n = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	return n;
}

/* What stands behind so many spaces, or the end of the text. */
static const char *behind(const char *at, unsigned spaces)
{
	while (spaces && *at)
		spaces -= *at++ == ' ';
	return at;
}

int kernel_proc_stat(pid_t pid, struct kernel_proc *ret)
{
	char text[1024];
	const char *name_end;
	int r = proc_read(pid, "stat", text, sizeof(text));

	if (r < 0)
		return r;
	name_end = strrchr(text, ')'); /* the name before it may hold anything, also this */
	if (!name_end)
		return -ESRCH;
	ret->state = *behind(name_end, FIELD_STATE - 2);
	ret->start = proc_number(behind(name_end, FIELD_START - 2));
	ret->session = (pid_t)proc_number(behind(name_end, FIELD_SESSION - 2));
	ret->reaped_us = (proc_number(behind(name_end, FIELD_CUTIME - 2)) +
			  proc_number(behind(name_end, FIELD_CSTIME - 2))) *
			 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	ret->rss = proc_number(behind(name_end, FIELD_RSS - 2)) * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

/* Is it the process that it was when it was ready? Of our own children we know without looking. */
bool kernel_lives(const struct kernel *k)
{
	struct kernel_proc p;

	if (k->child)
		return k->alive;
	return kernel_proc_stat(k->pid, &p) == 0 && p.start == k->start && p.state != 'Z' &&
	       p.state != 'X';
}

/* A line's first number. The name of the process stands in the first line, which is not looked
 * at. */
static uint64_t line_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? proc_number(at + strlen(name) + strspn(at + strlen(name), " \t")) : 0;
}

static int kernel_proc_status(pid_t pid, struct kernel_proc_status *ret)
{
	char text[4096];
	int r = proc_read(pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	ret->uid = (uint32_t)line_number(text, "\nUid:");
	ret->gid = (uint32_t)line_number(text, "\nGid:");
	ret->peak = line_number(text, "\nVmHWM:") * 1024;
	return 0;
}

/* --- what a cell uses ------------------------------------------------------------------------ */

/* Of all its threads, also those that have ended, to the nanosecond. */
static uint64_t own_cpu_us(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void kernel_usage_ready(struct kernel *k)
{
	struct kernel_proc_status status;
	struct kernel_proc p;

	if (kernel_proc_stat(k->pid, &p) == 0) {
		k->start = p.start;
		k->ready_rss = p.rss;
		k->reaped_cpu_us = p.reaped_us;
	}
	if (kernel_proc_status(k->pid, &status) < 0)
		return;
	k->peak = status.peak;
	k->knows_user = true;
	k->uid = status.uid;
	k->gid = status.gid;
}

static bool has_limits(const struct cell *c)
{
	return c->request.wall_ms || c->request.cpu_ms || c->request.memory_bytes;
}

void kernel_usage_begin(struct kernel *k)
{
	struct cell *c = k->cell;

	c->cpu_begun_us = own_cpu_us(k->pid) + k->reaped_cpu_us;
	c->peak_begun = k->peak;
	k->look_us = kernel_now_us() + (has_limits(c) ? LOOK_US : AWAKE_US);
}

static void note_memory(struct kernel *k, uint64_t rss)
{
	k->cell->memory_seen = MAX(k->cell->memory_seen, rss - MIN(rss, k->ready_rss));
}

static void note_cpu(struct kernel *k, uint64_t cpu_us)
{
	k->cell->end.cpu_us = cpu_us - MIN(cpu_us, k->cell->cpu_begun_us);
}

/* A process that ends can be seen half: its clock is gone, or its memory. Then what was seen before
 * stays. */
static void usage_look(struct kernel *k)
{
	uint64_t own_us = own_cpu_us(k->pid);
	struct kernel_proc p;

	if (kernel_proc_stat(k->pid, &p) < 0)
		return;
	k->reaped_cpu_us = p.reaped_us;
	if (own_us)
		note_cpu(k, own_us + p.reaped_us);
	note_memory(k, p.rss);
}

static void check_limits(struct kernel *k)
{
	const struct cell *c = k->cell;
	const struct wire_cell *q = &c->request;

	if (q->wall_ms && (kernel_now_us() - c->begun_us) / 1000 >= q->wall_ms)
		kernel_interrupt(k, WIRE_CELL_WALL, KERNEL_LIMIT_PATIENCE_US);
	else if (q->cpu_ms && c->end.cpu_us / 1000 >= q->cpu_ms)
		kernel_interrupt(k, WIRE_CELL_CPU, KERNEL_LIMIT_PATIENCE_US);
	else if (q->memory_bytes && c->memory_seen > q->memory_bytes)
		kernel_interrupt(k, WIRE_CELL_MEMORY, KERNEL_LIMIT_PATIENCE_US);
}

void kernel_usage_look(struct kernel *k)
{
	struct cell *c = k->cell;

	if (!cell_is_on(c))
		return;
	if (c->request.cpu_ms || c->request.memory_bytes)
		usage_look(k);
	if (!k->kill_us)
		check_limits(k);
	k->look_us = kernel_now_us() + (has_limits(c) ? LOOK_US : AWAKE_US);
}

/*
 * The kernel's peak only ever rises, and only its owner could set it back: in a cell that raised
 * it, it is the cell's. In one that did not, it is what was seen in between and at the end.
 */
void kernel_usage_end(struct kernel *k)
{
	struct cell *c = k->cell;
	struct kernel_proc_status status;

	if (k->state != KERNEL_ENDED) {
		usage_look(k);
		if (kernel_proc_status(k->pid, &status) == 0)
			k->peak = MAX(k->peak, status.peak);
	}
	if (k->peak > c->peak_begun)
		note_memory(k, k->peak);
	c->end.memory_peak = c->memory_seen;
}

/* The kernel's last word about one of our own children. */
void kernel_usage_reaped(struct kernel *k, const struct rusage *used)
{
	const struct timeval *user = &used->ru_utime, *in_kernel = &used->ru_stime;

	k->peak = MAX(k->peak, (uint64_t)used->ru_maxrss * 1024);
	if (cell_is_on(k->cell))
		note_cpu(k, ((uint64_t)user->tv_sec + (uint64_t)in_kernel->tv_sec) * 1000000 +
				    (uint64_t)user->tv_usec + (uint64_t)in_kernel->tv_usec);
}
