/* SPDX-License-Identifier: Apache-2.0 */
#include "run/result.h"

static const struct run_limits defaults = {
	.timeout_us = UINT64_C(30) * 1000000,
	.cpu_time_us = UINT64_C(10) * 1000000,
	.memory_bytes = UINT64_C(256) << 20,
	.disk_bytes = UINT64_C(256) << 20,
	.files = 65536,
	.output_bytes = UINT64_C(1) << 20,
	.pids = 64,
	.cpu_milli = 1000,
};

static const char *const status_names[_RUN_STATUS_MAX] = {
	[RUN_OK] = "ok",
	[RUN_ERROR] = "error",
	[RUN_TIMEOUT] = "timeout",
	[RUN_CPU_LIMIT] = "cpu_limit",
	[RUN_MEMORY_LIMIT] = "memory_limit",
	[RUN_DISK_LIMIT] = "disk_limit",
	[RUN_PIDS_LIMIT] = "pids_limit",
	[RUN_OUTPUT_LIMIT] = "output_limit",
	[RUN_SIGNAL] = "signal",
	[RUN_SETUP_ERROR] = "setup_error",
};

const char *run_status_name(enum run_status s)
{
	return status_names[s];
}

int run_status_parse(const char *name, enum run_status *ret)
{
	for (int i = 0; i < _RUN_STATUS_MAX; i++) {
		if (strcmp(status_names[i], name) == 0) {
			*ret = (enum run_status)i;
			return 0;
		}
	}
	return -EINVAL;
}

struct run_limits run_step_limits(const struct run_limits *given,
				  const struct language_limits *needs)
{
	struct run_limits out = *given;

#define CHOOSE(field, need)                                                                        \
	do {                                                                                       \
		if (!out.field)                                                                    \
			out.field = MAX((uint64_t)defaults.field, (uint64_t)(need));               \
	} while (0)
	CHOOSE(timeout_us, needs->timeout_us);
	CHOOSE(cpu_time_us, needs->cpu_time_us);
	CHOOSE(memory_bytes, needs->memory_bytes);
	CHOOSE(disk_bytes, needs->disk_bytes);
	CHOOSE(files, 0);
	CHOOSE(output_bytes, 0);
#undef CHOOSE
	if (!out.pids)
		out.pids = (uint32_t)MAX((uint64_t)defaults.pids, needs->pids);
	if (!out.cpu_milli)
		out.cpu_milli = defaults.cpu_milli;
	return out;
}

struct run_limits run_compile_limits(const struct run_limits *given,
				     const struct language_limits *needs)
{
	const struct run_limits for_compiling = {
		.cpu_milli = given->cpu_milli,
		.output_bytes = given->output_bytes,
	};

	return run_step_limits(&for_compiling, needs);
}
