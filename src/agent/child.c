/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a command between fork and exec. It joins its cgroup first, so that even the memory for
 * its arguments is its own, then reads what to run from the operation's socket, becomes the user and
 * executes.
 */
#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ARGS_MAX 4096
#define ENVS_MAX 1024
#define STRINGS_MAX (UINT64_C(1) << 20) /* bytes of all arguments and variables together */

extern char **environ;

struct command {
	char cwd[WIRE_PATH_MAX + 1];
	char *args[ARGS_MAX + 1];
	char *envs[ENVS_MAX + 1];
	size_t n_args;
	size_t n_envs;
	uint64_t bytes;
};

static _noreturn_ void fail(const struct agent_child *c, enum wire_step step, int err)
{
	struct wire_failed failed = { .step = step, .err = err < 0 ? -err : err };

	(void)!write(c->status_fd, &failed, sizeof(failed));
	_exit(127);
}

static int add_string(struct command *cmd, char **list, size_t *n, size_t max, const void *data,
		      size_t len)
{
	char *text;

	if (*n >= max || memchr(data, '\0', len))
		return -EINVAL;
	cmd->bytes += len + 1;
	if (cmd->bytes > STRINGS_MAX)
		return -E2BIG;
	text = malloc(len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, data, len);
	text[len] = '\0';
	list[(*n)++] = text;
	return 0;
}

static int read_command(int sock, struct command *cmd)
{
	static struct wire_frame f;

	for (;;) {
		int r = wire_recv(sock, &f, WIRE_ON_TO_OP);
		size_t len;

		if (r <= 0)
			return r < 0 ? r : -ECANCELED;
		len = wire_len(&f);
		switch (f.head.type) {
		case WIRE_CWD:
			if (memchr(f.data, '\0', len))
				return -EINVAL;
			memcpy(cmd->cwd, f.data, len);
			cmd->cwd[len] = '\0';
			break;
		case WIRE_ARG:
			r = add_string(cmd, cmd->args, &cmd->n_args, ARGS_MAX, f.data, len);
			break;
		case WIRE_ENV:
			r = add_string(cmd, cmd->envs, &cmd->n_envs, ENVS_MAX, f.data, len);
			break;
		case WIRE_GO:
			return cmd->n_args ? 0 : -EINVAL;
		default:
			return -EPROTO;
		}
		if (r < 0)
			return r;
	}
}

static int join_cgroups(const struct agent_child *c)
{
	for (size_t i = 0; i < c->n_join; i++)
		if (write(c->join_fds[i], "0", 1) != 1)
			return -errno;
	return 0;
}

/* A command that outgrows the box's memory must die before the agent does. */
static int set_oom_score(int score)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score), r;

	/* While it cannot be dumped, a process's files in /proc belong to the host's root. Nothing
	 * foreign has run in this process yet, and it is closed again at once. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	r = fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : r;
}

static int limit(int what, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(what, &now) < 0)
		return -errno;
	/* Nobody here may raise a hard limit; a lower one that is already there is as good. At the soft
	 * limit of CPU time comes SIGXCPU, which tells what happened; at the hard one SIGKILL. */
	now.rlim_max = MIN(now.rlim_max, what == RLIMIT_CPU ? value + 1 : value);
	now.rlim_cur = MIN(now.rlim_max, value);
	return setrlimit(what, &now) < 0 ? -errno : 0;
}

static int set_limits(const struct wire_exec *q)
{
	const struct {
		int what;
		uint64_t value;
		bool on;
	} limits[] = {
		/* 1, not 0: a core of one byte is the kernel's word for "no piped handler either". */
		{ RLIMIT_CORE, 1, true },
		{ RLIMIT_NOFILE, q->nofile_max, true },
		{ RLIMIT_FSIZE, q->fsize_max, true },
		{ RLIMIT_MEMLOCK, 64 << 10, true },
		{ RLIMIT_MSGQUEUE, 0, true },
		{ RLIMIT_SIGPENDING, 1024, true },
		{ RLIMIT_RTPRIO, 0, true },
		{ RLIMIT_NICE, 0, true },
		{ RLIMIT_STACK, 8 << 20, true },
		/* Not RLIMIT_AS: runtimes reserve far more address space than they use. */
		{ RLIMIT_DATA, q->data_max, q->data_max != 0 },
		{ RLIMIT_NPROC, q->nproc_max, q->nproc_max != 0 },
		{ RLIMIT_CPU, q->cpu_max_s, q->cpu_max_s != 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = limits[i].on ? limit(limits[i].what, limits[i].value) : 0;

		if (r < 0)
			return r;
	}
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
	if (dup2(in_fd, 0) < 0 || dup2(c->out_fd, 1) < 0 || dup2(c->err_fd, 2) < 0)
		return -errno;
	return 0;
}

static void reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &sa, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void agent_child_run(const struct agent_child *c)
{
	static struct command cmd;
	int r;

	reset_signals();
	(void)setsid();
	(void)umask(022);
	r = join_cgroups(c);
	if (r == 0)
		r = set_oom_score(c->request.oom_score_adj);
	if (r < 0)
		fail(c, WIRE_STEP_CGROUP, r);
	r = read_command(c->sock, &cmd);
	if (r == 0)
		r = set_stdio(c);
	if (r < 0)
		fail(c, WIRE_STEP_REQUEST, r);
	r = set_limits(&c->request);
	if (r < 0)
		fail(c, WIRE_STEP_RLIMIT, r);
	r = agent_become(c->request.uid, c->request.gid);
	if (r < 0)
		fail(c, WIRE_STEP_DROP, r);
	if (chdir(cmd.cwd[0] ? cmd.cwd : "/") < 0)
		fail(c, WIRE_STEP_CWD, errno);

	environ = cmd.envs;
	execvp(cmd.args[0], cmd.args); /* searches the command's own PATH */
	fail(c, WIRE_STEP_EXEC, errno);
}
