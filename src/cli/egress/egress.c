/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox egress: the operator's rule sets, and what they allow. */
#include "cli/egress/egress.h"

#include "cli/cli.h"

#include <getopt.h>

static const char help[] =
	"Usage: glovebox egress set ls [--json]\n"
	"       glovebox egress set show NAME [--json]\n"
	"       glovebox egress set save NAME RULE… [--force]\n"
	"       glovebox egress set rm NAME\n"
	"       glovebox egress check HOST:PORT [--allow RULE]… [--allow-set NAME]… [--json]\n"
	"\n"
	"Rule sets say what boxes may reach: 'glovebox run --allow-set NAME' uses them, and so do\n"
	"sandboxes of a service. A rule is a host name, *.name, an address or a range, with :PORTS if\n"
	"wanted; without, a name has 80 and 443. In a set there may also be 'deny RULE', which nothing\n"
	"outweighs, and 'private RANGE', which opens a private range for rules.\n"
	"\n"
	"'save' takes rules as arguments, or one in a line from standard input for '-'. 'check' says\n"
	"whether a connection would be allowed, and why; it looks nothing up. A running service reads\n"
	"the sets again when it gets SIGHUP.\n"
	"\n"
	"      --allow RULE       check: a rule of the box's own\n"
	"      --allow-set NAME   check: a set that the box uses; without any, those of egress.default\n"
	"      --force            save: replace a set that is there\n"
	"      --json             JSON, for programs\n"
	"      --config FILE      settings; without, the usual ones (see glovebox.toml(5))\n"
	"\n"
	"Examples:\n"
	"  glovebox egress set save mirror packages.example.com '*.cdn.example.com:443'\n"
	"  glovebox egress check packages.example.com:443 --allow-set mirror\n"
	"  glovebox egress set show mirror\n";

static int egress_add_word(const char **list, size_t *n, size_t max, const char *word,
			   const char *what)
{
	if (*n == max)
		return cli_error(CLI_USAGE, "there can be %zu %s", max, what);
	list[(*n)++] = word;
	return CLI_OK;
}

static int read_option(struct egress_request *q, int option, char **argv)
{
	switch (option) {
	case 'a':
		return egress_add_word(q->allow, &q->n_allow, ARRAY_SIZE(q->allow), optarg,
				       "rules");
	case 's':
		return egress_add_word(q->allow_set, &q->n_allow_set, ARRAY_SIZE(q->allow_set),
				       optarg, "sets");
	case 'c':
		q->config_file = optarg;
		return CLI_OK;
	case 'f':
		q->force = true;
		return CLI_OK;
	case 'j':
		q->json = true;
		return CLI_OK;
	case 'h':
		q->help = true;
		return CLI_OK;
	case 1:
		return egress_add_word(q->words, &q->n_words, ARRAY_SIZE(q->words), optarg,
				       "words");
	case ':':
		return cli_error(CLI_USAGE, "%s needs a value; see 'glovebox egress --help'",
				 argv[optind - 1]);
	default:
		return cli_error(CLI_USAGE, "unknown option %s; see 'glovebox egress --help'",
				 argv[optind - 1]);
	}
}

static int read_arguments(struct egress_request *q, int argc, char **argv)
{
	static const struct option options[] = {
		{ "allow", required_argument, NULL, 'a' },
		{ "allow-set", required_argument, NULL, 's' },
		{ "config", required_argument, NULL, 'c' },
		{ "force", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option, r;

	while ((option = getopt_long(argc, argv, "-:h", options, NULL)) >= 0) {
		r = read_option(q, option, argv);
		if (r != CLI_OK)
			return r;
	}
	for (; optind < argc; optind++) {
		r = egress_add_word(q->words, &q->n_words, ARRAY_SIZE(q->words), argv[optind],
				    "words");
		if (r != CLI_OK)
			return r;
	}
	return CLI_OK;
}

static const struct action {
	const char *first, *second;
	size_t min, max; /* words, these two included */
	bool takes_json, takes_force, takes_allow;
	int (*run)(struct egress_request *q);
} actions[] = {
	{ "set", "ls", 2, 2, true, false, false, egress_set_ls },
	{ "set", "show", 3, 3, true, false, false, egress_set_show },
	{ "set", "save", 4, EGRESS_WORDS_MAX, false, true, false, egress_set_save },
	{ "set", "rm", 3, 3, false, false, false, egress_set_rm },
	{ "check", NULL, 2, 2, true, false, true, egress_check_target },
};

static const struct action *find_action(const struct egress_request *q)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		const struct action *a = &actions[i];

		if (q->n_words == 0 || strcmp(q->words[0], a->first) != 0)
			continue;
		if (!a->second || (q->n_words > 1 && strcmp(q->words[1], a->second) == 0))
			return a;
	}
	return NULL;
}

static bool fits(const struct action *a, const struct egress_request *q)
{
	return q->n_words >= a->min && q->n_words <= a->max && (a->takes_json || !q->json) &&
	       (a->takes_force || !q->force) &&
	       (a->takes_allow || (q->n_allow == 0 && q->n_allow_set == 0));
}

int cli_egress(int argc, char **argv)
{
	_cleanup_(freep) struct egress_request *q = calloc(1, sizeof(*q));
	const struct action *action;
	struct fail fail = { 0 };
	int r;

	if (!q)
		return cli_error(CLI_FAILURE, "out of memory");
	config_init(&q->config);
	r = read_arguments(q, argc, argv);
	if (r != CLI_OK)
		return r;
	if (q->help)
		return fputs(help, stdout) < 0 || fflush(stdout) < 0 ? CLI_FAILURE : CLI_OK;
	action = find_action(q);
	if (!action)
		return cli_error(CLI_USAGE, "say 'set ls', 'set show', 'set save', 'set rm' or "
					    "'check'; see 'glovebox egress --help'");
	if (!fits(action, q))
		return cli_error(CLI_USAGE,
				 "egress %s%s%s is used otherwise; see 'glovebox egress --help'",
				 action->first, action->second ? " " : "",
				 action->second ? action->second : "");
	if (config_load(&q->config, q->config_file, environ, &fail) < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
	return action->run(q);
}
