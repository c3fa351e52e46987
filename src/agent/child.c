/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a command between fork and exec. It joins its cgroup first, so that even the memory
 * for its arguments is its own, then reads what to run from the operation's socket, becomes the
 * user and executes.
 */
#include "agent/child.h"

#include "sys/payload.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define KEEP_MAX 32

extern char **environ;

static void close_between(int above, int below)
{
	if (below - above > 1)
		(void)syscall(SYS_close_range, above + 1, below - 1, 0);
}

void agent_keep_fds(const int *fds, size_t n)
{
	int sorted[KEEP_MAX], last = 2;
	size_t n_sorted = 0;

	if (n > KEEP_MAX)
		_exit(1);
	for (size_t i = 0; i < n; i++) {
		size_t at = n_sorted;

		if (fds[i] <= 2)
			continue;
		for (; at > 0 && sorted[at - 1] > fds[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = fds[i];
		n_sorted++;
	}
	for (size_t i = 0; i < n_sorted; i++) {
		close_between(last, sorted[i]);
		last = sorted[i];
	}
	(void)syscall(SYS_close_range, last + 1, ~0U, 0);
}

static _noreturn_ void fail(const struct agent_child *c, enum wire_step step, int err)
{
	const struct wire_failed failed = { .step = step, .err = err < 0 ? -err : err };

	(void)!wire_send(c->status_fd, WIRE_FAILED, &failed, sizeof(failed));
	_exit(127);
}

int agent_join_cgroups(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (write(fds[i], "0", 1) != 1)
			return -errno;
	return 0;
}

int agent_pipe(const struct wire_exec *q, int *ret_read, int *ret_write)
{
	int fds[2], r;

	(void)setfsgid(q->gid);
	(void)setfsuid(q->uid);
	r = pipe2(fds, O_CLOEXEC) < 0 ? -errno : 0;
	(void)setfsuid(getuid());
	(void)setfsgid(getgid());
	/* Which made the kernel forget that we die with the process that made the box, also when we
	 * are frozen. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r < 0)
		return r;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return 0;
}

/* Where an interpreter looks for its pipes. Nothing of ours is there: in the agent, whose numbers
 * these are, control socket and signals are. */
static int set_kernel_fds(const struct agent_child *c)
{
	if (!c->kernel)
		return 0;
	if (c->status_fd <= KERNEL_EVENTS_FD || c->requests_fd <= KERNEL_EVENTS_FD ||
	    c->events_fd <= KERNEL_EVENTS_FD)
		return -EBADF;
	if (dup2(c->requests_fd, KERNEL_REQUESTS_FD) < 0 ||
	    dup2(c->events_fd, KERNEL_EVENTS_FD) < 0)
		return -errno;
	return 0;
}

static int set_stdio(const struct agent_child *c)
{
	_cleanup_(fd_closep) int null_fd = -EBADF;
	int in_fd = c->in_fd;

	if (in_fd < 0)
		in_fd = null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (in_fd < 0)
		return -errno;
	if (c->tty && ioctl(in_fd, TIOCSCTTY, 0) < 0)
		return -errno;
	if (dup2(in_fd, 0) < 0 || dup2(c->out_fd, 1) < 0 || dup2(c->err_fd, 2) < 0)
		return -errno;
	return 0;
}

/* So that /dev/stdout can be opened by name. Only where the box has a root we may give things away;
 * for others it is a convenience lost. */
static void give_stdio(const struct agent_child *c, const struct agent_user *user)
{
	if (!c->own_stdio || user->uid == c->request.uid || user->uid == 0 ||
	    agent_raise_capabilities() < 0)
		return;
	for (int fd = c->in_fd < 0 ? 1 : 0; fd <= (c->kernel ? KERNEL_EVENTS_FD : 2); fd++)
		(void)!fchown(fd, user->uid, user->gid);
}

void agent_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void agent_child_exec(const struct agent_child *c, struct agent_request *q)
{
	struct agent_user user = { .uid = c->request.uid, .gid = c->request.gid };
	int r;

	if (q->user[0]) {
		r = agent_user_lookup(q->user, &user);
		if (r < 0)
			fail(c, WIRE_STEP_USER, r);
	}
	r = set_stdio(c);
	if (r == 0)
		r = set_kernel_fds(c);
	if (r == 0)
		r = agent_user_environment(q, &user, c->tty);
	if (r < 0)
		fail(c, WIRE_STEP_REQUEST, r);
	give_stdio(c, &user);
	r = agent_request_set_limits(&c->request);
	if (r < 0)
		fail(c, WIRE_STEP_RLIMIT, r);
	r = agent_become_payload(&user);
	if (r < 0)
		fail(c, user.uid == 0 && r == -EPERM ? WIRE_STEP_USER : WIRE_STEP_DROP, r);
	r = agent_user_enter(q, &user);
	if (r < 0)
		fail(c, WIRE_STEP_CWD, r);

	environ = q->envs;
	execvp(q->args[0], q->args); /* searches the command's own PATH */
	fail(c, WIRE_STEP_EXEC, errno);
}

void agent_child_run(const struct agent_child *c, int sock, const int *join_fds, size_t n_join)
{
	static struct agent_request q;
	int keep[7 + AGENT_JOIN_MAX] = { c->status_fd,
					 sock,
					 c->in_fd,
					 c->out_fd,
					 c->err_fd,
					 c->kernel ? c->requests_fd : -EBADF,
					 c->kernel ? c->events_fd : -EBADF };
	int r;

	agent_unblock_signals();
	(void)setsid();
	(void)umask(022);
	memcpy(keep + 7, join_fds, n_join * sizeof(int));
	agent_keep_fds(keep, 7 + n_join);
	r = agent_join_cgroups(join_fds, n_join);
	if (r == 0)
		r = payload_set_oom_score(c->request.oom_score_adj);
	if (r < 0)
		fail(c, WIRE_STEP_CGROUP, r);
	q.label_fd = c->status_fd;
	r = agent_request_read(sock, &q);
	if (r < 0)
		fail(c, WIRE_STEP_REQUEST, r);
	agent_child_exec(c, &q);
}
