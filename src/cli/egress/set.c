/* SPDX-License-Identifier: Apache-2.0 */
/* glovebox egress set: the files of rule sets. */
#include "cli/cli.h"
#include "cli/egress/egress.h"

#include "base/termsafe.h"

#include <jansson.h>

static int print_json(json_t *json)
{
	int r = json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;

	json_decref(json);
	return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF ?
		       cli_error(CLI_FAILURE, "cannot write the result") :
		       CLI_OK;
}

static int set_finish(void)
{
	return fflush(stdout) == EOF || ferror(stdout) ?
		       cli_error(CLI_FAILURE, "cannot write the result") :
		       CLI_OK;
}

/* The name of the set, all of its room filled. */
static int set_read_name(const struct egress_request *q, char ret[static POLICY_SET_NAME_SIZE])
{
	const char *word = q->words[2];
	size_t len = strlen(word);

	memset(ret, 0, POLICY_SET_NAME_SIZE);
	memcpy(ret, word, MIN(len, (size_t)POLICY_SET_NAME_SIZE));
	if (!set_name_ok(ret))
		return cli_error(
			CLI_USAGE,
			"'%.60s' cannot be the name of a set: it has small letters, digits "
			"and '-' (1 to %d)",
			word, POLICY_SET_NAME_SIZE - 1);
	return CLI_OK;
}

/* As it is written in a file. */
static void set_line_of(const struct rule *r, char *ret, size_t size)
{
	char text[POLICY_RULE_TEXT_SIZE];

	rule_text(r, text);
	(void)snprintf(ret, size, "%s%s",
		       r->flags & RULE_DENY    ? "deny " :
		       r->flags & RULE_PRIVATE ? "private " :
						 "",
		       text);
}

static json_t *rules_json(const struct policy_set *set)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < set->n_rules; i++) {
		char line[POLICY_RULE_TEXT_SIZE + 16];

		set_line_of(&set->rules[i], line, sizeof(line));
		(void)json_array_append_new(rules, json_string(line));
	}
	return rules;
}

/* --- ls --------------------------------------------------------------------------------------- */

static int set_is_word(const char *word, size_t len, void *arg)
{
	const char *name = arg;

	return strlen(name) == len && memcmp(word, name, len) == 0 ? -EEXIST : 0;
}

static bool is_default(const struct config *c, const char *name)
{
	return sets_each_word(c->egress_default, set_is_word, (void *)(uintptr_t)name) < 0;
}

int egress_set_ls(struct egress_request *q)
{
	_cleanup_(sets_done) struct policy_sets sets = { 0 };
	json_t *all = q->json ? json_array() : NULL;
	struct fail fail = { 0 };
	bool terminal = isatty(STDOUT_FILENO);

	if (sets_load(&q->config, NULL, &sets, &fail) < 0)
		return cli_error(CLI_FAILURE, "%s", fail.msg);
	if (!q->json && terminal)
		(void)printf("%-*s  %5s  %s\n", POLICY_SET_NAME_SIZE - 1, "NAME", "RULES",
			     "DEFAULT");
	for (size_t i = 1; i < sets.n; i++) {
		const struct policy_set *set = &sets.set[i];
		bool used = is_default(&q->config, set->name);

		if (q->json)
			(void)json_array_append_new(
				all, json_pack("{ss sI sb so}", "name", set->name, "count",
					       (json_int_t)set->n_rules, "default", used, "rules",
					       rules_json(set)));
		else if (terminal)
			(void)printf("%-*s  %5zu  %s\n", POLICY_SET_NAME_SIZE - 1, set->name,
				     set->n_rules, used ? "yes" : "no");
		else
			(void)printf("%s\t%zu\t%s\n", set->name, set->n_rules, used ? "yes" : "no");
	}
	return q->json ? print_json(all) : set_finish();
}

/* --- show ------------------------------------------------------------------------------------- */

/* What people wrote, comments too. */
static void print_text(const struct buf *text)
{
	struct termsafe ts;
	size_t size = termsafe_max_out(text->len) + termsafe_max_out(0), n;
	_cleanup_(freep) char *safe = malloc(size);

	if (!safe)
		return;
	termsafe_init(&ts);
	n = termsafe_feed(&ts, text->data, text->len, safe, size);
	n += termsafe_flush(&ts, safe + n, size - n);
	(void)fwrite(safe, 1, n, stdout);
}

int egress_set_show(struct egress_request *q)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_FILE_MAX);
	_cleanup_(set_done) struct policy_set set = { 0 };
	char name[POLICY_SET_NAME_SIZE];
	struct fail fail = { 0 };
	int r = set_read_name(q, name);

	if (r != CLI_OK)
		return r;
	if (sets_read_file(&q->config, name, &text, &fail) < 0)
		return cli_error(CLI_FAILURE, "%s", fail.msg);
	if (set_parse((const char *)text.data, text.len, &set, &fail) < 0)
		return cli_error(CLI_FAILURE, "%s%s: %s", name, SETS_SUFFIX, fail.msg);
	if (q->json)
		return print_json(json_pack("{ss so}", "name", name, "rules", rules_json(&set)));
	if (isatty(STDOUT_FILENO))
		print_text(&text);
	else
		(void)fwrite(text.data, 1, text.len, stdout);
	return set_finish();
}

/* --- save, rm --------------------------------------------------------------------------------- */

static int add_words(const struct egress_request *q, struct buf *text)
{
	int r = 0;

	for (size_t i = 3; i < q->n_words && r == 0; i++) {
		if (strchr(q->words[i], '\n') || strchr(q->words[i], '#'))
			return -EINVAL;
		r = buf_add(text, q->words[i], strlen(q->words[i]));
		if (r == 0)
			r = buf_add(text, "\n", 1);
	}
	return r;
}

int egress_set_save(struct egress_request *q)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_FILE_MAX);
	char name[POLICY_SET_NAME_SIZE];
	bool from_input = q->n_words == 4 && strcmp(q->words[3], "-") == 0;
	struct fail fail = { 0 };
	int r = set_read_name(q, name);

	if (r != CLI_OK)
		return r;
	r = from_input ? buf_read_fd(&text, STDIN_FILENO) : add_words(q, &text);
	if (r == -EINVAL)
		return cli_error(CLI_USAGE, "a rule is one line without '#'");
	if (r < 0)
		return cli_error(CLI_FAILURE, "cannot read the rules: %s", strerror(-r));
	r = sets_write_file(&q->config, name, (const char *)text.data, text.len, q->force, &fail);
	if (r < 0)
		return cli_error(r == -EINVAL || r == -E2BIG ? CLI_USAGE : CLI_FAILURE, "%s",
				 fail.msg);
	return CLI_OK;
}

int egress_set_rm(struct egress_request *q)
{
	char name[POLICY_SET_NAME_SIZE];
	struct fail fail = { 0 };
	int r = set_read_name(q, name);

	if (r != CLI_OK)
		return r;
	if (is_default(&q->config, name))
		return cli_error(CLI_FAILURE, "egress.default names %s: change that setting first",
				 name);
	return sets_remove_file(&q->config, name, &fail) < 0 ?
		       cli_error(CLI_FAILURE, "%s", fail.msg) :
		       CLI_OK;
}
