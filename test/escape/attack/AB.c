/* SPDX-License-Identifier: Apache-2.0 */
/* Other ways to say the same system call, so that a filter might not recognise it. */
#include "probe.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#define HIGH (1UL << 32)

#ifdef __x86_64__

static long int80(long nr, unsigned long a, unsigned long b)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(0), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* The C library's syscall() takes what it is given, but says nothing about the upper half of it. */
static long raw(unsigned long nr, unsigned long a, unsigned long b, unsigned long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "memory", "rcx", "r11");
	return ret;
}

/* i386: 20 getpid, 5 open, 21 mount, 11 execve, 120 clone, 102 socketcall. */
static int ab01(void)
{
	static const long numbers[] = { 20, 5, 21, 11, 120, 102, 0, 400 };
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(numbers); i++) {
		pid_t pid = fork();
		int end;

		if (pid == 0) {
			int80(numbers[i], 0, 0);
			_exit(0);
		}
		end = ended(pid);
		if (end != KILLED(SIGSYS))
			bad |= BREACH("i386 call %ld: ended with %d", numbers[i], end);
	}
	return bad ? 1 : SAFE("killed");
}

static int ab02(void)
{
	static const unsigned long numbers[] = { 0,   1,   39,  41,  56,  57,
						 165, 272, 512, 520, 547, 0x3ffffffe };
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(numbers); i++) {
		pid_t pid = fork();
		int end;

		if (pid == 0) {
			raw(numbers[i] | 0x40000000, NOWHERE, NOWHERE, 0);
			_exit(0);
		}
		end = ended(pid);
		if (end != KILLED(SIGSYS))
			bad |= BREACH("x32 call %lu: ended with %d", numbers[i], end);
	}
	return bad ? 1 : SAFE("killed");
}

/* AF_ALG, where no rule about socket()'s arguments can see it. */
static int ab04(void)
{
	uint32_t *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	pid_t pid = fork();
	int end;

	if (args == MAP_FAILED)
		return BREACH("cannot try: %m");
	if (pid == 0) {
		args[0] = 38;
		args[1] = SOCK_SEQPACKET;
		_exit(int80(102, 1, (unsigned long)args) < 0 ? 1 : 0);
	}
	end = ended(pid);
	return end == KILLED(SIGSYS) ? SAFE("killed") : BREACH("socketcall: ended with %d", end);
}

/* The page at the top that answers time(2): below a filter it must obey that filter. */
static int vsyscall_time(int filtered)
{
	time_t (*by_page)(time_t *) = (time_t(*)(time_t *))0xffffffffff600400UL;
	pid_t pid = fork();
	time_t now = time(NULL), then;

	if (pid == 0) {
		if (filtered && trace_call(SYS_time) < 0)
			_exit(2);
		then = by_page(NULL);
		_exit(then >= now - 5 && then <= now + 5);
	}
	return ended(pid);
}

static int ab05(void)
{
	int open_end = vsyscall_time(0), filtered_end = vsyscall_time(1);

	if (open_end != 1 && open_end != KILLED(SIGSEGV) && open_end != KILLED(SIGSYS))
		return BREACH("vsyscall time: ended with %d", open_end);
	if (filtered_end != 0 && filtered_end != KILLED(SIGSEGV) && filtered_end != KILLED(SIGSYS))
		return BREACH("vsyscall goes past a filter: %d", filtered_end);
	return SAFE("%d unfiltered, %d filtered", open_end, filtered_end);
}

static int same(const char *what, long got, long want)
{
	return got == want ? 0 : BREACH("%s: %ld, want %ld", what, got, want);
}

static int ab06(void)
{
	int bad = same("nr", raw(SYS_mount | HIGH, NOWHERE, NOWHERE, NOWHERE), -EPERM);

	bad |= same("nr 2", raw(SYS_ptrace | 0xdeadbeefUL << 32, 0, 0, 0), -EPERM);
	bad |= same("nr 3", raw(SYS_getpid | HIGH, 0, 0, 0), getpid());
	bad |= same("family", raw(SYS_socket, 40 | HIGH, SOCK_STREAM, 0), -EAFNOSUPPORT);
	bad |= same("type", raw(SYS_socket, AF_INET, SOCK_RAW | HIGH, 1), -EPERM);
	bad |= same("protocol", raw(SYS_socket, AF_INET, SOCK_STREAM, 262 | HIGH),
		    -EPROTONOSUPPORT);
	bad |= same("netlink", raw(SYS_socket, AF_NETLINK | HIGH, SOCK_RAW, 12 | HIGH),
		    -EPROTONOSUPPORT);
	bad |= same("TIOCSTI", raw(SYS_ioctl, 0, 0x5412 | HIGH, NOWHERE), -EPERM);
	bad |= same("unshare", raw(SYS_unshare, CLONE_NEWUSER | HIGH, 0, 0), -EPERM);
	bad |= same("unshare 2", raw(SYS_unshare, CLONE_NEWNS | ~0UL << 32, 0, 0), -EPERM);
	bad |= same("clone", raw(SYS_clone, CLONE_NEWUSER | HIGH, 0, 0), -EPERM);
	bad |= same("personality", raw(SYS_personality, 0x40000 | HIGH, 0, 0), -EPERM);
	bad |= same("prctl", raw(SYS_prctl, PR_SET_MM | HIGH, 1, 0), -EPERM);
	bad |= same("seccomp", raw(SYS_seccomp, 1 | HIGH, 8 | HIGH, NOWHERE), -EPERM);
	bad |= same("setsockopt", raw(SYS_setsockopt, 0, 6 | HIGH, 31 | HIGH), -EPERM);
	bad |= same("mknod", raw(SYS_mknod, NOWHERE, S_IFCHR | HIGH, 0), -EPERM);
	bad |= same("scheduler", raw(SYS_sched_setscheduler, 0, SCHED_FIFO | HIGH, NOWHERE),
		    -EPERM);
	/* And what is allowed stays so. */
	bad |= raw(SYS_socket, AF_UNIX | HIGH, SOCK_STREAM | HIGH, HIGH) < 0 ? BREACH("AF_UNIX") :
									       0;
	bad |= same("prctl name", raw(SYS_prctl, PR_GET_DUMPABLE | HIGH, 0, 0), 1);
	return bad ? 1 : SAFE("the upper half changes nothing");
}

#else

static int other(void)
{
	return BREACH("only for x86_64");
}

#define ab01 other
#define ab02 other
#define ab04 other
#define ab05 other
#define ab06 other

#endif

/* A second thread changes what the first one's pointer points to, all the time. */
static struct {
	uint64_t flags, words[10];
} clone_args;
static volatile int over;

static void *flip(void *arg)
{
	while (!over)
		*(volatile uint64_t *)&clone_args.flags ^= CLONE_NEWUSER;
	return arg;
}

static int ab07(void)
{
	pthread_t thread;
	int bad = 0;

	clone_args.words[3] = 9999; /* no such exit signal: a kernel that is asked says EINVAL */
	if (pthread_create(&thread, NULL, flip, NULL) != 0)
		return BREACH("cannot try");
	for (int i = 0; i < 20000 && !bad; i++)
		if (syscall(SYS_clone3, &clone_args, 64) != -1 || errno != ENOSYS)
			bad = BREACH("clone3: %m");
	over = 1;
	pthread_join(thread, NULL);
	return bad ? 1 : SAFE("the answer does not depend on memory");
}

/* Waits with a thread, so that the host can look at every task. */
static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int ab08(void)
{
	pthread_t thread;
	char line[8];

	if (pthread_create(&thread, NULL, sleeper, NULL) != 0)
		return BREACH("cannot start a thread");
	if (fork() == 0)
		sleeper(NULL);
	puts("ready");
	(void)!read(0, line, sizeof(line));
	return SAFE("end");
}

/* Executed from a file with set-uid bit or file capabilities. What did it become? */
static int ab09(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	int bad = getuid() == 0 || geteuid() == 0 || getegid() == 0 ?
			  BREACH("uid %d, euid %d", getuid(), geteuid()) :
			  0;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Cap", 3) && strspn(line + 8, "0\n") != strlen(line + 8))
			bad |= BREACH("%s", line);
		if (!strncmp(line, "NoNewPrivs:", 11) && line[12] != '1')
			bad |= BREACH("%s", line);
		if (!strncmp(line, "Seccomp:", 8) && line[9] != '2')
			bad |= BREACH("%s", line);
	}
	{
		static const struct call mount = CALL(mount, EPERM, NOWHERE, NOWHERE, NOWHERE);

		return bad | all_refused(&mount, 1);
	}
}

/* The table itself, to be held against what the kernel does. */
struct verdict {
	const char *name;
	long nr;
	int err; /* -1: allowed or depends on the arguments, -2: pretends */
};

static const struct verdict verdicts[] = {
#define ALLOW(call) { #call, __NR_##call, -1 },
#define CHECK(call) { #call, __NR_##call, -1 },
#define REFUSE(call, err) { #call, __NR_##call, err },
#define PRETEND(call) { #call, __NR_##call, -2 },
#include "../../../src/box/filter/syscalls.def"
};

static const struct verdict *verdict_of(long nr)
{
	for (size_t i = 0; i < N_ELEM(verdicts); i++)
		if (verdicts[i].nr == nr)
			return &verdicts[i];
	return NULL;
}

/* Calls that end or stop whoever makes them, whatever the arguments. */
static int is_final(long nr)
{
	static const long numbers[] = { SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_vfork,
					SYS_pause };

	for (size_t i = 0; i < N_ELEM(numbers); i++)
		if (nr == numbers[i])
			return 1;
	return 0;
}

/* Calls that some processors and kernels do not have. */
static int is_rare(long nr)
{
#ifdef __x86_64__
	if (nr == __NR_uretprobe || nr == __NR_uprobe)
		return 1;
#endif
	return nr == __NR_map_shadow_stack;
}

/* futex, for one, says ENOSYS to an operation that it does not know. */
static int answer_to_zeros(long nr)
{
	struct call c = { "zeros", nr, 0, { 0 } };

	return call_errno(&c);
}

static int ab10(void)
{
	int bad = 0, refused = 0;

	for (long nr = 0; nr < 1024; nr++) {
		const struct verdict *v = verdict_of(nr);
		struct call c = { v ? v->name : "unknown",
				  nr,
				  v ? v->err : ENOSYS,
				  { -1UL, -1UL, -1UL, -1UL, -1UL, -1UL } };
		int got;

		if (is_final(nr))
			continue;
		got = call_errno(&c);
		refused += c.want > 0;
		if (c.want > 0 && got != c.want)
			bad |= BREACH("%s (%ld): %d, the table says %d", c.name, nr, got, c.want);
		if (c.want > 0 && c.want != ENOSYS && filter_errno(&c) != c.want)
			bad |= BREACH("%s (%ld): not refused by the filter", c.name, nr);
		if (c.want == -2 && (got != 0 || filter_errno(&c) != 0))
			bad |= BREACH("%s (%ld): does not pretend", c.name, nr);
		if (c.want == -1 && got == ENOSYS)
			got = answer_to_zeros(nr);
		if (c.want == -1 && got == ENOSYS && !is_rare(nr))
			bad |= BREACH("%s (%ld): allowed by the table, but ENOSYS", c.name, nr);
	}
	return bad ? 1 : SAFE("%d refusals as in the table", refused);
}

/*
 * From outside: prints what the filters of a process can answer, one name a line. `dump PID`. A kernel
 * without checkpoint/restore cannot tell (status 77).
 */
static int dump(pid_t pid)
{
	static struct sock_filter code[4096];
	int status, filters = 0;
	long n;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 ||
	    waitpid(pid, &status, __WALL) < 0)
		return BREACH("cannot trace %d: %m", pid);
	for (;; filters++) {
		n = ptrace(0x420c /* PTRACE_SECCOMP_GET_FILTER */, pid, filters, code);
		if (n < 0)
			break;
		for (long i = 0; i < n; i++)
			if (code[i].code == (BPF_RET | BPF_K))
				printf("%#x\n", code[i].k & SECCOMP_RET_ACTION_FULL);
	}
	if (errno == EIO || errno == EACCES || (errno == EINVAL && filters == 0 && n < 0))
		return errno == EINVAL ? BREACH("no filter") : 77;
	return filters > 0 ? 0 : BREACH("no filter");
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "AB-01", ab01 }, { "AB-02", ab02 }, { "AB-04", ab04 },
		{ "AB-05", ab05 }, { "AB-06", ab06 }, { "AB-07", ab07 },
		{ "AB-08", ab08 }, { "AB-09", ab09 }, { "AB-10", ab10 },
	};

	if (argc == 3 && !strcmp(argv[1], "dump"))
		return dump((pid_t)atoi(argv[2]));
	return run_rows(rows, N_ELEM(rows), argc, argv);
}
