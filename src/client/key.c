/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox key: makes, shows and ends the keys of a service, beside it or before it runs. */
#include "client/client.h"

#include "base/parse.h"
#include "client/key_time.h"
#include "service/state.h"
#include "store/store.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* --- STATE/local.key: for the person who started the service --------------------------------- */

#define NAME "local.key"
#define NEW_NAME NAME "-new"

static int variable_id(const char *name, uint32_t *ret)
{
	const char *text = getenv(name);
	uint64_t id;

	if (!text || parse_u64(text, &id) < 0 || id >= UINT32_MAX)
		return -ENOENT;
	*ret = (uint32_t)id;
	return 0;
}

/* Behind sudo there is a person who will want to use it. */
static int give_to_caller(int fd)
{
	uint32_t uid, gid;

	if (geteuid() != 0 || variable_id("SUDO_UID", &uid) < 0 ||
	    variable_id("SUDO_GID", &gid) < 0)
		return 0;
	return fchown(fd, uid, gid) < 0 ? -errno : 0;
}

static int local_key_open(const struct state *s, int *ret_fd, struct fail *fail)
{
	_cleanup_(fd_closep) int fd =
		openat(s->dir_fd, NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_set(fail, errno, "key", "cannot open %.120s/" NAME ": %s", s->path,
				strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return fail_set(fail, EINVAL, "key", "%.120s/" NAME " is not a plain file",
				s->path);
	*ret_fd = take_fd(&fd);
	return 0;
}

static bool local_key_is(int fd, struct store *store, const char *id)
{
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	bool same = n > 0 && store_key_check(store, text, (size_t)n, &key) == 0 &&
		    strcmp(key.id, id) == 0;

	explicit_bzero(text, sizeof(text));
	return same;
}

static int local_key_write(int fd, const char *text, struct fail *fail)
{
	char line[STORE_KEY_TEXT_SIZE + 1] = "";
	int len = text ? snprintf(line, sizeof(line), "%s\n", text) : 0;
	int r = 0;

	if (pwrite(fd, line, (size_t)len, 0) != len || ftruncate(fd, len) < 0 || fsync(fd) < 0)
		r = fail_set(fail, errno ? errno : EIO, "key", "cannot write " NAME ": %s",
			     strerror(errno));
	explicit_bzero(line, sizeof(line));
	return r;
}

static int local_key_replace(const struct state *s, const char *text, struct fail *fail)
{
	_cleanup_(fd_closep) int fd = -EBADF;
	int r;

	(void)unlinkat(s->dir_fd, NEW_NAME, 0); /* of somebody who was killed here */
	fd = openat(s->dir_fd, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : give_to_caller(fd);
	if (r < 0)
		return fail_set(fail, -r, "key", "cannot make %.120s/" NAME ": %s", s->path,
				strerror(-r));
	r = local_key_write(fd, text, fail);
	if (r == 0 && renameat(s->dir_fd, NEW_NAME, s->dir_fd, NAME) < 0)
		r = fail_set(fail, errno, "key", "cannot make %.120s/" NAME ": %s", s->path,
			     strerror(errno));
	if (r < 0)
		(void)unlinkat(s->dir_fd, NEW_NAME, 0);
	return r;
}

/*
 * The first key of a new service. A child that has become the store's owner makes it; what it says
 * is one key or nothing, and its parent, who may write to STATE, keeps it in local.key.
 */

#define FIRST_NAME "local"
#define TEXT_LEN (STORE_KEY_TEXT_SIZE - 1)

static int make_first(const struct state *state, int to)
{
	_cleanup_(store_closep) struct store *store = NULL;
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	struct fail fail = { 0 };
	size_t n = 0;
	int r = state_become_server(state, &fail);

	if (r == 0)
		r = store_open(state->db_fd, &store, &fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	r = store_key_count(store, &n);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "cannot count the keys: %s", strerror(-r));
	if (n > 0)
		return CLIENT_OK;
	r = store_key_create(store, FIRST_NAME, STORE_SCOPE_SANDBOXES, 0, &key, text, &fail);
	if (r == -EEXIST) /* one of that name has expired */
		r = store_key_create(store, "", STORE_SCOPE_SANDBOXES, 0, &key, text, &fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	r = write(to, text, TEXT_LEN) == TEXT_LEN ? CLIENT_OK : CLIENT_FAILURE;
	explicit_bzero(text, sizeof(text));
	return r;
}

/* The number of bytes that came, or a negative errno. */
static int key_read_all(int fd, char *ret, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, ret + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (int)len;
}

/* A terminal shows the key to the person in front of it; a log would keep it for everybody. */
static int keep(const struct state *state, const char *text)
{
	struct fail fail;

	if (local_key_replace(state, text, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "glovebox: your first key, shown only now: %s\n", text);
	(void)fprintf(stderr, "glovebox: the first key is kept in %s/local.key\n", state->path);
	return CLIENT_OK;
}

static int key_bootstrap(const struct state *state)
{
	char text[STORE_KEY_TEXT_SIZE] = "";
	int ends[2], status = 0, n, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return client_error(CLIENT_FAILURE, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		_exit(make_first(state, ends[1]));
	fd_close(ends[1]);
	n = pid < 0 ? -errno : key_read_all(ends[0], text, TEXT_LEN);
	fd_close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n < 0)
		return client_error(CLIENT_FAILURE, "cannot start a process: %s", strerror(-n));
	if (status != 0)
		return CLIENT_FAILURE; /* it has said why */
	r = n == TEXT_LEN ? keep(state, text) : CLIENT_OK;
	explicit_bzero(text, sizeof(text));
	return r;
}

/* --- keys to look at; their texts are not known to anybody ----------------------------------- */

static const struct {
	unsigned bit;
	const char *name;
} scopes[] = {
	{ STORE_SCOPE_SANDBOXES, "sandboxes" },
	{ STORE_SCOPE_READ, "read" },
	{ STORE_SCOPE_ADMIN, "admin" },
};

static unsigned key_read_scopes(const char *text)
{
	unsigned found = 0;

	while (*text) {
		size_t len = strcspn(text, ","), i = 0;

		while (i < ARRAY_SIZE(scopes) &&
		       (strlen(scopes[i].name) != len || strncmp(scopes[i].name, text, len) != 0))
			i++;
		if (i == ARRAY_SIZE(scopes))
			return 0;
		found |= scopes[i].bit;
		text += len;
		if (*text == ',' && !*++text)
			return 0;
	}
	return found;
}

static const char *key_state(const struct store_key *key)
{
	if (key->revoked_ms)
		return "revoked";
	if (key->expires_ms && key->expires_ms <= (int64_t)time(NULL) * 1000)
		return "expired";
	return "good";
}

static json_t *time_json(int64_t ms)
{
	char text[KEY_TIME_SIZE];

	if (ms == 0)
		return json_null();
	key_time_text(ms, text);
	return json_string(text);
}

static json_t *key_json(const struct store_key *key)
{
	json_t *names = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
		if (key->scopes & scopes[i].bit)
			(void)json_array_append_new(names, json_string(scopes[i].name));
	return json_pack("{ss ss so ss so so so so}", "id", key->id, "name", key->name, "scopes",
			 names, "state", key_state(key), "created", time_json(key->created_ms),
			 "expires", time_json(key->expires_ms), "revoked",
			 time_json(key->revoked_ms), "lastUsed", time_json(key->last_used_ms));
}

/* To the minute, which is as exact as "last used" is. */
static void short_time(int64_t ms, char ret[KEY_TIME_SIZE])
{
	if (ms == 0) {
		(void)snprintf(ret, KEY_TIME_SIZE, "never");
		return;
	}
	key_time_text(ms, ret);
	if (strlen(ret) >= 16) {
		ret[10] = ' ';
		ret[16] = '\0';
	}
}

static void scopes_text(unsigned held, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(scopes) && len < size; i++)
		if (held & scopes[i].bit)
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? "," : "",
						scopes[i].name);
}

static void add_time(struct text_table *t, int64_t ms)
{
	char text[KEY_TIME_SIZE];

	short_time(ms, text);
	table_add(t, "%s", text);
}

static int print_table(const struct store_key *keys, size_t n, bool all)
{
	static const char *const columns[] = {
		"ID", "NAME", "SCOPES", "STATE", "CREATED (UTC)", "EXPIRES", "LAST USED", NULL
	};
	struct text_table t = { .columns = columns };

	for (size_t i = 0; i < n; i++) {
		char held[64];

		if (keys[i].revoked_ms && !all)
			continue;
		scopes_text(keys[i].scopes, held, sizeof(held));
		table_add(&t, "%s", keys[i].id);
		table_add(&t, "%s", keys[i].name);
		table_add(&t, "%s", held);
		table_add(&t, "%s", key_state(&keys[i]));
		add_time(&t, keys[i].created_ms);
		add_time(&t, keys[i].expires_ms);
		add_time(&t, keys[i].last_used_ms);
	}
	return table_print(&t);
}

static int key_print_list(const struct store_key *keys, size_t n, bool json, bool all)
{
	json_t *list;
	int r;

	if (!json)
		return print_table(keys, n, all);
	list = json_array();
	for (size_t i = 0; i < n; i++)
		if (!keys[i].revoked_ms || all)
			(void)json_array_append_new(list, key_json(&keys[i]));
	r = client_print_json(list);
	json_decref(list);
	return r;
}

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

struct arguments {
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

static void request_done(struct arguments *q)
{
	store_closep(&q->store);
	fd_closep(&q->local_fd);
	state_done(&q->state);
}

/* --- what each does --------------------------------------------------------------------------- */

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

static int run_create(struct arguments *q, struct fail *fail)
{
	char text[STORE_KEY_TEXT_SIZE];
	struct store_key key;
	int r = store_key_create(q->store, q->name ? q->name : "", q->scopes, q->expires_ms, &key,
				 text, fail);

	if (r == -EINVAL)
		return client_error(CLIENT_USAGE, "--name %s: %s", q->name, fail->msg);
	return r < 0 ? client_error(CLIENT_FAILURE, "%s", fail->msg) : print_new(&key, text);
}

static int run_ls(struct arguments *q, struct fail *fail)
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
static void target_id(struct arguments *q, char ret[STORE_ID_SIZE])
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

static bool targets_local(struct arguments *q)
{
	char id[STORE_ID_SIZE];

	target_id(q, id);
	return q->local_fd >= 0 && *id && local_key_is(q->local_fd, q->store, id);
}

static int run_revoke(struct arguments *q, struct fail *fail)
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

static int run_rotate(struct arguments *q, struct fail *fail)
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
	int (*run)(struct arguments *q,
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

/* --- options ---------------------------------------------------------------------------------- */

static int read_option(struct arguments *q, int id)
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

static int read_options(struct arguments *q, const struct action *action, int argc, char **argv)
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
static int open_store(struct arguments *q, const struct action *action, struct fail *fail)
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
	_cleanup_(request_done) struct arguments q = {
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
