/* SPDX-License-Identifier: Apache-2.0 */
/* What network a run is to have, as it was typed: checked before anything is made. */
#include "cli/run/net.h"

#include "cli/run/args_priv.h"
#include "service/sets.h"
#include "template/bundle.h"

#include <fcntl.h>

static int add_rule(struct run_net_wish *w, const char *text, struct fail *fail)
{
	struct fail why = { 0 };
	struct rule rule, *grown;

	if (w->n_rules >= POLICY_RULES_MAX)
		return fail_set(fail, E2BIG, "--allow", "more than %d times --allow",
				POLICY_RULES_MAX);
	if (rule_parse(text, strlen(text), &rule, &why) < 0)
		return fail_set(fail, EINVAL, "--allow", "--allow %.80s: %.120s", text, why.msg);
	grown = reallocarray(w->rules, w->n_rules + 1, sizeof(rule));
	if (!grown)
		return -ENOMEM;
	w->rules = grown;
	w->rules[w->n_rules++] = rule;
	return 0;
}

static int add_set(struct run_net_wish *w, const char *text, struct fail *fail)
{
	char name[POLICY_SET_NAME_SIZE] = "";

	if (strlen(text) >= sizeof(name))
		return fail_set(fail, EINVAL, "--allow-set", "--allow-set %.40s…: too long", text);
	memcpy(name, text, strlen(text));
	if (!set_name_ok(name))
		return fail_set(fail, EINVAL, "--allow-set",
				"--allow-set %s: not the name of a rule set; see 'glovebox egress "
				"set ls'",
				text);
	for (size_t i = 0; i < w->n_uses; i++)
		if (strcmp(w->use[i], name) == 0)
			return 0;
	if (w->n_uses >= POLICY_USES_MAX)
		return fail_set(fail, E2BIG, "--allow-set", "more than %d rule sets",
				POLICY_USES_MAX);
	memcpy(w->use[w->n_uses++], name, sizeof(name));
	return 0;
}

/* It goes the way of the setting egress.private, so it is checked here and kept as text. */
static int add_open(struct run_net_wish *w, const char *text, struct fail *fail)
{
	size_t used = strlen(w->open), room = sizeof(w->open) - used;
	struct fail why = { 0 };
	struct rule rule;

	if (rule_parse(text, strlen(text), &rule, &why) < 0 || rule.kind != RULE_RANGE)
		return fail_set(fail, EINVAL, "--allow-private", "--allow-private %.60s: %.120s",
				text, why.msg[0] ? why.msg : "give a range such as 10.0.0.0/8");
	if (snprintf(w->open + used, room, "%s%s", used ? " " : "", text) >= (int)room) {
		w->open[used] = '\0';
		return fail_set(fail, E2BIG, "--allow-private",
				"too many ranges: put them into egress.private");
	}
	return 0;
}

static int set_mode(struct run_net_wish *w, const char *text, struct fail *fail)
{
	w->learn = strcmp(text, "learn") == 0;
	w->none = strcmp(text, "none") == 0;
	if (!w->learn && !w->none)
		return fail_set(fail, EINVAL, "--net",
				"--net %.40s: give none, or learn; what it may reach is said with "
				"--allow",
				text);
	return 0;
}

/* Opened now, written at the end: nobody learns for minutes and then hears that it cannot be kept. */
static int open_learn_to(struct run_net_wish *w, const char *path, struct fail *fail)
{
	fd_closep(&w->learn_fd);
	w->learn_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (w->learn_fd < 0)
		return fail_set(fail, errno, "--learn-to", "cannot write --learn-to %.100s: %s",
				path, strerror(errno));
	w->learn_to = path;
	return 0;
}

static int read_option(struct run_net_wish *w, int id, const char *text, struct fail *fail)
{
	switch (id) {
	case OPT_ALLOW:
		return add_rule(w, text, fail);
	case OPT_ALLOW_SET:
		return add_set(w, text, fail);
	case OPT_ALLOW_PRIVATE:
		return add_open(w, text, fail);
	case OPT_LEARN_TO:
		return open_learn_to(w, text, fail);
	default:
		return set_mode(w, text, fail);
	}
}

int run_net_options(struct run_net_wish *w, const struct run_args *a, struct fail *fail)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n_later; i++)
		if (a->later[i].id != OPT_IN)
			r = read_option(w, a->later[i].id, a->later[i].text, fail);
	return r;
}

bool run_net_wanted(const struct run_net_wish *w)
{
	return w->learn || w->n_rules || w->n_uses;
}

const char *run_net_ca_bundle(const struct run_net_wish *w)
{
	return w->settings ? w->settings->egress_ca_bundle : "";
}

static int check_sets(const struct run_net_wish *w, struct fail *fail)
{
	struct policy_sets *sets = calloc(1, sizeof(*sets));
	int r = sets ? sets_load(w->settings, NULL, sets, fail) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < w->n_uses; i++)
		if (!sets_find(sets, w->use[i]))
			r = fail_set(fail, ENOENT, "--allow-set",
				     "there is no rule set '%s'; see 'glovebox egress set ls'",
				     w->use[i]);
	if (sets)
		sets_done(sets);
	free(sets);
	return r;
}

static int check_bundle(const struct run_net_wish *w, struct fail *fail)
{
	_cleanup_(buf_done) struct buf certificates = BUF_INIT(BUNDLE_MAX);
	const char *path = run_net_ca_bundle(w);

	return *path ? bundle_read(path, &certificates, fail) : 0;
}

/* The local user is the operator of his own runs: what he opens counts as if it were in the settings. */
static int add_to_settings(struct run_net_wish *w, struct fail *fail)
{
	char *to = w->settings->egress_private;
	size_t used = strlen(to);

	if (used + strlen(w->open) + 2 > sizeof(w->settings->egress_private))
		return fail_set(fail, E2BIG, "--allow-private",
				"too many ranges beside those of egress.private");
	(void)snprintf(to + used, sizeof(w->settings->egress_private) - used, "%s%s",
		       used && *w->open ? " " : "", w->open);
	return 0;
}

int run_net_settings(struct run_net_wish *w, struct fail *fail)
{
	int r;

	if (!run_net_wanted(w))
		return 0;
	w->settings = malloc(sizeof(*w->settings));
	if (!w->settings)
		return -ENOMEM;
	config_init(w->settings);
	r = config_load(w->settings, NULL, environ, fail);
	if (r < 0)
		return r;
	if (!w->settings->egress_enabled)
		return fail_set(fail, EPERM, "network",
				"this machine gives boxes no network: egress.enabled is off "
				"(glovebox.toml)");
	r = add_to_settings(w, fail);
	if (r == 0)
		r = check_sets(w, fail);
	return r < 0 ? r : check_bundle(w, fail);
}

int run_net_wish_check(const struct run_net_wish *w, struct fail *fail)
{
	if (w->none && (w->n_rules || w->n_uses || *w->open))
		return fail_set(fail, EINVAL, "--net",
				"--net none and --allow contradict one another");
	if (w->learn && (w->n_rules || w->n_uses || *w->open))
		return fail_set(fail, EINVAL, "--net",
				"--net learn lets everything through: leave out --allow");
	if (w->learn_to && !w->learn)
		return fail_set(fail, EINVAL, "--learn-to", "--learn-to is for --net learn");
	if (*w->open && !run_net_wanted(w))
		return fail_set(
			fail, EINVAL, "--allow-private",
			"--allow-private opens a range for --allow or --allow-set: give one");
	return 0;
}
