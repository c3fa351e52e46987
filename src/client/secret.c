/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox secret: values that egress puts into requests of sandboxes, and that nobody sees again.
 */
#include "client/client.h"

#include "base/buf.h"
#include "client/api/api.h"

#include <fcntl.h>
#include <getopt.h>
#include <termios.h>

#define VALUE_MAX 8000 /* what the service takes */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };

static const char help[] =
	"Usage: glovebox secret set NAME [--from-file FILE]\n"
	"       glovebox secret ls [-q] [-o json|table]\n"
	"       glovebox secret rm NAME…\n"
	"\n"
	"A sandbox names a secret in the headers of its network rules, as ${secrets.NAME}; the value is\n"
	"put into requests outside of it, to the hosts of these rules only. 'set' reads the value from\n"
	"the terminal without showing it, or from standard input (one line end behind it is taken off),\n"
	"never from its arguments, which others can see. Nothing ever shows it again. Running sandboxes\n"
	"use a new value at once.\n"
	"\n"
	"      --from-file FILE     set: read the value from there\n"
	"  -q, --quiet              ls: only names\n"
	"  -o, --output json|table  ls: what to print\n"
	"\n"
	"Examples\n"
	"  glovebox secret set openai\n"
	"  pass show openai | glovebox secret set openai\n"
	"  glovebox secret ls\n";

struct arguments {
	const char *file; /* or NULL */
	bool json, quiet;
	char **words;
	int n_words;
};

static void value_done(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->size);
	buf_done(b);
}

/* --- the value -------------------------------------------------------------------------------- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught = number;
}

/* A signal ends the reading, not us: the terminal must first show again what is typed. */
static void hold_signals(struct sigaction old[static ARRAY_SIZE(ending)])
{
	const struct sigaction hold = { .sa_handler = on_signal };

	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		(void)sigaction(ending[i], &hold, &old[i]);
}

static void release_signals(const struct sigaction old[static ARRAY_SIZE(ending)])
{
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		(void)sigaction(ending[i], &old[i], NULL);
	if (caught)
		(void)raise(caught);
}

/* One line, not shown. */
static int read_terminal(const char *name, struct buf *ret)
{
	struct sigaction before[ARRAY_SIZE(ending)];
	struct termios old, silent;
	char line[VALUE_MAX + 2];
	int r = 0;

	if (tcgetattr(STDIN_FILENO, &old) < 0)
		return -errno;
	(void)fprintf(stderr, "Value of %s: ", name);
	silent = old;
	silent.c_lflag &= (tcflag_t)~ECHO;
	hold_signals(before);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) < 0)
		r = -errno;
	else if (!fgets(line, sizeof(line), stdin))
		r = -ENODATA;
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
	release_signals(before);
	(void)fputc('\n', stderr);
	if (r == 0)
		r = buf_add(ret, line, strlen(line));
	explicit_bzero(line, sizeof(line));
	return r;
}

static int read_from(const char *file, struct buf *ret)
{
	_cleanup_(fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : buf_read_fd(ret, fd);
}

static void cut_line_end(struct buf *b)
{
	if (b->len > 0 && b->data[b->len - 1] == '\n')
		b->len--;
	if (b->len > 0 && b->data[b->len - 1] == '\r')
		b->len--;
	if (b->data)
		b->data[b->len] = '\0';
}

static int read_value(const struct arguments *q, struct buf *ret)
{
	int r;

	if (q->file)
		r = read_from(q->file, ret);
	else if (isatty(STDIN_FILENO))
		r = read_terminal(q->words[0], ret);
	else
		r = buf_read_fd(ret, STDIN_FILENO);
	if (r == -EFBIG || r == -ENOBUFS)
		return client_error(CLIENT_USAGE, "a secret can have %d bytes", VALUE_MAX);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "cannot read the value%s%s: %s",
				    q->file ? " from " : "", q->file ? q->file : "", strerror(-r));
	cut_line_end(ret);
	if (ret->len == 0)
		return client_error(CLIENT_USAGE, "the value is empty; nothing was changed");
	return CLIENT_OK;
}

/* --- set, rm ---------------------------------------------------------------------------------- */

static int path_of(const char *name, char *ret, size_t size)
{
	_cleanup_(freep) char *escaped = api_escape(name);

	if (!escaped || (size_t)snprintf(ret, size, "/secrets/%s", escaped) >= size)
		return -ENAMETOOLONG;
	return 0;
}

/* A new one, or a new value of the one that is there. */
static int send_value(struct api *a, const char *name, const struct buf *value, struct fail *fail)
{
	json_t *text = json_stringn((const char *)value->data, value->len);
	char path[512];
	int r;

	if (!text)
		return fail_set(
			fail, EINVAL, "secret",
			"the value must be text in UTF-8; encode it, for example with base64");
	r = api_call(a, "POST", "/secrets", json_pack("{ss sO}", "name", name, "value", text), NULL,
		     fail);
	if (r == -EBUSY && path_of(name, path, sizeof(path)) == 0)
		r = api_call(a, "POST", path, json_pack("{sO}", "value", text), NULL, fail);
	json_decref(text);
	return r;
}

static int run_set(const struct arguments *q)
{
	_cleanup_(value_done) struct buf value = BUF_INIT(VALUE_MAX + 2);
	_cleanup_(api_closep) struct api a = { 0 };
	struct fail fail = { 0 };
	int status;

	if (q->n_words > 1)
		return client_error(CLIENT_USAGE,
				    "a value is not taken from the arguments, where "
				    "others can see it; see 'glovebox secret --help'");
	if (q->n_words != 1)
		return client_error(CLIENT_USAGE,
				    "how is the secret called? Say 'secret set NAME'");
	if (api_open(&a, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	status = read_value(q, &value);
	if (status != CLIENT_OK)
		return status;
	if (send_value(&a, q->words[0], &value, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	return CLIENT_OK;
}

static int run_rm(const struct arguments *q)
{
	_cleanup_(api_closep) struct api a = { 0 };
	struct fail fail = { 0 };
	int status = CLIENT_OK;

	if (q->n_words < 1)
		return client_error(CLIENT_USAGE,
				    "name at least one secret; 'glovebox secret ls' shows them");
	if (api_open(&a, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	for (int i = 0; i < q->n_words; i++) {
		char path[512];

		if (path_of(q->words[i], path, sizeof(path)) < 0)
			status = client_error(CLIENT_FAILURE, "%.60s: there is no such secret",
					      q->words[i]);
		else if (api_call(&a, "DELETE", path, NULL, NULL, &fail) < 0)
			status = client_error(CLIENT_FAILURE, "%s: %s", q->words[i], fail.msg);
	}
	return status;
}

/* --- ls --------------------------------------------------------------------------------------- */

static int secret_list_all(struct api *a, json_t **ret, struct fail *fail)
{
	char path[1024], next[512] = "";
	json_t *all = json_array();

	do {
		_cleanup_(freep) char *token = api_escape(next);
		json_t *page = NULL;
		int r;

		(void)snprintf(path, sizeof(path), "/secrets?limit=100%s%s",
			       *next ? "&nextToken=" : "", *next && token ? token : "");
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

static int print_table(const json_t *list)
{
	static const char *const columns[] = { "NAME", "VERSION", "CHANGED", "ID", NULL };
	struct text_table t = { .columns = columns };
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) {
		char age[16];

		client_age(client_text(o, "updatedAt"), false, age, sizeof(age));
		table_add(&t, "%s", client_text(o, "name"));
		table_add(&t, "%lld",
			  (long long)json_integer_value(json_object_get(o, "currentVersion")));
		table_add(&t, "%s", age);
		table_add(&t, "%s", client_text(o, "secretID"));
	}
	return table_print(&t);
}

static int print_names(const json_t *list)
{
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o)
		(void)printf("%s\n", client_text(o, "name"));
	return fflush(stdout) == EOF || ferror(stdout) ? CLIENT_FAILURE : CLIENT_OK;
}

static int run_ls(const struct arguments *q)
{
	_cleanup_(api_closep) struct api a = { 0 };
	_cleanup_(json_decrefp) json_t *list = NULL;
	struct fail fail = { 0 };

	if (q->n_words > 0)
		return client_help(help, false);
	if (api_open(&a, &fail) < 0 || secret_list_all(&a, &list, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (q->json)
		return client_print_json(list);
	return q->quiet ? print_names(list) : print_table(list);
}

int client_secret(int argc, char **argv)
{
	enum { FROM_FILE = 256 };
	static const struct option options[] = {
		{ "from-file", required_argument, NULL, FROM_FILE },
		{ "quiet", no_argument, NULL, 'q' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct arguments q = { 0 };
	const char *action;
	int c;

	while ((c = getopt_long(argc, argv, ":qo:h", options, NULL)) != -1) {
		if (c == 'h')
			return client_help(help, true);
		if (c == FROM_FILE)
			q.file = optarg;
		else if (c == 'q')
			q.quiet = true;
		else if (c != 'o')
			return client_bad_option("secret", c, argv);
		else if (client_output_format(optarg, &q.json) < 0)
			return client_error(CLIENT_USAGE, "-o %s: json or table", optarg);
	}
	action = optind < argc ? argv[optind++] : "";
	q.words = argv + optind;
	q.n_words = argc - optind;
	if (strcmp(action, "set") == 0)
		return run_set(&q);
	if (strcmp(action, "ls") == 0)
		return run_ls(&q);
	if (strcmp(action, "rm") == 0)
		return run_rm(&q);
	return client_error(CLIENT_USAGE, "say 'set', 'ls' or 'rm'; see 'glovebox secret --help'");
}
