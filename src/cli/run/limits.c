/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a run as they are typed. */
#include "cli/run/args_priv.h"

#include "base/parse.h"
#include "sys/cpus.h"

#include <fcntl.h>
#include <sys/sysinfo.h>

/* A limit must be a number of its kind within what makes sense. */
static int bad_limit(struct fail *fail, const char *name, const char *text, const char *want)
{
	return fail_set(fail, EINVAL, "limits", "--%s %s: %s", name, text, want);
}

static int read_bytes(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		      struct fail *fail)
{
	char want[96];

	if (parse_bytes(text, ret) < 0)
		return bad_limit(fail, name, text, "give a size such as 64M or 2G");
	if (*ret < min || *ret > max) {
		(void)snprintf(want, sizeof(want), "must be between %lluK and %lluM here",
			       (unsigned long long)(min >> 10), (unsigned long long)(max >> 20));
		return bad_limit(fail, name, text, want);
	}
	return 0;
}

static int read_duration(const char *name, const char *text, uint64_t *ret, struct fail *fail)
{
	if (parse_duration_us(text, ret) < 0)
		return bad_limit(fail, name, text, "give a duration such as 500ms, 30s or 5m");
	if (*ret < RUN_TIME_MIN_US || *ret > RUN_TIME_MAX_US)
		return bad_limit(fail, name, text, "must be between 1ms and 24h");
	return 0;
}

static int read_count(const char *name, const char *text, uint64_t max, uint64_t *ret,
		      struct fail *fail)
{
	char want[64];

	if (parse_u64(text, ret) == 0 && *ret >= 1 && *ret <= max)
		return 0;
	(void)snprintf(want, sizeof(want), "must be a whole number from 1 to %llu",
		       (unsigned long long)max);
	return bad_limit(fail, name, text, want);
}

static int read_cpus(const char *text, uint32_t *ret, struct fail *fail)
{
	char want[80];
	unsigned cpus = cpus_online();

	if (parse_cpus_milli(text, ret) == 0 && *ret >= RUN_CPU_MILLI_MIN && *ret <= cpus * 1000)
		return 0;
	(void)snprintf(want, sizeof(want), "must be between 0.01 and %u, the CPUs of this machine",
		       cpus);
	return bad_limit(fail, "cpus", text, want);
}

/* Half of what the machine can have: it needs some itself (RX-26). */
static uint64_t pids_max(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t max;

	if (n > 0)
		text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, &max) == 0 ? max / 2 : 16384;
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 ? UINT64_MAX : (uint64_t)info.totalram * info.mem_unit;
}

int run_args_limit(int id, const char *text, struct run_limits *l, struct fail *fail)
{
	uint64_t n;
	int r;

	switch (id) {
	case OPT_TIMEOUT:
		return read_duration("timeout", text, &l->timeout_us, fail);
	case OPT_CPU_TIME:
		return read_duration("cpu-time", text, &l->cpu_time_us, fail);
	case OPT_CPUS:
		return read_cpus(text, &l->cpu_milli, fail);
	case OPT_MEMORY:
		return read_bytes("memory", text, RUN_MEMORY_MIN, machine_memory(),
				  &l->memory_bytes, fail);
	case OPT_DISK:
		return read_bytes("disk", text, RUN_DISK_MIN, machine_memory(), &l->disk_bytes,
				  fail);
	case OPT_OUTPUT:
		return read_bytes("output", text, 1, RUN_OUTPUT_MAX, &l->output_bytes, fail);
	case OPT_FILES:
		return read_count("files", text, RUN_FILES_MAX, &l->files, fail);
	default:
		r = read_count("pids", text, pids_max(), &n, fail);
		if (r == 0)
			l->pids = (uint32_t)n;
		return r;
	}
}
