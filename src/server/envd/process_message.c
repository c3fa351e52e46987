/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of process.Process, both ways. The texts of a command's end are those of Go,
 * which E2B's clients look at. */
#include "server/envd/envd.h"

#include "base/utf8.h"
#include "server/http/schema.h"

#include <signal.h>

/* --- what clients ask for -------------------------------------------------------------------- */

#define ARGS_MAX 4000 /* the agent takes 4096, the command's own name among them */
#define ENVS_MAX 900  /* and 1024 variables, the service's own among them */
#define STRING_MAX                                                                                 \
	131071 /* of an argument, or of a variable with its name: the kernel's own limit */

static int check_args(const json_t *process, const json_t **ret, struct rpc_error *e)
{
	const json_t *args = rpc_member(process, "args");
	json_t *arg;
	size_t i;

	if (args && (!json_is_array(args) || json_array_size(args) > ARGS_MAX))
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"process.args: must be an array of at most %d strings", ARGS_MAX);
	json_array_foreach(args, i, arg) {
		if (!json_is_string(arg) || json_string_length(arg) > STRING_MAX)
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"process.args[%zu]: must be a string of at most %d bytes",
					i, STRING_MAX);
	}
	*ret = args;
	return 0;
}

static int check_envs(const json_t *process, const json_t **ret, struct rpc_error *e)
{
	json_t *envs = rpc_member(process, "envs"), *value;
	const char *name;

	if (envs && (!json_is_object(envs) || json_object_size(envs) > ENVS_MAX))
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"process.envs: must be an object of at most %d strings", ENVS_MAX);
	json_object_foreach(envs, name, value) {
		if (!*name || strchr(name, '='))
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"process.envs: \"%.100s\" is not a variable's name", name);
		if (!json_is_string(value) || strlen(name) + json_string_length(value) > STRING_MAX)
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"process.envs.%.100s: must be a string of at most %d bytes",
					name, STRING_MAX);
	}
	*ret = envs;
	return 0;
}

static int check_process(const json_t *message, struct envd_start *s, struct rpc_error *e)
{
	const json_t *process = NULL;
	int r = rpc_object(message, "process", &process, e);

	if (r == 0)
		r = rpc_string(process, "cmd", STRING_MAX, &s->cmd, e);
	if (r == 0 && (!s->cmd || !*s->cmd))
		r = rpc_fail(e, RPC_INVALID_ARGUMENT, "process.cmd: is missing");
	if (r == 0)
		r = check_args(process, &s->args, e);
	if (r == 0)
		r = check_envs(process, &s->envs, e);
	if (r == 0)
		r = rpc_string(process, "cwd", WIRE_PATH_MAX, &s->cwd, e);
	return r;
}

int envd_decode_start(const json_t *message, struct envd_start *ret, struct rpc_error *e)
{
	struct envd_start s = { 0 };
	int r = check_process(message, &s, e);

	if (r == 0)
		r = rpc_terminal(message, "pty", &s.pty, &s.rows, &s.cols, e);
	if (r == 0)
		r = rpc_string(message, "tag", ENVD_TAG_MAX, &s.tag, e);
	if (r == 0)
		r = rpc_bool(message, "stdin", &s.with_stdin, e);
	if (r < 0)
		return r;
	/* Old clients do not know the field, and they write to their commands. */
	if (!rpc_member(message, "stdin"))
		s.with_stdin = true;
	*ret = s;
	return 0;
}

int envd_decode_selector(const json_t *message, struct envd_selector *ret, struct rpc_error *e)
{
	const json_t *selector = NULL;
	const char *tag = NULL;
	uint64_t pid = 0;
	int r = rpc_object(message, "process", &selector, e);

	if (r == 0)
		r = rpc_number(selector, "pid", INT32_MAX, &pid, e);
	if (r == 0)
		r = rpc_string(selector, "tag", ENVD_TAG_MAX, &tag, e);
	if (r < 0)
		return r;
	if ((pid != 0) == (tag != NULL))
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"process: must have either a pid or a tag");
	*ret = (struct envd_selector){ .pid = (uint32_t)pid, .tag = tag };
	return 0;
}

int envd_decode_input(const json_t *message, enum wire_input_kind *ret_kind, unsigned char **ret,
		      size_t *ret_len, struct rpc_error *e)
{
	const json_t *input = NULL;
	int r = rpc_object(message, "input", &input, e);

	if (r < 0)
		return r;
	*ret_kind = rpc_member(input, "pty") ? WIRE_INPUT_PTY : WIRE_INPUT_PIPE;
	return rpc_bytes(input, *ret_kind == WIRE_INPUT_PTY ? "pty" : "stdin", ret, ret_len, e);
}

int envd_decode_signal(const json_t *message, uint32_t *ret, struct rpc_error *e)
{
	static const struct {
		const char *name;
		uint32_t number;
	} signals[] = { { "SIGNAL_SIGKILL", SIGKILL }, { "SIGNAL_SIGTERM", SIGTERM } };
	const json_t *value = rpc_member(message, "signal");

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if ((json_is_string(value) &&
		     strcmp(json_string_value(value), signals[i].name) == 0) ||
		    (json_is_integer(value) && json_integer_value(value) == signals[i].number)) {
			*ret = signals[i].number;
			return 0;
		}
	return rpc_fail(e, RPC_UNIMPLEMENTED, "signal: must be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
}

/* --- what they are told ---------------------------------------------------------------------- */

/* base64 and numbers need no escaping, so these messages are put together from fixed text. */
static int event_add(struct buf *out, const char *text)
{
	return buf_add(out, text, strlen(text));
}

int envd_event_start(struct buf *out, uint32_t pid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "{\"event\":{\"start\":{\"pid\":%u}}}", pid);
	return event_add(out, text);
}

int envd_event_data(struct buf *out, enum wire_type type, const void *data, size_t len)
{
	const char *name = type == WIRE_OUT ? "stdout" : type == WIRE_ERR ? "stderr" : "pty";
	char text[64];
	int r;

	(void)snprintf(text, sizeof(text), "{\"event\":{\"data\":{\"%s\":\"", name);
	r = event_add(out, text);
	if (r == 0)
		r = rpc_base64_add(out, data, len);
	return r < 0 ? r : event_add(out, "\"}}}");
}

static const char *signal_text(int signal_number)
{
	static const char *const names[] = {
		[SIGHUP] = "hangup",
		[SIGINT] = "interrupt",
		[SIGQUIT] = "quit",
		[SIGILL] = "illegal instruction",
		[SIGTRAP] = "trace/breakpoint trap",
		[SIGABRT] = "aborted",
		[SIGBUS] = "bus error",
		[SIGFPE] = "floating point exception",
		[SIGKILL] = "killed",
		[SIGUSR1] = "user defined signal 1",
		[SIGSEGV] = "segmentation fault",
		[SIGUSR2] = "user defined signal 2",
		[SIGPIPE] = "broken pipe",
		[SIGALRM] = "alarm clock",
		[SIGTERM] = "terminated",
	};

	return (size_t)signal_number < ARRAY_SIZE(names) ? names[signal_number] : NULL;
}

int envd_exit_text(const struct wire_exit *end, char ret[ENVD_STATUS_SIZE])
{
	const char *name, *core = end->core ? " (core dumped)" : "";

	if (!wire_exit_ok(end))
		return -EPROTO;
	name = signal_text(end->signal);
	if (end->signal == 0)
		(void)snprintf(ret, ENVD_STATUS_SIZE, "exit status %d", end->code);
	else if (name)
		(void)snprintf(ret, ENVD_STATUS_SIZE, "signal: %s%s", name, core);
	else
		(void)snprintf(ret, ENVD_STATUS_SIZE, "signal: signal %d%s", end->signal, core);
	return 0;
}

int envd_event_end(struct buf *out, const struct wire_exit *end, const char *why)
{
	char status[ENVD_STATUS_SIZE], text[4 * ENVD_STATUS_SIZE + RUN_LIMIT_TEXT_SIZE];
	int r = envd_exit_text(end, status);

	if (r < 0)
		return r;
	if (end->code == 0)
		(void)snprintf(text, sizeof(text),
			       "{\"event\":{\"end\":{\"exited\":true,\"status\":\"%s\"}}}", status);
	else
		(void)snprintf(text, sizeof(text),
			       "{\"event\":{\"end\":{\"exitCode\":%d,\"exited\":%s,"
			       "\"status\":\"%s\",\"error\":\"%s%s%s\"}}}",
			       end->code, end->code > 0 ? "true" : "false", status, status,
			       *why ? "; " : "", why);
	return event_add(out, text);
}

/* --- what the agent keeps beside a command --------------------------------------------------- */

/*
 * The agent keeps a label beside each command, so that List knows what was started even when
 * another server process started it. It comes back from the box, so it is read as what it is:
 * something the box says.
 */

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

/* As much of it as there is room for: a list shows what runs, it need not be able to start it
 * again. */
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
