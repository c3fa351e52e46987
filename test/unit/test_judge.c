/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit ended a run, and what people are told. */
#include "run/judge.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct run_limits limits = {
	.timeout_us = 1500000,
	.cpu_time_us = 10000000,
	.memory_bytes = 64 << 20,
	.disk_bytes = 3 << 10,
	.files = 200,
	.output_bytes = 1000,
	.pids = 8,
};

#define EXIT(n) (&(const struct wire_exit){ .code = (n) })
#define SIGNAL(n) (&(const struct wire_exit){ .code = -1, .signal = (n) })
#define TIMED_OUT (&(const struct wire_exit){ .code = -1, .signal = SIGKILL, .timed_out = 1 })
#define DISK(bytes, names) .disk_free = (bytes), .files_free = (names)
#define NO_DISK DISK(UINT64_MAX, UINT64_MAX)

static const struct {
	const char *what;
	enum run_limit limit;
	struct run_seen seen;
} rows[] = {
	{ "nothing yet", RUN_LIMIT_NONE, RUN_SEEN_NOTHING },
	{ "an end", RUN_LIMIT_NONE, { .end = EXIT(1), NO_DISK } },
	{ "a signal", RUN_LIMIT_NONE, { .end = SIGNAL(SIGKILL), NO_DISK } },
	/* each by itself, at its edge */
	{ "in time", RUN_LIMIT_NONE, { .wall_us = 1499999, NO_DISK } },
	{ "late", RUN_LIMIT_TIME, { .wall_us = 1500000, NO_DISK } },
	{ "late, and done", RUN_LIMIT_NONE, { .end = EXIT(0), .wall_us = 1500000, NO_DISK } },
	{ "the agent's clock", RUN_LIMIT_TIME, { .end = TIMED_OUT, NO_DISK } },
	{ "little CPU time", RUN_LIMIT_NONE, { .cpu_counted = true, .cpu_us = 9999999, NO_DISK } },
	{ "CPU time", RUN_LIMIT_CPU_TIME, { .cpu_counted = true, .cpu_us = 10000000, NO_DISK } },
	{ "CPU time at the end",
	  RUN_LIMIT_CPU_TIME,
	  { .end = EXIT(0), .cpu_counted = true, .cpu_us = 10000000, NO_DISK } },
	{ "SIGXCPU where nobody counts", RUN_LIMIT_CPU_TIME, { .end = SIGNAL(SIGXCPU), NO_DISK } },
	{ "SIGXCPU that is a lie",
	  RUN_LIMIT_NONE,
	  { .end = SIGNAL(SIGXCPU), .cpu_counted = true, .cpu_us = 1, NO_DISK } },
	{ "as much memory as it may", RUN_LIMIT_NONE, { .memory = 64 << 20, NO_DISK } },
	{ "memory", RUN_LIMIT_MEMORY, { .memory = (64 << 20) + 1, NO_DISK } },
	{ "killed for memory", RUN_LIMIT_MEMORY, { .memory_kills = 1, NO_DISK } },
	{ "killed for memory, and does not mind",
	  RUN_LIMIT_MEMORY,
	  { .end = EXIT(0), .memory_kills = 1, NO_DISK } },
	{ "a page is left", RUN_LIMIT_NONE, { DISK(4096, 1) } },
	{ "a full disk", RUN_LIMIT_DISK, { DISK(4095, 1) } },
	{ "no more names", RUN_LIMIT_FILES, { DISK(4096, 0) } },
	{ "a fork was refused", RUN_LIMIT_PIDS, { .pids_denied = 1, NO_DISK } },
	{ "output", RUN_LIMIT_OUTPUT, { .output_cut = true, NO_DISK } },
	/* the first of several */
	{ "all of them",
	  RUN_LIMIT_OUTPUT,
	  { .end = TIMED_OUT, .output_cut = true, .memory_kills = 1, DISK(0, 0) } },
	{ "the agent's clock is surer than counters",
	  RUN_LIMIT_TIME,
	  { .end = TIMED_OUT, .memory_kills = 1, .pids_denied = 1, DISK(0, 0) } },
	{ "names before bytes", RUN_LIMIT_FILES, { .memory_kills = 1, DISK(0, 0) } },
	{ "the disk before memory", RUN_LIMIT_DISK, { .memory_kills = 1, DISK(0, 1) } },
	{ "memory before processes",
	  RUN_LIMIT_MEMORY,
	  { .memory_kills = 1, .pids_denied = 1, NO_DISK } },
	{ "processes before CPU time",
	  RUN_LIMIT_PIDS,
	  { .pids_denied = 1, .cpu_counted = true, .cpu_us = UINT64_MAX, NO_DISK } },
	{ "CPU time before time",
	  RUN_LIMIT_CPU_TIME,
	  { .cpu_counted = true, .cpu_us = UINT64_MAX, .wall_us = UINT64_MAX, NO_DISK } },
	/* in a sandbox, where others may have done it */
	{ "a neighbour was killed",
	  RUN_LIMIT_NONE,
	  { .shared = true, .end = EXIT(1), .memory_kills = 1, NO_DISK } },
	{ "it was killed itself",
	  RUN_LIMIT_MEMORY,
	  { .shared = true, .end = SIGNAL(SIGKILL), .memory_kills = 1, NO_DISK } },
	{ "its child was, says its shell",
	  RUN_LIMIT_MEMORY,
	  { .shared = true, .end = EXIT(137), .memory_kills = 1, NO_DISK } },
	{ "somebody killed it",
	  RUN_LIMIT_NONE,
	  { .shared = true, .end = SIGNAL(SIGKILL), NO_DISK } },
	{ "a full disk, and it does not mind",
	  RUN_LIMIT_NONE,
	  { .shared = true, .end = EXIT(0), .pids_denied = 1, DISK(0, 0) } },
	{ "it failed with a full disk",
	  RUN_LIMIT_DISK,
	  { .shared = true, .end = EXIT(1), DISK(0, 1) } },
	{ "it failed, and could not fork",
	  RUN_LIMIT_PIDS,
	  { .shared = true, .end = EXIT(1), .pids_denied = 1, NO_DISK } },
};

static void test_judge(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (run_judge(&limits, &rows[i].seen) != rows[i].limit)
			fail_msg("%s: %d", rows[i].what, (int)run_judge(&limits, &rows[i].seen));
}

/* A cell without a limit of CPU time that gets SIGXCPU has been sent it. */
static void test_no_limit(void **state)
{
	const struct run_limits none = { .timeout_us = UINT64_MAX };
	const struct run_seen seen = { .end = SIGNAL(SIGXCPU), NO_DISK };

	(void)state;
	assert_int_equal(run_judge(&none, &seen), RUN_LIMIT_NONE);
}

static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(run_memory(100, 30, 20), 80); /* shared memory that is no file */
	assert_int_equal(run_memory(100, 20, 30), 80); /* files that another command has paid for */
	assert_int_equal(run_memory(10, 20, 20), 0);
}

static void test_end(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(run_end_status(EXIT(0), &why), RUN_OK);
	assert_int_equal(run_end_status(EXIT(3), &why), RUN_ERROR);
	assert_string_equal(why, "");
	assert_int_equal(run_end_status(SIGNAL(SIGSYS), &why), RUN_SIGNAL);
	assert_non_null(strstr(why, "32-bit"));
}

static void test_text(void **state)
{
	static const struct {
		enum run_limit limit;
		enum run_status status;
		const struct run_words *words;
		const char *text;
	} texts[] = {
		{ RUN_LIMIT_TIME, RUN_TIMEOUT, &run_words_options,
		  "it ran longer than its limit, 1500 ms; raise --timeout if it needs more" },
		{ RUN_LIMIT_CPU_TIME, RUN_CPU_LIMIT, &run_words_fields,
		  "it used more CPU time than its limit, 10 s; raise limits.cpu_time_ms if it needs more" },
		{ RUN_LIMIT_MEMORY, RUN_MEMORY_LIMIT, &run_words_options,
		  "it used more memory than its limit, 64 MiB; raise --memory if it needs more" },
		{ RUN_LIMIT_DISK, RUN_DISK_LIMIT, &run_words_options,
		  "it wrote more than its limit, 3 KiB; raise --disk if it needs more" },
		{ RUN_LIMIT_FILES, RUN_DISK_LIMIT, &run_words_fields,
		  "it made more files than its limit, 200; raise limits.files if it needs more" },
		{ RUN_LIMIT_PIDS, RUN_PIDS_LIMIT, &run_words_options,
		  "it started more processes than its limit, 8; raise --pids if it needs more" },
		{ RUN_LIMIT_OUTPUT, RUN_OUTPUT_LIMIT, &run_words_options,
		  "it printed more than its limit, 1000 bytes; raise --output if it needs more" },
		{ RUN_LIMIT_TIME, RUN_TIMEOUT, &run_words_cell,
		  "the cell ran longer than its limit, 1500 ms; raise limits.wall_ms if it needs more" },
		/* what a command has no limit of its own for */
		{ RUN_LIMIT_MEMORY, RUN_MEMORY_LIMIT, &run_words_command,
		  "the sandbox used more memory than its limit, 64 MiB; raise sandbox.memory in "
		  "glovebox.toml if it needs more" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char got[RUN_LIMIT_TEXT_SIZE];

		run_limit_text(texts[i].limit, &limits, texts[i].words, got);
		assert_string_equal(got, texts[i].text);
		assert_int_equal(run_limit_status(texts[i].limit), texts[i].status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),  cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_end),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
