/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent keeps a label beside each command, so that List knows what was started even when another server
 * process started it. It comes back from the box, so it is read as what it is: something the box says.
 */
#include "server/envd/envd.h"

#include "base/utf8.h"
#include "server/http/check.h"

static json_t *label_json(const struct envd_start *start, bool with_envs, bool with_args)
{
	json_t *config = json_pack("{s:s}", "cmd", start->cmd);
	json_t *label = json_pack("{s:o}", "config", config);
	int r = label ? 0 : -1;

	/* json_object_set() only borrows. */
	if (r == 0 && with_args && start->args)
		r = json_object_set(config, "args", (json_t *)(uintptr_t)start->args);
	if (r == 0 && with_envs && start->envs)
		r = json_object_set(config, "envs", (json_t *)(uintptr_t)start->envs);
	if (r == 0 && start->cwd)
		r = json_object_set_new(config, "cwd", json_string(start->cwd));
	if (r == 0 && start->tag)
		r = json_object_set_new(label, "tag", json_string(start->tag));
	if (r < 0) {
		json_decref(label);
		return NULL;
	}
	return label;
}

/* As much of it as there is room for: a list shows what runs, it need not be able to start it again. */
int envd_label_make(const struct envd_start *start, struct buf *ret)
{
	static const struct {
		bool envs, args;
	} tries[] = { { true, true }, { false, true }, { false, false } };

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		json_t *label = label_json(start, tries[i].envs, tries[i].args);
		char *text = label ? json_dumps(label, JSON_COMPACT) : NULL;
		int r = -ENOMEM;

		json_decref(label);
		if (text && strlen(text) <= ENVD_LABEL_MAX)
			r = buf_add(ret, text, strlen(text));
		else if (text)
			r = -ENOBUFS;
		free(text);
		if (r != -ENOBUFS)
			return r;
	}
	return buf_add(ret, "{}", 2);
}

/* Takes over a member of the wanted type; what is missing or of another one is left out. */
static void copy_member(json_t *to, const json_t *from, const char *name, json_type type)
{
	json_t *member = json_object_get(from, name);

	if (member && json_typeof(member) == type)
		(void)json_object_set(to, name, member);
}

static bool all_strings(const json_t *list)
{
	const char *key;
	json_t *member;
	size_t i;

	json_array_foreach(list, i, member) {
		if (!json_is_string(member))
			return false;
	}
	json_object_foreach((json_t *)(uintptr_t)list, key, member) {
		if (!json_is_string(member))
			return false;
	}
	return true;
}

json_t *envd_label_read(uint32_t pid, const void *data, size_t len)
{
	struct check_error why;
	json_t *label = NULL;
	int r = len <= ENVD_LABEL_MAX ? check_parse(data, len, &label, &why) : -EMSGSIZE;
	const json_t *from = json_object_get(label, "config");
	json_t *config = json_object();
	json_t *process = json_pack("{s:o, s:I}", "config", config, "pid", (json_int_t)pid);

	if (process && r == 0) {
		copy_member(config, from, "cmd", JSON_STRING);
		copy_member(config, from, "cwd", JSON_STRING);
		if (all_strings(json_object_get(from, "args")))
			copy_member(config, from, "args", JSON_ARRAY);
		if (all_strings(json_object_get(from, "envs")))
			copy_member(config, from, "envs", JSON_OBJECT);
		copy_member(process, label, "tag", JSON_STRING);
	}
	json_decref(label);
	return process;
}

/* For a shell's "-c" only what the shell runs. */
void envd_command_line(const struct envd_start *start, char *ret, size_t size)
{
	size_t n_args = json_array_size(start->args), bad;
	const char *last = json_string_value(json_array_get(start->args, n_args - 1));
	const char *before = json_string_value(json_array_get(start->args, n_args - 2));
	bool shell = last && before && strcmp(before, "-c") == 0;
	size_t at = (size_t)snprintf(ret, size, "%s", shell ? last : start->cmd);

	for (size_t i = 0; !shell && i < n_args && at < size; i++)
		at += (size_t)snprintf(ret + at, size - at, " %s",
				       json_string_value(json_array_get(start->args, i)));
	if (!utf8_valid(ret, strlen(ret), &bad))
		ret[bad] = '\0';
}
