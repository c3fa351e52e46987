/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails, or kills at, every system call of a run, one after the other.
 *
 *	fault [-e ERRNO | -k] [-r ROLES] [-s STEP] [-o FIRST] [-d DIR] -- GLOVEBOX run --json … -- COMMAND
 *
 * Theory of operation. The run is traced and its processes are numbered in the order in which they appear:
 * 0 is glovebox, 1 becomes the box's pid 1 and then the agent, the others are forks of the agent. A first
 * run without a fault counts the system calls of each and remembers what COMMAND printed, the isolation
 * glovebox reported, and what the host sees of COMMAND when it starts: its credentials, limits,
 * namespaces and cgroup files. Then, for each process and each of its calls up to COMMAND's own start, a
 * run in which that call fails with ERRNO (or the process is killed there). Such a run must end, and
 * either say cleanly that it failed, or have been exactly as sealed as the first. What differs in what
 * glovebox itself reports is left in DIR for somebody else to judge. Afterwards nothing may be left.
 *
 * Meant to run in test/crash/alone: every process and every box it can see is its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 16
#define ROLES_MAX 8
#define TIME_LIMIT_S 25
#define TEXT_MAX 65536

struct task {
	pid_t pid;
	int role;
	bool inside;  /* between a call's start and its end */
	bool foreign; /* executes the command: its calls are not ours */
	bool failing;
	int calls;
};

struct run {
	int role, call, err; /* where the fault is; err 0: kill */
	struct task task[TASKS_MAX];
	int n_tasks, n_roles, alive;
	int calls[ROLES_MAX];
	int own_code; /* glovebox's first call that is its own, not the loader's */
	int hit;      /* the number of the call that failed, -1: none did */
	int status;
	bool hung;
	char seal[TEXT_MAX];
	char out[TEXT_MAX];
	char err_text[4096];
};

static int fault_errno = ENOMEM;
static const char *odd_dir;
static int failures, points, left_behind;
static struct run base, now;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

static size_t read_path(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void seal_add(struct run *r, const char *name, const char *text)
{
	size_t at = strlen(r->seal);

	(void)snprintf(r->seal + at, sizeof(r->seal) - at, "%s: %s\n", name, text);
}

/* A cgroup's number differs from run to run; the directory below ".../glovebox" is the same name. */
static void seal_cgroup(struct run *r, const char *controller, const char *cgroups,
			const char *file)
{
	char key[32], path[512], text[128];
	const char *line, *ours;

	(void)snprintf(key, sizeof(key), ":%s:", controller);
	line = strstr(cgroups, key);
	ours = line ? strstr(line, "/glovebox/box-") : NULL;
	if (!ours)
		return;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%.*s/%s", controller,
		       (int)strcspn(ours, "\n"), ours, file);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, file, text);
}

static void seal_namespaces(struct run *r, pid_t pid)
{
	static const char *const kinds[] = { "user", "mnt", "pid",    "net",
					     "ipc",  "uts", "cgroup", "time" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64];
		struct stat box, host;

		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		if (stat(path, &box) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		if (stat(path, &host) < 0)
			continue;
		seal_add(r, kinds[i], box.st_ino == host.st_ino ? "the host's" : "own");
	}
}

/* What the host sees of the command at the moment it is executed. */
static void seal_take(struct run *r, pid_t pid)
{
	static const char *const wanted[] = { "Groups:", "CapInh:", "CapPrm:",     "CapEff:",
					      "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:" };
	char path[64], text[8192];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	(void)read_path(path, text, sizeof(text));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *line = strstr(text, wanted[i]);
		char one[128];

		if (!line)
			continue;
		(void)snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		seal_add(r, "status", one);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, "limits", text);
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	(void)read_path(path, text, sizeof(text));
	seal_add(r, "oom", text);
	seal_namespaces(r, pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	(void)read_path(path, text, sizeof(text));
	seal_cgroup(r, "memory", text, "memory.limit_in_bytes");
	seal_cgroup(r, "memory", text, "memory.memsw.limit_in_bytes");
	seal_cgroup(r, "memory", text, "memory.swappiness");
	seal_cgroup(r, "pids", text, "pids.max");
	seal_cgroup(r, "cpu", text, "cpu.cfs_quota_us");
}

static struct task *task_of(struct run *r, pid_t pid)
{
	for (int i = 0; i < r->n_tasks; i++)
		if (r->task[i].pid == pid)
			return &r->task[i];
	if (r->n_tasks >= TASKS_MAX || r->n_roles >= ROLES_MAX) {
		(void)fprintf(stderr, "too many processes\n");
		exit(2);
	}
	r->task[r->n_tasks] = (struct task){ .pid = pid, .role = r->n_roles++ };
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
	/* The first thing it does is to look for its standard descriptors. */
	if (t->role == 0 && !r->own_code && regs.orig_rax == SCMP_SYS(fcntl))
		r->own_code = t->calls;
	if (t->role != r->role || t->calls != r->call)
		return;
	if (r->err == 0) {
		r->hit = (int)regs.orig_rax;
		(void)kill(t->pid, SIGKILL);
	} else if (!is_spared((long)regs.orig_rax)) {
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
		if (t->role >= 2) {
			t->foreign = true;
			seal_take(r, pid);
		}
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

static void run_traced(struct run *r, char **argv)
{
	int out_fd = memfd_create("out", MFD_CLOEXEC), err_fd = memfd_create("err", MFD_CLOEXEC);
	pid_t first = start(argv, out_fd, err_fd);
	int status;

	if (waitpid(first, &status, __WALL) != first || !WIFSTOPPED(status))
		die("waitpid");
	(void)ptrace(PTRACE_SETOPTIONS, first, NULL,
		     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	(void)task_of(r, first);
	(void)ptrace(PTRACE_SYSCALL, first, NULL, 0);
	out_of_time = 0;
	(void)alarm(TIME_LIMIT_S);
	while (r->alive > 0) {
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

static void run_start(struct run *r, int role, int call, int err)
{
	memset(r, 0, sizeof(*r));
	r->role = role;
	r->call = call;
	r->err = err;
	r->hit = -1;
}

/* "key": up to the end of the line, or of the whole object for the last one. */
static void json_part(const char *out, const char *key, bool to_end, char *ret, size_t size)
{
	const char *at = strstr(out, key);

	(void)snprintf(ret, size, "%.*s", at ? (int)(to_end ? strlen(at) : strcspn(at, "\n")) : 0,
		       at ? at : "");
}

static bool same_part(const char *key, bool to_end)
{
	static char a[TEXT_MAX], b[TEXT_MAX];

	json_part(base.out, key, to_end, a, sizeof(a));
	json_part(now.out, key, to_end, b, sizeof(b));
	return strcmp(a, b) == 0;
}

static void write_text(const char *name, const char *ending, const char *text)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s%s", odd_dir, name, ending);
	f = fopen(path, "w");
	if (!f)
		die(path);
	(void)fputs(text, f);
	(void)fclose(f);
}

/* What glovebox reported and what the host saw, for somebody else to compare. */
static void keep(const char *name, const struct run *r)
{
	if (!odd_dir)
		return;
	write_text(name, ".json", r->out);
	write_text(name, ".seal", r->seal);
}

static void keep_odd(void)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%d-%d-%d", now.role, now.call, now.err);
	keep(name, &now);
}

static bool one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return strncmp(text, "glovebox: ", 10) == 0 && end && end[1] == '\0';
}

/* NULL when the run ended as it may. */
static const char *verdict(void)
{
	int code = WIFEXITED(now.status) ? WEXITSTATUS(now.status) : -1;

	if (now.hung)
		return "it hung";
	if (now.err == 0 && now.role == 0)
		return WIFSIGNALED(now.status) ? NULL : "it was not killed";
	if (code < 0)
		return "ended by a signal";
	if (code == 125 && strstr(now.out, "\"status\": \"setup_error\"") &&
	    !strstr(now.out, "\"message\": \"\""))
		return NULL;
	if (code == 125 && now.role == 0 && now.hit == SCMP_SYS(fcntl) && !now.err_text[0])
		return NULL; /* it looks for its standard descriptors: there is nowhere to say it */
	if ((code == 125 || code == 2) && !now.out[0])
		return one_line(now.err_text) ? NULL : "did not say in one line what is wrong";
	if (code == 128 + SIGKILL && now.err == 0 && now.role >= 2)
		return NULL; /* the command's own process was killed, and that is what is said */
	if (code == 126 && now.role >= 2)
		return NULL; /* the command could not be executed */
	if (code != 0)
		return now.err == 0 ? "not the status of our own failure" :
				      "neither done nor cleanly refused";
	if (strcmp(now.seal, base.seal) != 0) {
		/* Less than it should be; only right if glovebox says so itself. */
		if (same_part("\"isolation\"", true))
			return "ran, with something silently missing (as the host sees it)";
		keep_odd();
	} else if (!same_part("\"stdout\": ", false)) {
		if (same_part("\"isolation\"", true))
			return "ran, with something silently missing (as the box sees it)";
		keep_odd();
	} else if (!same_part("\"isolation\"", true)) {
		keep_odd();
	}
	return NULL;
}

/* Directories of boxes in any hierarchy. */
static int count_boxes(void)
{
	static const char *const trees[] = { "memory", "pids", "cpu", "cpuacct", "unified", "." };
	int n = 0;

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		char path[64];
		struct dirent *de;
		DIR *d;

		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/glovebox", trees[i]);
		d = opendir(path);
		while (d && (de = readdir(d)))
			n += strncmp(de->d_name, "box-", 4) == 0;
		if (d)
			(void)closedir(d);
	}
	return n;
}

/* Living processes of this pid namespace beside those that were there before. */
static int count_processes(void)
{
	struct dirent *de;
	DIR *d = opendir("/proc");
	int n = 0;

	while (d && (de = readdir(d))) {
		char path[300], text[256];
		const char *state;

		if (de->d_name[0] < '0' || de->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/stat", de->d_name);
		if (!read_path(path, text, sizeof(text)))
			continue;
		state = strrchr(text, ')');
		n += state && state[1] && state[2] != 'Z';
	}
	if (d)
		(void)closedir(d);
	return n;
}

static void run_plain(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR);
		char *clean[] = { argv[0], (char[]){ "run" }, (char[]){ "--" },
				  (char[]){ "/bin/true" }, NULL };

		(void)dup2(null_fd, 0);
		(void)dup2(null_fd, 1);
		execvp(clean[0], clean);
		_exit(126);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		(void)printf("FAIL a run after that ended with status %x\n", status), failures++;
}

static const char *leftovers(char **argv, int processes)
{
	for (int i = 0; i < 40 && count_processes() > processes; i++)
		(void)usleep(50000);
	if (count_processes() > processes)
		return "a process is still there after 2 s";
	if (count_boxes() == 0)
		return NULL;
	left_behind++;
	run_plain(argv);
	return count_boxes() == 0 ? NULL : "its cgroups are still there after the next start";
}

/* The first line in which the two seals differ, for whoever has to find out why. */
static void name_difference(void)
{
	size_t at = 0, line = 0;

	while (base.seal[at] && base.seal[at] == now.seal[at]) {
		if (base.seal[at] == '\n')
			line = at + 1;
		at++;
	}
	if (now.seal[0] && base.seal[at] != now.seal[at])
		(void)printf("  was '%.*s', is '%.*s'\n", (int)strcspn(base.seal + line, "\n"),
			     base.seal + line, (int)strcspn(now.seal + line, "\n"),
			     now.seal + line);
}

static void try_point(char **argv, int role, int call, int processes)
{
	const char *why, *left;
	char *name;

	run_start(&now, role, call, fault_errno);
	run_traced(&now, argv);
	if (now.hit < 0 && !now.hung)
		return; /* this time it did not get that far */
	points++;
	why = verdict();
	left = leftovers(argv, processes);
	if (!why && !left)
		return;
	failures++;
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, now.hit);
	(void)printf("FAIL process %d call %d (%s) %s: %s%s%s\n", role, call, name ? name : "?",
		     fault_errno ? strerror(fault_errno) : "killed", why ? why : "",
		     why && left ? "; " : "", left ? left : "");
	if (why)
		(void)printf("  status %x, stdout %.1500s, stderr %.300s\n", now.status, now.out,
			     now.err_text);
	free(name);
	name_difference();
}

static int errno_of(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = { { "ENOMEM", ENOMEM }, { "EMFILE", EMFILE }, { "EPERM", EPERM },
		      { "EINTR", EINTR },   { "EIO", EIO },       { "EAGAIN", EAGAIN } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].value;
	(void)fprintf(stderr, "unknown error %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct sigaction alarm_action = { .sa_handler = on_alarm };
	int step = 1, first = 1, processes, option;
	const char *roles = "01234567";

	while ((option = getopt(argc, argv, "+e:kr:s:o:d:")) > 0)
		switch (option) {
		case 'e':
			fault_errno = errno_of(optarg);
			break;
		case 'k':
			fault_errno = 0;
			break;
		case 'r':
			roles = optarg;
			break;
		case 's':
			step = atoi(optarg);
			break;
		case 'o':
			first = atoi(optarg);
			break;
		case 'd':
			odd_dir = optarg;
			break;
		default:
			return 2;
		}
	argv += optind;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)sigaction(SIGALRM, &alarm_action, NULL);
	run_start(&base, -1, 0, 0);
	run_traced(&base, argv);
	if (base.status != 0 || !base.seal[0]) {
		(void)printf("the run without a fault failed: status %x\n%s%s", base.status,
			     base.out, base.err_text);
		return 2;
	}
	keep("whole", &base);
	processes = count_processes();
	for (const char *c = roles; *c; c++)
		for (int role = *c - '0', call = first + (role == 0 ? base.own_code - 1 : 0);
		     role < base.n_roles && call <= base.calls[role]; call += step)
			try_point(argv, role, call, processes);
	(void)printf("%d points, %d failed, %d left cgroups to the next start\n", points, failures,
		     left_behind);
	return failures > 0 || points == 0;
}
