/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clockjump COMMAND…: runs a program for which the clock of the day jumps by years, back and forth, with
 * every look at it, and the monotonic clock stands still, as it does while a machine sleeps. Exits with the
 * program's status; 99 when it never looked at any clock, so that nothing was shown.
 *
 * The C library reads clocks without a system call, from a page that the kernel announces in the auxiliary
 * vector. That entry is blanked out before the first instruction; then every look is a call, and the answer
 * can be changed.
 */
#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long word(pid_t pid, unsigned long at)
{
	return ptrace(PTRACE_PEEKDATA, pid, at, NULL);
}

/* The stack of a new program: argc, arguments, 0, variables, 0, pairs. */
static void hide_clock_page(pid_t pid)
{
	struct user_regs_struct regs;
	unsigned long at;

	(void)ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	at = regs.rsp + 8 * ((unsigned long)word(pid, regs.rsp) + 2);
	while (word(pid, at))
		at += 8;
	for (at += 8; word(pid, at) != AT_NULL; at += 16)
		if (word(pid, at) == AT_SYSINFO_EHDR)
			(void)ptrace(PTRACE_POKEDATA, pid, at, AT_IGNORE);
}

static int looks;

static void change_answer(pid_t pid)
{
	static long day, still;
	struct user_regs_struct regs;
	unsigned long seconds;

	(void)ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	if (regs.orig_rax != SYS_clock_gettime || regs.rax != 0)
		return;
	looks++;
	seconds = regs.rsi;
	if (regs.rdi == CLOCK_REALTIME || regs.rdi == CLOCK_REALTIME_COARSE) {
		day++;
		(void)ptrace(PTRACE_POKEDATA, pid, seconds,
			     word(pid, seconds) + (day % 2 ? -1 : 1) * 86400L * 400 * day);
	} else if (regs.rdi == CLOCK_MONOTONIC || regs.rdi == CLOCK_MONOTONIC_COARSE ||
		   regs.rdi == CLOCK_MONOTONIC_RAW) {
		still = still ? still : word(pid, seconds);
		(void)ptrace(PTRACE_POKEDATA, pid, seconds, still);
		(void)ptrace(PTRACE_POKEDATA, pid, seconds + 8, 0L);
	}
}

int main(int argc, char **argv)
{
	pid_t pid = fork();
	bool inside = false;
	int status;

	if (argc < 2 || pid < 0)
		return 99;
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 99;
	(void)ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	hide_clock_page(pid);
	(void)ptrace(PTRACE_SYSCALL, pid, NULL, 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		if (sig == (SIGTRAP | 0x80)) {
			inside = !inside;
			if (!inside)
				change_answer(pid);
			sig = 0;
		}
		(void)ptrace(PTRACE_SYSCALL, pid, NULL, sig);
	}
	if (looks == 0)
		return 99;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
