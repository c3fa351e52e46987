/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox languages: what can be run here, with versions as programs in a box see them. */
#include "cli/cli.h"
#include "language/language.h"
#include "cli/self.h"

#define ARGS_MAX 96
#define AT_ONCE 2
#define VERSION_MAX 120

static const char help[] =
	"Usage: glovebox languages [--no-versions] [--json]\n"
	"\n"
	"Shows the languages that 'glovebox run -l' knows, and which of them are installed. Those that\n"
	"keep state have an interpreter for 'glovebox repl' and for contexts of a service.\n"
	"\n"
	"      --no-versions   do not ask each for its version, which takes a box\n"
	"      --json          a JSON array of objects\n";

struct row {
	const struct language *language;
	bool present;
	char version[VERSION_MAX]; /* empty: not asked, not installed, or it did not say */
	char problem[64];
	struct self_job job;
	int started; /* result of self_start() */
};

struct arguments {
	bool json;
	bool versions;
	bool help;
};

static int read_options(int argc, char **argv, struct arguments *ret)
{
	ret->versions = true;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			ret->json = true;
		else if (!strcmp(argv[i], "--no-versions"))
			ret->versions = false;
		else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			ret->help = true;
		else
			return cli_error(CLI_USAGE,
					 "languages does not take '%s'; it takes --no-versions and "
					 "--json",
					 argv[i]);
	}
	return CLI_OK;
}

static int add_args(const char **args, size_t *n, const char *option, char *const *words)
{
	for (; *words; words++) {
		if (*n + 2 >= ARGS_MAX)
			return -E2BIG;
		if (option)
			args[(*n)++] = option;
		args[(*n)++] = *words;
	}
	return 0;
}

/* Starts the version command in a box with room for compilers and virtual machines. */
static int start_version(const struct language *l, struct self_job *ret)
{
	const struct language_vars vars = { .file = l->file, .memory_mb = 1024, .cpus = 1 };
	const char *args[ARGS_MAX] = { "--timeout", "20s", "--cpu-time", "20s",
				       "--memory",  "1G",  "--pids",     "128" };
	_cleanup_(freep) char **argv = NULL;
	_cleanup_(freep) char **env = NULL;
	struct fail fail;
	size_t n = 8;
	int r = language_argv(l->version, &vars, &argv, &fail);

	if (r == 0)
		r = language_env(l, &vars, &env, &fail);
	if (r == 0)
		r = add_args(args, &n, "--env", env);
	if (r < 0 || n + 1 >= ARGS_MAX)
		return r < 0 ? r : -E2BIG;
	args[n++] = "--";
	r = add_args(args, &n, NULL, argv);
	args[n] = NULL;
	return r < 0 ? r : self_start(args, ret);
}

/* The first line with something in it; a box printed it, so only plain text goes on. */
static bool first_line(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	text += strspn(text, " \t\r\n");
	for (; text[n] && text[n] != '\n' && n + 1 < size; n++)
		ret[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	while (n > 0 && (ret[n - 1] == ' ' || text[n - 1] == '\r'))
		n--;
	ret[n] = '\0';
	return n > 0;
}

static void finish_version(struct row *row)
{
	json_t *result = NULL;
	int r = row->started < 0 ? row->started : self_finish(&row->job, &result);

	if (r < 0)
		(void)snprintf(row->problem, sizeof(row->problem), "no box: %s", strerror(-r));
	else if (strcmp(self_text(result, "status"), "ok") != 0)
		(void)snprintf(row->problem, sizeof(row->problem), "no version: %.40s",
			       self_text(result, "status"));
	else if (!first_line(self_text(result, "stdout"), row->version, sizeof(row->version)) &&
		 !first_line(self_text(result, "stderr"), row->version, sizeof(row->version)))
		(void)snprintf(row->problem, sizeof(row->problem), "no version: it said nothing");
	json_decref(result);
}

static void show_progress(const struct row *row)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (row)
		(void)fprintf(stderr, "\r\033[Kasking %s…", row->language->name);
	else
		(void)fputs("\r\033[K", stderr);
}

/* AT_ONCE boxes at a time, finished in the order in which they were started. */
static void ask_versions(struct row *rows, size_t n)
{
	for (size_t i = 0; i < n + AT_ONCE - 1; i++) {
		if (i < n && rows[i].present)
			rows[i].started = start_version(rows[i].language, &rows[i].job);
		if (i + 1 >= AT_ONCE && rows[i + 1 - AT_ONCE].present) {
			show_progress(&rows[i + 1 - AT_ONCE]);
			finish_version(&rows[i + 1 - AT_ONCE]);
		}
	}
	show_progress(NULL);
}

static json_t *words(char *const *list)
{
	json_t *array = json_array();

	for (; *list; list++)
		(void)json_array_append_new(array, json_string(*list));
	return array;
}

static int print_json(const struct row *rows, size_t n)
{
	json_t *list = json_array();
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct row *row = &rows[i];
		const struct language *l = row->language;

		(void)json_array_append_new(
			list,
			json_pack("{ss ss so so sb sb sb so so}", "name", l->name, "title",
				  l->title, "aliases", words(l->aliases), "extensions",
				  words(l->extensions), "compiled", l->compile != NULL, "stateful",
				  language_stateful(l), "present", row->present, "version",
				  *row->version ? json_string(row->version) : json_null(),
				  "problem",
				  *row->problem ? json_string(row->problem) : json_null()));
	}
	r = json_dumpf(list, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	json_decref(list);
	return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF ? -EIO : 0;
}

static void words_join(char *const *list, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (; *list && len < size; list++)
		len += (size_t)snprintf(ret + len, size - len, "%s.%s", len ? " " : "", *list);
}

static const char *row_version(const struct row *row)
{
	if (!row->present)
		return "not installed";
	if (*row->problem)
		return row->problem;
	return *row->version ? row->version : "installed";
}

static int print_table(const struct row *rows, size_t n)
{
	int width = 5;

	for (size_t i = 0; i < n; i++)
		width = MAX(width, (int)strlen(rows[i].language->title));
	(void)printf("%-12s %-*s %-9s %-6s %-20s %s\n", "NAME", width, "TITLE", "COMPILED", "STATE",
		     "FILES", "VERSION");
	for (size_t i = 0; i < n; i++) {
		const struct language *l = rows[i].language;
		char extensions[64];

		words_join(l->extensions, extensions, sizeof(extensions));
		(void)printf("%-12s %-*s %-9s %-6s %-20s %s\n", l->name, width, l->title,
			     l->compile ? "yes" : "no", language_stateful(l) ? "kept" : "no",
			     extensions, row_version(&rows[i]));
	}
	return fflush(stdout) == EOF || ferror(stdout) ? -EIO : 0;
}

int cli_languages(int argc, char **argv)
{
	_cleanup_(freep) struct row *rows = NULL;
	struct arguments options = { 0 };
	struct fail fail = { 0 };
	struct language *list;
	size_t n;
	int r = read_options(argc, argv, &options);

	if (r != CLI_OK)
		return r;
	if (options.help)
		return fputs(help, stdout) < 0 ? CLI_FAILURE : CLI_OK;
	if (language_list(&list, &n, &fail) < 0)
		return cli_error(CLI_FAILURE, "%s", fail.msg);
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows) {
		language_list_free(list, n);
		return cli_error(CLI_FAILURE, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		rows[i].language = &list[i];
		rows[i].present = language_present(&list[i]);
	}
	if (options.versions)
		ask_versions(rows, n);
	r = options.json ? print_json(rows, n) : print_table(rows, n);
	language_list_free(list, n);
	return r < 0 ? cli_error(CLI_FAILURE, "cannot write the list") : CLI_OK;
}
