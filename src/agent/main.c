/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: pid 1 of a box.
 *
 * Runs as     the box's uid 0 with CAP_SETUID, CAP_SETGID, CAP_SETPCAP and CAP_KILL (to start and
 *             end commands as the user, and to empty their bounding set); in a box with a root it
 *             can also hand on that root's short list, which it does not use itself; where only one
 *             id is mapped, as that id without any capability. Under the box's seccomp filter and
 *             Landlock rules.
 * Holds       the control socket, a view of all the box's processes, the cgroups that commands
 *             join, per command and interpreter its sockets and pipes, and in a box with a root the
 *             socket that sudo connects to.
 * Reads       messages from the host, bytes that commands print, and what interpreters say.
 * Must never  be trusted: after the first foreign instruction, every byte from here is hostile to
 *             the host, which checks it as such.
 *
 * Theory of operation: one thread, one loop (loop.c), fixed tables of commands (command/command.h),
 * interpreters and cells (kernel/kernel.h). File operations and sudo are forked children that talk
 * on their socket themselves. The end of the control socket ends the agent, and with pid 1 the
 * kernel ends everything else in the box.
 *
 * The same image is `sudo` in a box: where it is not pid 1 it is that.
 */
#include "agent/command/command.h"
#include "agent/fs/fs.h"
#include "agent/helper.h"
#include "agent/kernel/kernel.h"
#include "agent/loop.h"
#include "agent/sudo/sudo.h"
#include "sys/payload.h"
#include "sys/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define NOFILE 8192 /* more than the tables here can hold at once */

/* Until the host asks for a command: what it would. An adopted interpreter may come first, and use
 * sudo. */
struct agent_defaults agent_defaults = {
	.request = { .oom_score_adj = PAYLOAD_OOM_SCORE,
		     .fsize_max = UINT64_MAX,
		     .nofile_max = PAYLOAD_NOFILE_MAX },
};

static void refuse_operation(int sock, int err)
{
	const struct wire_failed failed = { .step = WIRE_STEP_REQUEST, .err = -err };

	(void)!wire_send(sock, WIRE_FAILED, &failed, sizeof(failed));
	fd_close(sock);
}

static _noreturn_ void run_files(const struct wire_frame *f, int sock)
{
	int r = helper_confine(sock);

	if (r < 0) {
		const struct wire_failed failed = { .step = WIRE_STEP_CGROUP, .err = -r };

		_exit(wire_send(sock, WIRE_FAILED, &failed, sizeof(failed)) < 0 ? 2 : 1);
	}
	if (f->head.type == WIRE_FS)
		agent_fs_run((const struct wire_fs *)f->data, sock);
	agent_files_run(f->head.type, (const struct wire_files *)f->data, sock);
}

static void take_files(const struct wire_frame *f, int sock)
{
	pid_t pid = helper_fork(HELPER_FILES);

	if (pid == 0)
		run_files(f, sock);
	if (pid < 0)
		refuse_operation(sock, pid);
	else
		fd_close(sock);
	/* Files come before a run's command, for which nothing is started until they are there. It
	 * is counted together with us, so the helper that brought them has to be gone: it would
	 * have the place of one of its processes. */
	if (pid > 0 && f->head.type == WIRE_PUT)
		helper_await(pid);
}

static void take_command(const struct wire_exec *q, const int *fds, size_t n_fds)
{
	int r = command_start(q, fds[0], fds + 1, n_fds - 1);

	if (r < 0)
		refuse_operation(fds[0], r);
	for (size_t i = 1; i < n_fds; i++)
		fd_close(fds[i]);
}

static void take_kernel(const struct wire_kernel *q, const int *fds, size_t n_fds)
{
	kernel_start(q, fds[0], fds + 1, n_fds - 1);
	for (size_t i = 1; i < n_fds; i++)
		fd_close(fds[i]);
}

static void take_leaf(const int *fds, size_t n_fds)
{
	struct agent_defaults *d = &agent_defaults;

	while (d->n_join)
		fd_close(d->join_fds[--d->n_join]);
	memcpy(d->join_fds, fds, n_fds * sizeof(int));
	d->n_join = n_fds;
}

/* One request. The first descriptor is the operation's socket, the rest are cgroups to join. */
static void control_ready(void *object, short events)
{
	static struct wire_frame f;
	int fds[1 + AGENT_JOIN_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	int r = wire_recv_fds(AGENT_CONTROL_FD, &f, WIRE_ON_CONTROL, fds, &n_fds);
	bool takes_more = f.head.type == WIRE_EXEC || f.head.type == WIRE_LEAF ||
			  f.head.type == WIRE_KERNEL || f.head.type == WIRE_ADOPT;

	(void)object;
	(void)events;
	/* No number is free for its descriptors. The host sees its socket close. But without its
	 * leaf a box would run commands outside their limits. */
	if (r == -EMFILE && f.head.type != WIRE_LEAF)
		return;
	if (r <= 0)
		_exit(0); /* the host is gone or talks nonsense: end the box */
	if ((n_fds == 0 && f.head.type != WIRE_LEAF) || (n_fds > 1 && !takes_more) ||
	    (n_fds > AGENT_JOIN_MAX && f.head.type == WIRE_LEAF) ||
	    (n_fds != _WIRE_ADOPT_MAX && f.head.type == WIRE_ADOPT))
		_exit(1);
	switch (f.head.type) {
	case WIRE_EXEC:
		take_command((const struct wire_exec *)f.data, fds, n_fds);
		break;
	case WIRE_LEAF:
		take_leaf(fds, n_fds);
		break;
	case WIRE_ATTACH:
		ask_attach((const struct wire_process *)f.data, fds[0]);
		break;
	case WIRE_INPUT:
		ask_input((const struct wire_input *)f.data, fds[0]);
		break;
	case WIRE_TELL:
		ask_tell((const struct wire_tell *)f.data, fds[0]);
		break;
	case WIRE_LIST:
		ask_list(fds[0]);
		break;
	case WIRE_KERNEL:
		take_kernel((const struct wire_kernel *)f.data, fds, n_fds);
		break;
	case WIRE_RUNNER:
		runner_keep(fds[0]);
		break;
	case WIRE_ADOPT:
		kernel_adopt((const struct wire_context *)f.data, fds);
		break;
	case WIRE_CELL:
		cell_queue((const struct wire_cell *)f.data, fds[0]);
		break;
	case WIRE_CONTEXTS:
		kernel_ask_list(fds[0]);
		break;
	case WIRE_CONTEXT_TELL:
		kernel_ask_tell((const struct wire_context_tell *)f.data, fds[0]);
		break;
	default: /* PUT, GET, FS */
		take_files(&f, fds[0]);
	}
}

static int signal_fd = -EBADF;
static int pids_fd = -EBADF;

int agent_pids(void)
{
	if (pids_fd < 0)
		pids_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return pids_fd;
}

/* What has ended is looked for in each round: the signal only has to wake us. */
static void signal_ready(void *object, short events)
{
	struct signalfd_siginfo info;

	(void)object;
	(void)events;
	(void)!read(signal_fd, &info, sizeof(info));
}

/* Whatever has ended, of all that we have forked and all that has lost its parent. */
static void agent_reap(void)
{
	for (;;) {
		struct rusage used;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG, &used);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 && errno != ECHILD)
			_exit(1); /* the host must not wait for an end that we missed */
		if (pid <= 0)
			return;
		helper_reaped(pid);
		kernels_reaped(pid, status, &used);
		commands_reaped(pid, status);
	}
}

/* Control and signals and sudo, each command's four and its followers, the short operations, each
 * kernel's five, each cell and the two helpers that it may have. */
_Static_assert(3 + COMMANDS_MAX * (4 + FOLLOWERS_MAX) + WRITERS_MAX + LISTERS_MAX +
			       KERNEL_SLOTS * 5 + CELLS_MAX * 3 + KERNEL_LISTERS_MAX <=
		       LOOP_WATCHES_MAX,
	       "the loop has a place for each");

static _noreturn_ void agent_serve(void)
{
	for (;;) {
		loop_watch(signal_fd, POLLIN, signal_ready, NULL);
		commands_watch();
		writers_watch();
		listers_watch();
		kernels_watch();
		sudo_watch();
		/* Last: what is freed in a round is not given out again in it (but writers:
		 * command/input.c). */
		loop_watch(AGENT_CONTROL_FD, POLLIN, control_ready, NULL);
		loop_wait();
		agent_reap();
		commands_finish();
		kernels_finish();
	}
}

/* Enough descriptors for full tables, whatever the host's default is. */
static void raise_nofile(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = MIN(l.rlim_max, NOFILE);
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

static int agent_main(void)
{
	sigset_t set;

	if (fcntl(AGENT_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	if (fcntl(AGENT_PIDS_FD, F_SETFD, FD_CLOEXEC) == 0)
		pids_fd = AGENT_PIDS_FD;
	/* PR-08, AG-12: nobody in the box may look into this process or take its descriptors. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return 1;
	(void)prctl(PR_SET_NAME, "glovebox-agent", 0, 0, 0);
	proc_reset_signals();
	sigfillset(&set);
	/* A child's end must reach the signalfd, or we would wait for it for ever. */
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return 1;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return 1;
	if (agent_read_bounding_set() < 0)
		return 1;
	raise_nofile();
	sudo_open();
	if (agent_has_root() && agent_lower_capabilities() < 0)
		return 1;
	agent_serve();
}

int main(int argc, char **argv)
{
	return getpid() == 1 ? agent_main() : sudo_main(argc, argv);
}
