/* SPDX-License-Identifier: Apache-2.0 */
/* What several verbs do. */
#include "client/client.h"

#include "base/parse.h"
#include "client/api/api.h"

const char *client_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

int client_help(const char *help, bool asked)
{
	(void)fputs(help, asked ? stdout : stderr);
	return asked ? CLIENT_OK : CLIENT_USAGE;
}

int client_path(const char *id, const char *rest, char *ret, size_t size)
{
	_cleanup_(freep) char *escaped = api_escape(id);

	if (!escaped || (size_t)snprintf(ret, size, "/sandboxes/%s%s", escaped, rest) >= size)
		return -ENAMETOOLONG;
	return 0;
}

int client_seconds(const char *text, json_int_t *ret)
{
	uint64_t us;

	if (parse_duration_us(text, &us) < 0 || us < 1000000)
		return -EINVAL;
	*ret = (json_int_t)((us + 999999) / 1000000);
	return 0;
}

int client_ask(const char *method, int first, int argc, char **argv, const char *rest, json_t *body,
	       json_t **ret)
{
	_cleanup_(api_closep) struct api a = { 0 };
	struct fail fail = { 0 };
	char path[512];
	int r;

	if (argc - first != 1) {
		json_decref(body);
		return client_error(CLIENT_USAGE, "name one sandbox; 'glovebox ls' shows them");
	}
	if (client_path(argv[first], rest, path, sizeof(path)) < 0) {
		json_decref(body);
		return client_error(CLIENT_FAILURE, "%s: there is no such sandbox", argv[first]);
	}
	r = api_open(&a, &fail);
	if (r < 0)
		json_decref(body);
	else
		r = api_call(&a, method, path, body, ret, &fail);
	return r < 0 ? client_error(CLIENT_FAILURE, "%s", fail.msg) : CLIENT_OK;
}
