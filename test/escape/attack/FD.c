/* SPDX-License-Identifier: Apache-2.0 */
/* FD: attacks through descriptors, environments, our own programs. The host is in rows/FD.sh. */
#include "look.h"
#include "probe.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define FDS_MAX 1024
#define FDS_PER_MESSAGE 253 /* the most that the kernel takes */
#define MESSAGES 200
#define CYCLES 2000
#define CHUNKS 400
#define CHUNK 1024
#define NOBODY 0x3fffffff /* a process number that is never in use */

static char text[256 << 10];

static int fd_01(void)
{
	static const char *const kinds[] = { "", "pipe:", "pipe:" };
	char path[32], target[256];

	for (int fd = 0; fd < FDS_MAX; fd++) {
		ssize_t n;

		if (fcntl(fd, F_GETFD) < 0) {
			if (fd < 3)
				want(false, "descriptor %d is missing", fd);
			continue;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		want(fd < 3 && strncmp(target, fd ? kinds[fd] : told("STDIN_IS"),
				       strlen(fd ? kinds[fd] : told("STDIN_IS"))) == 0,
		     "descriptor %d is %s", fd, target);
	}
	return verdict();
}

static int fd_02(void)
{
	hold();
	return 0;
}

/* The agent's control socket is its descriptor 3. */
static int fd_03(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	want_errno(syscall(SYS_pidfd_getfd, pidfd, 3, 0), EPERM, "the agent's control socket");
	for (int fd = 0; fd < 32; fd++)
		if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
			want(false, "took descriptor %d of the agent", fd);
	want_refused(open("/proc/1/fd/3", O_RDWR), "/proc/1/fd/3");
	want_refused(open("/proc/1/fd", O_RDONLY | O_DIRECTORY), "/proc/1/fd");
	breaches += ALL_REFUSED(CALL(pidfd_getfd, EPERM, (unsigned long)-1, 3, 0),
				CALL(process_vm_readv, EPERM, 1, NOWHERE, 1, NOWHERE, 1, 0),
				CALL(process_vm_writev, EPERM, 1, NOWHERE, 1, NOWHERE, 1, 0),
				CALL(kcmp, EPERM, 1, 1, 0, 3, 3));
	return verdict();
}

/* For as long as new processes may appear in the box, tries to hold of each of them. */
static int fd_04(void)
{
	char path[64];

	for (int round = 0; round < 200; round++)
		for (pid_t pid = 1; pid < 32; pid++) {
			if (pid == getpid())
				continue;
			if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 ||
			    ptrace(PTRACE_ATTACH, pid, 0, 0) == 0)
				want(false, "attached to %d", (int)pid);
			snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
			if (open(path, O_RDWR) >= 0)
				want(false, "opened the memory of %d", (int)pid);
		}
	want_errno(ptrace(PTRACE_ATTACH, NOBODY, 0, 0), EPERM, "attach to nobody");
	breaches += ALL_REFUSED(CALL(ptrace, EPERM, PTRACE_SEIZE, 1, 0, 0),
				CALL(ptrace, EPERM, PTRACE_ATTACH, 1, 0, 0),
				CALL(ptrace, EPERM, PTRACE_TRACEME, 0, 0, 0));
	hold();
	return verdict();
}

/* All one can do to descriptors that others hold too, then much output, then no descriptors. */
static int fd_05(void)
{
	char chunk[CHUNK];

	memset(chunk, 'x', sizeof(chunk));
	for (int fd = 0; fd < 3; fd++) {
		(void)fcntl(fd, F_SETOWN, 1);
		(void)fcntl(fd, F_SETSIG, SIGKILL);
		(void)fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC | O_APPEND);
		(void)fcntl(fd, F_SETPIPE_SZ, 4096);
		(void)lseek(fd, 1 << 20, SEEK_SET);
		(void)!ftruncate(fd, 0);
		(void)flock(fd, LOCK_EX | LOCK_NB);
	}
	for (int i = 0; i < CHUNKS; i++)
		for (size_t at = 0; at < sizeof(chunk);) {
			struct pollfd p = { .fd = 1, .events = POLLOUT };
			ssize_t n = write(1, chunk + at, sizeof(chunk) - at);

			if (n < 0 && errno != EAGAIN)
				return 3;
			at += n < 0 ? 0 : (size_t)n;
			(void)poll(&p, 1, 1000);
		}
	close(0);
	close(1);
	close(2);
	usleep(100000);
	_exit(0);
}

static int send_fds(int sock, int fd, int count)
{
	char room[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)] = { 0 };
	struct iovec part = { .iov_base = "x", .iov_len = 1 };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(c) + sizeof(int) * (size_t)i, &fd, sizeof(fd));
	return (int)sendmsg(sock, &m, MSG_DONTWAIT);
}

/* There is no socket to the host in here: what can be flooded is the kernel, and what we have. */
static int fd_06(void)
{
	int pair[2], sent = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		if (send_fds(fd, 0, FDS_PER_MESSAGE) >= 0)
			want(false, "descriptor %d takes descriptors", fd);
	want(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0, "sockets of our own");
	for (int i = 0; i < MESSAGES; i++)
		sent += send_fds(pair[0], pair[1], FDS_PER_MESSAGE) >= 0;
	want(sent < MESSAGES, "%d messages full of descriptors in flight", sent);
	for (int i = 0; i < CYCLES; i++) {
		int cycle[2];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, cycle) < 0)
			break;
		(void)send_fds(cycle[0], cycle[1], 1);
		(void)send_fds(cycle[1], cycle[0], 1);
		close(cycle[0]);
		close(cycle[1]);
	}
	hold();
	return verdict();
}

static int fd_07(void)
{
	static const char *const names[] = { "LD_PRELOAD", "LD_LIBRARY_PATH", "GCONV_PATH",
					     "LD_AUDIT" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		want(getenv(names[i]) && strstr(getenv(names[i]), "/home/user"), "%s is ours: %s",
		     names[i], getenv(names[i]) ? getenv(names[i]) : "unset");
	hold();
	return verdict();
}

/* What the template offers as plug-ins, loaders and agents says so when it runs. */
static int fd_09(void)
{
	want_errno(access("/home/user/it-ran", F_OK), ENOENT, "a mark of the false agent");
	want_errno(access("/tmp/it-ran", F_OK), ENOENT, "a mark of the false agent");
	hold();
	return verdict();
}

/* Planted in a template under every name that a careless runtime might execute. */
static int false_agent(void)
{
	close(open("/tmp/it-ran", O_WRONLY | O_CREAT, 0666));
	return BREACH("the template's own agent was executed");
}

/* On the host, as root: the agent's image through the process that runs it. */
static int host_seals(void)
{
	int seals, fd = open(told("IMAGE"), O_RDONLY);
	const int wanted = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	seals = fcntl(fd, F_GET_SEALS);
	want(fd >= 0 && seals >= 0 && (seals & wanted) == wanted, "seals are %#x", seals);
	want_errno(fcntl(fd, F_ADD_SEALS, 0x10 /* F_SEAL_FUTURE_WRITE */), EPERM, "a further seal");
	want_errno(open(told("IMAGE"), O_RDWR), ETXTBSY, "open it to write");
	want_refused(truncate(told("IMAGE"), 0), "truncate it");
	want(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
	     "map it to write");
	want_refused(ftruncate(fd, 1 << 20), "grow it");
	return verdict();
}

static int fd_10(void)
{
	int fd = open("/proc/1/exe", O_RDONLY);

	want(fd < 0, "/proc/1/exe: %s", strerror(errno));
	hold();
	return verdict();
}

static bool holds(ssize_t len, const char *needle)
{
	return len > 0 && memmem(text, (size_t)len, needle, strlen(needle));
}

/* The secret comes to us backwards, or we would find what we were told. */
static int fd_11(void)
{
	static const char *const files[] = { "environ", "cmdline", "auxv", "comm", "stat", "maps" };
	char secret[64] = "", path[64];
	const char *backwards = told("BACKWARDS");

	for (size_t i = 0, n = strlen(backwards); i < n && n < sizeof(secret); i++)
		secret[i] = backwards[n - 1 - i];
	for (int pid = 1; pid < 64; pid++)
		for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
			snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
			if (holds(slurp(path, text, sizeof(text)), secret))
				want(false, "%s has the caller's secret", path);
		}
	for (char **e = environ; *e; e++) {
		want(!strstr(*e, secret), "variable %s", *e);
		want(strncmp(*e, "GLOVEBOX", 8) != 0 && strncmp(*e, "SUDO_", 5) != 0 &&
			     strncmp(*e, "SSH_", 4) != 0,
		     "variable %s is not the caller's", *e);
	}
	want(holds(slurp("/proc/self/environ", text, sizeof(text)), "BACKWARDS="),
	     "looked in a full place");
	hold();
	return verdict();
}

static const struct row rows[] = {
	{ "FD-01", fd_01 }, { "FD-02", fd_02 }, { "FD-03", fd_03 }, { "FD-04", fd_04 },
	{ "FD-05", fd_05 }, { "FD-06", fd_06 }, { "FD-07", fd_07 }, { "FD-08", fd_09 },
	{ "FD-09", fd_09 }, { "FD-10", fd_10 }, { "FD-11", fd_11 }, { "host-seals", host_seals },
};

int main(int argc, char **argv)
{
	/* As the false agent we are started with any name and any arguments. */
	if (access("/false-agent", F_OK) == 0 && !(argc == 2 && strncmp(argv[1], "FD-", 3) == 0))
		return false_agent();
	return run_rows(rows, ARRAY_SIZE(rows), argc, argv);
}
