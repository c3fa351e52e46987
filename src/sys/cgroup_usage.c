/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command and its descendants have used. While it runs this is asked for every few
 * milliseconds, so the files stay open from the first sample on and are read again from offset 0.
 */
#include "sys/cgroup_priv.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum stat_slot {
	STAT_MEMORY,
	STAT_MEMORY_PEAK,
	STAT_OOM,
	STAT_PIDS,
	STAT_PIDS_PEAK,
	STAT_PIDS_EVENTS,
	STAT_CPU,
	STAT_CPU_USER,
	STAT_CPU_SYSTEM,
	_STAT_MAX,
};
_Static_assert(_STAT_MAX <= CGROUP_STAT_MAX, "stat_fd is too small");

/* NUL-terminated text of a file in the directory, -ENOENT when this kernel has no such file. */
static int stat_text(struct cgroup_exec *e, enum stat_slot slot, int dir, const char *file,
		     char *buf, size_t size)
{
	int fd = e->stat_fd[slot];

	if (fd == -EBADF) {
		fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
		/* That a file is absent is worth remembering too; other errors may pass. */
		if (fd >= 0 || fd == -ENOENT)
			e->stat_fd[slot] = fd;
	}
	return fd < 0 ? fd : cgroup_read_fd(fd, buf, size);
}

static int stat_u64(struct cgroup_exec *e, enum stat_slot slot, int dir, const char *file,
		    uint64_t *ret)
{
	char text[32];
	int r = stat_text(e, slot, dir, file, text, sizeof(text));

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, ret);
}

/* For files that came with a later kernel: 0 then. */
static int stat_u64_optional(struct cgroup_exec *e, enum stat_slot slot, int dir, const char *file,
			     uint64_t *ret)
{
	int r = stat_u64(e, slot, dir, file, ret);

	return r == -ENOENT ? 0 : r;
}

/* One number of a file of "key number" lines, which must be there. */
static int stat_keyed(struct cgroup_exec *e, enum stat_slot slot, int dir, const char *file,
		      const char *key, uint64_t *ret)
{
	char text[512];
	int r = stat_text(e, slot, dir, file, text, sizeof(text));

	if (r < 0)
		return r;
	return cgroup_keyed_u64(text, key, ret) ? 0 : -ENODATA;
}

static uint64_t keyed_or_0(const char *text, const char *key)
{
	uint64_t value = 0;

	(void)cgroup_keyed_u64(text, key, &value);
	return value;
}

/* A number of a leaf below its box's directory, where memory and pids always have one. */
static int leaf_number(const struct cgroup_box *b, const struct cgroup_exec *e, size_t i,
		       const char *file, uint64_t *ret)
{
	char path[128], text[32];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", b->name, cgroup_exec_name(NULL, e->n).text,
		       file);
	r = cgroup_read(b->host->hier[i].fd, path, text, sizeof(text));
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, ret);
}

int cgroup_exec_glance(const struct cgroup_box *b, const struct cgroup_exec *e,
		       uint64_t *ret_memory, uint32_t *ret_tasks)
{
	bool v2 = b->host->mode == CGROUP_V2;
	uint64_t memory = 0, tasks = 0;
	int r = 0;

	for (size_t i = 0; i < b->host->n_hier && r == 0; i++) {
		unsigned controllers = b->host->hier[i].controllers;

		if (controllers & CGROUP_MEMORY)
			r = leaf_number(b, e, i, v2 ? "memory.current" : "memory.usage_in_bytes",
					&memory);
		if (r == 0 && (controllers & CGROUP_PIDS))
			r = leaf_number(b, e, i, "pids.current", &tasks);
	}
	if (r < 0)
		return r;
	*ret_memory = memory;
	*ret_tasks = (uint32_t)tasks;
	return 0;
}

int cgroup_box_oom_kills(const struct cgroup_box *b, uint64_t *ret)
{
	bool v2 = b->host->mode == CGROUP_V2;
	char text[512];

	for (size_t i = 0; i < b->host->n_hier; i++) {
		int r;

		if (!(b->host->hier[i].controllers & CGROUP_MEMORY) || b->fd[i] < 0)
			continue;
		r = cgroup_read(b->fd[i], v2 ? "memory.events" : "memory.oom_control", text,
				sizeof(text));
		if (r < 0)
			return r;
		return cgroup_keyed_u64(text, "oom_kill", ret) ? 0 : -ENODATA;
	}
	return -EOPNOTSUPP;
}

/* The two versions agree on pids. */
static int sample_pids(struct cgroup_exec *e, int dir, struct cgroup_usage *u)
{
	uint64_t now = 0, peak = 0;
	int r;

	r = stat_u64(e, STAT_PIDS, dir, "pids.current", &now);
	if (r >= 0)
		r = stat_u64_optional(e, STAT_PIDS_PEAK, dir, "pids.peak", &peak);
	if (r >= 0)
		r = stat_keyed(e, STAT_PIDS_EVENTS, dir, "pids.events", "max", &u->pids_denied);
	if (r < 0)
		return r;
	u->pids_now = (uint32_t)now;
	u->pids_peak = (uint32_t)peak;
	return 0;
}

static int v1_sample_memory(struct cgroup_exec *e, int dir, struct cgroup_usage *u)
{
	char text[8192];
	int r;

	r = stat_text(e, STAT_MEMORY, dir, "memory.stat", text, sizeof(text));
	if (r >= 0)
		r = stat_u64(e, STAT_MEMORY_PEAK, dir, "memory.max_usage_in_bytes",
			     &u->memory_peak);
	if (r >= 0)
		r = stat_keyed(e, STAT_OOM, dir, "memory.oom_control", "oom_kill", &u->oom_kills);
	if (r < 0)
		return r;
	u->memory_shmem = keyed_or_0(text, "total_shmem");
	u->memory_cache = keyed_or_0(text, "total_cache");
	u->memory_cache -= MIN(u->memory_shmem, u->memory_cache);
	/* v1 does not tell which of the kernel's memory it could give back: leave it all to the
	 * cap. */
	u->memory_now = keyed_or_0(text, "total_rss") + u->memory_shmem;
	return 0;
}

/*
 * v1 takes user and system time at clock ticks and the whole precisely. Divide the whole in the
 * ticks' ratio, as the kernel does for v2 and for rusage, so that the parts always add up.
 */
void cgroup_split_cpu(uint64_t all, uint64_t *user, uint64_t *system_time)
{
	unsigned __int128 ticks = (unsigned __int128)*user + *system_time;

	*system_time = ticks > 0 ? (uint64_t)((unsigned __int128)all * *system_time / ticks) : 0;
	*user = all - *system_time;
}

static int v1_sample_cpu(struct cgroup_exec *e, int dir, struct cgroup_usage *u)
{
	uint64_t all_ns = 0, user_ns = 0, system_ns = 0;
	int r;

	r = stat_u64(e, STAT_CPU, dir, "cpuacct.usage", &all_ns);
	if (r >= 0)
		r = stat_u64(e, STAT_CPU_USER, dir, "cpuacct.usage_user", &user_ns);
	if (r >= 0)
		r = stat_u64(e, STAT_CPU_SYSTEM, dir, "cpuacct.usage_sys", &system_ns);
	if (r < 0)
		return r;
	u->cpu_us = all_ns / 1000;
	u->cpu_user_us = user_ns / 1000;
	u->cpu_system_us = system_ns / 1000;
	cgroup_split_cpu(u->cpu_us, &u->cpu_user_us, &u->cpu_system_us);
	return 0;
}

/* Works without any controller: the core keeps CPU time for every cgroup. */
static int v2_sample_cpu(struct cgroup_exec *e, int dir, struct cgroup_usage *u)
{
	char text[1024];
	int r = stat_text(e, STAT_CPU, dir, "cpu.stat", text, sizeof(text));

	if (r < 0)
		return r;
	if (!cgroup_keyed_u64(text, "usage_usec", &u->cpu_us))
		return -ENODATA;
	u->cpu_user_us = keyed_or_0(text, "user_usec");
	u->cpu_system_us = keyed_or_0(text, "system_usec");
	return 0;
}

int cgroup_v1_cpu_before(const struct cgroup_box *b, struct cgroup_exec *e)
{
	for (size_t i = 0; i < b->host->n_hier; i++)
		if (b->host->hier[i].controllers & CGROUP_CLONE_INTO)
			return v2_sample_cpu(e, b->fd[i], &e->before);
	return 0;
}

int cgroup_v1_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e, struct cgroup_usage *u)
{
	for (size_t i = 0; i < b->host->n_hier; i++) {
		unsigned controllers = b->host->hier[i].controllers;
		int r = 0;

		if (controllers & CGROUP_CLONE_INTO)
			r = v2_sample_cpu(e, b->fd[i], u); /* hybrid: the box's */
		if (r < 0)
			return r;
		if (e->fd[i] < 0)
			continue;
		if (controllers & CGROUP_MEMORY)
			r = v1_sample_memory(e, e->fd[i], u);
		if (r >= 0 && (controllers & CGROUP_PIDS))
			r = sample_pids(e, e->fd[i], u);
		if (r >= 0 && (controllers & CGROUP_CPUACCT))
			r = v1_sample_cpu(e, e->fd[i], u);
		if (r < 0)
			return r;
	}
	if (b->shared & CGROUP_PIDS) { /* the agent is not the command's */
		u->pids_now -= MIN(u->pids_now, 1u);
		u->pids_peak -= MIN(u->pids_peak, 1u);
	}
	return 0;
}

/* "kernel" came with 5.18; before that the sum of what it is made of. */
static uint64_t v2_kernel_memory(const char *text)
{
	uint64_t sum;

	if (cgroup_keyed_u64(text, "kernel", &sum))
		return sum;
	return keyed_or_0(text, "kernel_stack") + keyed_or_0(text, "pagetables") +
	       keyed_or_0(text, "percpu") + keyed_or_0(text, "slab");
}

static int v2_sample_memory(struct cgroup_exec *e, int dir, struct cgroup_usage *u)
{
	char text[8192];
	int r;

	r = stat_text(e, STAT_MEMORY, dir, "memory.stat", text, sizeof(text));
	if (r >= 0)
		r = stat_u64_optional(e, STAT_MEMORY_PEAK, dir, "memory.peak", &u->memory_peak);
	if (r >= 0)
		r = stat_keyed(e, STAT_OOM, dir, "memory.events", "oom_kill", &u->oom_kills);
	if (r < 0)
		return r;
	u->memory_shmem = keyed_or_0(text, "shmem");
	u->memory_cache = keyed_or_0(text, "file");
	u->memory_cache -= MIN(u->memory_shmem, u->memory_cache);
	u->memory_now = keyed_or_0(text, "anon") + u->memory_shmem + keyed_or_0(text, "sock") +
			v2_kernel_memory(text) - keyed_or_0(text, "slab_reclaimable");
	return 0;
}

int cgroup_v2_exec_sample(const struct cgroup_box *b, struct cgroup_exec *e, struct cgroup_usage *u)
{
	int dir = e->fd[0];
	int r = v2_sample_cpu(e, dir, u);

	if (r >= 0 && (b->host->features & CGROUP_MEMORY))
		r = v2_sample_memory(e, dir, u);
	if (r >= 0 && (b->host->features & CGROUP_PIDS))
		r = sample_pids(e, dir, u);
	return r;
}
