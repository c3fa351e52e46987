/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in the server's place. It hands the descriptors that the warden gave it to the test, which speaks
 * for it from then on, and does on the test's word what a server that was taken over might try.
 *
 *	probe PATH   what this process is and what it can reach; PATH is the state directory
 *	outlive      tries to live on when the warden is gone
 *	exit N       ends with status N
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *setting(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], name, len) == 0)
			return argv[i] + len;
	return "";
}

/* The test listens on an abstract socket, named like our domain. */
static int connect_test(const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s", name);
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) < 0)
		return -1;
	return fd;
}

static int give_fds(int test)
{
	int fds[3] = { 3, 4, 5 };
	char text[32], control[CMSG_SPACE(sizeof(fds))] = { 0 };
	struct iovec part = { .iov_base = text };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = (struct cmsghdr *)control;

	part.iov_len = (size_t)snprintf(text, sizeof(text), "%d", getpid());
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(test, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static char answer[8192];
static size_t answer_len;

static void __attribute__((format(printf, 1, 2))) tell(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	answer_len +=
		(size_t)vsnprintf(answer + answer_len, sizeof(answer) - answer_len, fmt, args);
	va_end(args);
}

static void tell_status(const char *key)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			tell("%s", line);
	if (f)
		(void)fclose(f);
}

/* 0: it worked, which it should not have. */
static int can_open(const char *dir, const char *name, int flags)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static void probe(const char *state)
{
	char path[64];
	int fds = 0;

	for (int fd = 0; fd < 65536; fd++)
		fds += fcntl(fd, F_GETFD) >= 0;
	tell("Fds:\t%d\n", fds);
	for (const char **key =
		     (const char *[]){ "Uid", "Gid", "Groups", "Cap", "NoNewPrivs", NULL };
	     *key; key++)
		tell_status(*key);
	tell("layers:\t%d\n", can_open(state, "layers", O_RDONLY));
	tell("make:\t%d\n", can_open(state, "new", O_WRONLY | O_CREAT));
	tell("key:\t%d\n", can_open(state, "local.key", O_RDONLY));
	tell("list:\t%d\n", can_open(state, ".", O_RDONLY));
	tell("db:\t%d\n", can_open("/proc/self/fd/5", "stub", O_WRONLY | O_CREAT));
	tell("escape:\t%d\n", can_open("/proc/self/fd/5", "../layers", O_RDONLY));
	tell("run:\t%d\n", can_open("/run/glovebox", "boxes", O_RDWR));
	(void)snprintf(path, sizeof(path), "/proc/%d", getppid());
	tell("mem:\t%d\n", can_open(path, "mem", O_RDWR));
	tell("environ:\t%d\n", can_open(path, "environ", O_RDONLY));
	tell("fds:\t%d\n", can_open(path, "fd", O_RDONLY));
	tell("ptrace:\t%d\n", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) < 0 ? errno : 0);
	tell("kill:\t%d\n", kill(getppid(), SIGTERM) < 0 ? errno : 0);
	tell("root:\t%d\n", setresuid(0, 0, 0) < 0 ? errno : 0);
	tell("mount:\t%d\n", unshare(CLONE_NEWNS) < 0 ? errno : 0);
	tell("memory:\t%d\n", can_open("/dev", "mem", O_RDONLY));
	tell("cgroup:\t%d\n", mkdir("/sys/fs/cgroup/unified/stub", 0755) < 0 ? errno : 0);
}

static void outlive(void)
{
	tell("%d\n", prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0));
}

int main(int argc, char **argv)
{
	int test = connect_test(setting(argc, argv, "--server.domain="));
	char order[512];
	ssize_t n;

	if (test < 0 || give_fds(test) < 0) {
		(void)fprintf(stderr, "stub: %s\n", strerror(errno));
		return 1;
	}
	while ((n = recv(test, order, sizeof(order) - 1, 0)) > 0) {
		order[n] = '\0';
		answer_len = 0;
		answer[0] = '\0';
		if (strncmp(order, "exit ", 5) == 0)
			return order[5] - '0';
		if (strncmp(order, "refuse", 6) == 0)
			return 78;
		if (strncmp(order, "probe ", 6) == 0)
			probe(order + 6);
		else if (strcmp(order, "outlive") == 0)
			outlive();
		if (send(test, answer, answer_len, MSG_NOSIGNAL) < 0)
			return 1;
	}
	/* The test is over, or it let go of us: whoever wants to outlive the warden waits. */
	(void)pause();
	return 0;
}
