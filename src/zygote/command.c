/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork that is to be a command of its box. It is an ordinary process of the box already, and its
 * agent's child; now the agent hands it what every command gets: pipes, limits, and a socket with
 * what to run. If that is what the interpreter was loaded for, it goes on where it was stopped, and
 * if not, executes it.
 *
 * Nobody may be able to tell which, but by the time it takes. So everything an interpreter looks at
 * while it starts must be now as it was then: variables, the user's packages. Whatever is in doubt
 * is executed.
 */
#include "zygote/zygote_priv.h"

#include "sys/payload.h"
#include "sys/proc.h"
#include "wire/request.h"
#include "wire/script.h"

#include <sys/syscall.h>

#define AGENT_FD 3

extern char **environ;

static struct agent_request request = { .label_fd = -EBADF };
static int status_fd = -EBADF;
static bool has_input;

/* The variables that this process was executed with, as /proc has them. */
static char *shown;
static size_t shown_size;

static _noreturn_ void command_give_up(enum wire_step step, int err)
{
	const struct wire_failed failed = { .step = step, .err = -err };

	(void)!wire_send(status_fd, WIRE_FAILED, &failed, sizeof(failed));
	_exit(127);
}

static int say_started(int sock)
{
	const struct wire_process me = { .pid = (uint32_t)getpid(), .forked = 1 };

	return wire_send(sock, WIRE_STARTED, &me, sizeof(me));
}

/* The agent's order, which brings the descriptors. Who is not wanted any more ends. */
static void command_receive(struct wire_exec *ret, int fds[_WIRE_RUNNER_MAX])
{
	static struct wire_frame f;
	size_t n = _WIRE_RUNNER_MAX;

	if (say_started(AGENT_FD) < 0 ||
	    wire_recv_fds(AGENT_FD, &f, WIRE_ON_CONTROL, fds, &n) != 1 || f.head.type != WIRE_EXEC)
		_exit(0);
	memcpy(ret, f.data, sizeof(*ret));
	has_input = ret->flags & WIRE_EXEC_STDIN;
	if (n != (has_input ? _WIRE_RUNNER_MAX : WIRE_RUNNER_IN))
		_exit(127);
}

static int take_stdio(const int fds[_WIRE_RUNNER_MAX])
{
	if ((has_input && dup2(fds[WIRE_RUNNER_IN], 0) < 0) || dup2(fds[WIRE_RUNNER_OUT], 1) < 0 ||
	    dup2(fds[WIRE_RUNNER_ERR], 2) < 0)
		return -errno;
	return 0;
}

void command_take(void)
{
	int fds[_WIRE_RUNNER_MAX], r;
	struct wire_exec q;

	command_receive(&q, fds);
	status_fd = fds[WIRE_RUNNER_STATUS];
	r = agent_request_read(fds[WIRE_RUNNER_OP], &request);
	if (r == 0)
		r = take_stdio(fds);
	if (r < 0)
		command_give_up(WIRE_STEP_REQUEST, r);
	if (q.uid != PAYLOAD_USER || q.gid != PAYLOAD_USER || request.user[0])
		command_give_up(WIRE_STEP_USER, -EPERM); /* we have become that one, for good */
	/* They were set on the way in; lower ones count too. */
	r = agent_request_set_limits(&q);
	if (r < 0)
		command_give_up(WIRE_STEP_RLIMIT, r);
	if (chdir(request.cwd[0] ? request.cwd : "/") < 0)
		command_give_up(WIRE_STEP_CWD, -errno);
}

/* Does an interpreter, its C library or the loader look at this variable before a script can? */
static bool counts_early(const char *variable)
{
	static const char *const beginnings[] = { "PYTHON",  "LD_",     "LC_",    "LANG",
						  "LOCPATH", "MALLOC_", "GLIBC_", "GCONV_PATH",
						  "PATH=",   "HOME=",   "TZ" };

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static bool is_among(char *const *list, const char *variable)
{
	for (; *list; list++)
		if (strcmp(*list, variable) == 0)
			return true;
	return false;
}

/* All variables of the first list that count are in the second too. */
static bool agrees(char *const *list, char *const *with)
{
	for (; *list; list++)
		if (counts_early(*list) && !is_among(with, *list))
			return false;
	return true;
}

bool command_is_script(void)
{
	return request.n_args == 2 && strcmp(request.args[0], SCRIPT_PROGRAM) == 0 &&
	       strcmp(request.args[1], SCRIPT_FILE) == 0 && strcmp(request.cwd, SCRIPT_HOME) == 0 &&
	       agrees(environ, request.envs) && agrees(request.envs, environ) &&
	       access(SCRIPT_HOME "/.local", F_OK) < 0 && errno == ENOENT;
}

char *const *command_variables(void)
{
	return request.envs;
}

bool command_has_input(void)
{
	return has_input;
}

/* They lie one behind the other, where the kernel has put them. */
void command_find_variables(void)
{
	char *const *last = environ;

	if (!environ || !*environ)
		return;
	while (last[1])
		last++;
	shown = *environ;
	shown_size = (size_t)(*last + strlen(*last) + 1 - shown);
}

/* Nobody uses these any more: let /proc show the script's own, as far as it fits. */
static void show_variables(void)
{
	size_t at = 0;

	memset(shown, 0, shown_size);
	for (char *const *text = request.envs; *text; text++) {
		size_t len = strlen(*text) + 1;

		if (len > shown_size - at)
			return;
		memcpy(shown + at, *text, len);
		at += len;
	}
}

void command_execute(void)
{
	proc_reset_signals(); /* Python ignores some */
	environ = request.envs;
	execvp(request.args[0], request.args);
	command_give_up(WIRE_STEP_EXEC, -errno);
}

void command_go_on(void)
{
	environ = request.envs;
	show_variables();
	if (say_started(status_fd) < 0 || syscall(SYS_close_range, AGENT_FD, ~0U, 0) < 0)
		_exit(127);
}
