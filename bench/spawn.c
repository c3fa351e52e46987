/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn ROUNDS WIDTH COUNT  EVERY COMMAND [ARGS...] ';'  EVERY COMMAND ...
 *
 * Times commands side by side: in each round every command (or in every EVERYth round) has a turn of
 * COUNT runs, WIDTH of them at a time, and prints "INDEX NANOSECONDS". A shell or an interpreter as
 * the clock would add its own fork, here it is a vfork. The order changes from round to round, since
 * a sandbox leaves work behind (the kernel takes its namespaces apart later) that must not always
 * fall on the same successor.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"

#define COMMANDS_MAX 16
#define SETTLE_US 20000

struct command {
	uint64_t every;
	char **argv;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Runs a command COUNT times, WIDTH at a time. After a failure what already runs is waited for. */
static int run_turn(const posix_spawn_file_actions_t *quiet, char **argv, uint64_t width,
		    uint64_t count, uint64_t *ret_ns)
{
	uint64_t start = now_ns(), running = 0;
	int r = 0;

	while (count > 0 || running > 0) {
		siginfo_t info = { 0 };
		pid_t pid;

		if (count > 0 && running < width) {
			r = -posix_spawn(&pid, argv[0], quiet, NULL, argv, environ);
			running += r == 0;
			count = r == 0 ? count - 1 : 0;
			continue;
		}
		if (waitid(P_ALL, 0, &info, WEXITED) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		running--;
		if (info.si_code != CLD_EXITED || info.si_status != 0) {
			(void)fprintf(stderr, "spawn: %s ended with %s %d\n", argv[0],
				      info.si_code == CLD_EXITED ? "status" : "signal",
				      info.si_status);
			r = -ECHILD;
			count = 0;
		}
	}
	if (r == 0)
		*ret_ns = now_ns() - start;
	return r;
}

/* Fisher and Yates, with a fixed seed: another run has the same orders. */
static void shuffle(size_t *order, size_t n)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	for (size_t i = n - 1; i > 0; i--) {
		size_t other, taken = order[i];

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = (size_t)(state % (i + 1));
		order[i] = order[other];
		order[other] = taken;
	}
}

static int run_rounds(const struct command *commands, size_t n, uint64_t rounds, uint64_t width,
		      uint64_t count)
{
	size_t order[COMMANDS_MAX];
	posix_spawn_file_actions_t quiet;
	int r = -posix_spawn_file_actions_init(&quiet);

	if (r == 0)
		r = -posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = -posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t round = 0; r == 0 && round < rounds; round++) {
		shuffle(order, n);
		for (size_t i = 0; r == 0 && i < n; i++) {
			const struct command *command = &commands[order[i]];
			uint64_t ns = 0;

			if (round % command->every != 0)
				continue;
			r = run_turn(&quiet, command->argv, width, count, &ns);
			if (r == 0)
				(void)printf("%zu %llu\n", order[i], (unsigned long long)ns);
			/* The slow ones leave the most behind; it is not their successor's doing. */
			if (command->every > 1)
				(void)usleep(SETTLE_US);
		}
	}
	return r;
}

/* Splits at the lone semicolons, in place. Returns how many commands, or a negative errno. */
static int read_commands(char **argv, struct command *commands)
{
	int n = 0;

	while (*argv) {
		if (n == COMMANDS_MAX || parse_u64(argv[0], &commands[n].every) < 0 ||
		    commands[n].every == 0 || !argv[1])
			return -EINVAL;
		commands[n++].argv = ++argv;
		while (*argv && strcmp(*argv, ";") != 0)
			argv++;
		if (*argv)
			*argv++ = NULL;
	}
	return n > 0 ? n : -EINVAL;
}

int main(int argc, char **argv)
{
	static char buffer[1 << 20]; /* nothing is written while the clock runs */
	struct command commands[COMMANDS_MAX];
	uint64_t rounds, width, count;
	int n, r;

	if (argc < 6 || parse_u64(argv[1], &rounds) < 0 || parse_u64(argv[2], &width) < 0 ||
	    width == 0 || parse_u64(argv[3], &count) < 0 || (n = read_commands(argv + 4, commands)) < 0) {
		(void)fprintf(stderr, "usage: spawn ROUNDS WIDTH COUNT EVERY COMMAND... [; ...]\n");
		return 2;
	}
	(void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	r = run_rounds(commands, (size_t)n, rounds, width, count);
	if (r < 0 && r != -ECHILD)
		(void)fprintf(stderr, "spawn: %s\n", strerror(-r));
	return r < 0 || fflush(stdout) != 0;
}
