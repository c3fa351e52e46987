/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn WIDTH COUNT COMMAND [ARGS...] ';' COMMAND [ARGS...] ';' ...
 *
 * The clock of bench/run.py, since an interpreter's own fork costs more than what is measured. Reads
 * turns from standard input: a letter runs that command ('a' is the first) COUNT times, WIDTH at a
 * time, and prints the letter and the nanoseconds; a full stop waits for the machine to settle.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"

#define COMMANDS_MAX 26
#define SETTLE_US 20000

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* After a failure no more are started, and what already runs is waited for. */
static int run_turn(const posix_spawn_file_actions_t *quiet, char **argv, uint64_t width,
		    uint64_t count)
{
	uint64_t running = 0;
	int r = 0;

	while (count > 0 || running > 0) {
		siginfo_t info = { 0 };
		pid_t pid;

		if (count > 0 && running < width) {
			r = -posix_spawn(&pid, argv[0], quiet, NULL, argv, environ);
			running += r == 0;
			count = r == 0 ? count - 1 : 0;
		} else if (waitid(P_ALL, 0, &info, WEXITED) < 0) {
			return -errno;
		} else {
			running--;
			if (info.si_code != CLD_EXITED || info.si_status != 0) {
				r = -ECHILD; /* a status other than 0, or a signal */
				count = 0;
			}
		}
	}
	return r;
}

/* Splits at the lone semicolons, in place. */
static size_t read_commands(char **argv, char **commands[static COMMANDS_MAX])
{
	size_t n = 0;

	while (*argv && n < COMMANDS_MAX) {
		commands[n++] = argv;
		while (*argv && strcmp(*argv, ";") != 0)
			argv++;
		if (*argv)
			*argv++ = NULL;
	}
	return n;
}

int main(int argc, char **argv)
{
	static char buffer[1 << 20]; /* nothing is written while the clock runs */
	char **commands[COMMANDS_MAX];
	posix_spawn_file_actions_t quiet;
	uint64_t width, count;
	size_t n;
	int turn;

	if (argc < 4 || parse_u64(argv[1], &width) < 0 || width == 0 ||
	    parse_u64(argv[2], &count) < 0 || posix_spawn_file_actions_init(&quiet) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) != 0)
		return 2;
	(void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	n = read_commands(argv + 3, commands);
	while ((turn = getchar()) != EOF) {
		size_t index = (size_t)turn - 'a';
		uint64_t start = now_ns();
		int r;

		if (turn == '.') {
			(void)usleep(SETTLE_US);
			continue;
		}
		r = index < n ? run_turn(&quiet, commands[index], width, count) : -EINVAL;
		if (r < 0) {
			(void)fprintf(stderr, "spawn: turn '%c': %s\n", turn,
				      r == -ECHILD ? "did not exit with 0" : strerror(-r));
			return 1;
		}
		(void)printf("%c %llu\n", turn, (unsigned long long)(now_ns() - start));
	}
	return fflush(stdout) != 0;
}
