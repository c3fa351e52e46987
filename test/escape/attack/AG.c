/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AG: the agent is hostile. One program, four parts:
 *
 *	as glovebox-agent     pid 1 of a box in the real agent's place; what it does wrong is written into
 *	                      its image, because it gets no arguments
 *	host DEED FILE CMD…   on the host: runs CMD (a breakable glovebox) with such an agent (DEED -: the
 *	                      real one) and writes CMD's peak memory in KiB to FILE
 *	AG-12                 a payload that tries to reach the real agent's control socket
 *	client AGENT SEED     on the host: random bytes to the real agent's decoder, in a jail (AG-16)
 */
#include "AG_exec.h"
#include "AG_get.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const struct {
	const char *name;
	void (*exec)(int sock);
	void (*get)(int sock);
} misdeeds[] = {
	{ "polite", do_polite, NULL },
	{ "len-zero", do_len_zero, NULL },
	{ "len-huge", do_len_huge, NULL },
	{ "len-lie", do_len_lie, NULL },
	{ "len-short", do_len_short, NULL },
	{ "len-over", do_len_over, NULL },
	{ "empty", do_empty, NULL },
	{ "half", do_half, NULL },
	{ "half-later", do_half_later, NULL },
	{ "type-none", do_type_none, NULL },
	{ "type-far", do_type_far, NULL },
	{ "type-file", do_type_file, NULL },
	{ "type-ours", do_type_ours, NULL },
	{ "type-exec", do_type_exec, NULL },
	{ "reserved", do_reserved, NULL },
	{ "reserved-later", do_reserved_later, NULL },
	{ "size-off", do_size_off, NULL },
	{ "out-empty", do_out_empty, NULL },
	{ "exit-twice", do_exit_twice, NULL },
	{ "out-after-exit", do_out_after_exit, NULL },
	{ "out-first", do_out_first, NULL },
	{ "exit-first", do_exit_first, NULL },
	{ "started-twice", do_started_twice, NULL },
	{ "failed-late", do_failed_late, NULL },
	{ "file-here", do_file_here, NULL },
	{ "exit-256", do_exit_256, NULL },
	{ "exit-min", do_exit_min, NULL },
	{ "exit-minus", do_exit_minus, NULL },
	{ "exit-both", do_exit_both, NULL },
	{ "exit-none", do_exit_none, NULL },
	{ "exit-sig65", do_exit_sig65, NULL },
	{ "exit-sigminus", do_exit_sigminus, NULL },
	{ "exit-core2", do_exit_core2, NULL },
	{ "exit-zero", do_exit_zero, NULL },
	{ "failed-err0", do_failed_err0, NULL },
	{ "failed-errmin", do_failed_errmin, NULL },
	{ "failed-step", do_failed_step, NULL },
	{ "flood", do_flood, NULL },
	{ "binary", do_binary, NULL },
	{ "deaf", do_deaf, NULL },
	{ "mute", do_mute, NULL },
	{ "fds", do_fds, NULL },
	{ "fds-later", do_fds_later, NULL },
	{ "fds-control", do_fds_control, NULL },
	{ "memory", do_memory, NULL },
	{ "forks", do_forks, NULL },
	{ "burn", do_burn, NULL },
	{ "random", do_random, NULL },
	{ "get-names", do_polite, get_names },
	{ "get-long-name", do_polite, get_long_name },
	{ "get-modes", do_polite, get_modes },
	{ "get-link", do_polite, get_link },
	{ "get-twice", do_polite, get_twice },
	{ "get-up", do_polite, get_up },
	{ "get-inside-file", do_polite, get_inside_file },
	{ "get-data-alone", do_polite, get_data_alone },
	{ "get-out-frame", do_polite, get_out_frame },
	{ "get-early-end", do_polite, get_early_end },
	{ "get-err-min", do_polite, get_err_min },
	{ "get-fds", do_polite, get_fds },
	{ "get-hangup", do_polite, get_hangup },
	{ "get-control", do_polite, get_control },
	{ "get-deep", do_polite, get_deep },
	{ "get-many-refused", do_polite, get_many_refused },
	{ "get-endless", do_polite, get_endless },
	{ "get-mute", do_polite, do_mute },
	{ "get-random", do_polite, do_random },
};

/* One request: its type and the operation's socket. The cgroups to join are left alone. */
static int next_request(uint16_t *type)
{
	char control[CMSG_SPACE(sizeof(int) * 16)];
	struct iovec iov = { packet, sizeof(packet) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int sock;

	if (recvmsg(CONTROL_FD, &msg, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(struct head))
		_exit(0);
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		_exit(1);
	memcpy(&sock, CMSG_DATA(c), sizeof(sock));
	memcpy(type, packet, sizeof(*type));
	return sock;
}

/* Reads the operation's frames up to one of this type. */
static void read_until(int sock, uint16_t wanted)
{
	uint16_t type = 0;

	while (type != wanted) {
		if (recv(sock, packet, sizeof(packet), 0) < (ssize_t)sizeof(struct head))
			_exit(0);
		memcpy(&type, packet, sizeof(type));
	}
}

static bool is_misdeed(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (misdeed[3 + i] != name[i])
			return false;
	return misdeed[3 + len] == '.';
}

static int be_agent(void)
{
	size_t which = 0;

	while (!is_misdeed(misdeeds[which].name))
		if (++which == sizeof(misdeeds) / sizeof(misdeeds[0]))
			return 3;
	for (;;) {
		uint16_t type;
		int sock = next_request(&type);

		if (type == EXEC) {
			read_until(sock, SEVERAL);
			misdeeds[which].exec(sock);
		} else if (type == PUT && is_misdeed("deaf")) {
			silence();
		} else if (type == PUT) {
			read_until(sock, TREE_END);
			frame(sock, TREE_END, NULL, 0);
		} else {
			read_until(sock, ROOT);
			if (misdeeds[which].get)
				misdeeds[which].get(sock);
			else
				frame(sock, TREE_END, NULL, 0);
		}
		close(sock);
	}
}

/* ---- on the host -------------------------------------------------------------------------------- */

/* A copy of this program in memory that will do this deed, as GLOVEBOX_AGENT for what we execute. */
static int make_agent(const char *deed)
{
	static char image[4 << 20], path[32];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out = memfd_create("agent", 0x10);
	ssize_t n = in < 0 ? -1 : read(in, image, sizeof(image));
	char *mark, text[DEED_SIZE];

	if (out < 0)
		out = memfd_create("agent", 0); /* before Linux 6.3 every memfd was executable */
	if (n <= 0 || n == sizeof(image) || out < 0 || strlen(deed) > DEED_SIZE - 3)
		return -1;
	mark = memmem(image, (size_t)n, (const void *)(uintptr_t)misdeed, DEED_SIZE);
	if (!mark)
		return -1;
	memset(text, '.', sizeof(text));
	memcpy(text, "DO=", 3);
	memcpy(text + 3, deed, strlen(deed));
	memcpy(mark, text, sizeof(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
	return write(out, image, (size_t)n) == n ? setenv("GLOVEBOX_AGENT", path, 1) : -1;
}

static int host(const char *deed, const char *file, char **argv)
{
	struct rusage usage;
	int status, fd;
	pid_t pid = fork();

	if (pid == 0) {
		if (strcmp(deed, "-") != 0 && make_agent(deed) < 0)
			_exit(126);
		execvp(argv[0], argv);
		_exit(126);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0)
		return 126;
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || dprintf(fd, "%ld\n", usage.ru_maxrss) < 0)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct jail {
	const char *agent;
	int sock;
	char stack[65536];
};

/* Only the agent's own file is here: whatever a random request makes it do happens to nobody. */
static int in_jail(void *arg)
{
	struct jail *j = arg;
	char *const args[] = { (char[]){ "glovebox-agent" }, NULL }, *const env[] = { NULL };
	int fd = open(j->agent, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || chroot("jail") < 0 || chdir("/") < 0)
		_exit(99);
	if (dup2(j->sock, CONTROL_FD) < 0)
		_exit(99);
	syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH);
	_exit(99);
}

/* What is a fixed size, or must not be random for the agent to look at the rest: pids that exist, users
 * that exist in the jail's namespace, reserved fields. */
static size_t near_request(uint16_t type, unsigned *seed, size_t len)
{
	uint32_t r = (uint32_t)rand_r(seed), *words = (uint32_t *)(void *)(packet + 8);

	switch (type) {
	case EXEC:
		words[0] = words[1] = 65534;
		words[2] = r % 32;
		words[EXEC_SIZE / 4 - 1] = 0;
		return 8 + EXEC_SIZE;
	case PUT:
	case GET:
		words[0] = words[1] = 65534;
		return 8 + 8;
	case 5: /* ATTACH */
	case 6: /* INPUT */
		words[0] = r % 64;
		words[1] = 0;
		return 8 + 8;
	case 7: /* TELL */
		words[0] = r % 64;
		words[1] = 1 + r / 64 % 3;
		words[2] = words[1] == 1 ? 1 + r / 256 % 64 : 0;
		words[3] = words[1] == 2 ? r : 0;
		return 8 + 16;
	case 4: /* LEAF */
	case 8: /* LIST */
		return 8;
	case 9: /* FS */
		words[0] = 1 + r % 9;
		words[1] = r / 16 % 4;
		words[3] = 0;
		return 8 + 32;
	case ROOT:
		packet[8] = '/';
		return len;
	default:
		return len;
	}
}

/* A packet that is random, or nearly a request, or nearly what follows one. */
static size_t random_packet(unsigned *seed)
{
	static const uint16_t types[] = { 1,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					  11, 11, 12, 13, 13, 14, 15, 16, 17, 30, 31,
					  32, 33, 34, 35, 36, 38, 40, 41, 50 };
	size_t len = (size_t)rand_r(seed) % 96;
	struct head h = {
		.type = types[(unsigned)rand_r(seed) % (sizeof(types) / sizeof(types[0]))],
	};

	for (size_t i = 0; i < 96; i++)
		packet[i] = (unsigned char)rand_r(seed);
	len = near_request(h.type, seed, len);
	h.len = (uint32_t)len;
	if (len >= 8 && rand_r(seed) % 16)
		memcpy(packet, &h, 8);
	return len;
}

/* Sends one control message with an operation's socket, then random frames on that. */
static int send_request(int control, unsigned *seed)
{
	char buf[CMSG_SPACE(sizeof(int))] = { 0 };
	size_t len = random_packet(seed);
	struct iovec iov = { packet, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c = (struct cmsghdr *)buf;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (rand_r(seed) % 16) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
		msg.msg_control = buf;
		msg.msg_controllen = sizeof(buf);
	}
	if (sendmsg(control, &msg, MSG_NOSIGNAL) < 0) {
		close(pair[0]);
		close(pair[1]);
		return -1;
	}
	close(pair[1]);
	for (int i = 0, n = rand_r(seed) % 12; i < n; i++) {
		len = random_packet(seed);
		if (send(pair[0], packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	close(pair[0]);
	return 0;
}

/* AG-16: the agent may end itself over nonsense; it may not crash. */
static int client(const char *agent, unsigned seed)
{
	static struct jail j;
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 2;
	j.agent = agent;
	j.sock = pair[1];
	pid = clone(in_jail, j.stack + sizeof(j.stack),
		    CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | SIGCHLD, &j);
	if (pid < 0)
		return 2;
	close(pair[1]);
	for (int i = 0; i < 200; i++)
		if (send_request(pair[0], &seed) < 0)
			break;
	close(pair[0]);
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	if (WIFSIGNALED(status))
		return BREACH("the agent died of signal %d, seed %u", WTERMSIG(status), seed);
	return WEXITSTATUS(status) == 99 ? 2 : SAFE("it ended with status %d", WEXITSTATUS(status));
}

/* ---- the payload's view ------------------------------------------------------------------------- */

/* Nothing but the three standard descriptors, and no way to the agent's. */
static int ag_12(void)
{
	int fd, pidfd;

	for (fd = 3; fd < 1024; fd++)
		if (send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno != EBADF)
			return BREACH("descriptor %d is there: %m", fd);
	fd = open("/proc/1/fd/3", O_RDWR);
	if (fd >= 0)
		return BREACH("opened /proc/1/fd/3");
	if (open("/proc/1/mem", O_RDWR) >= 0)
		return BREACH("opened the agent's memory");
	pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	if (pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 3, 0) >= 0)
		return BREACH("took the agent's descriptor");
	if (ptrace(PTRACE_ATTACH, 1, NULL, NULL) == 0)
		return BREACH("traces the agent");
	if (ptrace(PTRACE_SEIZE, 1, NULL, NULL) == 0)
		return BREACH("traces the agent");
	/* Signal 0 reaches nobody; being allowed to send it would be enough to end the agent. */
	if (kill(1, 0) == 0)
		return BREACH("may signal the agent");
	return SAFE("no way to the control socket");
}

int main(int argc, char **argv)
{
	static const struct row rows[] = { { "AG-12", ag_12 } };

	signal(SIGPIPE, SIG_IGN);
	if (argc == 1 && !strcmp(argv[0], "glovebox-agent"))
		return be_agent();
	if (argc > 4 && !strcmp(argv[1], "host"))
		return host(argv[2], argv[3], argv + 4);
	if (argc == 4 && !strcmp(argv[1], "client"))
		return client(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
	return run_rows(rows, 1, argc, argv);
}
