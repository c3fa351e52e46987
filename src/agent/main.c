/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: pid 1 of a box.
 *
 * Runs as     the box's uid 0 with CAP_SETUID, CAP_SETGID, CAP_SETPCAP and CAP_KILL (to start and end
 *             commands as the user, and to empty their bounding set); where only one id is mapped, as
 *             that id without any capability. Under the box's seccomp filter and Landlock rules.
 * Holds       the control socket, and per command its socket and three pipes.
 * Reads       messages from the host, and bytes that commands print.
 * Must never  be trusted: after the first foreign instruction, every byte from here is hostile to
 *             the host, which checks it as such.
 *
 * Theory of operation: one thread, one poll loop, a fixed table of commands (op.c). File transfers are
 * forked children that talk on their socket themselves (files.c). The end of the control socket ends the agent, and
 * with pid 1 the kernel ends everything else in the box.
 */
#include "agent/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#define LOOK_MS 1000 /* how often to look for ends that no signal told of */
#define NUDGE_MS 20  /* how often the stragglers of a command that has ended are looked at */

static int start_files(enum wire_type type, const struct wire_files *request, int sock)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		agent_files_run(type, request, sock);
	fd_close(sock);
	return 0;
}

/* One request. The first descriptor is the operation's socket, the rest are cgroups to join. */
static void read_control(void)
{
	static struct wire_frame f;
	int fds[8];
	size_t n_fds = ARRAY_SIZE(fds);
	int r = wire_recv_fds(AGENT_CONTROL_FD, &f, WIRE_ON_CONTROL, fds, &n_fds);

	if (r <= 0)
		_exit(0); /* the host is gone or talks nonsense: end the box */
	if (n_fds == 0)
		_exit(1);
	if (f.head.type == WIRE_EXEC)
		r = agent_exec((const struct wire_exec *)f.data, fds[0], fds + 1, n_fds - 1);
	else
		r = start_files(f.head.type, (const struct wire_files *)f.data, fds[0]);
	if (r < 0) {
		struct wire_failed failed = { .step = WIRE_STEP_REQUEST, .err = -r };

		(void)!wire_send(fds[0], WIRE_FAILED, &failed, sizeof(failed));
		fd_close(fds[0]);
	}
	for (size_t i = 1; i < n_fds; i++)
		fd_close(fds[i]);
}

static void serve(int signal_fd)
{
	for (;;) {
		struct pollfd polls[2 + AGENT_OPS_MAX * AGENT_POLLS_PER_OP];
		size_t used[AGENT_OPS_MAX], n_used;
		bool draining;

		polls[0] = (struct pollfd){ .fd = AGENT_CONTROL_FD, .events = POLLIN };
		polls[1] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
		n_used = agent_poll_prepare(polls + 2, used, &draining);
		if (poll(polls, 2 + n_used * AGENT_POLLS_PER_OP,
			 draining ? NUDGE_MS :
			 n_used   ? LOOK_MS :
				    -1) < 0) {
			if (errno == EINTR)
				continue;
			_exit(1);
		}
		if (polls[1].revents) {
			struct signalfd_siginfo info;

			(void)!read(signal_fd, &info, sizeof(info));
		}
		agent_reap();
		agent_poll_handle(polls + 2, used, n_used);
		if (polls[0].revents)
			read_control();
	}
}

int main(void)
{
	sigset_t set;
	int signal_fd;

	/* PR-08, AG-12: nobody in the box may look into this process or take its descriptors. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return 1;
	(void)prctl(PR_SET_NAME, "glovebox-agent", 0, 0, 0);
	sigfillset(&set);
	/* A child's end must reach the signalfd, or we would wait for it for ever. */
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return 1;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0 || fcntl(AGENT_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	serve(signal_fd);
}
