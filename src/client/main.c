/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include <getopt.h>

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{ "cert", client_cert },
	{ "config", client_config },
	{ "cp", client_cp },
	{ "create", client_create },
	{ "exec", client_exec },
	{ "inspect", client_inspect },
	{ "key", client_key },
	{ "kill", client_kill },
	{ "logs", client_logs },
	{ "ls", client_ls },
	{ "network", client_network },
	{ "pause", client_pause },
	{ "repl-request", client_repl_request },
	{ "resume", client_resume },
	{ "run-request", client_run_request },
	{ "secret", client_secret },
	{ "shell", client_shell },
	{ "snapshot", client_snapshot },
	{ "stats", client_stats },
};

int client_bad_option(const char *verb, int said, char **argv)
{
	const char *word = argv[optind - 1];

	if (said == ':')
		return client_error(CLIENT_USAGE,
				    "option %s needs a value; see 'glovebox %s --help'", word,
				    verb);
	if (optopt && strncmp(word, "--", 2) != 0)
		return client_error(CLIENT_USAGE, "unknown option -%c; see 'glovebox %s --help'",
				    optopt, verb);
	return client_error(CLIENT_USAGE, "unknown option %s; see 'glovebox %s --help'", word,
			    verb);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return client_error(CLIENT_USAGE, "this program is started by 'glovebox'");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	return client_error(CLIENT_USAGE, "there is no verb '%s'; see 'glovebox help'", argv[1]);
}
