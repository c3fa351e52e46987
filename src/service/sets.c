/* SPDX-License-Identifier: Apache-2.0 */
#include "service/sets.h"

#include "base/dir.h"
#include "base/termsafe.h"

int sets_each_word(const char *list, int (*f)(const char *word, size_t len, void *arg), void *arg)
{
	static const char blanks[] = " \t";
	int r = 0;

	for (list += strspn(list, blanks); *list && r == 0; list += strspn(list, blanks)) {
		size_t len = strcspn(list, blanks);

		r = f(list, len, arg);
		list += len;
	}
	return r;
}

/* --- what holds for every box ---------------------------------------------------------------------- */

struct list {
	struct buf *text;
	const char *setting;
	const char *verb; /* "deny " or "private " */
	struct fail *fail;
};

static int too_much(struct fail *fail, int err)
{
	return fail_set(fail, -err, "sets", "the rule sets have more than %zu bytes together",
			SETS_TEXT_MAX);
}

/* A line of its own, checked here, where the setting's name is known. */
static int add_word(const char *word, size_t len, void *arg)
{
	struct list *l = arg;
	_cleanup_(buf_done) struct buf line = BUF_INIT(CONFIG_TEXT_SIZE + 16);
	_cleanup_(sets_done) struct policy_sets parsed = { 0 };
	struct fail why;
	int r = buf_add(&line, l->verb, strlen(l->verb));

	if (r == 0)
		r = buf_add(&line, word, len);
	if (r == 0)
		r = buf_add(&line, "\n", 1);
	if (r < 0)
		return too_much(l->fail, r);
	if (len > 0 && memchr(word, '#', len))
		return fail_set(l->fail, EINVAL, "sets", "%s: '#' is in no name and no address",
				l->setting);
	r = sets_parse((const char *)line.data, line.len, &parsed, &why);
	if (r < 0)
		return fail_set(l->fail, -r, "sets", "%s: %.190s", l->setting,
				why.msg + strlen("line 1: "));
	r = buf_add(l->text, line.data, line.len);
	return r < 0 ? too_much(l->fail, r) : 0;
}

static int add_settings(const struct config *c, struct buf *text, struct fail *fail)
{
	struct list deny = { text, "egress.deny", "deny ", fail };
	struct list open = { text, "egress.private", "private ", fail };
	int r = sets_each_word(c->egress_deny, add_word, &deny);

	return r < 0 ? r : sets_each_word(c->egress_private, add_word, &open);
}

int sets_check_settings(const struct config *c, struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_TEXT_MAX);

	return add_settings(c, &text, fail);
}

/* --- the files --------------------------------------------------------------------------------------- */

/* Is it a file of rules? Then ret is the name of its set. -EINVAL: its name cannot be a set's. */
static int set_of_file(const char *file, char ret[static POLICY_SET_NAME_SIZE])
{
	size_t len = strlen(file), suffix = strlen(SETS_SUFFIX);

	if (file[0] == '.' || len < suffix || strcmp(file + len - suffix, SETS_SUFFIX) != 0)
		return 0;
	memset(ret, 0, POLICY_SET_NAME_SIZE);
	if (len - suffix >= POLICY_SET_NAME_SIZE)
		return -EINVAL;
	memcpy(ret, file, len - suffix);
	return set_name_ok(ret) ? 1 : -EINVAL;
}

static int compare_names(const void *a, const void *b)
{
	return memcmp(a, b, POLICY_SET_NAME_SIZE);
}

/* In the order of their names, so that the same files always give the same text. */
static int list_sets(const char *path, char names[][POLICY_SET_NAME_SIZE], size_t *ret_n,
		     struct fail *fail)
{
	_cleanup_(dir_closep) DIR *dir = opendir(path);
	const struct dirent *entry;

	*ret_n = 0;
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return fail_set(fail, errno, "sets", "%.120s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		char name[POLICY_SET_NAME_SIZE], shown[64];
		int r = set_of_file(entry->d_name, name);

		if (r == 0)
			continue;
		termsafe_line(entry->d_name, shown, sizeof(shown));
		if (r < 0)
			return fail_set(fail, EINVAL, "sets",
					"%.100s/%s: a set's name has small letters, digits and '-' "
					"(1 to %d)",
					path, shown, POLICY_SET_NAME_SIZE - 1);
		if (*ret_n == POLICY_SETS_MAX)
			return fail_set(fail, E2BIG, "sets", "%.120s has more than %d rule sets",
					path, POLICY_SETS_MAX);
		memcpy(names[(*ret_n)++], name, sizeof(name));
	}
	qsort(names, *ret_n, POLICY_SET_NAME_SIZE, compare_names);
	return 0;
}

static int add_set(const struct config *c, const char *path, const char *name, struct buf *text,
		   struct fail *fail)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT(SETS_FILE_MAX);
	_cleanup_(set_done) struct policy_set parsed = { 0 };
	char head[POLICY_SET_NAME_SIZE + 8];
	struct fail why;
	int r = sets_read_file(c, name, &file, fail);

	if (r < 0)
		return r;
	r = set_parse((const char *)file.data, file.len, &parsed, &why);
	if (r < 0)
		return fail_set(fail, -r, "sets", "%.60s/%s%s: %.120s", path, name, SETS_SUFFIX,
				why.msg);
	(void)snprintf(head, sizeof(head), "[%s]\n", name);
	r = buf_add(text, head, strlen(head));
	if (r == 0)
		r = buf_add(text, file.data, file.len);
	if (r == 0)
		r = buf_add(text, "\n", 1);
	return r < 0 ? too_much(fail, r) : 0;
}

static int add_files(const struct config *c, struct buf *text, struct fail *fail)
{
	char names[POLICY_SETS_MAX][POLICY_SET_NAME_SIZE], path[CONFIG_TEXT_SIZE];
	size_t n;
	int r = config_sets_dir(c, path, sizeof(path));

	if (r == -ENOENT) /* a user without HOME has none */
		return 0;
	if (r < 0)
		return fail_set(fail, -r, "sets", "the path of the rule sets is too long");
	r = list_sets(path, names, &n, fail);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_set(c, path, names[i], text, fail);
	return r;
}

/* --- all of it ---------------------------------------------------------------------------------------- */

struct wanted {
	const struct policy_sets *sets;
	struct fail *fail;
};

static int check_default(const char *word, size_t len, void *arg)
{
	const struct wanted *w = arg;
	char name[POLICY_SET_NAME_SIZE] = "";

	if (len < sizeof(name))
		memcpy(name, word, len);
	if (!set_name_ok(name) || !sets_find(w->sets, name))
		return fail_set(
			w->fail, ENOENT, "sets",
			"egress.default: there is no rule set %.*s; see 'glovebox egress set ls'",
			(int)MIN(len, (size_t)40), word);
	return 0;
}

int sets_load(const struct config *c, struct buf *ret_text, struct policy_sets *ret,
	      struct fail *fail)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETS_TEXT_MAX);
	_cleanup_(sets_done) struct policy_sets parsed = { 0 };
	struct wanted w = { &parsed, fail };
	int r = add_settings(c, &text, fail);

	if (r == 0)
		r = add_files(c, &text, fail);
	if (r == 0)
		r = sets_parse(text.data ? (const char *)text.data : "", text.len, &parsed, fail);
	if (r == 0)
		r = sets_each_word(c->egress_default, check_default, &w);
	if (r < 0)
		return r;
	if (ret_text) {
		*ret_text = text;
		text = (struct buf)BUF_INIT(SETS_TEXT_MAX);
	}
	if (ret) {
		*ret = parsed;
		parsed = (struct policy_sets){ 0 };
	}
	return 0;
}
