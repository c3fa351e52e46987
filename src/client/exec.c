/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include <getopt.h>
#include <sys/ioctl.h>
#include <termios.h>

/* --- glovebox shell: a terminal in a sandbox ------------------------------------------------- */

static const char shell_help[] =
	"Usage: glovebox shell [-u NAME] [ID]\n"
	"\n"
	"Opens a terminal in a sandbox; without ID in a new one, which ends with it.\n"
	"\n"
	"  -u, --user NAME  as this user of the sandbox (default: user)\n";

static struct termios terminal_before;

static void restore_terminal(void)
{
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
}

static int set_raw_terminal(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal_before) < 0)
		return -errno;
	raw = terminal_before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return -errno;
	(void)atexit(restore_terminal);
	return 0;
}

static json_t *shell_body(void)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	const char *term = getenv("TERM");

	(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	return json_pack("{s{ss s[ss] s{ss ss}} s{s{si si}}}", "process", "cmd", "/bin/bash",
			 "args", "-i", "-l", "envs", "TERM",
			 term && *term ? term : "xterm-256color", "LANG", "C.UTF-8", "pty", "size",
			 "cols", (int)size.ws_col, "rows", (int)size.ws_row);
}

int client_shell(int argc, char **argv)
{
	struct session_options o = { .env = json_object() };
	int status = session_options(argc, argv, shell_help, &o);
	struct session s = { .is_pty = true };
	struct fail fail = { 0 };
	struct api a = { 0 };
	struct own_sandbox own = { .api = &a, .sandbox = &s.sandbox };
	bool is_own = argc - optind == 0;

	json_decref(o.env);
	if (status >= 0)
		return status;
	if (argc - optind > 1)
		return client_help(shell_help, false);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return client_error(CLIENT_USAGE,
				    "a shell needs a terminal; use 'glovebox exec -i' in scripts");
	if (api_open(&a, &fail) < 0 ||
	    (is_own ? own_make(&own, json_pack("{ss}", "templateID", "base"), &fail) :
		      api_sandbox(&a, argv[optind], &s.sandbox, &fail)) < 0) {
		api_close(&a);
		return client_error(CLIENT_LOST, "%s", fail.msg);
	}
	s.api = &a;
	s.own = is_own ? &own : NULL;
	/* The terminal belongs to the sandbox's programs now, as with ssh: nothing is defused. */
	status = set_raw_terminal() < 0 ? client_error(CLIENT_LOST, "cannot use the terminal") :
					  session_run(&s, shell_body(), o.user, true);
	if (is_own)
		own_remove(&own);
	api_close(&a);
	return status;
}

static const char exec_help[] =
	"Usage: glovebox exec [OPTION]… ID [--] COMMAND [ARGUMENT]…\n"
	"\n"
	"Runs a command in a sandbox. Its exit status is ours.\n"
	"\n"
	"  -i, --stdin           pass our standard input on\n"
	"  -u, --user NAME       as this user of the sandbox (default: user)\n"
	"  -w, --cwd DIR         where (default: the user's home)\n"
	"      --env NAME=VALUE  with this variable\n"
	"      --raw             do not defuse control characters on a terminal\n"
	"\n"
	"Ctrl-C asks the command to end; a second time it is killed.\n"
	"\n"
	"Examples\n"
	"  glovebox exec $id -- python3 -c 'print(6 * 7)'\n"
	"  tar c src | glovebox exec -i $id -- tar x\n";

int client_exec(int argc, char **argv)
{
	struct session_options o = { .env = json_object() };
	int status = session_options(argc, argv, exec_help, &o);
	struct session s = { 0 };
	struct fail fail = { 0 };
	struct api a = { 0 };
	json_t *args = json_array(), *process;
	int first;

	if (status < 0 && argc - optind < 2)
		status = client_help(exec_help, false);
	first = optind + 1;
	if (status < 0 && !strcmp(argv[first], "--"))
		first++;
	if (status < 0 && first >= argc)
		status = client_help(exec_help, false);
	if (status < 0 &&
	    (api_open(&a, &fail) < 0 || api_sandbox(&a, argv[optind], &s.sandbox, &fail) < 0))
		status = client_error(CLIENT_LOST, "%s", fail.msg);
	if (status >= 0) {
		json_decref(o.env);
		json_decref(args);
		api_close(&a);
		return status;
	}
	for (int i = first + 1; i < argc; i++)
		(void)json_array_append_new(args, json_string(argv[i]));
	process = json_pack("{ss so so}", "cmd", argv[first], "args", args, "envs", o.env);
	if (o.cwd)
		(void)json_object_set_new(process, "cwd", json_string(o.cwd));
	s.api = &a;
	for (int i = 0; i < 2; i++) {
		s.safe[i] = !o.raw && isatty(i + 1);
		termsafe_init(&s.filter[i]);
	}
	status = session_run(&s, json_pack("{so sb}", "process", process, "stdin", o.with_input),
			     o.user, o.with_input);
	api_close(&a);
	return status;
}
