/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox ls, inspect: which sandboxes there are, and one of them whole. */
#include "client/client.h"

#include "client/api/api.h"
#include "client/network.h"

#include <getopt.h>

static const char ls_help[] = "Usage: glovebox ls [OPTION]…\n"
			      "\n"
			      "Shows your sandboxes, newest first.\n"
			      "\n"
			      "      --state running|paused  only those\n"
			      "  -q, --quiet                 only their ids\n"
			      "  -o, --output json|table     what to print\n"
			      "\n"
			      "Examples\n"
			      "  glovebox ls\n"
			      "  glovebox ls -q | xargs -r glovebox kill\n";

/* All pages. */
static int ls_list_all(struct api *a, const char *state, json_t **ret, struct fail *fail)
{
	char path[1024], next[512] = "";
	json_t *all = json_array();

	do {
		_cleanup_(freep) char *token = api_escape(next);
		json_t *page = NULL;
		int r;

		(void)snprintf(path, sizeof(path), "/v2/sandboxes?limit=100%s%s%s%s",
			       *state ? "&state=" : "", state, *next ? "&nextToken=" : "",
			       *next && token ? token : "");
		r = api_call_header(a, "GET", path, NULL, &page, "X-Next-Token", next, sizeof(next),
				    fail);
		if (r < 0) {
			json_decref(all);
			return r;
		}
		(void)json_array_extend(all, page);
		json_decref(page);
	} while (*next);
	*ret = all;
	return 0;
}

static void metadata_text(const json_t *o, char *ret, size_t size)
{
	const char *key;
	json_t *value;
	size_t len = 0;

	*ret = '\0';
	json_object_foreach((json_t *)(uintptr_t)o, key, value) {
		const char *text = json_string_value(value);

		if (len < size)
			len += (size_t)snprintf(ret + len, size - len, "%s%s=%s", len ? " " : "",
						key, text ? text : "");
	}
}

static int ls_table(const json_t *list)
{
	static const char *const columns[] = { "ID",   "TEMPLATE", "STATE",    "AGE", "ENDS IN",
					       "CPUS", "MEMORY",   "METADATA", NULL };
	struct text_table t = { .columns = columns };
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) {
		char age[16], left[16], metadata[200];
		bool running = !strcmp(client_text(o, "state"), "running");

		client_age(client_text(o, "startedAt"), false, age, sizeof(age));
		client_age(running ? client_text(o, "endAt") : NULL, true, left, sizeof(left));
		metadata_text(json_object_get(o, "metadata"), metadata, sizeof(metadata));
		table_add(&t, "%s", client_text(o, "sandboxID"));
		table_add(&t, "%s", client_text(o, "templateID"));
		table_add(&t, "%s", client_text(o, "state"));
		table_add(&t, "%s", age);
		table_add(&t, "%s", left);
		table_add(&t, "%lld",
			  (long long)json_integer_value(json_object_get(o, "cpuCount")));
		table_add(&t, "%lldM",
			  (long long)json_integer_value(json_object_get(o, "memoryMB")));
		table_add(&t, "%s", metadata);
	}
	return table_print(&t);
}

static int ls_quiet(const json_t *list)
{
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o)
		(void)printf("%s\n", client_text(o, "sandboxID"));
	return fflush(stdout) == EOF || ferror(stdout) ? CLIENT_FAILURE : CLIENT_OK;
}

int client_ls(int argc, char **argv)
{
	enum { STATE = 256 };
	static const struct option options[] = {
		{ "state", required_argument, NULL, STATE },
		{ "quiet", no_argument, NULL, 'q' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	_cleanup_(api_closep) struct api a = { 0 };
	_cleanup_(json_decrefp) json_t *list = NULL;
	const char *state = "";
	bool json = false, quiet = false;
	struct fail fail = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "qo:h", options, NULL)) != -1) {
		if (c == 'h')
			return client_help(ls_help, true);
		if (c == 'q')
			quiet = true;
		else if (c == STATE)
			state = optarg;
		else if (c != 'o')
			return client_help(ls_help, false);
		else if (client_output_format(optarg, &json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	if (*state && strcmp(state, "running") != 0 && strcmp(state, "paused") != 0)
		return client_error(CLIENT_USAGE, "--state %s: running or paused", state);
	if (optind < argc)
		return client_help(ls_help, false);
	if (api_open(&a, &fail) < 0 || ls_list_all(&a, state, &list, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (json)
		return client_print_json(list);
	return quiet ? ls_quiet(list) : ls_table(list);
}

/* What it did with its network; a service that does not know of it says nothing. */
static void add_totals(const char *id, json_t *o)
{
	_cleanup_(api_closep) struct api a = { 0 };
	_cleanup_(json_decrefp) json_t *did = NULL;
	struct fail fail = { 0 };

	if (api_open(&a, &fail) == 0 && network_ask(&a, id, 1, &did, &fail) == 0 &&
	    json_is_true(json_object_get(did, "network")))
		(void)json_object_set(o, "networkTotals", json_object_get(did, "totals"));
}

int client_inspect(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	_cleanup_(json_decrefp) json_t *o = NULL;
	bool json = true;
	int c, status;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (c != 'o')
			return client_help(
				"Usage: glovebox inspect [-o json|table] ID\n\n"
				"Shows everything about a sandbox (but not its tokens).\n",
				c == 'h');
		if (client_output_format(optarg, &json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	status = client_ask("GET", optind, argc, argv, "", NULL, &o);
	if (status != CLIENT_OK)
		return status;
	(void)json_object_del(o, "envdAccessToken");
	(void)json_object_del(o, "trafficAccessToken");
	network_hide_values(json_object_get(o, "network"));
	add_totals(argv[optind], o);
	if (!json) {
		json_t *list = json_pack("[O]", o);

		status = ls_table(list);
		json_decref(list);
		return status;
	}
	return client_print_json(o);
}
