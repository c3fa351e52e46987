/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

static const struct cli_verb verbs[] = {
	{ "run", "run code or a command in a sealed box", cli_run, "One run" },
	{ "repl", "a notebook prompt on a sealed box", cli_repl, NULL },
	{ "languages", "show the languages that can be run here", cli_languages, NULL },
	{ "egress", "keep rule sets for the network, and ask what they allow", cli_egress, NULL },

	{ "serve", "serve sandboxes over HTTP, for E2B's SDKs and the verbs below", cli_serve,
	  "A service" },
	{ "key", "make, show, rotate and revoke keys", cli_client, NULL },
	{ "cert", "make a certificate for a domain of sandbox addresses", cli_client, NULL },
	{ "config", "check and show settings", cli_client, NULL },
	{ "secret", "keep values that only requests of sandboxes get", cli_client, NULL },

	{ "create", "create a sandbox", cli_client, "Sandboxes of a running service" },
	{ "ls", "list sandboxes", cli_client, NULL },
	{ "exec", "run a command in a sandbox", cli_client, NULL },
	{ "shell", "open a terminal in a sandbox", cli_client, NULL },
	{ "cp", "copy files into a sandbox or out of it", cli_client, NULL },
	{ "logs", "show what happened in a sandbox", cli_client, NULL },
	{ "inspect", "show everything about a sandbox", cli_client, NULL },
	{ "network", "show or change what a sandbox may reach", cli_client, NULL },
	{ "stats", "show what sandboxes use", cli_client, NULL },
	{ "pause", "freeze a sandbox", cli_client, NULL },
	{ "resume", "let a paused sandbox go on", cli_client, NULL },
	{ "snapshot", "keep a sandbox's files, to start others from", cli_client, NULL },
	{ "kill", "end a sandbox", cli_client, NULL },

	{ "doctor", "check what protections this machine offers, and how to get more", cli_doctor,
	  "This program" },
	{ "version", "show the version", cli_version, NULL },
};

static int print_help(FILE *to)
{
	(void)fputs(
		"Usage: glovebox VERB [OPTION]…\n\nRuns code that nobody trusts in a sealed box.\n\n",
		to);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (verbs[i].heading)
			(void)fprintf(to, "%s%s:\n", i ? "\n" : "", verbs[i].heading);
		(void)fprintf(to, "  %-10s  %s\n", verbs[i].name, verbs[i].summary);
	}
	(void)fputs(
		"\n'glovebox VERB --help' tells more. Try: glovebox run -l python -c 'print(6 * 7)'\n",
		to);
	return ferror(to) ? CLI_FAILURE : CLI_OK;
}

int main(int argc, char **argv)
{
	if (cli_ensure_stdio() < 0)
		return CLI_FAILURE;
	if (argc < 2) {
		(void)print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return print_help(stdout);
	if (!strcmp(argv[1], "--version"))
		return cli_version(1, argv);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	return cli_error(CLI_USAGE, "there is no verb '%s'; see 'glovebox help'", argv[1]);
}
