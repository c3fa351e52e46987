/* SPDX-License-Identifier: Apache-2.0 */
/* What POST /execute asks for. Pure. */
#include "server/interp/interp.h"

#include <ctype.h>

static const char *text_member(const json_t *body, const char *name)
{
	return json_string_value(json_object_get(body, name)); /* NULL for null, too */
}

static uint64_t number_member(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* 0 means "no limit" on both sides. */
static uint64_t smaller(uint64_t asked, uint64_t most)
{
	if (asked == 0 || most == 0)
		return asked ? asked : most;
	return MIN(asked, most);
}

static struct interp_limits execute_read_limits(const json_t *limits,
						const struct interp_limits *most)
{
	return (struct interp_limits){
		.wall_ms = smaller(number_member(limits, "wall_ms"), most->wall_ms),
		.cpu_ms = smaller(number_member(limits, "cpu_ms"), most->cpu_ms),
		.memory_bytes =
			smaller(number_member(limits, "memory_mb") << 20, most->memory_bytes),
		.output_bytes = smaller(number_member(limits, "output_bytes"), most->output_bytes),
	};
}

struct interp_limits interp_config_limits(const struct config *c)
{
	return (struct interp_limits){
		.wall_ms = c->interpreter_cell_timeout,
		.cpu_ms = c->interpreter_cell_cpu,
		.memory_bytes = c->interpreter_cell_memory,
		.output_bytes = c->interpreter_cell_output,
	};
}

struct run_limits interp_run_limits(const struct interp_limits *l)
{
	return (struct run_limits){
		.timeout_us = l->wall_ms * 1000,
		.cpu_time_us = l->cpu_ms * 1000,
		.memory_bytes = l->memory_bytes,
	};
}

static int check_env(const json_t *env, struct rpc_error *e)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value) {
		if (!*name || strchr(name, '='))
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"env_vars: '%.64s' is not a name of a variable", name);
		/* One frame each: NAME=VALUE. */
		if (strlen(name) + 1 + json_string_length(value) > WIRE_DATA_MAX)
			return rpc_fail(e, RPC_INVALID_ARGUMENT,
					"env_vars: %.64s is larger than %zu bytes", name,
					(size_t)WIRE_DATA_MAX);
	}
	return 0;
}

int interp_read_execute(const json_t *body, const struct interp_limits *most,
			struct interp_execute *ret, struct rpc_error *e)
{
	const json_t *code = json_object_get(body, "code"),
		     *env = json_object_get(body, "env_vars");
	struct interp_execute x = {
		.code = json_string_value(code),
		.code_len = json_string_length(code),
		.context = text_member(body, "context_id"),
		.language = text_member(body, "language"),
		.env = json_is_object(env) ? env : NULL,
		.limits = execute_read_limits(json_object_get(body, "limits"), most),
	};

	if (x.context && x.language)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"Only one of context_id or language can be provided");
	if (check_env(x.env, e) < 0)
		return -EREMOTEIO;
	*ret = x;
	return 0;
}

int interp_language_name(const char *text, char ret[static LANGUAGE_NAME_MAX + 1])
{
	size_t n;

	text += strspn(text, " \t\r\n");
	n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	if (n == 0 || n > LANGUAGE_NAME_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		ret[i] = (char)tolower((unsigned char)text[i]);
	ret[n] = '\0';
	return 0;
}

static bool is_word(unsigned char c)
{
	return isalnum(c) || c == '_' || c >= 0x80;
}

static bool code_has_word(const char *code, size_t len, const char *word, size_t word_len)
{
	const char *at = code, *end = code + len;

	while ((at = memmem(at, (size_t)(end - at), word, word_len))) {
		bool begins = at == code || !is_word((unsigned char)at[-1]);
		bool ends = at + word_len == end || !is_word((unsigned char)at[word_len]);

		if (begins && ends)
			return true;
		at += word_len;
	}
	return false;
}

bool interp_mentions(const char *code, size_t len, const char *names)
{
	while (*names) {
		size_t n = strcspn(names, " ,"), first = strcspn(names, " ,.");

		if (first && code_has_word(code, len, names, first))
			return true;
		names += n + (names[n] != '\0');
	}
	return false;
}
