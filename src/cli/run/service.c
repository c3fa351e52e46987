/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the request becomes the JSON that POST /v1/run takes and goes through a pipe
 * to glovebox-client, which speaks HTTP. From another pipe come its answers, one JSON object per
 * line: output as it is printed, at the end the result. Two pipes and one poll loop; nothing is
 * believed before it has been parsed.
 */
#include "cli/run/service.h"

#include "cli/client.h"
#include "service/discovery.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RUN_SERVICE_BODY_MAX                                                                       \
	((size_t)700 << 10) /* what the service takes, less what base64 and JSON add */

/* --- as JSON: the request, and the result that comes back ------------------------------------ */

/* What a descriptor has, as base64. */
static json_t *request_contents(int fd)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT(RUN_SERVICE_BODY_MAX);

	return buf_read_fd(&data, fd) < 0 ? NULL : run_base64_json(data.data, data.len);
}

static void request_set_limit(json_t *o, const char *name, uint64_t value, uint64_t per_unit)
{
	if (value)
		(void)json_object_set_new(o, name, json_integer((json_int_t)(value / per_unit)));
}

static json_t *request_limits(const struct run_limits *given)
{
	json_t *o = json_object();

	request_set_limit(o, "timeout_ms", given->timeout_us, 1000);
	request_set_limit(o, "cpu_time_ms", given->cpu_time_us, 1000);
	request_set_limit(o, "memory_bytes", given->memory_bytes, 1);
	request_set_limit(o, "disk_bytes", given->disk_bytes, 1);
	request_set_limit(o, "files", given->files, 1);
	request_set_limit(o, "output_bytes", given->output_bytes, 1);
	request_set_limit(o, "pids", given->pids, 1);
	if (given->cpu_milli)
		(void)json_object_set_new(o, "cpus", json_real(given->cpu_milli / 1000.0));
	return o;
}

static json_t *request_variables(char *const *env)
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
static json_t *request_network(const struct run_net_wish *w)
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

static char *run_service_request(const struct run_request *q)
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
		(void)json_array_append_new(files, json_pack("{ss so*}", "path", q->inputs[i].dest,
							     "content_base64",
							     request_contents(q->inputs[i].fd)));
	(void)json_object_set_new(o, "files", files);
	if (q->stdin_fd >= 0)
		(void)json_object_set_new(o, "stdin_base64", request_contents(q->stdin_fd));
	(void)json_object_set_new(o, "template", json_string(q->template_name));
	(void)json_object_set_new(o, "limits", request_limits(&q->given));
	(void)json_object_set_new(o, "env", request_variables(q->given_env));
	(void)json_object_set_new(o, "outputs", json_boolean(q->out_dir != NULL));
	if (q->no_zygote)
		(void)json_object_set_new(o, "zygote", json_false());
	if (run_net_wanted(&q->net))
		(void)json_object_set_new(o, "network", request_network(&q->net));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

static unsigned char *run_service_decode(const json_t *text, size_t *ret_len)
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

static uint64_t result_count(const json_t *o, const char *name)
{
	double v = json_number_value(json_object_get(o, name));

	return v > 0 && v < 9e18 ? (uint64_t)v : 0;
}

static void result_usage(const json_t *o, struct run_usage *u)
{
	u->wall_us = (uint64_t)(json_number_value(json_object_get(o, "wall_ms")) * 1000);
	u->cpu_user_us = (uint64_t)(json_number_value(json_object_get(o, "cpu_user_ms")) * 1000);
	u->cpu_system_us =
		(uint64_t)(json_number_value(json_object_get(o, "cpu_system_ms")) * 1000);
	u->memory_peak = result_count(o, "memory_peak_bytes");
	u->processes_peak = result_count(o, "processes_peak");
	u->read_bytes = result_count(o, "read_bytes");
	u->written_bytes = result_count(o, "written_bytes");
}

/* One file of the results, below a descriptor; its path's components are hostile until they were
 * looked at. */
static int result_save(int dir_fd, const char *path, const unsigned char *data, size_t len)
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

static int result_outputs(const struct run_request *q, const json_t *list, struct run_result *r)
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
		int e = path && data ? result_save(dir_fd, path, data, len) : -EPROTO;

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

/* The service names a limit by its own field; a person who typed options reads those. */
static void result_message(const char *message, struct run_result *r)
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

static int run_service_result(const struct run_request *q, json_t *o, struct run_result *r)
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
	result_message(message ? message : "", r);
	r->exit_code = json_is_integer(exit_code) ? (int)(json_integer_value(exit_code) & 0xff) :
						    -1;
	r->signal = json_is_integer(sig) ? (int)(json_integer_value(sig) & 0x7f) : 0;
	r->truncated = json_is_true(json_object_get(o, "truncated"));
	r->setup_us = (uint64_t)(json_number_value(json_object_get(o, "setup_ms")) * 1000);
	result_usage(json_object_get(o, "usage"), &r->usage);
	r->service = json_incref(o);
	return q->out_dir ? result_outputs(q, json_object_get(o, "outputs"), r) : 0;
}

#define LINE_MAX_BYTES ((size_t)128 << 20)

/* --- may it go there? ------------------------------------------------------------------------ */

/* A service of this machine whose key we may read. */
static bool service_is_near(void)
{
	const char *key = getenv("E2B_API_KEY");
	struct discovery found;
	char path[PATH_MAX];

	if (discovery_read(&found) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/local.key", found.state);
	return (key && *key) || access(path, R_OK) == 0;
}

/* Asked to, we also go where the SDKs would go. Unasked, code stays on this machine. */
static bool service_is_there(const struct run_request *q)
{
	const char *url = getenv("E2B_API_URL");

	return (q->where == RUN_WHERE_SERVICE && url && *url) || service_is_near();
}

/* Bytes of a regular file; -ENOTSUP for anything else, whose size nobody knows. */
static int64_t service_size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -ENOTSUP;
}

int run_service_possible(const struct run_request *q, struct fail *fail)
{
	uint64_t bytes = q->code_len;

	if (!service_is_there(q))
		return fail_set(
			fail, ENOENT, "service",
			"no service is running here that you may use (see 'glovebox serve --help')");
	if (strchr(q->template_name, '/'))
		return fail_set(fail, ENOTSUP, "service", "--template DIR works only with --local");
	/* Only the owner of the machine may open it up, and the service has many users. */
	if (q->net.learn || *q->net.open)
		return fail_set(fail, ENOTSUP, "service", "%s works only with --local",
				q->net.learn ? "--net learn" : "--allow-private");
	for (size_t i = 0; i <= q->n_inputs; i++) {
		bool is_stdin = i == q->n_inputs;
		int64_t size;

		if (is_stdin && q->stdin_fd < 0)
			break;
		size = !is_stdin && q->inputs[i].is_dir ?
			       -ENOTSUP :
			       service_size_of(is_stdin ? q->stdin_fd : q->inputs[i].fd);
		if (size < 0)
			return fail_set(
				fail, ENOTSUP, "service",
				is_stdin ? "--stdin that is not a file works only with --local" :
					   "--in of a directory works only with --local");
		bytes += (uint64_t)size;
	}
	if (bytes > RUN_SERVICE_BODY_MAX)
		return fail_set(fail, EFBIG, "service",
				"code and inputs of more than %zu KiB work only with --local",
				RUN_SERVICE_BODY_MAX >> 10);
	return 0;
}

int run_service_choose(const struct run_request *q, bool *ret_service, struct fail *fail)
{
	struct fail why = { 0 };
	bool asked = q->where == RUN_WHERE_SERVICE;

	*ret_service = false;
	if (q->where == RUN_WHERE_LOCAL || (!asked && geteuid() == 0))
		return 0;
	if (run_service_possible(q, &why) == 0) {
		*ret_service = true;
		return 0;
	}
	if (asked) {
		*fail = why;
		return -EINVAL;
	}
	return 0;
}

struct conversation {
	const struct run_request *request;
	struct run_result *result;
	struct buf line;
	bool has_result;
	struct fail fail;
};

static int service_on_line(struct conversation *c, const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL), *part;
	int r = o ? 0 : -EPROTO;

	for (int is_err = 0; r == 0 && is_err < 2; is_err++) {
		size_t n;
		_cleanup_(freep) unsigned char *data = NULL;

		part = json_object_get(o, is_err ? "stderr_base64" : "stdout_base64");
		if (!part)
			continue;
		data = run_service_decode(part, &n);
		r = data ? run_emit(c->request, c->result, is_err, data, n) : -EPROTO;
		if (r == -EPIPE)
			c->result->cancelled_by = SIGPIPE;
	}
	part = json_object_get(o, "error");
	if (part)
		r = fail_set(&c->fail, EPROTO, "service", "%.200s", json_string_value(part));
	part = json_object_get(o, "result");
	if (r == 0 && part) {
		r = run_service_result(c->request, part, c->result);
		c->has_result = r == 0;
	}
	json_decref(o);
	return r;
}

static int service_on_bytes(struct conversation *c, int fd)
{
	static char chunk[65536];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	size_t seen =
		c->line.len; /* there is no end of a line in that: a result has many megabytes */
	unsigned char *end;

	if (n <= 0)
		return n < 0 && errno == EINTR ? 1 : (int)n;
	if (buf_add(&c->line, chunk, (size_t)n) < 0)
		return -ENOMEM;
	while ((end = memchr(c->line.data + seen, '\n', c->line.len - seen))) {
		size_t len = (size_t)(end - c->line.data);
		int r = service_on_line(c, (char *)c->line.data, len);

		memmove(c->line.data, end + 1, c->line.len - len - 1);
		c->line.len -= len + 1;
		seen = 0;
		if (r < 0)
			return r;
	}
	return 1;
}

/* --- the other program ----------------------------------------------------------------------- */

/* The request is in a file of memory, so writing it cannot wait for its reader. */
static int request_fd(const char *text)
{
	_cleanup_(fd_closep) int fd = memfd_create("request", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -EIO;
	return take_fd(&fd);
}

static int service_converse(struct conversation *c, int out_fd)
{
	for (;;) {
		struct pollfd polls[] = {
			{ .fd = out_fd, .events = POLLIN },
			{ .fd = c->request->signal_fd, .events = POLLIN },
		};
		int r = 1;

		if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
			return -errno;
		if (polls[1].revents) {
			struct signalfd_siginfo info;

			if (read(c->request->signal_fd, &info, sizeof(info)) == sizeof(info))
				c->result->cancelled_by = (int)info.ssi_signo;
			return -EINTR;
		}
		if (polls[0].revents)
			r = service_on_bytes(c, out_fd);
		if (r <= 0)
			return r;
	}
}

static int run_through_client(struct conversation *c, const char *text)
{
	_cleanup_(fd_closep) int in_fd = request_fd(text);
	int ends[2] = { -EBADF, -EBADF }, r;
	pid_t pid;

	if (in_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -EIO;
	pid = client_spawn("run-request", c->request->where == RUN_WHERE_SERVICE, in_fd, ends[1]);
	fd_close(ends[1]);
	r = pid < 0 ? (int)pid : service_converse(c, ends[0]);
	fd_close(ends[0]);
	/* Hung up on, it notices, and so does the service, which ends the run. */
	if (pid > 0 && r < 0)
		(void)kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int run_in_service(const struct run_request *q, struct run_result *r)
{
	struct conversation c = { .request = q, .result = r, .line = BUF_INIT(LINE_MAX_BYTES) };
	_cleanup_(freep) char *text = run_service_request(q);
	int e = text ? run_through_client(&c, text) : -ENOMEM;

	r->exit_code = c.has_result ? r->exit_code : -1;
	buf_done(&c.line);
	(void)run_emit_end(q);
	if (e == 0 && c.has_result)
		return 0;
	r->status = RUN_SETUP_ERROR;
	(void)snprintf(r->message, sizeof(r->message), "%s",
		       c.fail.msg[0] ? c.fail.msg : "the service broke off");
	return e < 0 ? e : -EPROTO;
}
