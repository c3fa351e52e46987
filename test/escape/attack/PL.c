/* SPDX-License-Identifier: Apache-2.0 */
/* Process lifetime and signals: everything a program can do to outlive its end or to fake it. */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Attacks that must be ended from outside end themselves after this, as a breach. */
#define BOUND_S 8

static int outlived(void)
{
	sleep(BOUND_S);
	return BREACH("still running after %d s", BOUND_S);
}

static void ignore_everything(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN);
}

/* PL-01: a daemon that nobody is the parent of, with every tie to its maker cut. */
static int daemon_survives(void)
{
	if (fork() == 0) {
		(void)setsid();
		if (fork() == 0) {
			ignore_everything();
			for (int fd = 0; fd < 64; fd++)
				(void)close(fd);
			sleep(BOUND_S * 4);
			_exit(0);
		}
		_exit(0);
	}
	(void)wait(NULL);
	puts("daemon started");
	return outlived();
}

/* PL-02 */
static int ignores_signals(void)
{
	sigset_t all;

	ignore_everything();
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	puts("ignoring");
	return outlived();
}

/* PL-03: no pid lives longer than a moment; a killer that reads a list is always late. */
static int fork_storm(void)
{
	puts("storming");
	for (int i = 0; i < 16; i++) {
		if (fork() != 0)
			continue;
		time_t until = time(NULL) + BOUND_S;

		while (time(NULL) < until) {
			pid_t pid = fork();

			if (pid > 0)
				_exit(0);
		}
		_exit(0);
	}
	return outlived();
}

/* PL-04: stopped, in the middle of vfork, and (refused) traced. */
static int odd_states(void)
{
	if (fork() == 0) {
		(void)raise(SIGSTOP);
		_exit(0);
	}
	if (fork() == 0) {
		if (vfork() == 0) {
			(void)syscall(SYS_nanosleep, &(struct timespec){ .tv_sec = BOUND_S }, NULL);
			_exit(0);
		}
		_exit(0);
	}
	if (fork() == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		_exit(0);
	}
	puts("ready");
	return outlived();
}

/* PL-05 */
static int stops_everybody(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			return outlived();
	puts("stopping");
	(void)kill(-1, SIGSTOP);
	(void)raise(SIGSTOP);
	return outlived();
}

/* PL-06: a child kills everybody it can see, its parent too. */
static int kills_everybody(void)
{
	puts("before");
	if (fork() == 0) {
		(void)kill(-1, SIGKILL);
		_exit(0);
	}
	return outlived();
}

/* PL-07: every signal to pid 1 by every call there is. It must still be there and answer after. */
static int kills_init(void)
{
	int reached = 0, pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	for (int sig = 1; sig < NSIG; sig++) {
		union sigval value = { 0 };

		reached += kill(1, sig) == 0;
		reached += syscall(SYS_tgkill, 1, 1, sig) == 0;
		reached += syscall(SYS_tkill, 1, sig) == 0;
		reached += sigqueue(1, sig, value) == 0;
		if (pidfd >= 0)
			reached += syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0;
	}
	if (reached)
		return BREACH("%d signals were taken", reached);
	return SAFE("pid 1 takes no signal: %s", strerror(errno));
}

/* PL-08: a process of the host would answer EPERM or 0; ours alone may. */
static int sees_outside(void)
{
	int seen = 0;

	for (pid_t pid = 2; pid < 70000; pid++) {
		if (pid == getpid())
			continue;
		if (kill(pid, 0) == 0 || errno != ESRCH) {
			printf("pid %d: %s\n", pid, strerror(errno));
			seen++;
		}
	}
	/* Process groups and sessions of the host are no better. */
	for (pid_t pid = 2; pid < 70000; pid++)
		if (pid != getpgrp() && (kill(-pid, 0) == 0 || errno != ESRCH))
			seen++;
	return seen ? BREACH("%d pids of somebody else", seen) : SAFE("nobody there");
}

/* With the dead that nobody has taken yet. */
static int count_processes(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	while (proc && (entry = readdir(proc)))
		n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	(void)closedir(proc);
	return n;
}

/* On a busy machine they die faster than pid 1 gets its turn, and are counted against --pids until then. */
static bool all_taken(void)
{
	for (int i = 0; i < BOUND_S * 100; i++) {
		if (count_processes() < 10)
			return true;
		(void)usleep(10000);
	}
	return false;
}

/* PL-10: orphans by the thousand; pid 1 must take every one of them. */
static int orphan_storm(void)
{
	for (int i = 0; i < 15000; i++) {
		pid_t pid;

		if (i % 500 == 499 && !all_taken())
			return BREACH("%d processes after %d s: nobody reaps", count_processes(),
				      BOUND_S);
		pid = fork();
		if (pid < 0)
			return BREACH("fork %d: %s: nobody reaps", i, strerror(errno));
		if (pid == 0) {
			(void)vfork();
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
	return SAFE("30,000 processes came and went");
}

/* PL-12: the main program ends, its grandchild keeps the output open. */
static int holds_stdout(void)
{
	puts("main is done");
	if (fork() == 0) {
		ignore_everything();
		sleep(BOUND_S * 4);
		puts("grandchild still prints");
		_exit(0);
	}
	return 0;
}

/* PL-13, PL-17, CR: something to look at while it runs, hard to end. */
static int lingers(void)
{
	ignore_everything();
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			(void)setsid();
			sleep(BOUND_S * 4);
			_exit(0);
		}
	puts("lingering");
	sleep(BOUND_S * 4);
	return 1;
}

/* PL-15: crashes with a core of hundreds of megabytes, many times. */
static int crashes(void)
{
	struct rlimit core, more = { RLIM_INFINITY, RLIM_INFINITY };
	int cores = 0;

	if (getrlimit(RLIMIT_CORE, &core) < 0)
		return BREACH("getrlimit: %s", strerror(errno));
	/* 0 would still start a "|program" of core_pattern; 1 is the kernel's word for "not even that". */
	if (core.rlim_max != 1)
		return BREACH("core limit %llu", (unsigned long long)core.rlim_max);
	if (setrlimit(RLIMIT_CORE, &more) == 0)
		return BREACH("the core limit can be raised");
	for (int i = 0; i < 20; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			char *p = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (p != MAP_FAILED)
				memset(p, 1, 64 << 20);
			(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
			(void)raise(SIGQUIT);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
			return BREACH("the crash did not happen");
		cores += WCOREDUMP(status) ? 1 : 0;
	}
	if (cores || access("core", F_OK) == 0)
		return BREACH("%d cores were dumped", cores);
	return SAFE("20 crashes, no core");
}

/* PL-16: what a first run leaves and what a second one finds. */
static int leaves(void)
{
	int found = 0;

	found += access("/tmp/left", F_OK) == 0;
	found += access("/dev/shm/left", F_OK) == 0;
	found += access("/home/user/left", F_OK) == 0;
	found += access("/var/tmp/left", F_OK) == 0;
	(void)close(open("/tmp/left", O_CREAT | O_WRONLY, 0600));
	(void)close(open("/dev/shm/left", O_CREAT | O_WRONLY, 0600));
	(void)close(open("/home/user/left", O_CREAT | O_WRONLY, 0600));
	(void)close(open("/var/tmp/left", O_CREAT | O_WRONLY, 0600));
	if (syscall(SYS_shmget, 0x1ef7, 4096, 0) >= 0)
		found++;
	(void)syscall(SYS_shmget, 0x1ef7, 4096, 01000 | 0600); /* IPC_CREAT */
	if (access("/tmp/left", F_OK) < 0)
		return BREACH("nothing can be left: this shows nothing");
	return found ? BREACH("found %d things of an earlier run", found) :
		       SAFE("nothing of anybody");
}

/* PL-16, two steps of one box: leaves a process behind for the step that follows. */
static int leaves_process(void)
{
	if (fork() == 0) {
		(void)setsid();
		(void)prctl(PR_SET_NAME, "leftover", 0, 0, 0);
		for (int fd = 0; fd < 64; fd++)
			(void)close(fd);
		sleep(BOUND_S * 4);
		_exit(0);
	}
	usleep(100000);
	return 0;
}

static const struct row rows[] = {
	{ "PL-01", daemon_survives }, { "PL-02", ignores_signals }, { "PL-03", fork_storm },
	{ "PL-04", odd_states },      { "PL-05", stops_everybody }, { "PL-06", kills_everybody },
	{ "PL-07", kills_init },      { "PL-08", sees_outside },    { "PL-10", orphan_storm },
	{ "PL-12", holds_stdout },    { "PL-13", lingers },         { "PL-15", crashes },
	{ "PL-16", leaves },          { "PL-16b", leaves_process },
};

int main(int argc, char **argv)
{
	return run_rows(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
