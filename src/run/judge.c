/* SPDX-License-Identifier: Apache-2.0 */
#include "run/judge.h"

#include <assert.h>
#include <signal.h>

#define DISK_FULL 4096 /* less than this is of no use to anybody */

uint64_t run_memory(uint64_t now, uint64_t shared, uint64_t disk_used)
{
	return now - MIN(shared, MIN(disk_used, now));
}

/* Ended by SIGKILL, or a shell that says so of its child. */
static bool was_killed(const struct wire_exit *end)
{
	return end && (end->signal == SIGKILL || end->code == 128 + SIGKILL);
}

/* Where nobody counts it there is Linux's own limit, for each process, which says so with
 * SIGXCPU. */
static bool used_up_cpu_time(const struct run_limits *l, const struct run_seen *s)
{
	if (!l->cpu_time_us)
		return false;
	return s->cpu_counted ? s->cpu_us >= l->cpu_time_us : s->end && s->end->signal == SIGXCPU;
}

/*
 * The order is that of certainty. What we did ourselves comes first: the output that we cut, the
 * agent's own clock. A full disk comes before memory, for Linux charges both to one account, and
 * with a full disk it may be files for which a process was killed. Time comes last: a run that was
 * held up by another limit is late as well.
 */
enum run_limit run_judge(const struct run_limits *l, const struct run_seen *s)
{
	bool failed = s->end && s->end->code != 0, counts = !s->shared || failed;

	if (s->output_cut)
		return RUN_LIMIT_OUTPUT;
	if (s->end && s->end->timed_out)
		return RUN_LIMIT_TIME;
	if (counts && s->files_free == 0)
		return RUN_LIMIT_FILES;
	if (counts && s->disk_free < DISK_FULL)
		return RUN_LIMIT_DISK;
	if (s->shared ? s->memory_kills && was_killed(s->end) :
			s->memory_kills || s->memory > l->memory_bytes)
		return RUN_LIMIT_MEMORY;
	if (counts && s->pids_denied)
		return RUN_LIMIT_PIDS;
	if (used_up_cpu_time(l, s))
		return RUN_LIMIT_CPU_TIME;
	/* What has ended by itself was not ended by the clock. */
	return !s->end && s->wall_us >= l->timeout_us ? RUN_LIMIT_TIME : RUN_LIMIT_NONE;
}

enum run_status run_limit_status(enum run_limit limit)
{
	static const enum run_status of[_RUN_LIMIT_MAX] = {
		[RUN_LIMIT_NONE] = RUN_OK,
		[RUN_LIMIT_TIME] = RUN_TIMEOUT,
		[RUN_LIMIT_CPU_TIME] = RUN_CPU_LIMIT,
		[RUN_LIMIT_MEMORY] = RUN_MEMORY_LIMIT,
		[RUN_LIMIT_DISK] = RUN_DISK_LIMIT,
		[RUN_LIMIT_FILES] = RUN_DISK_LIMIT,
		[RUN_LIMIT_PIDS] = RUN_PIDS_LIMIT,
		[RUN_LIMIT_OUTPUT] = RUN_OUTPUT_LIMIT,
	};

	return of[limit];
}

enum run_status run_end_status(const struct wire_exit *end, const char **ret_why)
{
	*ret_why = end->signal == SIGSYS ? "killed for a system call of a foreign kind (32-bit "
					   "programs are not enabled in a box)" :
					   "";
	if (end->signal)
		return RUN_SIGNAL;
	return end->code == 0 ? RUN_OK : RUN_ERROR;
}

enum run_limit run_cell_limit(const struct wire_cell_end *end)
{
	static const enum run_limit of[_WIRE_CELL_MAX] = {
		[WIRE_CELL_WALL] = RUN_LIMIT_TIME,
		[WIRE_CELL_CPU] = RUN_LIMIT_CPU_TIME,
		[WIRE_CELL_MEMORY] = RUN_LIMIT_MEMORY,
	};

	return of[end->reason];
}

const char *run_cell_error(enum run_limit limit)
{
	static const char *const names[_RUN_LIMIT_MAX] = {
		[RUN_LIMIT_TIME] = "CellTimeout",
		[RUN_LIMIT_CPU_TIME] = "CellCpuLimit",
		[RUN_LIMIT_MEMORY] = "CellMemoryLimit",
	};

	return names[limit];
}

/* --- words ----------------------------------------------------------------------------------- */

/* In the order of enum run_limit. */
const struct run_words run_words_options = {
	"it",
	{ NULL, "--timeout", "--cpu-time", "--memory", "--disk", "--files", "--pids", "--output" },
};
const struct run_words run_words_fields = {
	"it",
	{ NULL, "limits.timeout_ms", "limits.cpu_time_ms", "limits.memory_bytes",
	  "limits.disk_bytes", "limits.files", "limits.pids", "limits.output_bytes" },
};
const struct run_words run_words_cell = {
	"the cell",
	{ NULL, "limits.wall_ms", "limits.cpu_ms", "limits.memory_mb" },
};
const struct run_words run_words_command = { "the command", { NULL, "its time-out" } };
const struct run_words run_words_sandbox = {
	"the sandbox",
	{ NULL, NULL, NULL, "sandbox.memory in glovebox.toml", "sandbox.disk in glovebox.toml",
	  "sandbox.files in glovebox.toml", "sandbox.pids in glovebox.toml" },
};

#define VALUE_SIZE 32

static void duration_text(uint64_t us, char ret[static VALUE_SIZE])
{
	if (us % 1000000 == 0)
		(void)snprintf(ret, VALUE_SIZE, "%llu s", (unsigned long long)us / 1000000);
	else
		(void)snprintf(ret, VALUE_SIZE, "%g ms", (double)us / 1000);
}

static void bytes_text(uint64_t n, char ret[static VALUE_SIZE])
{
	if (n && n % (1 << 20) == 0)
		(void)snprintf(ret, VALUE_SIZE, "%llu MiB", (unsigned long long)n >> 20);
	else if (n && n % (1 << 10) == 0)
		(void)snprintf(ret, VALUE_SIZE, "%llu KiB", (unsigned long long)n >> 10);
	else
		(void)snprintf(ret, VALUE_SIZE, "%llu bytes", (unsigned long long)n);
}

static void count_text(uint64_t n, char ret[static VALUE_SIZE])
{
	(void)snprintf(ret, VALUE_SIZE, "%llu", (unsigned long long)n);
}

void run_limit_text(enum run_limit limit, const struct run_limits *l, const struct run_words *w,
		    char ret[static RUN_LIMIT_TEXT_SIZE])
{
	const struct {
		const char *what;
		void (*text)(uint64_t value, char ret[static VALUE_SIZE]);
		uint64_t value;
	} limits[_RUN_LIMIT_MAX] = {
		[RUN_LIMIT_TIME] = { "ran longer", duration_text, l->timeout_us },
		[RUN_LIMIT_CPU_TIME] = { "used more CPU time", duration_text, l->cpu_time_us },
		[RUN_LIMIT_MEMORY] = { "used more memory", bytes_text, l->memory_bytes },
		[RUN_LIMIT_DISK] = { "wrote more", bytes_text, l->disk_bytes },
		[RUN_LIMIT_FILES] = { "made more files", count_text, l->files },
		[RUN_LIMIT_PIDS] = { "started more processes", count_text, l->pids },
		[RUN_LIMIT_OUTPUT] = { "printed more", bytes_text, l->output_bytes },
	};
	char value[VALUE_SIZE];

	assert(limits[limit].text);
	if (!w->name[limit])
		w = &run_words_sandbox;
	limits[limit].text(limits[limit].value, value);
	(void)snprintf(ret, RUN_LIMIT_TEXT_SIZE,
		       "%s %s than its limit, %s; raise %s if it needs more", w->who,
		       limits[limit].what, value, w->name[limit]);
}
