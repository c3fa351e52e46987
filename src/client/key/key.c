/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox key: makes, shows and ends the keys of a service, beside it or before it runs. */
#include "client/key/priv.h"

#include "client/key/time.h"

#include <getopt.h>
#include <time.h>

static const char help[] =
	"Usage: glovebox key create [--name NAME] [--expires WHEN] [--scope SCOPE]\n"
	"       glovebox key ls [--all] [-o json|table]\n"
	"       glovebox key revoke ID|NAME\n"
	"       glovebox key rotate ID|NAME\n"
	"\n"
	"Keys are what clients show to the service (E2B_API_KEY). 'create' and 'rotate' print the\n"
	"new key alone on standard output; it can be seen then and never again. A sandbox belongs\n"
	"to the key it was made with. Works while the service runs and before; a revoked key stops\n"
	"working within a second.\n"
	"\n"
	"      --name NAME      how to call it\n"
	"      --expires WHEN   30d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z (UTC); default: never\n"
	"      --scope SCOPE    sandboxes: all about its own sandboxes (default); read: look at\n"
	"                       them; admin: everybody's; several with commas\n"
	"      --all            revoked ones too\n"
	"  -o, --output FORM    table (default) or json\n"
	"      --state DIR      the service's state directory (default: /var/lib/glovebox, for a\n"
	"                       user ~/.local/share/glovebox)\n"
	"      --config FILE    the service's settings\n"
	"\n"
	"Examples:\n"
	"  export E2B_API_KEY=$(glovebox key create --name laptop --expires 90d)\n"
	"  glovebox key rotate laptop\n";

enum { OPT_NAME = 256, OPT_EXPIRES, OPT_SCOPE, OPT_ALL, OPT_STATE, OPT_CONFIG };

static const struct option options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "expires", required_argument, NULL, OPT_EXPIRES },
	{ "scope", required_argument, NULL, OPT_SCOPE },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "output", required_argument, NULL, 'o' },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct request {
	struct config config;
	const char *config_path;
	const char *name; /* of --name */
	unsigned scopes;
	int64_t expires_ms;
	bool all;
	bool help;
	bool json;
	const char *target; /* ID or NAME behind the verb */
	struct state state;
	struct store *store;
	int local_fd; /* local.key, for the verbs that may have to change it */
};

static void request_done(struct request *q)
{
	store_closep(&q->store);
	fd_closep(&q->local_fd);
	state_done(&q->state);
}

/* --- what each does -------------------------------------------------------------------------------- */

/* The new key and nothing else, so that $(…) gets it; what else is to be said goes to a person. */
static int print_new(const struct store_key *key, char text[STORE_KEY_TEXT_SIZE])
{
	bool written = printf("%s\n", text) >= 0 && fflush(stdout) == 0;

	explicit_bzero(text, STORE_KEY_TEXT_SIZE);
	if (!written)
		return client_error(
			CLIENT_FAILURE,
			"cannot write the new key; 'glovebox key rotate %s' makes another",
			key->id);
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "This is key %s%s%s%s. It is shown only here: keep it.\n",
			      key->id, *key->name ? " (" : "", key->name, *key->name ? ")" : "");
	return CLIENT_OK;
}

static int run_create(struct request *q, struct fail *fail)
{
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	int r = store_key_create(q->store, q->name ? q->name : "", q->scopes, q->expires_ms, &key,
				 text, fail);

	if (r == -EINVAL)
		return client_error(CLIENT_USAGE, "--name %s: %s", q->name, fail->msg);
	return r < 0 ? client_error(CLIENT_FAILURE, "%s", fail->msg) : print_new(&key, text);
}

static int run_ls(struct request *q, struct fail *fail)
{
	_cleanup_(freep) struct store_key *keys = NULL;
	size_t n;
	int r = store_key_list(q->store, &keys, &n);

	(void)fail;
	if (r < 0)
		return client_error(CLIENT_FAILURE, "cannot read the keys: %s", strerror(-r));
	return key_print_list(keys, n, q->json, q->all);
}

/* The id of the key that is meant, so that we know whether it is the local one. */
static void target_id(struct request *q, char ret[STORE_ID_SIZE])
{
	_cleanup_(freep) struct store_key *keys = NULL;
	size_t n = 0;

	ret[0] = '\0';
	if (store_key_list(q->store, &keys, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (!keys[i].revoked_ms && *q->target &&
		    (strcmp(keys[i].id, q->target) == 0 || strcmp(keys[i].name, q->target) == 0))
			(void)snprintf(ret, STORE_ID_SIZE, "%s", keys[i].id);
}

static bool targets_local(struct request *q)
{
	char id[STORE_ID_SIZE];

	target_id(q, id);
	return q->local_fd >= 0 && *id && local_key_is(q->local_fd, q->store, id);
}

static int run_revoke(struct request *q, struct fail *fail)
{
	bool local = targets_local(q);
	int r = store_key_revoke(q->store, q->target, fail);

	if (r == 0 && local)
		r = local_key_write(q->local_fd, NULL, fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail->msg);
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "Key %s is revoked.\n", q->target);
	return CLIENT_OK;
}

static int run_rotate(struct request *q, struct fail *fail)
{
	bool local = targets_local(q);
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	int r = store_key_rotate(q->store, q->target, &key, text, fail);

	if (r == 0 && local && local_key_write(q->local_fd, text, fail) < 0)
		(void)client_error(CLIENT_FAILURE, "%s; the new key is good all the same",
				   fail->msg);
	return r < 0 ? client_error(CLIENT_FAILURE, "%s", fail->msg) : print_new(&key, text);
}

static const struct action {
	const char *name;
	int (*run)(struct request *q,
		   struct fail *fail); /* NULL: bootstrap, which opens nothing here */
	enum state_how how;
	bool target; /* takes ID|NAME; may change local.key */
} actions[] = {
	{ .name = "create", .run = run_create, .how = STATE_MAKE },
	{ .name = "ls", .run = run_ls, .how = STATE_LOOK },
	{ .name = "revoke", .run = run_revoke, .how = STATE_LOOK, .target = true },
	{ .name = "rotate", .run = run_rotate, .how = STATE_LOOK, .target = true },
	{ .name = "bootstrap", .how = STATE_MAKE }, /* for `glovebox serve` */
};

/* --- options ------------------------------------------------------------------------------------------ */

static int read_option(struct request *q, int id)
{
	struct fail fail;

	switch (id) {
	case OPT_NAME:
		q->name = optarg;
		return CLIENT_OK;
	case OPT_EXPIRES:
		if (key_time_read(optarg, (int64_t)time(NULL) * 1000, &q->expires_ms) < 0)
			return client_error(
				CLIENT_USAGE,
				"--expires %s: write 30d, 12h or a day to come like 2027-01-31",
				optarg);
		return CLIENT_OK;
	case OPT_SCOPE:
		q->scopes = key_read_scopes(optarg);
		return q->scopes ? CLIENT_OK :
				   client_error(CLIENT_USAGE,
						"--scope %s: there are sandboxes, read and admin",
						optarg);
	case OPT_ALL:
		q->all = true;
		return CLIENT_OK;
	case 'o':
		if (client_output_format(optarg, &q->json) < 0)
			return client_error(CLIENT_USAGE, "-o takes json or table, not '%s'",
					    optarg);
		return CLIENT_OK;
	case OPT_STATE:
		if (*optarg && config_set(&q->config, "server.state", optarg, &fail) == 0)
			return CLIENT_OK;
		return client_error(CLIENT_USAGE, "--state '%s' is no directory", optarg);
	case OPT_CONFIG:
		q->config_path = optarg;
		return CLIENT_OK;
	default:
		q->help = true;
		return CLIENT_OK;
	}
}

static int read_options(struct request *q, const struct action *action, int argc, char **argv)
{
	int id, r;

	opterr = 0;
	while ((id = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		if (id == '?' || id == ':')
			return client_bad_option("key", id, argv);
		r = read_option(q, id);
		if (r != CLIENT_OK)
			return r;
	}
	if (q->help)
		return CLIENT_OK;
	if (action->target && optind < argc)
		q->target = argv[optind++];
	if (action->target && !q->target)
		return client_error(CLIENT_USAGE, "which key? glovebox key %s ID|NAME",
				    action->name);
	if (optind < argc)
		return client_error(CLIENT_USAGE,
				    "key %s does not take '%s'; see 'glovebox key --help'",
				    action->name, argv[optind]);
	return CLIENT_OK;
}

/* Root gives itself up for the owner of the store before the first byte of it is read. */
static int open_store(struct request *q, const struct action *action, struct fail *fail)
{
	int r = 0;

	if (action->target)
		r = local_key_open(&q->state, &q->local_fd, fail);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = state_become_server(&q->state, fail);
	if (r == 0)
		r = store_open(q->state.db_fd, &q->store, fail);
	return r;
}

static int run_action(const struct action *action, int argc, char **argv)
{
	_cleanup_(request_done) struct request q = {
		.scopes = STORE_SCOPE_SANDBOXES,
		.state = STATE_INIT,
		.local_fd = -EBADF,
	};
	struct fail fail = { 0 };
	int r;

	config_init(&q.config);
	r = read_options(&q, action, argc, argv);
	if (r != CLIENT_OK)
		return r;
	if (q.help)
		return client_help(help, true);
	/* The warden has read the settings, and hands on what is needed of them. */
	if (action->run && config_load(&q.config, q.config_path, environ, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (state_open(&q.config, action->how, &q.state, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (!action->run)
		return key_bootstrap(&q.state);
	if (open_store(&q, action, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	return action->run(&q, &fail);
}

int client_key(int argc, char **argv)
{
	if (argc < 2)
		return client_error(
			CLIENT_USAGE,
			"key what? create, ls, revoke or rotate; see 'glovebox key --help'");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return client_help(help, true);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (strcmp(argv[1], actions[i].name) == 0)
			return run_action(&actions[i], argc - 1, argv + 1);
	return client_error(CLIENT_USAGE,
			    "key does not know '%s'; it knows create, ls, revoke and rotate",
			    argv[1]);
}
