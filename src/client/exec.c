/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/session.h"

#include <getopt.h>

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
