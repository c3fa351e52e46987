/* SPDX-License-Identifier: Apache-2.0 */
/* A run as JSON: the request that POST /v1/run takes, the result that comes back. */
#include "cli/run/service_priv.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>

/* What a descriptor has, as base64. */
static json_t *contents(int fd)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT(RUN_SERVICE_BODY_MAX);

	return buf_read_fd(&data, fd) < 0 ? NULL : run_base64_json(data.data, data.len);
}

static void set_limit(json_t *o, const char *name, uint64_t value, uint64_t per_unit)
{
	if (value)
		(void)json_object_set_new(o, name, json_integer((json_int_t)(value / per_unit)));
}

static json_t *limits(const struct run_limits *given)
{
	json_t *o = json_object();

	set_limit(o, "timeout_ms", given->timeout_us, 1000);
	set_limit(o, "cpu_time_ms", given->cpu_time_us, 1000);
	set_limit(o, "memory_bytes", given->memory_bytes, 1);
	set_limit(o, "disk_bytes", given->disk_bytes, 1);
	set_limit(o, "files", given->files, 1);
	set_limit(o, "output_bytes", given->output_bytes, 1);
	set_limit(o, "pids", given->pids, 1);
	if (given->cpu_milli)
		(void)json_object_set_new(o, "cpus", json_real(given->cpu_milli / 1000.0));
	return o;
}

static json_t *variables(char *const *env)
{
	json_t *o = json_object();

	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		_cleanup_(freep) char *name = strndup(*env, (size_t)(equals - *env));

		if (name)
			(void)json_object_set_new(o, name, json_string(equals + 1));
	}
	return o;
}

/* As sandboxes have it: rules, and the operator's sets by name. */
static json_t *network(const struct run_net_wish *w)
{
	char text[POLICY_RULE_TEXT_SIZE];
	json_t *allow = json_array();

	for (size_t i = 0; i < w->n_uses; i++) {
		(void)snprintf(text, sizeof(text), "set:%s", w->use[i]);
		(void)json_array_append_new(allow, json_string(text));
	}
	for (size_t i = 0; i < w->n_rules; i++) {
		rule_text(&w->rules[i], text);
		(void)json_array_append_new(allow, json_string(text));
	}
	return json_pack("{so so}", "allowOut", allow, "denyOut", json_pack("[s]", "0.0.0.0/0"));
}

char *run_service_request(const struct run_request *q)
{
	json_t *o = json_object(), *files = json_array();
	char *text;

	if (q->code) {
		(void)json_object_set_new(o, "language", json_string(q->language));
		(void)json_object_set_new(o, "code", json_stringn(q->code, q->code_len));
	} else {
		json_t *words = json_array();

		for (char **word = q->run.argv; *word; word++)
			(void)json_array_append_new(words, json_string(*word));
		(void)json_object_set_new(o, "command", words);
	}
	for (size_t i = 0; i < q->n_inputs; i++)
		(void)json_array_append_new(files,
					    json_pack("{ss so*}", "path", q->inputs[i].dest,
						      "content_base64", contents(q->inputs[i].fd)));
	(void)json_object_set_new(o, "files", files);
	if (q->stdin_fd >= 0)
		(void)json_object_set_new(o, "stdin_base64", contents(q->stdin_fd));
	(void)json_object_set_new(o, "template", json_string(q->template_name));
	(void)json_object_set_new(o, "limits", limits(&q->given));
	(void)json_object_set_new(o, "env", variables(q->given_env));
	(void)json_object_set_new(o, "outputs", json_boolean(q->out_dir != NULL));
	if (q->no_zygote)
		(void)json_object_set_new(o, "zygote", json_false());
	if (run_net_wanted(&q->net))
		(void)json_object_set_new(o, "network", network(&q->net));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

unsigned char *run_service_decode(const json_t *text, size_t *ret_len)
{
	size_t size = json_string_length(text) + 1;
	unsigned char *data = malloc(size);

	if (data && sodium_base642bin(data, size, json_string_value(text), size - 1, NULL, ret_len,
				      NULL, sodium_base64_VARIANT_ORIGINAL) < 0) {
		free(data);
		return NULL;
	}
	return data;
}

static uint64_t count_of(const json_t *o, const char *name)
{
	double v = json_number_value(json_object_get(o, name));

	return v > 0 && v < 9e18 ? (uint64_t)v : 0;
}

static void take_usage(const json_t *o, struct run_usage *u)
{
	u->wall_us = (uint64_t)(json_number_value(json_object_get(o, "wall_ms")) * 1000);
	u->cpu_user_us = (uint64_t)(json_number_value(json_object_get(o, "cpu_user_ms")) * 1000);
	u->cpu_system_us =
		(uint64_t)(json_number_value(json_object_get(o, "cpu_system_ms")) * 1000);
	u->memory_peak = count_of(o, "memory_peak_bytes");
	u->processes_peak = count_of(o, "processes_peak");
	u->read_bytes = count_of(o, "read_bytes");
	u->written_bytes = count_of(o, "written_bytes");
}

/* One file of the results, below a descriptor; its path's components are hostile until they were looked at. */
static int save_output(int dir_fd, const char *path, const unsigned char *data, size_t len)
{
	_cleanup_(fd_closep) int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	_cleanup_(fd_closep) int fd = -EBADF;
	const char *slash;

	while ((slash = strchr(path, '/'))) {
		char name[256];
		int next;

		if ((size_t)(slash - path) >= sizeof(name))
			return -ENAMETOOLONG;
		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
			return -EPROTO;
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		fd_close(at);
		at = next;
		path = slash + 1;
	}
	if (!*path || !strcmp(path, ".") || !strcmp(path, ".."))
		return -EPROTO;
	fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	return write(fd, data, len) == (ssize_t)len ? 0 : -EIO;
}

static int take_outputs(const struct run_request *q, const json_t *list, struct run_result *r)
{
	_cleanup_(fd_closep) int dir_fd = open(q->out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t i;
	json_t *o;

	r->outputs = calloc(json_array_size(list) + 1, sizeof(*r->outputs));
	if (dir_fd < 0 || !r->outputs)
		return -EIO;
	json_array_foreach(list, i, o) {
		const char *path = json_string_value(json_object_get(o, "path"));
		size_t len = 0;
		_cleanup_(freep) unsigned char *data =
			run_service_decode(json_object_get(o, "content_base64"), &len);
		int e = path && data ? save_output(dir_fd, path, data, len) : -EPROTO;

		if (e < 0)
			return e;
		r->outputs[r->n_outputs].path = strdup(path);
		if (!r->outputs[r->n_outputs].path)
			return -ENOMEM;
		r->outputs[r->n_outputs].size = len;
		(void)crypto_hash_sha256(r->outputs[r->n_outputs].sha256, data, len);
		r->n_outputs++;
	}
	return 0;
}

/* The service names a limit by its own field; who typed options is to read those. */
static void take_message(const char *message, struct run_result *r)
{
	(void)snprintf(r->message, sizeof(r->message), "%s", message);
	for (int i = RUN_LIMIT_NONE + 1; i < _RUN_LIMIT_MAX; i++) {
		const char *name = run_words_fields.name[i], *at = strstr(message, name);

		if (at)
			(void)snprintf(r->message, sizeof(r->message), "%.*s%s%s",
				       (int)(at - message), message, run_words_options.name[i],
				       at + strlen(name));
	}
}

int run_service_result(const struct run_request *q, json_t *o, struct run_result *r)
{
	static const char *const steps[] = { "setup", "compile", "run" };
	const char *status = json_string_value(json_object_get(o, "status"));
	const char *step = json_string_value(json_object_get(o, "step"));
	const char *message = json_string_value(json_object_get(o, "message"));
	const json_t *exit_code = json_object_get(o, "exit_code"),
		     *sig = json_object_get(o, "signal");

	if (!status || run_status_parse(status, &r->status) < 0)
		return -EPROTO;
	for (size_t i = 0; step && i < ARRAY_SIZE(steps); i++)
		if (!strcmp(step, steps[i]))
			r->step = steps[i];
	take_message(message ? message : "", r);
	r->exit_code = json_is_integer(exit_code) ? (int)(json_integer_value(exit_code) & 0xff) :
						    -1;
	r->signal = json_is_integer(sig) ? (int)(json_integer_value(sig) & 0x7f) : 0;
	r->truncated = json_is_true(json_object_get(o, "truncated"));
	r->setup_us = (uint64_t)(json_number_value(json_object_get(o, "setup_ms")) * 1000);
	take_usage(json_object_get(o, "usage"), &r->usage);
	r->service = json_incref(o);
	return q->out_dir ? take_outputs(q, json_object_get(o, "outputs"), r) : 0;
}
