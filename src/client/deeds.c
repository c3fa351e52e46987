/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that do something to a sandbox as a whole: kill, pause, resume, snapshot. */
#include "client/client.h"

#include "client/api/api.h"

#include <getopt.h>

struct deed {
	const char *help;
	const char *method;
	const char *rest; /* of the path, behind the id */
	json_t *body;     /* or NULL */
};

static int do_to_each(struct deed *d, int first, int argc, char **argv)
{
	_cleanup_(api_closep) struct api a = { 0 };
	struct fail fail = { 0 };
	int status = CLIENT_OK;

	if (first >= argc)
		return client_error(CLIENT_USAGE,
				    "name at least one sandbox; 'glovebox ls' shows them");
	if (api_open(&a, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	for (int i = first; i < argc; i++) {
		char path[256];

		if (client_path(argv[i], d->rest, path, sizeof(path)) < 0)
			status = client_error(CLIENT_FAILURE, "%s: there is no such sandbox",
					      argv[i]);
		else if (api_call(&a, d->method, path, json_incref(d->body), NULL, &fail) < 0)
			status = client_error(CLIENT_FAILURE, "%s: %s", argv[i], fail.msg);
		else
			(void)printf("%s\n", argv[i]);
	}
	return fflush(stdout) == EOF ? CLIENT_FAILURE : status;
}

int client_kill(int argc, char **argv)
{
	static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct deed d = {
		.help = "Usage: glovebox kill ID…\n\nEnds sandboxes, with everything in them.\n",
		.method = "DELETE",
		.rest = "",
	};
	int c = getopt_long(argc, argv, "h", options, NULL);

	return c != -1 ? client_help(d.help, c == 'h') : do_to_each(&d, optind, argc, argv);
}

int client_pause(int argc, char **argv)
{
	enum { FILES = 256 };
	static const struct option options[] = {
		{ "files-only", no_argument, NULL, FILES },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char help[] =
		"Usage: glovebox pause [--files-only] ID…\n"
		"\n"
		"Stops sandboxes where they are; 'glovebox resume' lets them go on.\n"
		"\n"
		"      --files-only  keep only their files: programs end, memory is given back\n";
	struct deed d = { .help = help, .method = "POST", .rest = "/pause", .body = json_object() };
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == FILES)
			(void)json_object_set_new(d.body, "memory", json_false());
		else
			status = client_help(help, c == 'h');
	}
	if (status < 0)
		status = do_to_each(&d, optind, argc, argv);
	json_decref(d.body);
	return status;
}

int client_resume(int argc, char **argv)
{
	enum { TIMEOUT = 256 };
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char help[] = "Usage: glovebox resume [--timeout 5m] ID…\n"
				   "\n"
				   "Lets paused sandboxes go on. A running one gets more time.\n";
	struct deed d = { .help = help, .method = "POST", .rest = "/connect" };
	json_int_t seconds = 300;
	int c, status;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != TIMEOUT)
			return client_help(help, c == 'h');
		if (client_seconds(optarg, &seconds) < 0)
			return client_error(CLIENT_USAGE,
					    "--timeout %s: give a duration such as 30s or 5m",
					    optarg);
	}
	d.body = json_pack("{sI}", "timeout", seconds);
	status = do_to_each(&d, optind, argc, argv);
	json_decref(d.body);
	return status;
}

int client_snapshot(int argc, char **argv)
{
	enum { NAME = 256 };
	static const struct option options[] = {
		{ "name", required_argument, NULL, NAME },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char help[] =
		"Usage: glovebox snapshot [--name NAME] [-o json|table] ID\n"
		"\n"
		"Keeps a sandbox's files and prints a name that 'glovebox create' takes as a template.\n"
		"\n"
		"Example\n"
		"  glovebox create $(glovebox snapshot $id)\n";
	_cleanup_(json_decrefp) json_t *made = NULL;
	json_t *body = json_object();
	bool json = false;
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (c == NAME)
			(void)json_object_set_new(body, "name", json_string(optarg));
		else if (c != 'o')
			status = client_help(help, c == 'h');
		else if (client_output_format(optarg, &json) < 0)
			status = client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	if (status >= 0) {
		json_decref(body);
		return status;
	}
	status = client_ask("POST", optind, argc, argv, "/snapshots", body, &made);
	if (status != CLIENT_OK)
		return status;
	if (json)
		return client_print_json(made);
	return printf("%s\n", client_text(made, "snapshotID")) < 0 || fflush(stdout) == EOF ?
		       CLIENT_FAILURE :
		       CLIENT_OK;
}
