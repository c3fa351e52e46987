/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages are data: languages/NAME.lang says what the code's file is called and which commands
 * compile and run it. A file is flat `key = value` lines; a line that starts with # is a comment.
 *
 *	name = NAME                 as the file is called: 1 to 24 of a-z 0-9 + -
 *	title = TEXT                for people
 *	aliases = NAME...           other names it answers to
 *	extensions = EXT...         file name endings, without the dot, case matters
 *	file = FILENAME             what the code is called in the box's working directory
 *	compile = COMMAND           optional first step
 *	run = COMMAND
 *	kernel = COMMAND            optional: an interpreter that keeps its state from cell to cell,
 *	                            as kernels/PROTOCOL.md describes it. Without it each cell is a
 *	                            run. With it the name is 1 to 23 of a-z 0-9 -
 *	version = COMMAND           prints the version in its first line
 *	env.NAME = VALUE            set for every step
 *	compile-memory, compile-disk = BYTES; compile-timeout, compile-cpu-time = DURATION;
 *	compile-pids = N            what the compile step gets where the general defaults are too
 *	                            small
 *	memory, disk = BYTES; timeout, cpu-time = DURATION; pids = N      the same for the run step
 *
 * A COMMAND is split on blanks, there is no shell and no quoting. In commands and env values
 * {file}, {memory_mb}, {heap_mb} (three quarters of the memory, for runtimes whose heap must leave
 * room for the rest) and {cpus} are replaced after splitting.
 */
#pragma once

#include "base/fail.h"

#define LANGUAGE_NAME_MAX 24
#define LANGUAGE_KERNEL_NAME_MAX 23
#define LANGUAGE_WORDS_MAX 16
#define LANGUAGE_ENV_MAX 16
#define LANGUAGE_ARGV_MAX 64
#define LANGUAGE_FILE_MAX ((size_t)16 * 1024)
#define LANGUAGE_LIST_MAX 256
#define LANGUAGE_CODE_MAX ((size_t)1024 * 1024)

/* Zero means that the general default is enough. */
struct language_limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t timeout_us;
	uint64_t cpu_time_us;
	uint64_t pids;
};

struct language {
	char *name;
	char *title;
	char *aliases[LANGUAGE_WORDS_MAX + 1];    /* NULL-terminated */
	char *extensions[LANGUAGE_WORDS_MAX + 1]; /* NULL-terminated */
	char *file;
	char *compile; /* NULL when there is nothing to compile */
	char *run;
	char *kernel; /* NULL when it keeps no state */
	char *version;
	char *env[LANGUAGE_ENV_MAX + 1]; /* NAME=VALUE, NULL-terminated */
	struct language_limits compile_limits;
	struct language_limits run_limits;
};

struct language_vars {
	const char *file;
	uint64_t memory_mb;
	uint32_t cpus; /* whole ones, at least 1 */
};

/* Frees what the struct holds; fine for a zeroed one. */
void language_done(struct language *l);

/* The directory with their files: GLOVEBOX_LANGUAGES, or where they belong. */
_must_check_ int language_open(struct fail *fail);

/* By name (opens one file) or alias (looks at all). */
_must_check_ int language_load(const char *name_or_alias, struct language *ret, struct fail *fail);

/* The same among those that are loaded; NULL with *fail filled when there is none. */
const struct language *language_find(const char *name_or_alias, const struct language *list,
				     size_t n, struct fail *fail);

/* By the extension of a file's name. */
_must_check_ int language_for_file(const char *path, struct language *ret, struct fail *fail);

/* All of them, sorted by name; free with language_list_free(). */
_must_check_ int language_list(struct language **ret, size_t *ret_n, struct fail *fail);
void language_list_free(struct language *list, size_t n);

/* The text of one language file; `where` (e.g. "python.lang") is what messages call it. */
_must_check_ int language_parse(const char *where, const char *text, size_t len,
				struct language *ret, struct fail *fail);

/* NULL-terminated argument vectors with the placeholders replaced; one free() frees all of it. */
_must_check_ int language_argv(const char *command, const struct language_vars *vars,
			       char ***ret_argv, struct fail *fail);
_must_check_ int language_env(const struct language *l, const struct language_vars *vars,
			      char ***ret_env, struct fail *fail);

/* Refuses code that is too long, is not UTF-8 or has a NUL byte in it. */
_must_check_ int language_check_code(const char *code, size_t len, size_t max, struct fail *fail);

bool language_is_name(const char *text);

/* The name somebody most likely meant by `text`, or NULL when none is near. */
const char *language_nearest(const char *text, const struct language *list, size_t n);

/* Are the programs that its commands start with installed where boxes look for them? */
bool language_present(const struct language *l);

/* Has it an interpreter that keeps its state, and is that one's program installed? */
bool language_stateful(const struct language *l);
