/* SPDX-License-Identifier: Apache-2.0 */
/* What clients ask of commands, from JSON to something with types and bounds. */
#include "server/envd/envd.h"

#include <signal.h>

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
