/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_LIMIT_S 25

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

/* In the box's pid namespace a process has a second pid. */
static int role_of(const struct run *r, pid_t pid)
{
	char path[64], text[4096];
	const char *line;
	int outer, inner;

	if (r->n_tasks == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	(void)read_path(path, text, sizeof(text));
	line = strstr(text, "NSpid:");
	if (!line || sscanf(line, "NSpid: %d %d", &outer, &inner) != 2)
		return ROLE_HELPER;
	return inner < ROLE_HELPER ? inner : ROLE_HELPER - 1;
}

static struct task *task_of(struct run *r, pid_t pid)
{
	for (int i = 0; i < r->n_tasks; i++)
		if (r->task[i].pid == pid)
			return &r->task[i];
	if (r->n_tasks >= TASKS_MAX) {
		(void)fprintf(stderr, "too many processes\n");
		exit(2);
	}
	r->task[r->n_tasks] = (struct task){ .pid = pid, .role = role_of(r, pid) };
	r->task[r->n_tasks].loading = r->task[r->n_tasks].role == 0;
	r->alive++;
	return &r->task[r->n_tasks++];
}

/* Calls that cannot fail, have no way to say so (brk returns the old end), or are the C library's end. */
static bool is_spared(long nr)
{
	static const int spared[] = {
		SCMP_SYS(exit),       SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn),
		SCMP_SYS(arch_prctl), SCMP_SYS(rseq),       SCMP_SYS(brk),
		SCMP_SYS(umask),      SCMP_SYS(getpid),     SCMP_SYS(getuid),
		SCMP_SYS(geteuid),    SCMP_SYS(getgid),     SCMP_SYS(getegid),
		SCMP_SYS(getppid),    SCMP_SYS(gettid),
	};

	for (size_t i = 0; i < sizeof(spared) / sizeof(spared[0]); i++)
		if (nr == spared[i])
			return true;
	return false;
}

static void on_call(struct run *r, struct task *t)
{
	struct user_regs_struct regs;

	t->inside = !t->inside;
	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0)
		return; /* killed meanwhile */
	if (!t->inside) {
		if (t->failing) {
			regs.rax = (unsigned long long)-r->err;
			(void)ptrace(PTRACE_SETREGS, t->pid, NULL, &regs);
		}
		t->failing = false;
		return;
	}
	if (t->foreign)
		return;
	t->calls++;
	r->calls[t->role]++;
	/* The first thing it does, each time it is executed, is to look for its standard descriptors. */
	if (t->loading && regs.orig_rax == SCMP_SYS(fcntl)) {
		t->loading = false;
		if (!r->own_code)
			r->own_code = t->calls;
	}
	if (t->role != r->role || t->calls != r->call)
		return;
	if (r->err == 0) {
		r->hit = (int)regs.orig_rax;
		(void)kill(t->pid, SIGKILL);
	} else if (!t->loading && !is_spared((long)regs.orig_rax)) {
		r->hit = (int)regs.orig_rax;
		t->failing = true;
		if (regs.orig_rax == SCMP_SYS(close))
			return; /* a close that fails has closed */
		regs.orig_rax = (unsigned long long)-1;
		(void)ptrace(PTRACE_SETREGS, t->pid, NULL, &regs);
	}
}

static void on_stop(struct run *r, pid_t pid, int status)
{
	struct task *t = task_of(r, pid);
	int sig = WSTOPSIG(status), pass = 0;

	if (sig == (SIGTRAP | 0x80)) {
		on_call(r, t);
	} else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
		/* glovebox itself and the agent are ours; what a fork of the agent executes is not. */
		if (t->role >= 2 && t->role != ROLE_HELPER) {
			t->foreign = true;
			seal_take(r, pid);
		}
		t->loading = t->role == 0; /* its front becomes the whole program */
	} else if (status >> 16 == 0 && sig != SIGSTOP && sig != SIGTRAP) {
		pass = sig;
	}
	(void)ptrace(PTRACE_SYSCALL, pid, NULL, pass);
}

static volatile sig_atomic_t out_of_time;

static void on_alarm(int sig)
{
	(void)sig;
	out_of_time = 1;
}

static pid_t start(char **argv, int out_fd, int err_fd)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDONLY);

		(void)dup2(null_fd, 0);
		(void)dup2(out_fd, 1);
		(void)dup2(err_fd, 2);
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		execvp(argv[0], argv);
		_exit(126);
	}
	return pid;
}

static void kill_tasks(struct run *r)
{
	for (int i = 0; i < r->n_tasks; i++)
		if (r->task[i].pid)
			(void)kill(r->task[i].pid, SIGKILL);
}

static void take_text(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	(void)close(fd);
}

void run_traced(struct run *r, char **argv)
{
	int out_fd = memfd_create("out", MFD_CLOEXEC), err_fd = memfd_create("err", MFD_CLOEXEC);
	pid_t first = start(argv, out_fd, err_fd);
	struct sigaction action = { .sa_handler = on_alarm };
	int status;

	(void)sigaction(SIGALRM, &action, NULL);
	if (waitpid(first, &status, __WALL) != first || !WIFSTOPPED(status))
		die("waitpid");
	(void)ptrace(PTRACE_SETOPTIONS, first, NULL,
		     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	(void)task_of(r, first);
	(void)ptrace(PTRACE_SYSCALL, first, NULL, 0);
	out_of_time = 0;
	(void)alarm(TIME_LIMIT_S);
	/* Until nobody is left to wait for, seen or unseen: a child whose parent was killed at once may not
	 * have shown itself yet. */
	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR && out_of_time && !r->hung) {
			r->hung = true;
			kill_tasks(r);
			(void)alarm(TIME_LIMIT_S);
			continue;
		}
		if (pid < 0)
			break;
		if (WIFSTOPPED(status)) {
			on_stop(r, pid, status);
			continue;
		}
		if (pid == first)
			r->status = status;
		task_of(r, pid)->pid = 0;
		r->alive--;
	}
	(void)alarm(0);
	take_text(out_fd, r->out, sizeof(r->out));
	take_text(err_fd, r->err_text, sizeof(r->err_text));
}

void run_start(struct run *r, int role, int call, int err)
{
	memset(r, 0, sizeof(*r));
	r->role = role;
	r->call = call;
	r->err = err;
	r->hit = -1;
}
