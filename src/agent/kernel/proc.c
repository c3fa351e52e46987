/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells about a process. Only what the kernel itself writes is read: never a name. */
#include "agent/kernel/kernel.h"

#include <fcntl.h>

/* The fields of /proc/PID/stat, as proc(5) counts them. */
enum {
	FIELD_STATE = 3,
	FIELD_SESSION = 6,
	FIELD_CUTIME = 16,
	FIELD_CSTIME = 17,
	FIELD_START = 22,
	FIELD_RSS = 24,
};

static int read_file(pid_t pid, const char *name, char *text, size_t size)
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
static uint64_t number_at(const char *at)
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
	int r = read_file(pid, "stat", text, sizeof(text));

	if (r < 0)
		return r;
	name_end = strrchr(text, ')'); /* the name before it may hold anything, also this */
	if (!name_end)
		return -ESRCH;
	ret->state = *behind(name_end, FIELD_STATE - 2);
	ret->start = number_at(behind(name_end, FIELD_START - 2));
	ret->session = (pid_t)number_at(behind(name_end, FIELD_SESSION - 2));
	ret->reaped_us = (number_at(behind(name_end, FIELD_CUTIME - 2)) +
			  number_at(behind(name_end, FIELD_CSTIME - 2))) *
			 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	ret->rss = number_at(behind(name_end, FIELD_RSS - 2)) * (uint64_t)sysconf(_SC_PAGESIZE);
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

/* A line's first number. The name of the process stands in the first line, which is not looked at. */
static uint64_t line_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? number_at(at + strlen(name) + strspn(at + strlen(name), " \t")) : 0;
}

int kernel_proc_status(pid_t pid, struct kernel_proc_status *ret)
{
	char text[4096];
	int r = read_file(pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	ret->uid = (uint32_t)line_number(text, "\nUid:");
	ret->gid = (uint32_t)line_number(text, "\nGid:");
	ret->peak = line_number(text, "\nVmHWM:") * 1024;
	return 0;
}
