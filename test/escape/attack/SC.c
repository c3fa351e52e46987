/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that widen what of the kernel can be attacked. */
#include "probe.h"
#include "sockets.h"
#include "works.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define P NOWHERE

static int sc01(void)
{
	return ALL_REFUSED(CALL(io_uring_setup, ENOSYS, 8, P), CALL(io_uring_setup, ENOSYS, 0, P),
			   CALL(io_uring_enter, ENOSYS, 0, 1, 1, 1, P),
			   CALL(io_uring_register, ENOSYS, 0, 0, P, 1),
			   CALL(io_uring_register, ENOSYS, -1UL, 0, P, 1));
}

static int sc02(void)
{
	int bad = 0;

	for (unsigned long cmd = 0; cmd < 48; cmd++) {
		struct call c = CALL(bpf, EPERM, cmd, P, 64);

		bad |= all_refused(&c, 1);
	}
	return bad;
}

static int sc03(void)
{
	int fd = open("/dev/userfaultfd", O_RDWR);

	if (fd >= 0 || errno != ENOENT)
		return BREACH("/dev/userfaultfd: %s", fd >= 0 ? "open" : strerror(errno));
	return ALL_REFUSED(CALL(userfaultfd, ENOSYS, 0), CALL(userfaultfd, ENOSYS, 1 | O_CLOEXEC));
}

static int sc04(void)
{
	return ALL_REFUSED(CALL(perf_event_open, EPERM, P, 0, -1UL, -1UL, 0));
}

/* With good pointers too: without the filter this would make a key. */
static int sc05(void)
{
	struct call add = CALL(add_key, ENOSYS, (unsigned long)"user", (unsigned long)"escape",
			       (unsigned long)"x", 1, (unsigned long)-2L);

	return all_refused(&add, 1) |
	       ALL_REFUSED(CALL(add_key, ENOSYS, P, P, P, 1, -2UL),
			   CALL(request_key, ENOSYS, P, P, P, 0), CALL(keyctl, ENOSYS, 0, -3UL, 1),
			   CALL(keyctl, ENOSYS, 1, P), CALL(keyctl, ENOSYS, 11, -3UL, P, 8));
}

/* A child that waits is ours to debug as far as the kernel is concerned. */
static int sc06(void)
{
	pid_t victim = fork();
	unsigned long pid = (unsigned long)victim;
	int bad;

	if (victim == 0)
		for (;;)
			pause();
	{
		struct call calls[] = {
			CALL(ptrace, EPERM, 0),
			CALL(ptrace, EPERM, 16, pid),     /* ATTACH */
			CALL(ptrace, EPERM, 0x4206, pid), /* SEIZE */
			CALL(process_vm_readv, EPERM, pid, P, 1, P, 1),
			CALL(process_vm_writev, EPERM, pid, P, 1, P, 1),
			CALL(kcmp, EPERM, pid, pid, 0, 0, 1),
			CALL(pidfd_getfd, EPERM, -1UL, 0, 0),
			CALL(process_madvise, EPERM, -1UL, P, 1, 4),
			CALL(process_mrelease, EPERM, -1UL, 0),
			CALL(ptrace, EPERM, 16, 1),
		};

		bad = all_refused(calls, N_ELEM(calls));
	}
	kill(victim, SIGKILL);
	(void)ended(victim);
	return bad;
}

static int sc07(void)
{
	return ALL_REFUSED(CALL(mount, EPERM, P, P, P, 0, P), CALL(umount2, EPERM, P, 2),
			   CALL(pivot_root, EPERM, P, P), CALL(chroot, EPERM, P),
			   CALL(fsopen, ENOSYS, P), CALL(fsconfig, ENOSYS, -1UL, 0, P, P),
			   CALL(fsmount, ENOSYS, -1UL), CALL(fspick, ENOSYS, -1UL, P),
			   CALL(open_tree, ENOSYS, -1UL, P, 1),
			   CALL(open_tree_attr, ENOSYS, -1UL, P, 0, P, 32),
			   CALL(move_mount, ENOSYS, -1UL, P, -1UL, P),
			   CALL(mount_setattr, ENOSYS, -1UL, P, 0, P, 32),
			   CALL(statmount, ENOSYS, P, P, 64), CALL(listmount, ENOSYS, P, P, 8),
			   CALL(listns, ENOSYS, P, P, 8));
}

static int sc08(void)
{
	static const unsigned long kinds[] = { CLONE_NEWNS,     CLONE_NEWUSER, CLONE_NEWPID,
					       CLONE_NEWNET,    CLONE_NEWIPC,  CLONE_NEWUTS,
					       CLONE_NEWCGROUP, 0x80 /* CLONE_NEWTIME */ };
	/* CLONE_PARENT with CLONE_SIGHAND alone: where it is allowed, the kernel says EINVAL and makes no child. */
	int bad = ALL_REFUSED(CALL(clone3, ENOSYS, P, 88), CALL(clone3, ENOSYS, P, 64),
			      CALL(setns, EPERM, 0, 0), CALL(setns, EPERM, -1UL, CLONE_NEWNS),
			      CALL(clone, EPERM, CLONE_PARENT | CLONE_SIGHAND));

	for (size_t i = 0; i < N_ELEM(kinds); i++) {
		struct call calls[] = {
			CALL(unshare, EPERM, kinds[i]),
			CALL(unshare, EPERM, kinds[i] | CLONE_FILES | CLONE_FS),
			CALL(clone, EPERM, kinds[i]),
			CALL(clone, EPERM, kinds[i] | CLONE_VM | CLONE_VFORK, P),
		};

		bad |= all_refused(calls, N_ELEM(calls));
	}
	return bad;
}

static int sc09(void)
{
	/* The magic numbers are wrong on purpose. */
	return ALL_REFUSED(CALL(kexec_load, EPERM, 0, 1, P, 0),
			   CALL(kexec_file_load, EPERM, -1UL, -1UL, 1, P, 0),
			   CALL(reboot, EPERM, 1, 1, 0, P));
}

/* Each of these makes a kernel look for a module by a name we choose. */
static void ask_for_modules(void)
{
	int fd;

	for (int family = 0; family < 64; family++)
		(void)socket(family, SOCK_STREAM, 0);
	for (int protocol = 0; protocol < 300; protocol++) {
		(void)socket(AF_INET, SOCK_DGRAM, protocol);
		(void)socket(AF_INET6, SOCK_STREAM, protocol);
		if (protocol < 32)
			(void)socket(AF_NETLINK, SOCK_RAW, protocol);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_ULP, "escape", 6);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "escape", 6);
	(void)syscall(SYS_mount, "none", "/tmp", "escapefs", 0, 0);
	fd = open("/tmp/binfmt", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	(void)!write(fd, "\xfe\x01\x99\x02 escape", 11);
	close(fd);
	if (fork() == 0) {
		execl("/tmp/binfmt", "binfmt", NULL);
		_exit(0);
	}
	(void)wait(NULL);
}

static int sc10(void)
{
	ask_for_modules();
	return ALL_REFUSED(CALL(init_module, EPERM, P, 1, P), CALL(finit_module, EPERM, -1UL, P, 0),
			   CALL(delete_module, EPERM, P, 0));
}

static int sc11(void)
{
	return ALL_REFUSED(CALL(fanotify_init, EPERM, 0, 0), CALL(fanotify_init, EPERM, 0x200, 0),
			   CALL(fanotify_mark, EPERM, -1UL, 1, 2, -1UL, P),
			   CALL(open_by_handle_at, EPERM, -1UL, P, 0),
			   CALL(name_to_handle_at, EPERM, -1UL, P, P, P, 0));
}

static int sc12(void)
{
#ifdef __x86_64__
	return ALL_REFUSED(CALL(modify_ldt, EPERM, 0, P, 16), CALL(modify_ldt, EPERM, 1, P, 16),
			   CALL(iopl, EPERM, 3), CALL(iopl, EPERM, 0),
			   CALL(ioperm, EPERM, 0, 1, 1));
#else
	return SAFE("only x86 has them");
#endif
}

static int sc13(void)
{
	static const unsigned long fine[] = { 0, 0x8, 0x20000, 0x20008, 0xffffffff };
	int bad = ALL_REFUSED(CALL(personality, EPERM, ADDR_NO_RANDOMIZE),
			      CALL(personality, EPERM, READ_IMPLIES_EXEC),
			      CALL(personality, EPERM, ADDR_COMPAT_LAYOUT | 0x8),
			      CALL(personality, EPERM, MMAP_PAGE_ZERO),
			      CALL(personality, EPERM, 0x6));

	for (size_t i = 0; i < N_ELEM(fine); i++) {
		struct call c = CALL(personality, 0, fine[i]);

		if (call_errno(&c) != 0)
			bad |= BREACH("personality(%#lx) is refused", fine[i]);
	}
	return bad;
}

static int sc14(void)
{
	int bad = ALL_REFUSED(CALL(quotactl, EPERM, 0x800002UL << 8, P, 0, P),
			      CALL(swapon, EPERM, P, 0), CALL(swapoff, EPERM, P),
			      CALL(acct, EPERM, P), CALL(syslog, EPERM, 3, P, 8),
			      CALL(syslog, EPERM, 10, 0, 0), CALL(nfsservctl, EPERM, 0, P, P),
			      CALL(lookup_dcookie, EPERM, 0, P, 8));

#ifdef __x86_64__
	bad |= ALL_REFUSED(CALL(uselib, EPERM, P), CALL(sysfs, EPERM, 1, P),
			   CALL(ustat, EPERM, 0, P));
#endif
	return bad;
}

static int sc15(void)
{
	return ALL_REFUSED(CALL(settimeofday, EPERM, P, 0), CALL(clock_settime, EPERM, 0, P),
			   CALL(adjtimex, EPERM, P), CALL(clock_adjtime, EPERM, 0, P));
}

static int sc16(void)
{
	return ALL_REFUSED(CALL(sethostname, EPERM, P, 3), CALL(setdomainname, EPERM, P, 3),
			   CALL(vhangup, EPERM));
}

static int sc17(void)
{
	return ALL_REFUSED(CALL(mbind, EPERM, 0, 4096, 2, P, 64, 0),
			   CALL(move_pages, EPERM, 0, 1, P, P, P, 0),
			   CALL(migrate_pages, EPERM, 0, 64, P, P),
			   CALL(set_mempolicy, EPERM, 2, P, 64),
			   CALL(get_mempolicy, EPERM, P, P, 64),
			   CALL(set_mempolicy_home_node, EPERM, 0, 4096, 0, 0));
}

/* A file that may only be read, and a pipe: what Dirty Pipe and its children begin with. */
static int sc21(void)
{
	int file = open("/etc/passwd", O_RDONLY), pipe1[2], pipe2[2];

	if (file < 0 || pipe(pipe1) < 0 || pipe(pipe2) < 0 || write(pipe1[1], "x", 1) != 1)
		return BREACH("cannot try: %m");
	{
		unsigned long in = (unsigned long)pipe1[0], out = (unsigned long)pipe2[1];
		struct call calls[] = {
			CALL(splice, EINVAL, (unsigned long)file, 0, out, 0, 16, 0),
			CALL(tee, EINVAL, in, out, 16, 2),
			CALL(vmsplice, EINVAL, out, P, 1, 2),
		};

		return all_refused(calls, N_ELEM(calls));
	}
}

static int sc23(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} rt = { 48, SCHED_FIFO, 0, 0, 1, 0, 0, 0 },
	  dl = { 48, 6, 0, 0, 0, 1000000, 2000000, 2000000 };
	struct sched_param param = { .sched_priority = 1 };
	unsigned long p = (unsigned long)&param;
	struct call calls[] = {
		CALL(sched_setscheduler, EPERM, 0, SCHED_FIFO, p),
		CALL(sched_setscheduler, EPERM, 0, SCHED_RR, p),
		CALL(sched_setscheduler, EPERM, 0, 6, p),
		CALL(sched_setscheduler, EPERM, 0, SCHED_RR | SCHED_RESET_ON_FORK, p),
		CALL(ioprio_set, EPERM, 1, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)),
	};
	int bad = all_refused(calls, N_ELEM(calls));

	/* The policy lies behind a pointer: here the limits speak. */
	if (syscall(SYS_sched_setattr, 0, &rt, 0) == 0 ||
	    syscall(SYS_sched_setattr, 0, &dl, 0) == 0)
		bad |= BREACH("sched_setattr gave a real-time policy");
	if (setpriority(PRIO_PROCESS, 0, -1) == 0)
		bad |= BREACH("a nice value below 0");
	if (sched_getscheduler(0) != SCHED_OTHER)
		bad |= BREACH("the policy is %d", sched_getscheduler(0));
	return bad;
}

/* Touched, because only a touched page is taken; in a child, because one that is not there kills. */
static int take(const char *what, void *memory)
{
	pid_t pid;

	if (memory == MAP_FAILED)
		return 0;
	pid = fork();
	if (pid == 0) {
		*(volatile char *)memory = 1;
		_exit(0);
	}
	return ended(pid) == 0 ? BREACH("%s", what) : 0;
}

static int huge_pages(void)
{
	const size_t size = 2 << 20;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, bad = 0;
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | SHM_HUGETLB | 0600);
	int fd = memfd_create("escape", MFD_CLOEXEC | MFD_HUGETLB);

	bad |= take("a huge page", mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0));
	if (id >= 0) {
		bad |= take("a segment of huge pages", shmat(id, NULL, 0));
		shmctl(id, IPC_RMID, NULL);
	}
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		bad |= take("a memfd of huge pages",
			    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	return bad;
}

static int sc24(void)
{
	size_t size = 1 << 20;
	void *small = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int bad = ALL_REFUSED(CALL(memfd_secret, ENOSYS, 0));
	struct rlimit limit;

	bad |= huge_pages();
	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_max > 64 << 10)
		bad |= BREACH("RLIMIT_MEMLOCK is %llu", (unsigned long long)limit.rlim_max);
	if (small == MAP_FAILED || mlock(small, size) == 0 ||
	    mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		bad |= BREACH("more memory locked than the limit");
	return bad ? bad : SAFE("no huge, secret or locked memory");
}

static int sc25(void)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &code };
	unsigned long f = (unsigned long)&program;
	struct call calls[] = {
		CALL(seccomp, EPERM, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, f),
		CALL(seccomp, EPERM, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
			     SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
		     f),
		CALL(seccomp, EPERM, SECCOMP_SET_MODE_STRICT, 0, 0),
		CALL(seccomp, EINVAL, 99, 0, 0),
	};
	static const struct call by_prctl[] = {
		CALL(prctl, EPERM, PR_SET_SECCOMP, SECCOMP_MODE_STRICT),
		CALL(prctl, EPERM, PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, 0),
		CALL(prctl, EPERM, PR_SET_MM, PR_SET_MM_BRK, P, 0, 0),
		CALL(prctl, EPERM, PR_SET_MM, 99, P, 0, 0),
		CALL(prctl, EPERM, 62 /* PR_SCHED_CORE */, 1, 0, 0, 0),
		CALL(prctl, EPERM, PR_SET_TSC, PR_TSC_SIGSEGV),
		CALL(prctl, EPERM, 67 /* PR_SET_MEMORY_MERGE */, 1, 0, 0, 0),
		CALL(prctl, EPERM, PR_TASK_PERF_EVENTS_DISABLE),
	};

	return all_refused(calls, N_ELEM(calls)) | all_refused(by_prctl, N_ELEM(by_prctl));
}

/* The kernel would know some of the first; of the numbers above 470 nobody should hear at all. */
static int sc26(void)
{
	static const long far[] = { -1, 4096, 65535, 0x3fffffff };
	int bad = ALL_REFUSED(CALL(cachestat, ENOSYS, P, P, P, P),
			      CALL(futex_wake, ENOSYS, P, P, P, P),
			      CALL(futex_wait, ENOSYS, P, P, P, P), CALL(mseal, ENOSYS, P, P, P),
			      CALL(futex_requeue, ENOSYS, P, P, P, P));

	for (long nr = 470; nr < 1024; nr++)
		if (syscall(nr, P, P, P, P, P, P) != -1 || errno != ENOSYS)
			bad |= BREACH("call %ld: %m", nr);
	for (size_t i = 0; i < N_ELEM(far); i++)
		if (syscall(far[i], P, P, P, P, P, P) != -1 || errno != ENOSYS)
			bad |= BREACH("call %ld: %m", far[i]);
	return bad;
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "SC-01", sc01 }, { "SC-02", sc02 }, { "SC-03", sc03 },  { "SC-04", sc04 },
		{ "SC-05", sc05 }, { "SC-06", sc06 }, { "SC-07", sc07 },  { "SC-08", sc08 },
		{ "SC-09", sc09 }, { "SC-10", sc10 }, { "SC-11", sc11 },  { "SC-12", sc12 },
		{ "SC-13", sc13 }, { "SC-14", sc14 }, { "SC-15", sc15 },  { "SC-16", sc16 },
		{ "SC-17", sc17 }, { "SC-18", sc18 }, { "SC-19", sc19 },  { "SC-20", sc20 },
		{ "SC-21", sc21 }, { "SC-22", sc22 }, { "SC-23", sc23 },  { "SC-24", sc24 },
		{ "SC-25", sc25 }, { "SC-26", sc26 }, { "SC-27", works },
	};

	return run_rows(rows, N_ELEM(rows), argc, argv);
}
