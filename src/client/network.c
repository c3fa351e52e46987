/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox network: what a sandbox may reach, what it reached, and changing that while it runs. */
#include "client/network.h"

#include "base/termsafe.h"
#include "client/api/api.h"
#include "client/client.h"

#define EVERYTHING "0.0.0.0/0"
#define SHOWN 20 /* connections in the table */

static const char help[] =
	"Usage: glovebox network ID [-o json|table]\n"
	"       glovebox network ID --allow RULE… | --allow-set NAME… | --deny RANGE… | --none\n"
	"\n"
	"Shows what a sandbox may reach and what it asked for lately, or replaces what it may reach\n"
	"while it runs: connections that are no longer allowed are cut.\n"
	"\n"
	"      --allow RULE         example.com, *.example.com, 192.0.2.0/24, each with :PORTS if\n"
	"                           wanted (a name alone: 80 and 443); everything else is closed\n"
	"      --allow-set NAME     what a rule set of the service's operator allows\n"
	"      --deny RANGE         an address or network; what is allowed beats it\n"
	"      --none               nothing at all\n"
	"      --default            what the service gives by itself\n"
	"  -o, --output json|table  what to print\n"
	"\n"
	"Examples\n"
	"  glovebox network $id --allow example.com --allow 192.0.2.7:5432\n"
	"  glovebox network $id\n"
	"  glovebox logs --network -f $id\n";

/* --- options ---------------------------------------------------------------------------------- */

static void network_add_text(json_t *to, const char *list, json_t *text)
{
	json_t *entries = json_object_get(to, list);

	if (!entries) {
		entries = json_array();
		(void)json_object_set_new(to, list, entries);
	}
	(void)json_array_append_new(entries, text);
}

bool network_option(json_t *network, int option, const char *value)
{
	switch (option) {
	case NETWORK_ALLOW:
		network_add_text(network, "allowOut", json_string(value));
		return true;
	case NETWORK_ALLOW_SET:
		network_add_text(network, "allowOut", json_sprintf("set:%s", value));
		return true;
	case NETWORK_DENY:
		network_add_text(network, "denyOut", json_string(value));
		return true;
	default:
		return false;
	}
}

/* Only what is allowed, also where the service would let everything out. */
void network_options_done(json_t *network)
{
	if (json_object_get(network, "allowOut"))
		network_add_text(network, "denyOut", json_string(EVERYTHING));
}

/* --- showing it ------------------------------------------------------------------------------- */

static void print_list(const char *title, const json_t *list)
{
	size_t i;
	json_t *entry;

	json_array_foreach(list, i, entry)
		(void)printf("%-8s %s\n", title, json_string_value(entry));
}

static json_t *headers_of(const json_t *list)
{
	return json_object_get(json_object_get(json_array_get(list, 0), "transform"), "headers");
}

static void hide_values(json_t *headers)
{
	json_t *value;
	const char *name;
	void *next;

	json_object_foreach_safe(headers, next, name, value)
	{
		const char *text = json_string_value(value);

		if (!text || !strstr(text, "${"))
			(void)json_object_set_new(headers, name, json_string("(hidden)"));
	}
}

void network_hide_values(json_t *network)
{
	json_t *list;
	const char *host;

	json_object_foreach(json_object_get(network, "rules"), host, list) {
		hide_values(headers_of(list));
	}
}

static void print_headers(const json_t *network)
{
	json_t *list, *value;
	const char *host, *name;

	json_object_foreach(json_object_get(network, "rules"), host, list) {
		json_object_foreach(headers_of(list), name, value) {
			char shown[256];

			termsafe_line(json_string_value(value), shown, sizeof(shown));
			(void)printf("%-8s %s: %s: %s\n", "header", host, name, shown);
		}
	}
}

static void print_rules(const json_t *info)
{
	const json_t *network = json_object_get(info, "network");

	print_list("allow", json_object_get(network, "allowOut"));
	print_list("deny", json_object_get(network, "denyOut"));
	print_headers(network);
	if (!json_is_true(json_object_get(info, "allowInternetAccess")))
		(void)printf("It reaches nothing.\n");
	else if (!json_object_get(network, "allowOut"))
		(void)printf("It reaches what the service lets every sandbox reach.\n");
}

static long long network_number(const json_t *o, const char *name)
{
	return (long long)json_integer_value(json_object_get(o, name));
}

static void print_totals(const json_t *totals)
{
	char up[16], down[16];

	client_bytes((double)network_number(totals, "bytes_up"), up, sizeof(up));
	client_bytes((double)network_number(totals, "bytes_down"), down, sizeof(down));
	(void)printf(
		"\n%lld allowed, %lld refused, %lld failed, %lld lookups, %s sent, %s received\n\n",
		network_number(totals, "allowed"), network_number(totals, "refused"),
		network_number(totals, "failed"), network_number(totals, "lookups"), up, down);
}

static int print_connections(const json_t *list)
{
	static const char *const columns[] = { "TARGET", "HOW",      "VERDICT", "REASON",
					       "SENT",   "RECEIVED", NULL };
	struct text_table t = { .columns = columns };
	size_t i, n = json_array_size(list);
	json_t *c;

	json_array_foreach(list, i, c) {
		const char *name = client_text(c, "name"), *address = client_text(c, "address");
		char up[16], down[16], port[24] = "";

		if (i + SHOWN < n)
			continue;
		if (json_is_integer(json_object_get(c, "port")))
			(void)snprintf(port, sizeof(port), ":%lld", network_number(c, "port"));
		client_bytes((double)network_number(c, "bytes_up"), up, sizeof(up));
		client_bytes((double)network_number(c, "bytes_down"), down, sizeof(down));
		table_add(&t, "%s%s", *name ? name : address, port);
		table_add(&t, "%s", client_text(c, "how"));
		table_add(&t, "%s", client_text(c, "verdict"));
		table_add(&t, "%s", client_text(c, "reason"));
		table_add(&t, "%s", up);
		table_add(&t, "%s", down);
	}
	return n ? table_print(&t) : fflush(stdout) == EOF ? CLIENT_FAILURE : CLIENT_OK;
}

int network_ask(struct api *a, const char *id, size_t limit, json_t **ret, struct fail *fail)
{
	_cleanup_(freep) char *escaped = api_escape(id);
	char path[512];

	if (!escaped ||
	    (size_t)snprintf(path, sizeof(path), "/v1/sandboxes/%s/connections?limit=%zu", escaped,
			     limit) >= sizeof(path))
		return fail_set(fail, ENAMETOOLONG, "sandbox", "there is no such sandbox");
	return api_call(a, "GET", path, NULL, ret, fail);
}

static int network_show(struct api *a, const char *id, const char *path, bool json)
{
	_cleanup_(json_decrefp) json_t *info = NULL;
	_cleanup_(json_decrefp) json_t *did = NULL;
	struct fail fail = { 0 };

	if (api_call(a, "GET", path, NULL, &info, &fail) < 0 ||
	    network_ask(a, id, json ? NETWORK_CONNECTIONS_MAX : SHOWN, &did, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	network_hide_values(json_object_get(info, "network"));
	if (json) {
		(void)json_object_set(did, "rules", json_object_get(info, "network"));
		return client_print_json(did);
	}
	print_rules(info);
	if (!json_is_true(json_object_get(did, "network")))
		return fflush(stdout) == EOF ? CLIENT_FAILURE : CLIENT_OK;
	print_totals(json_object_get(did, "totals"));
	return print_connections(json_object_get(did, "connections"));
}

/* --- the verb --------------------------------------------------------------------------------- */

static int change(struct api *a, const char *path, json_t *network)
{
	char whole[640];
	struct fail fail = { 0 };

	network_options_done(network);
	(void)snprintf(whole, sizeof(whole), "%s/network", path);
	if (api_call(a, "PUT", whole, json_incref(network), NULL, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	return CLIENT_OK;
}

/* What it is to be replaced with; *ret_changes: whether it is. Negative: go on. */
static int read_options(int argc, char **argv, json_t *network, bool *ret_changes, bool *ret_json)
{
	enum { NONE = NETWORK_OPTIONS_END, DEFAULT };
	static const struct option options[] = {
		NETWORK_OPTIONS,
		{ "none", no_argument, NULL, NONE },
		{ "default", no_argument, NULL, DEFAULT },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool none = false, given = false;
	int c;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (c == 'h' || c == '?')
			return client_help(help, c == 'h');
		if (c == 'o' && client_output_format(optarg, ret_json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
		none = none || c == NONE;
		*ret_changes = *ret_changes || c != 'o';
		given = network_option(network, c, optarg) || given;
	}
	if (none && given)
		return client_error(CLIENT_USAGE, "--none is nothing at all: leave out the rest");
	if (none)
		(void)json_object_set_new(network, "allow_internet_access", json_false());
	return -1;
}

int client_network(int argc, char **argv)
{
	_cleanup_(api_closep) struct api a = { 0 };
	_cleanup_(json_decrefp) json_t *network = json_object();
	bool json = false, changes = false;
	struct fail fail = { 0 };
	char path[512];
	int status = read_options(argc, argv, network, &changes, &json);

	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return client_error(CLIENT_USAGE, "name one sandbox; 'glovebox ls' shows them");
	if (client_path(argv[optind], "", path, sizeof(path)) < 0)
		return client_error(CLIENT_FAILURE, "%s: there is no such sandbox", argv[optind]);
	if (api_open(&a, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	return changes ? change(&a, path, network) : network_show(&a, argv[optind], path, json);
}
