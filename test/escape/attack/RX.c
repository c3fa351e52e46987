/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource exhaustion. Every attack is bounded: without its control it takes a few hundred megabytes
 * or processes, says BREACH and gives them back, so that showing that the suite bites hurts nobody.
 */
#include "attack.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define MIB (1024 * 1024)

/* RX-01 */
static int fork_bomb(void)
{
	int n = 0;

	for (; n < 300; n++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			sleep(5);
			_exit(0);
		}
	}
	if (n >= 100)
		return BREACH("%d processes", n);
	sleep(2); /* the host is to see the limit reached, not our end */
	return SAFE("%d processes, then %s", n, strerror(errno));
}

static void *thread_sleeps(void *arg)
{
	sleep(5);
	return arg;
}

/* RX-02 */
static int thread_bomb(void)
{
	pthread_t t;
	int n = 0, e = 0;

	while (n < 300 && (e = pthread_create(&t, NULL, thread_sleeps, NULL)) == 0)
		n++;
	if (n >= 100)
		return BREACH("%d threads", n);
	sleep(2);
	return SAFE("%d threads, then %s", n, strerror(e));
}

static int touch(char *p, size_t mib)
{
	for (size_t i = 0; i < mib; i++)
		for (size_t at = 0; at < MIB; at += 4096)
			p[i * MIB + at] = 1;
	return 0;
}

/* RX-03 */
static int memory_bomb(void)
{
	char *p = mmap(NULL, 600 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return SAFE("mmap: %s", strerror(errno));
	touch(p, 600);
	return BREACH("600 MiB");
}

/* RX-03b: the same as files that no directory shows. */
static int memfd_bomb(void)
{
	for (int i = 0; i < 6; i++) {
		int fd = memfd_create("bomb", 0);
		char *p;

		if (fd < 0 || ftruncate(fd, 100 * MIB) < 0)
			return SAFE("memfd: %s", strerror(errno));
		p = mmap(NULL, 100 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			return SAFE("mmap: %s", strerror(errno));
		touch(p, 100);
	}
	return BREACH("600 MiB of memfd");
}

static size_t fill(const char *path, size_t max)
{
	static char chunk[MIB];
	size_t done = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(chunk, 'x', sizeof(chunk));
	while (fd >= 0 && done < max) {
		ssize_t n = write(fd, chunk, sizeof(chunk));

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	(void)close(fd);
	return done;
}

/* RX-04: --disk 16M; every place one may write to, several files each. */
static int disk_bomb(void)
{
	static const char *const dirs[] = { "/tmp", "/dev/shm", "/var/tmp", "/home/user" };
	size_t sum = 0;
	char path[64];

	(void)signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 16; i++) {
		(void)snprintf(path, sizeof(path), "%s/fill-%d", dirs[i % 4], i);
		sum += fill(path, 5 * MIB);
	}
	if (sum > 20 * MIB)
		return BREACH("%zu MiB written", sum / MIB);
	sleep(2);
	return SAFE("%zu MiB written, then %s", sum / MIB, strerror(errno));
}

static size_t read_sum;

static int read_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static char chunk[MIB];
	int fd;

	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_size < 65536)
		return 0;
	fd = open(path, O_RDONLY);
	for (ssize_t n; fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0;)
		read_sum += (size_t)n;
	(void)close(fd);
	return read_sum > 400UL * MIB;
}

/* RX-05 */
static int page_cache(void)
{
	(void)nftw("/usr", read_file, 16, FTW_PHYS);
	return SAFE("%zu MiB read", read_sum / MIB);
}

/* RX-06 */
static int pipe_bomb(void)
{
	static char chunk[MIB];
	size_t sum = 0;
	int n = 0;

	for (; n < 1000; n++) {
		int fds[2];
		ssize_t w;

		if (pipe2(fds, O_NONBLOCK) < 0)
			break;
		(void)fcntl(fds[1], F_SETPIPE_SZ, MIB);
		w = write(fds[1], chunk, sizeof(chunk));
		sum += w > 0 ? (size_t)w : 0;
	}
	return sum > 128UL * MIB ? BREACH("%zu MiB in %d pipes", sum / MIB, n) :
				   SAFE("%zu MiB in %d pipes", sum / MIB, n);
}

/* RX-07: --memory 64M --disk 16M; queues of datagrams that nobody reads. */
static int datagram_bomb(void)
{
	static char chunk[32768];
	size_t sum = 0;

	for (int i = 0; i < 1500; i++) {
		int fds[2];
		ssize_t w;

		if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds) < 0)
			break;
		(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){ 4 * MIB }, sizeof(int));
		while ((w = send(fds[0], chunk, sizeof(chunk), 0)) > 0)
			sum += (size_t)w;
	}
	if (sum > 160UL * MIB)
		return BREACH("%zu MiB in datagrams", sum / MIB);
	sleep(1);
	return SAFE("%zu MiB in datagrams", sum / MIB);
}

static int tcp_pair(int listen_fd, const struct sockaddr_in *addr, int ret[2])
{
	ret[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (ret[0] < 0 || connect(ret[0], (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -1;
	ret[1] = accept(listen_fd, NULL, NULL);
	return ret[1] < 0 ? -1 : 0;
}

/* RX-07b: the same over TCP on the loopback. */
static int tcp_bomb(void)
{
	static char chunk[256 * 1024];
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t sum = 0;
	int n = 0;

	if (bind(listen_fd, (struct sockaddr *)&addr, len) < 0 || listen(listen_fd, 64) < 0 ||
	    getsockname(listen_fd, (struct sockaddr *)&addr, &len) < 0)
		return BREACH("no loopback: this shows nothing");
	for (; n < 600 && sum < 300UL * MIB; n++) {
		int fds[2];
		ssize_t w;

		if (tcp_pair(listen_fd, &addr, fds) < 0)
			break;
		(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
		while ((w = send(fds[0], chunk, sizeof(chunk), 0)) > 0)
			sum += (size_t)w;
	}
	printf("%zu MiB in %d connections\n", sum / MIB, n);
	if (sum > 160UL * MIB)
		return BREACH("%zu MiB in TCP buffers", sum / MIB);
	sleep(1);
	return SAFE("%zu MiB in TCP buffers", sum / MIB);
}

/* RX-07c: descriptors in flight count nowhere but per user. */
static int fds_in_flight(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * 250)];
	} control = { .head = { .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int) * 250) } };
	struct iovec part = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int sent = 0;

	memset(CMSG_DATA(&control.head), 0, sizeof(int) * 250); /* descriptor 0, 250 times */
	for (int i = 0; i < 200; i++) {
		int fds[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
			break;
		while (sendmsg(fds[0], &msg, 0) > 0)
			sent += 250;
	}
	return sent > 8192 ? BREACH("%d descriptors in flight", sent) :
			     SAFE("%d descriptors in flight, then %s", sent, strerror(errno));
}

/* RX-08 */
static int watch_bomb(void)
{
	int instances = 0, fds = 0, depth = 0, inner;
	sigset_t set;

	while (instances < 10000 && inotify_init1(0) >= 0)
		instances++;
	if (instances >= 5000)
		return BREACH("%d inotify instances", instances);
	inner = epoll_create1(0);
	for (; depth < 100; depth++) {
		struct epoll_event event = { .events = EPOLLIN };
		int outer = epoll_create1(0);

		if (outer < 0 || epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) < 0)
			break;
		inner = outer;
	}
	if (depth >= 100)
		return BREACH("epoll nests %d deep", depth);
	sigemptyset(&set);
	while (fds < 100000 && eventfd(0, 0) >= 0 && signalfd(-1, &set, 0) >= 0)
		fds += 2;
	return fds > 4096 ? BREACH("%d descriptors", fds) :
			    SAFE("%d inotify instances, epoll %d deep, %d descriptors", instances,
				 depth, fds);
}

/* RX-09: names that do not exist are remembered too. */
static int dentry_bomb(void)
{
	char path[256];
	struct stat st;

	for (unsigned i = 0; i < 400000; i++) {
		(void)snprintf(path, sizeof(path), "/usr/share/%0180u", i);
		(void)stat(path, &st);
	}
	return SAFE("400,000 names asked for");
}

/* RX-10: --memory 64M; 300,000 page tables behind pages that are all the zero page. */
static int page_table_bomb(void)
{
	size_t step = 2 * MIB, n = 60000;
	char *p =
		mmap(NULL, n * step, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	volatile char sum = 0;

	if (p == MAP_FAILED)
		return SAFE("mmap: %s", strerror(errno));
	(void)madvise(p, n * step, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		sum += p[i * step];
	return BREACH("%zu MiB of page tables", n * 4 / 1024);
}

/* RX-10b: what is limited per user or per namespace. */
static int small_things(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	int timers = 0, queued = 0, sems = 0;
	sigset_t set;
	timer_t timer;

	while (timers < 20000 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		timers++;
	sigfillset(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	while (queued < 20000 && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
		queued++;
	while (sems < 500 && semget(IPC_PRIVATE, 250, 0600) >= 0)
		sems++;
	if (timers + queued > 2048)
		return BREACH("%d timers, %d queued signals", timers, queued);
	if (syscall(SYS_mq_open, "/x", O_RDWR | O_CREAT, 0600, NULL) >= 0)
		return BREACH("a message queue");
	return SAFE("%d timers, %d queued signals, %d semaphore sets", timers, queued, sems);
}

/* RX-10c: --memory 64M; System V shared memory outlives whoever made it. */
static int shm_bomb(void)
{
	for (int i = 0; i < 6; i++) {
		int id = shmget(IPC_PRIVATE, 50 * MIB, IPC_CREAT | 0600);
		char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

		if (p == (void *)-1)
			return SAFE("shm: %s", strerror(errno));
		touch(p, 50);
		(void)shmdt(p);
	}
	return BREACH("300 MiB of shared memory");
}

/* RX-11 */
static int fd_bomb(void)
{
	struct rlimit now, more = { 1 << 20, 1 << 20 };
	int n = 0;

	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return BREACH("the limit can be raised");
	if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_max > 4096)
		return BREACH("%llu descriptors", (unsigned long long)now.rlim_max);
	while (n < 10000 && dup(0) >= 0)
		n++;
	return n > 4096 || errno != EMFILE ? BREACH("%d descriptors", n) :
					     SAFE("%d descriptors", n);
}

/* RX-12: --files 1000 */
static int inode_bomb(void)
{
	char path[64];
	int n = 0;

	for (; n < 5000; n++) {
		(void)snprintf(path, sizeof(path), "%s/e%d", n % 2 ? "/tmp" : "/dev/shm", n);
		if (n % 3 == 2 ? mkdir(path, 0700) < 0 : mknod(path, S_IFIFO | 0600, 0) < 0)
			break;
	}
	if (n > 1500)
		return BREACH("%d files", n);
	sleep(2);
	return SAFE("%d files, then %s", n, strerror(errno));
}

/* RX-13: --disk 16M; space taken without writing. */
static int fallocate_bomb(void)
{
	char path[64];
	int got = 0;

	(void)signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 20; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "/tmp/f%d", i);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		got += fd >= 0 && posix_fallocate(fd, 0, 4 * MIB) == 0 ? 4 : 0;
	}
	if (got > 16)
		return BREACH("%d MiB allocated", got);
	sleep(2);
	return SAFE("%d MiB allocated", got);
}

/* RX-14: --disk 16M; a file of 8 EiB, and four of 16 MiB without a byte in them for --out. */
static int sparse(void)
{
	int fd = open("/tmp/huge", O_RDWR | O_CREAT, 0600);
	char path[64];

	(void)signal(SIGXFSZ, SIG_IGN);
	if (ftruncate(fd, INT64_MAX) == 0)
		return BREACH("a file of 8 EiB");
	if (pwrite(fd, "x", 1, INT64_MAX - 1) == 1 || pwrite(fd, "x", 1, 1LL << 40) == 1)
		return BREACH("a byte at 8 EiB");
	(void)mkdir("/home/user/out", 0755);
	for (int i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "/home/user/out/s%d", i);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, 15 * MIB) < 0)
			return BREACH("no sparse file: this shows nothing");
	}
	return SAFE("%s", strerror(EFBIG));
}

/* RX-15: a bad descriptor tells whether the call reached the kernel. */
static int sync_storm(void)
{
	struct timespec begin, end;

	if (syscall(SYS_syncfs, -1) != 0)
		return BREACH("syncfs reached the kernel: %s", strerror(errno));
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < 2000; i++)
		sync();
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	return SAFE("2,000 syncs in %ld ms",
		    (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
}

/* RX-16 */
static int output_bomb(void)
{
	static char chunk[65536];
	uint64_t left = UINT64_C(10) << 30;

	memset(chunk, 'y', sizeof(chunk));
	while (left) {
		ssize_t n = write(1, chunk, sizeof(chunk));

		if (n < 0)
			return 1;
		left -= (uint64_t)n;
	}
	return 1;
}

/* RX-17: every byte value, single bytes, odd chunks, no line end. The host runs this too and compares. */
static int odd_output(void)
{
	static unsigned char data[300000];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8) + (i >> 13));
	for (size_t at = 0; at < sizeof(data);) {
		size_t n = at < 20000 ? 1 : 4097;
		ssize_t w;

		n = n < sizeof(data) - at ? n : sizeof(data) - at;
		w = write(1, data + at, n);
		if (w <= 0)
			return 1;
		at += (size_t)w;
	}
	return 0;
}

static pthread_barrier_t all_there;

static void *thread_spins(void *arg)
{
	(void)pthread_barrier_wait(&all_there);
	for (volatile unsigned long i = 0;; i++)
		;
	return arg;
}

/* RX-18 */
static int cpu_bomb(void)
{
	pthread_t t;
	int n = 0;

	if (setpriority(PRIO_PROCESS, 0, -20) == 0 && getpriority(PRIO_PROCESS, 0) < 0)
		return BREACH("priority -20");
	(void)pthread_barrier_init(&all_there, NULL, 1001);
	while (n < 1000 && pthread_create(&t, NULL, thread_spins, NULL) == 0)
		n++;
	printf("%d threads\n", n);
	(void)pthread_barrier_wait(&all_there);
	sleep(30);
	return 1;
}

/* RX-19 */
static int real_time(void)
{
	struct sched_param param = { .sched_priority = 1 };
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48,
		   .policy = 6,
		   .runtime = 1000000,
		   .deadline = 10000000,
		   .period = 10000000 },
	  fifo = { .size = 48, .policy = SCHED_FIFO, .priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &param) == 0 ||
	    sched_setscheduler(0, SCHED_RR, &param) == 0)
		return BREACH("a real-time class");
	if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0 ||
	    syscall(SYS_sched_setattr, 0, &fifo, 0) == 0)
		return BREACH("a deadline or real-time class by attribute");
	if (syscall(SYS_ioprio_set, 1, 0, 1 << 13) == 0)
		return BREACH("real-time I/O priority");
	return SAFE("%s", strerror(errno));
}

/* RX-20 */
static int timer_flood(void)
{
	struct itimerval often = { { 0, 1 }, { 0, 1 } };
	struct itimerspec each_ns = { { 0, 1 }, { 0, 1 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	time_t until = time(NULL) + 3;
	int n = 0;

	(void)signal(SIGALRM, SIG_IGN);
	(void)signal(SIGRTMIN, SIG_IGN);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	for (; n < 500; n++) {
		timer_t timer;
		int fd = timerfd_create(CLOCK_MONOTONIC, 0);

		(void)timerfd_settime(fd, 0, &each_ns, NULL);
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
			(void)timer_settime(timer, 0, &each_ns, NULL);
	}
	while (time(NULL) < until)
		;
	return SAFE("%d timers of a nanosecond", n * 2);
}

/* RX-22 */
static int huge_pages(void)
{
	char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	char *q = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd;

	if (p != MAP_FAILED)
		return BREACH("a huge page");
	fd = memfd_create("huge", 4 /* MFD_HUGETLB */);
	if (fd >= 0 && mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		return BREACH("a huge page by memfd");
	if (shmget(IPC_PRIVATE, 2 * MIB, IPC_CREAT | 04000 /* SHM_HUGETLB */ | 0600) >= 0)
		return BREACH("a huge page by shmget");
	if (mlock(q, 4 * MIB) == 0 || mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return BREACH("4 MiB locked");
	return SAFE("mlock: %s", strerror(errno));
}

/* RX-23: makes itself the last one to be chosen, then takes everything. */
static int oom_choice(void)
{
	static const char *const scores[] = { "-1000", "-999", "-500", "-1", "0", "100", "799" };
	char text[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDWR);

	for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++)
		if (pwrite(fd, scores[i], strlen(scores[i]), 0) > 0)
			break;
	(void)!pread(fd, text, sizeof(text) - 1, 0);
	printf("oom_score_adj %s", text);
	if (atoi(text) < 0)
		return BREACH("it can make others go first");
	return memory_bomb();
}

/* RX-24: 4,000 deep and 50,000 wide, for whoever has to take it down. */
static int big_tree(void)
{
	char path[64];
	int depth = 0, files = 0;

	(void)mkdir("/home/user/out", 0755);
	for (; files < 50000; files++) {
		(void)snprintf(path, sizeof(path), "/tmp/%d", files);
		if (symlink("x", path) < 0)
			break;
	}
	(void)!chdir("/home/user/out");
	for (depth = 0; depth < 4000; depth++)
		if (mkdir("d", 0755) < 0 || chdir("d") < 0)
			break;
	printf("%d files, %d deep\n", files, depth);
	return files == 50000 && depth == 4000 ? 0 : BREACH("cannot make it: this shows nothing");
}

static void crash_by_fault(void)
{
	*(volatile int *)8 = 1;
}

static void crash_by_foreign_call(void)
{
#ifdef __x86_64__
	__asm__ volatile("int $0x80" : : "a"(20) : "memory");
#else
	crash_by_fault();
#endif
}

/* RX-28: every crash is a line in the host's log. */
static int log_flood(void)
{
	char name[16];
	ssize_t n = read(0, name, sizeof(name) - 1);

	name[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 600; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)prctl(PR_SET_NAME, name, 0, 0, 0);
			if (i % 2)
				crash_by_fault();
			crash_by_foreign_call();
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
	return SAFE("600 crashes");
}

/* RX-29 */
static int loopback_storm(void)
{
	static char chunk[32768];
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(9),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	time_t until = time(NULL) + 2;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0);
	size_t sent = 0;

	addr.sin_port = htons(9999);
	(void)bind(in, (struct sockaddr *)&addr, sizeof(addr));
	while (time(NULL) < until)
		for (int i = 0; i < 1000; i++) {
			ssize_t n = sendto(fd, chunk, sizeof(chunk), MSG_DONTWAIT,
					   (struct sockaddr *)&addr, sizeof(addr));

			sent += n > 0 ? (size_t)n : 0;
		}
	return sent < MIB ? BREACH("nothing was sent: this shows nothing") :
			    SAFE("%zu MiB over lo", sent / MIB);
}

/* RX-30: a file for the host, then everything at once. */
static int starve_agent(void)
{
	int fd;

	(void)mkdir("/home/user/out", 0755);
	fd = open("/home/user/out/result", O_WRONLY | O_CREAT, 0644);
	if (fd < 0 || write(fd, "kept\n", 5) != 5)
		return BREACH("no result: this shows nothing");
	for (int i = 0; i < 300; i++)
		if (fork() == 0) {
			char *p = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			while (p != MAP_FAILED)
				touch(p, 8);
			_exit(0);
		}
	sleep(5);
	return 1;
}

static const struct row rows[] = {
	{ "RX-01", fork_bomb },       { "RX-02", thread_bomb },   { "RX-03", memory_bomb },
	{ "RX-03b", memfd_bomb },     { "RX-04", disk_bomb },     { "RX-05", page_cache },
	{ "RX-06", pipe_bomb },       { "RX-07", datagram_bomb }, { "RX-07b", tcp_bomb },
	{ "RX-07c", fds_in_flight },  { "RX-08", watch_bomb },    { "RX-09", dentry_bomb },
	{ "RX-10", page_table_bomb }, { "RX-10b", small_things }, { "RX-10c", shm_bomb },
	{ "RX-11", fd_bomb },         { "RX-12", inode_bomb },    { "RX-13", fallocate_bomb },
	{ "RX-14", sparse },          { "RX-15", sync_storm },    { "RX-16", output_bomb },
	{ "RX-17", odd_output },      { "RX-18", cpu_bomb },      { "RX-19", real_time },
	{ "RX-20", timer_flood },     { "RX-22", huge_pages },    { "RX-23", oom_choice },
	{ "RX-24", big_tree },        { "RX-28", log_flood },     { "RX-29", loopback_storm },
	{ "RX-30", starve_agent },
};

int main(int argc, char **argv)
{
	return run_rows(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
