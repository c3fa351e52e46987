/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs that talk to a service or look after its keys are another program's: it needs a
 * database and an HTTP library, which this one, started for every run, does not want to load.
 */
#include "cli/client.h"

#include "cli/cli.h"
#include "service/program.h"

#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>

int cli_client(int argc, char **argv)
{
	char path[PATH_MAX];

	(void)argc;
	if (program_find("client", "glovebox-client", path, sizeof(path)) < 0)
		return cli_error(
			CLI_FAILURE,
			"there is no glovebox-client beside this program; is glovebox installed "
			"completely?");
	/* main() has cut off our own name; the other program wants to see it. */
	(void)execv(path, argv - 1);
	return cli_error(CLI_FAILURE, "cannot start %s: %s", path, strerror(errno));
}

static _noreturn_ void become_client(const char *verb, bool anywhere, int in_fd, int out_fd,
				     pid_t parent)
{
	const char *const argv[] = { "glovebox", verb, NULL };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	char path[PATH_MAX];
	sigset_t none;

	/* A terminal's Ctrl-C is for us, and we tell it what that means. */
	(void)sigaction(SIGINT, &ignore, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 ||
	    program_find("client", "glovebox-client", path, sizeof(path)) < 0)
		_exit(CLI_FAILURE);
	if (!anywhere)
		(void)unsetenv("E2B_API_URL");
	(void)execv(path, (char *const *)(uintptr_t)argv);
	_exit(CLI_FAILURE);
}

pid_t client_spawn(const char *verb, bool anywhere, int in_fd, int out_fd)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		become_client(verb, anywhere, in_fd, out_fd, parent);
	return pid < 0 ? -errno : pid;
}
