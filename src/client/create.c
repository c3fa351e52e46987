/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "client/api/api.h"
#include "client/network.h"

static const char create_help[] =
	"Usage: glovebox create [OPTION]… [TEMPLATE]\n"
	"\n"
	"Makes a sandbox on the running service and prints its id.\n"
	"\n"
	"      TEMPLATE             base (default), code-interpreter-v1, or a snapshot\n"
	"      --timeout 5m         when it ends by itself (default 5m)\n"
	"      --pause              then it is paused, not killed\n"
	"      --env NAME=VALUE     a variable for all its commands\n"
	"      --metadata KEY=VALUE something to find it by\n"
	"      --allow RULE         let it reach example.com, *.example.com, 192.0.2.0/24, each with\n"
	"                           :PORTS if wanted; everything else is closed\n"
	"      --allow-set NAME     let it reach what a rule set of the service's operator allows\n"
	"      --deny RANGE         keep it from an address or network\n"
	"      --no-network         nothing at all, not even what the service gives by itself\n"
	"  -o, --output json|table  what to print\n"
	"\n"
	"Examples\n"
	"  id=$(glovebox create --timeout 1h)\n"
	"  glovebox exec $id -- python3 -c 'print(6 * 7)'\n"
	"  glovebox create --allow example.com --allow-set packages\n";

static int create_add_pair(json_t *to, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[256];

	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(name))
		return -EINVAL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	return json_object_set_new(to, name, json_string(equals + 1)) < 0 ? -EINVAL : 0;
}

static json_t *create_body(int argc, char **argv, bool *ret_json, int *ret_status)
{
	enum { TIMEOUT = 256, PAUSE, ENV, METADATA, NO_NETWORK };
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, TIMEOUT },
		{ "pause", no_argument, NULL, PAUSE },
		{ "env", required_argument, NULL, ENV },
		{ "metadata", required_argument, NULL, METADATA },
		NETWORK_OPTIONS,
		{ "no-network", no_argument, NULL, NO_NETWORK },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	json_t *body = json_object(), *env = json_object(), *metadata = json_object(),
	       *network = json_object();
	json_int_t seconds = 300;
	bool pause = false;
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (c == 'h')
			status = client_help(create_help, true);
		else if (c == PAUSE)
			pause = true;
		else if (c == NO_NETWORK)
			(void)json_object_set_new(body, "allow_internet_access", json_false());
		else if (network_option(network, c, optarg))
			continue;
		else if (c == TIMEOUT && client_seconds(optarg, &seconds) < 0)
			status = client_error(CLIENT_USAGE,
					      "--timeout %s: give a duration such as 30s or 5m",
					      optarg);
		else if ((c == ENV && create_add_pair(env, optarg) < 0) ||
			 (c == METADATA && create_add_pair(metadata, optarg) < 0))
			status = client_error(CLIENT_USAGE, "%s: give NAME=VALUE", optarg);
		else if (c == 'o' && client_output_format(optarg, ret_json) < 0)
			status = client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
		else if (c == '?')
			status = client_help(create_help, false);
	}
	if (status < 0 && argc - optind > 1)
		status = client_error(CLIENT_USAGE,
				      "one template at most; see 'glovebox create --help'");
	(void)json_object_set_new(body, "templateID",
				  json_string(optind < argc ? argv[optind] : "base"));
	(void)json_object_set_new(body, "timeout", json_integer(seconds));
	(void)json_object_set_new(body, "autoPause", json_boolean(pause));
	(void)json_object_set_new(body, "envVars", env);
	(void)json_object_set_new(body, "metadata", metadata);
	network_options_done(network);
	(void)json_object_set_new(body, "network", network);
	if (status < 0)
		return body;
	json_decref(body);
	*ret_status = status;
	return NULL;
}

int client_create(int argc, char **argv)
{
	_cleanup_(api_closep) struct api a = { 0 };
	_cleanup_(json_decrefp) json_t *made = NULL;
	struct fail fail = { 0 };
	bool json = false;
	int status = CLIENT_OK;
	json_t *body = create_body(argc, argv, &json, &status);

	if (!body)
		return status;
	if (api_open(&a, &fail) < 0) {
		json_decref(body);
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	}
	if (api_call(&a, "POST", "/v2/sandboxes", body, &made, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (json)
		return client_print_json(made);
	return printf("%s\n", client_text(made, "sandboxID")) < 0 || fflush(stdout) == EOF ?
		       CLIENT_FAILURE :
		       CLIENT_OK;
}
