/* SPDX-License-Identifier: Apache-2.0 */
/* What a client wants to have run. The types of the body's fields were checked against
 * openapi.json; here is what fits together, what is text, and what the machine allows. */
#include "server/run/run.h"

#include "base/utf8.h"
#include "wire/script.h"

#include <sodium.h>

#define SCRIPT_PIDS_MIN 4
#define SCRIPT_MEMORY_MIN (UINT64_C(16) << 20)

/* Never changed once they are loaded. */
static struct language *languages;
static size_t n_languages;

int run_languages_load(struct fail *fail)
{
	int r = language_list(&languages, &n_languages, fail);

	fd_close(WARDEN_LANGUAGES_FD);
	return r;
}

void run_languages_free(void)
{
	language_list_free(languages, n_languages);
	languages = NULL;
	n_languages = 0;
}

const struct language *run_languages(size_t *ret_n)
{
	*ret_n = n_languages;
	return languages;
}

static const char *body_text(const json_t *body, const char *name)
{
	return json_string_value(json_object_get(body, name));
}

/* name or name_base64, at most one of them; *ret stays NULL when neither is there. */
static int body_bytes(const json_t *o, const char *name, unsigned char **ret, size_t *ret_len,
		      struct fail *fail)
{
	char other[64];
	const json_t *plain = json_object_get(o, name), *encoded;
	const char *text;
	size_t len, max;
	unsigned char *data;

	(void)snprintf(other, sizeof(other), "%s_base64", name);
	encoded = json_object_get(o, other);
	if (plain && encoded)
		return fail_set(fail, EINVAL, name, "%s: give either %s or %s", name, name, other);
	if (!plain && !encoded)
		return 0;
	text = json_string_value(plain ? plain : encoded);
	len = json_string_length(plain ? plain : encoded);
	max = len + 1;
	data = malloc(max);
	if (!data)
		return fail_set(fail, ENOMEM, name, "out of memory");
	if (plain) {
		memcpy(data, text, len);
		*ret_len = len;
	} else if (sodium_base642bin(data, max, text, len, NULL, ret_len, NULL,
				     sodium_base64_VARIANT_ORIGINAL) < 0) {
		free(data);
		return fail_set(fail, EINVAL, name, "%s: not base64", other);
	}
	*ret = data;
	return 0;
}

static int read_files(const json_t *list, struct server_run *o, struct fail *fail)
{
	size_t i;
	json_t *item;

	if (json_array_size(list) > SERVER_RUN_FILES_MAX)
		return fail_set(fail, EINVAL, "files", "files: at most %d", SERVER_RUN_FILES_MAX);
	json_array_foreach(list, i, item) {
		struct server_run_file *f = &o->files[o->n_files];
		const char *path = body_text(item, "path");
		int r;

		if (!path || !*path || strlen(path) > WIRE_PATH_MAX ||
		    path[strlen(path) - 1] == '/')
			return fail_set(fail, EINVAL, "files",
					"files[%zu].path: must be the name of a file", i);
		f->path = strdup(path);
		if (!f->path)
			return fail_set(fail, ENOMEM, "files", "out of memory");
		o->n_files++;
		r = body_bytes(item, "content", &f->data, &f->len, fail);
		if (r < 0)
			return r;
	}
	return 0;
}

static void run_env_freep(char ***env)
{
	run_env_free(*env);
}

static bool env_name_ok(const char *name)
{
	return *name && !strchr(name, '=');
}

/* Nothing of ours, then the language's variables, then the client's. */
static int read_env(const json_t *given, char **language_env, struct server_run *o,
		    struct fail *fail)
{
	_cleanup_(run_env_freep) char **pairs = calloc(json_object_size(given) + 1, sizeof(char *));
	const char *name;
	json_t *value;
	size_t n = 0;

	if (json_object_size(given) > SERVER_RUN_ENV_MAX)
		return fail_set(fail, EINVAL, "env", "env: at most %d variables",
				SERVER_RUN_ENV_MAX);
	if (!pairs)
		return fail_set(fail, ENOMEM, "env", "out of memory");
	json_object_foreach((json_t *)(uintptr_t)given, name, value) {
		if (!env_name_ok(name))
			return fail_set(fail, EINVAL, "env",
					"env: a name is empty or has '=' in it");
		if (asprintf(&pairs[n], "%s=%s", name, json_string_value(value)) < 0) {
			pairs[n] = NULL;
			return fail_set(fail, ENOMEM, "env", "out of memory");
		}
		n++;
	}
	return run_env(&o->run.limits, (const char *const *)language_env, server_run_network_env(o),
		       (const char *const *)pairs, &o->env) < 0 ?
		       fail_set(fail, ENOMEM, "env", "out of memory") :
		       0;
}

/* The limits as they came, 0 where nothing was said, each within its bound. */
static int read_run_limits(const json_t *given, const struct server_run_bounds *b,
			   struct run_limits *ret, struct fail *fail)
{
	const struct {
		const char *name;
		uint64_t scale, min, max;
		uint64_t *to;
	} numbers[] = {
		{ "timeout_ms", 1000, RUN_TIME_MIN_US, b->timeout_us, &ret->timeout_us },
		{ "cpu_time_ms", 1000, RUN_TIME_MIN_US, b->timeout_us, &ret->cpu_time_us },
		{ "memory_bytes", 1, RUN_MEMORY_MIN, b->memory_bytes, &ret->memory_bytes },
		{ "disk_bytes", 1, RUN_DISK_MIN, b->disk_bytes, &ret->disk_bytes },
		{ "files", 1, 1, b->files, &ret->files },
		{ "output_bytes", 1, 1, SERVER_RUN_OUTPUT_BYTES_MAX, &ret->output_bytes },
	};
	const json_t *pids = json_object_get(given, "pids"), *cpus = json_object_get(given, "cpus");

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const json_t *value = json_object_get(given, numbers[i].name);
		double v = json_number_value(value) * (double)numbers[i].scale;

		if (!value)
			continue;
		if (!(v >= (double)numbers[i].min && v <= (double)numbers[i].max))
			return fail_set(fail, ERANGE, "limits",
					"limits.%s: must be between %llu and %llu", numbers[i].name,
					(unsigned long long)(numbers[i].min / numbers[i].scale),
					(unsigned long long)(numbers[i].max / numbers[i].scale));
		*numbers[i].to = (uint64_t)v;
	}
	if (pids && (json_integer_value(pids) < 1 || json_integer_value(pids) > b->pids))
		return fail_set(fail, ERANGE, "limits", "limits.pids: must be between 1 and %u",
				b->pids);
	ret->pids = (uint32_t)json_integer_value(pids);
	if (cpus) {
		double milli = json_number_value(cpus) * 1000;

		if (!(milli >= RUN_CPU_MILLI_MIN && milli <= b->cpu_milli))
			return fail_set(fail, ERANGE, "limits",
					"limits.cpus: must be between 0.01 and %.2f",
					b->cpu_milli / 1000.0);
		ret->cpu_milli = (uint32_t)milli;
	}
	return 0;
}

/* What a step needs of itself is never more than a client could ask for. */
static struct run_limits within(struct run_limits l, const struct server_run_bounds *b)
{
	l.memory_bytes = MIN(l.memory_bytes, b->memory_bytes);
	l.disk_bytes = MIN(l.disk_bytes, b->disk_bytes);
	l.files = MIN(l.files, b->files);
	l.pids = MIN(l.pids, b->pids);
	l.cpu_milli = MIN(l.cpu_milli, b->cpu_milli);
	l.timeout_us = MIN(l.timeout_us, b->timeout_us);
	return l;
}

/* One step, and that is to run the file with the Python that there is. Its interpreter comes in
 * while files are moved, which needs some processes; and where there is hardly any memory, every
 * page should be the script's. */
static bool is_script(const struct server_run *o)
{
	char *const *argv = o->run.argv;

	return !o->has_compile && o->run.limits.pids >= SCRIPT_PIDS_MIN &&
	       o->run.limits.memory_bytes >= SCRIPT_MEMORY_MIN &&
	       strcmp(o->code_file, SCRIPT_FILE) == 0 && argv[0] && argv[1] && !argv[2] &&
	       strcmp(argv[0], SCRIPT_PROGRAM) == 0 && strcmp(argv[1], SCRIPT_FILE) == 0;
}

static int read_language(const json_t *body, const struct language *l,
			 const struct run_limits *given, const struct server_run_bounds *b,
			 struct server_run *o, struct fail *fail)
{
	const json_t *code = json_object_get(body, "code");
	_cleanup_(freep) char **env = NULL;
	struct language_vars vars;
	int r;

	if (!code)
		return fail_set(fail, EINVAL, "code", "code: missing");
	if (!language_present(l))
		return fail_set(fail, ENOENT, "language", "language: %s is not installed here",
				l->name);
	r = language_check_code(json_string_value(code), json_string_length(code),
				LANGUAGE_CODE_MAX, fail);
	if (r < 0)
		return r;
	o->code_len = json_string_length(code);
	o->code = strndup(json_string_value(code), o->code_len);
	o->code_file = strdup(l->file);
	if (!o->code || !o->code_file)
		return fail_set(fail, ENOMEM, "code", "out of memory");
	o->run.limits = within(run_step_limits(given, &l->run_limits), b);
	vars = (struct language_vars){
		.file = l->file,
		.memory_mb = o->run.limits.memory_bytes >> 20,
		.cpus = MAX(o->run.limits.cpu_milli / 1000, 1u),
	};
	r = language_argv(l->run, &vars, &o->run.argv, fail);
	if (r == 0)
		r = language_env(l, &vars, &env, fail);
	if (r == 0 && l->compile) {
		o->has_compile = true;
		o->compile.limits = within(run_compile_limits(given, &l->compile_limits), b);
		vars.memory_mb = o->compile.limits.memory_bytes >> 20;
		r = language_argv(l->compile, &vars, &o->compile.argv, fail);
	}
	o->script = r == 0 && is_script(o) && !json_is_false(json_object_get(body, "zygote"));
	return r < 0 ? r : read_env(json_object_get(body, "env"), env, o, fail);
}

static int read_command(const json_t *body, const json_t *command, const struct run_limits *given,
			const struct server_run_bounds *b, struct server_run *o, struct fail *fail)
{
	static const struct language_limits nothing_special;
	size_t n = json_array_size(command), bytes = (n + 1) * sizeof(char *), i;
	json_t *word;
	char *at;

	if (n == 0 || n > SERVER_RUN_ARGS_MAX)
		return fail_set(fail, EINVAL, "command", "command: 1 to %d words",
				SERVER_RUN_ARGS_MAX);
	json_array_foreach(command, i, word)
		bytes += json_string_length(word) + 1;
	/* One block, as language_argv() makes it. */
	o->run.argv = calloc(1, bytes);
	if (!o->run.argv)
		return fail_set(fail, ENOMEM, "command", "out of memory");
	at = (char *)(o->run.argv + n + 1);
	json_array_foreach(command, i, word) {
		o->run.argv[i] = at;
		memcpy(at, json_string_value(word), json_string_length(word));
		at += json_string_length(word) + 1;
	}
	o->run.limits = within(run_step_limits(given, &nothing_special), b);
	return read_env(json_object_get(body, "env"), NULL, o, fail);
}

int server_run_read(const json_t *body, const struct server_run_bounds *bounds,
		    struct server_run *ret, struct fail *fail)
{
	const char *language = body_text(body, "language"), *template = body_text(body, "template");
	const json_t *command = json_object_get(body, "command");
	struct run_limits given = { 0 };
	int r;

	if (!language == !command)
		return fail_set(fail, EINVAL, "language",
				"give either language and code, or command");
	if (!template || !strcmp(template, "base"))
		ret->template = WARDEN_TEMPLATE_BASE;
	else if (!strcmp(template, "code-interpreter-v1"))
		ret->template = WARDEN_TEMPLATE_CODE_INTERPRETER;
	else
		return fail_set(fail, ENOENT, "template", "template '%.64s' not found", template);
	r = read_run_limits(json_object_get(body, "limits"), bounds, &given, fail);
	if (r == 0 && command)
		r = read_command(body, command, &given, bounds, ret, fail);
	if (r == 0 && language) {
		const struct language *l = language_find(language, languages, n_languages, fail);

		r = l ? read_language(body, l, &given, bounds, ret, fail) : -ENOENT;
	}
	if (r == 0)
		r = read_files(json_object_get(body, "files"), ret, fail);
	if (r == 0)
		r = body_bytes(body, "stdin", &ret->input, &ret->input_len, fail);
	ret->fetch_outputs = json_is_true(json_object_get(body, "outputs"));
	return r;
}

void server_run_done(struct server_run *o)
{
	for (size_t i = 0; i < o->n_files; i++) {
		free(o->files[i].path);
		free(o->files[i].data);
	}
	run_env_free(o->env);
	free(o->code);
	free(o->code_file);
	free(o->compile.argv);
	free(o->run.argv);
	free(o->input);
	json_decref(o->contents);
	fd_closep(&o->control_fd);
	server_run_forget_network(o);
	run_result_done(&o->result);
	server_run_release(&o->claim);
}
