/* SPDX-License-Identifier: Apache-2.0 */
/* SC-27: what ordinary programs use must work, and must really do what it says. */
#pragma once

#include "probe.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>

#define NEED(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			return BREACH("%s: %s: %m", __func__, #x);                                 \
	} while (0)

static int counter;
static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&counter_lock);
		counter++;
		pthread_mutex_unlock(&counter_lock);
	}
	return arg;
}

static int work_pthreads(void)
{
	pthread_t threads[8];

	for (size_t i = 0; i < N_ELEM(threads); i++)
		NEED(pthread_create(&threads[i], NULL, count, NULL) == 0);
	for (size_t i = 0; i < N_ELEM(threads); i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	NEED(counter == 8000);
	return 0;
}

static int work_futex(void)
{
	struct timespec soon = { .tv_nsec = 1000000 };
	uint32_t word = 7;

	NEED(syscall(SYS_futex, &word, FUTEX_WAIT, 7, &soon, NULL, 0) < 0 && errno == ETIMEDOUT);
	NEED(syscall(SYS_futex, &word, FUTEX_WAIT, 8, &soon, NULL, 0) < 0 && errno == EAGAIN);
	NEED(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	NEED(syscall(SYS_futex_waitv, NOWHERE, 1, 0, NULL, 0) < 0 && errno != ENOSYS &&
	     errno != EPERM);
	return 0;
}

/* glibc has registered one at start: a second is refused by the kernel, not by the filter. */
static int work_rseq(void)
{
	NEED(syscall(SYS_rseq, NOWHERE, 32, 0, 0) < 0 && errno != ENOSYS && errno != EPERM);
	NEED(syscall(SYS_membarrier, 0, 0, 0) >= 0);
	return 0;
}

static int work_epoll(void)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), ev = eventfd(0, EFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 42 };
	uint64_t value = 3;

	NEED(ep >= 0 && ev >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, ev, &event) == 0);
	NEED(epoll_wait(ep, &event, 1, 0) == 0);
	NEED(write(ev, &value, 8) == 8);
	NEED(epoll_wait(ep, &event, 1, 5000) == 1 && event.data.u32 == 42);
	NEED(read(ev, &value, 8) == 8 && value == 3);
	return 0;
}

static int work_inotify(void)
{
	char event[512];
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	NEED(fd >= 0 && inotify_add_watch(fd, "/tmp", IN_CREATE) >= 0);
	NEED(close(open("/tmp/seen", O_CREAT | O_WRONLY, 0600)) == 0);
	NEED(read(fd, event, sizeof(event)) > 0);
	NEED(strcmp(((struct inotify_event *)event)->name, "seen") == 0);
	return 0;
}

static int work_signalfd(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	NEED(fd >= 0 && kill(getpid(), SIGUSR1) == 0);
	NEED(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	return 0;
}

static int work_timerfd(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	uint64_t times = 0;

	NEED(fd >= 0 && timerfd_settime(fd, 0, &soon, NULL) == 0);
	NEED(read(fd, &times, 8) == 8 && times >= 1);
	return 0;
}

static int work_memfd(void)
{
	int fd = memfd_create("escape", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *map;

	NEED(fd >= 0 && ftruncate(fd, 4096) == 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED && memcpy(map, "sealed", 6) == map && munmap(map, 4096) == 0);
	NEED(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0 && write(fd, "x", 1) < 0 && errno == EPERM);
	return 0;
}

static int work_pidfd(void)
{
	pid_t pid = fork();
	struct pollfd wait_for = { .events = POLLIN };
	siginfo_t info = { 0 };

	if (pid == 0)
		for (;;)
			pause();
	wait_for.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	NEED(wait_for.fd >= 0 && poll(&wait_for, 1, 0) == 0);
	NEED(syscall(SYS_pidfd_send_signal, wait_for.fd, SIGTERM, NULL, 0) == 0);
	NEED(poll(&wait_for, 1, 5000) == 1);
	NEED(waitid(3 /* P_PIDFD */, (id_t)wait_for.fd, &info, WEXITED) == 0 &&
	     info.si_status == SIGTERM);
	return 0;
}

/* A program that restricts itself: below /tmp only, and not even ours outside it. */
static int landlocked(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	NEED(fd >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	NEED(syscall(SYS_landlock_restrict_self, fd, 0) == 0);
	NEED(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES);
	return 0;
}

static int work_landlock(void)
{
	pid_t pid;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : BREACH("landlock: %m");
	pid = fork();
	if (pid == 0)
		_exit(landlocked());
	NEED(ended(pid) == 0);
	return 0;
}

static int work_seccomp(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(trace_call(SYS_getppid) < 0                   ? 1 :
		      syscall(SYS_getppid) == -1 && errno == ENOSYS ? 0 :
								      2);
	NEED(ended(pid) == 0);
	return 0;
}

static int work_sockets(void)
{
	struct sockaddr_storage address = { .ss_family = AF_INET6 };
	socklen_t len = sizeof(address);
	int server = socket(AF_INET6, SOCK_STREAM, 0), client = socket(AF_INET6, SOCK_STREAM, 0),
	    pair[2];
	char byte;

	NEED(listen(server, 1) == 0 && getsockname(server, (void *)&address, &len) == 0);
	NEED(connect(client, (void *)&address, len) == 0 && write(client, "x", 1) == 1);
	server = accept(server, NULL, NULL);
	NEED(server >= 0 && read(server, &byte, 1) == 1 && byte == 'x');
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 && send(pair[0], "y", 1, 0) == 1);
	return 0;
}

/* Semaphores in /dev/shm, System V memory, executable memory, files from file to file. */
static int work_memory(void)
{
	static const unsigned char ret[] = {
#ifdef __x86_64__
		0xb8, 42, 0, 0, 0, 0xc3
#else
		0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6
#endif
	};
	sem_t *sem = sem_open("/escape", O_CREAT | O_EXCL, 0600, 1);
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), in = open("/etc/passwd", O_RDONLY),
	    out;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(sem != SEM_FAILED && sem_wait(sem) == 0 && sem_unlink("/escape") == 0);
	NEED(id >= 0 && shmat(id, NULL, 0) != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	memcpy(code, ret, sizeof(ret));
	__builtin___clear_cache(code, (char *)code + sizeof(ret));
	NEED(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0 && ((int (*)(void))code)() == 42);
	out = open("/tmp/copy", O_CREAT | O_RDWR, 0600);
	NEED(sendfile(out, in, NULL, 16) == 16 &&
	     copy_file_range(out, (off64_t[]){ 0 }, out, NULL, 8, 0) == 8);
	return 0;
}

static int works(void)
{
	int bad = work_pthreads() | work_futex() | work_rseq() | work_epoll() | work_inotify() |
		  work_signalfd() | work_timerfd() | work_memfd() | work_pidfd() | work_landlock() |
		  work_seccomp() | work_sockets() | work_memory();

	return bad ? 1 : SAFE("everything works");
}
