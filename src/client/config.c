/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox config: is a file of settings right, and what holds when all are read. */
#include "client/client.h"

#include "service/config.h"

#include <getopt.h>

static const char help[] =
	"Usage: glovebox config check [FILE]\n"
	"       glovebox config show [--config FILE] [-o json|table]\n"
	"       glovebox config example\n"
	"\n"
	"The settings of 'glovebox serve'. A flag comes before a variable GLOVEBOX_SECTION_KEY, that\n"
	"before the file, that before the default. 'check' says whether a file is right, 'show' what\n"
	"holds here and where it comes from, 'example' prints a file with every setting and its\n"
	"default. Without FILE: /etc/glovebox/glovebox.toml, for a user\n"
	"~/.config/glovebox/glovebox.toml.\n"
	"\n"
	"      --config FILE   the file to show\n"
	"  -o, --output FORM   table (default) or json\n";

static const char *const sources[] = {
	[CONFIG_DEFAULT] = "default",
	[CONFIG_FILE] = "file",
	[CONFIG_ENVIRONMENT] = "environment",
	[CONFIG_FLAG] = "flag",
};

struct arguments {
	struct config config;
	const char *path; /* or NULL: the usual one */
	bool json;
	bool help;
};

static int config_finish(void)
{
	return fflush(stdout) == EOF || ferror(stdout) ?
		       client_error(CLIENT_FAILURE, "cannot write the answer") :
		       CLIENT_OK;
}

static int run_check(struct arguments *q)
{
	char usual[CONFIG_TEXT_SIZE];
	struct fail fail;
	int r;

	if (!q->path) {
		if (config_usual_file(usual, sizeof(usual)) < 0)
			return client_error(CLIENT_USAGE, "which file? HOME is not set");
		q->path = usual;
	}
	r = config_read_file(&q->config, q->path, &fail);
	if (r < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	if (config_check(&q->config, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s: %s", q->path, fail.msg);
	(void)printf("%s: no mistakes\n", q->path);
	return config_finish();
}

static json_t *config_json(const struct config *c)
{
	json_t *all = json_object();
	char value[CONFIG_TEXT_SIZE];

	for (size_t i = 0; i < config_count(); i++)
		if (config_text(c, i, value, sizeof(value)) == 0)
			(void)json_object_set_new(all, config_name(i),
						  json_pack("{ss ss ss}", "value", value, "source",
							    sources[c->source[i]], "help",
							    config_help(i)));
	return all;
}

static int print_json(const struct config *c)
{
	json_t *all = config_json(c);
	int r = client_print_json(all);

	json_decref(all);
	return r;
}

static int print_table(const struct config *c)
{
	static const char *const columns[] = { "SETTING", "VALUE", "FROM", NULL };
	struct text_table t = { .columns = columns };

	for (size_t i = 0; i < config_count(); i++) {
		char value[CONFIG_TEXT_SIZE];

		if (config_text(c, i, value, sizeof(value)) < 0)
			continue;
		table_add(&t, "%s", config_name(i));
		table_add(&t, "%s", value);
		table_add(&t, "%s", sources[c->source[i]]);
	}
	return table_print(&t);
}

static int run_show(struct arguments *q)
{
	struct fail fail;

	if (config_load(&q->config, q->path, environ, &fail) < 0)
		return client_error(CLIENT_FAILURE, "%s", fail.msg);
	return q->json ? print_json(&q->config) : print_table(&q->config);
}

/* What is installed as glovebox.toml beside the documentation. */
static int run_example(struct arguments *q)
{
	size_t section_len = 0;
	const char *section = "";

	(void)puts(
		"# The settings of 'glovebox serve', each with its default. Remove the # in front of a\n"
		"# setting to change it; 'glovebox config check' tells whether the file is right.");
	for (size_t i = 0; i < config_count(); i++) {
		const char *name = config_name(i), *dot = strchr(name, '.');
		size_t len = (size_t)(dot - name);
		char value[CONFIG_TEXT_SIZE];
		const char *quote;

		if (config_text(&q->config, i, value, sizeof(value)) < 0)
			continue;
		if (len != section_len || strncmp(name, section, len) != 0)
			(void)printf("\n[%.*s]\n", (int)len, name);
		section = name;
		section_len = len;
		quote = config_is_quoted(i) ? "\"" : "";
		(void)printf("# %s\n#%s = %s%s%s\n", config_help(i), dot + 1, quote, value, quote);
	}
	return config_finish();
}

static const struct action {
	const char *name;
	int (*run)(struct arguments *q);
	bool file;    /* takes FILE */
	bool options; /* takes --config and -o */
} actions[] = {
	{ .name = "check", .run = run_check, .file = true },
	{ .name = "show", .run = run_show, .options = true },
	{ .name = "example", .run = run_example },
};

static int read_options(struct arguments *q, const struct action *action, int argc, char **argv)
{
	enum { OPT_CONFIG = 256 };
	static const struct option options[] = {
		{ "config", required_argument, NULL, OPT_CONFIG },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int id, r = CLIENT_OK;

	opterr = 0;
	while ((id = getopt_long(argc, argv, ":o:h", options, NULL)) != -1 && r == CLIENT_OK) {
		if (id == '?' || id == ':')
			return client_bad_option("config", id, argv);
		if (id == 'h')
			q->help = true;
		else if (!action->options)
			return client_error(CLIENT_USAGE, "config %s does not take '%s'",
					    action->name, argv[optind - 1]);
		else if (id == 'o')
			r = client_output_format(optarg, &q->json) < 0 ?
				    client_error(CLIENT_USAGE, "-o takes json or table, not '%s'",
						 optarg) :
				    CLIENT_OK;
		else
			q->path = optarg;
	}
	if (r != CLIENT_OK || q->help)
		return r;
	if (action->file && optind < argc)
		q->path = argv[optind++];
	if (optind < argc)
		return client_error(CLIENT_USAGE,
				    "config %s does not take '%s'; see 'glovebox config --help'",
				    action->name, argv[optind]);
	return CLIENT_OK;
}

static int run_action(const struct action *action, int argc, char **argv)
{
	struct arguments q = { 0 };
	int r = read_options(&q, action, argc, argv);

	if (r != CLIENT_OK)
		return r;
	if (q.help)
		return client_help(help, true);
	config_init(&q.config);
	return action->run(&q);
}

int client_config(int argc, char **argv)
{
	if (argc < 2)
		return client_error(
			CLIENT_USAGE,
			"config what? check, show or example; see 'glovebox config --help'");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return client_help(help, true);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (strcmp(argv[1], actions[i].name) == 0)
			return run_action(&actions[i], argc - 1, argv + 1);
	return client_error(CLIENT_USAGE,
			    "config does not know '%s'; it knows check, show and example", argv[1]);
}
