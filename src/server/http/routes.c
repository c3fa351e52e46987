/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/routes.h"

#include "server/http/schema.h"

static const char *const methods[] = { "get", "put", "post", "delete", "patch" };

static int spoilt(struct fail *fail, const char *operation, const char *what)
{
	return fail_set(fail, EINVAL, "openapi.json", "%s: %s", operation, what);
}

static const json_t *find_parameter(const json_t *parameters, const char *where, const char *name,
				    size_t name_len)
{
	const json_t *p;
	size_t i;

	json_array_foreach(parameters, i, p) {
		const char *in = json_string_value(json_object_get(p, "in"));
		const char *its = json_string_value(json_object_get(p, "name"));

		if (in && its && strcmp(in, where) == 0 && strlen(its) == name_len &&
		    memcmp(its, name, name_len) == 0)
			return p;
	}
	return NULL;
}

/* "/sandboxes/{sandboxID}" into literal and parameter segments. */
static int read_path(struct operation *op, const char *path, const json_t *parameters)
{
	const char *text = path;

	while (*text == '/') {
		size_t n = strcspn(++text, "/");
		const json_t *p;

		if (n == 0 || op->n_segments >= URI_SEGMENTS_MAX)
			return -EINVAL;
		op->segment[op->n_segments].text = text;
		op->segment[op->n_segments].len = n;
		if (text[0] == '{') {
			if (text[n - 1] != '}' || op->n_params++ >= HTTP_PARAMS_MAX)
				return -EINVAL;
			p = find_parameter(parameters, "path", text + 1, n - 2);
			op->segment[op->n_segments].is_param = true;
			op->segment[op->n_segments].schema = json_object_get(p, "schema");
		}
		op->n_segments++;
		text += n;
	}
	return *text == '\0' ? 0 : -EINVAL;
}

static int read_query(struct operation *op, const json_t *parameters)
{
	const json_t *p;
	size_t i;

	json_array_foreach(parameters, i, p) {
		const char *in = json_string_value(json_object_get(p, "in"));

		if (!in || strcmp(in, "query") != 0)
			continue;
		if (op->n_query >= OPERATION_QUERY_MAX)
			return -E2BIG;
		op->query[op->n_query].name = json_string_value(json_object_get(p, "name"));
		op->query[op->n_query].required = json_is_true(json_object_get(p, "required"));
		op->query[op->n_query].schema = json_object_get(p, "schema");
		if (!op->query[op->n_query].name)
			return -EINVAL;
		op->n_query++;
	}
	return 0;
}

static const struct route *find_route(const struct route *routes, const char *operation)
{
	for (; routes->operation; routes++)
		if (strcmp(routes->operation, operation) == 0)
			return routes;
	return NULL;
}

static int check_schemas(const json_t *doc, const struct operation *op, struct fail *fail)
{
	const char *name = op->route->operation;
	struct check_error err = { 0 };
	char text[sizeof(struct check_error) + 2];
	int r = 0;

	for (size_t i = 0; i < op->n_segments && r == 0; i++)
		if (op->segment[i].schema)
			r = check_schema(doc, op->segment[i].schema, &err);
	for (size_t i = 0; i < op->n_query && r == 0; i++)
		r = check_schema(doc, op->query[i].schema, &err);
	if (r == 0 && op->body)
		r = check_schema(doc, op->body, &err);
	if (r == 0)
		return 0;
	check_error_text(&err, text, sizeof(text));
	return spoilt(fail, name, text);
}

static int routes_read_body(struct operation *op, const json_t *json)
{
	const json_t *body = json_object_get(json, "requestBody");
	const json_t *type = json_object_get(json_object_get(body, "content"), "application/json");

	op->body_required = json_is_true(json_object_get(body, "required"));
	if (op->route->body == HTTP_BODY_JSON)
		op->body = json_object_get(type, "schema");
	/* A body that a handler reads as JSON must be described, and the other way round. */
	return (op->route->body == HTTP_BODY_JSON) == (op->body != NULL) ? 0 : -EINVAL;
}

static int find_plane(const char *name, enum plane *ret)
{
	static const char *const names[_PLANE_MAX] = { [PLANE_CONTROL] = "control",
						       [PLANE_ENVD] = "envd",
						       [PLANE_INTERPRETER] = "interpreter" };

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum plane)i;
			return 0;
		}
	return -EINVAL;
}

static int read_operation(struct routes *rs, const char *path, const char *method,
			  const json_t *json, const struct route *const handlers[_PLANE_MAX],
			  struct fail *fail)
{
	const char *name = json_string_value(json_object_get(json, "operationId"));
	const char *plane = json_string_value(json_object_get(json, "x-plane"));
	const char *own_path = json_string_value(json_object_get(json, "x-path"));
	const json_t *parameters = json_object_get(json, "parameters");
	struct operation *op = &rs->operations[rs->n_operations];

	if (!name || find_plane(plane, &op->plane) < 0)
		return spoilt(fail, path,
			      "needs operationId and x-plane (control, envd or interpreter)");
	op->route = find_route(handlers[op->plane], name);
	if (!op->route)
		return spoilt(fail, name, "is described, but nothing handles it");
	op->method = method;
	/* Two planes may have the same path, for which OpenAPI has no words: x-path is the real
	 * one. */
	op->memory = strdup(own_path ? own_path : path);
	if (!op->memory)
		return -ENOMEM;
	rs->n_operations++;
	if (read_path(op, op->memory, parameters) < 0 || read_query(op, parameters) < 0)
		return spoilt(fail, name, "has a path or parameters that cannot be used");
	if (routes_read_body(op, json) < 0)
		return spoilt(fail, name, "its JSON body and its handler do not agree");
	return check_schemas(rs->doc, op, fail);
}

static const char *method_name(const char *lower)
{
	static const char *const upper[] = { "GET", "PUT", "POST", "DELETE", "PATCH" };

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i], lower) == 0)
			return upper[i];
	return NULL;
}

static int read_paths(struct routes *rs, const struct route *const handlers[_PLANE_MAX],
		      struct fail *fail)
{
	const json_t *paths = json_object_get(rs->doc, "paths");
	const char *path, *key;
	json_t *item, *json;
	size_t most = 0;
	int r;

	json_object_foreach((json_t *)(uintptr_t)paths, path, item)
		most += json_object_size(item);
	rs->operations = calloc(most ? most : 1, sizeof(struct operation));
	if (!rs->operations)
		return -ENOMEM;
	json_object_foreach((json_t *)(uintptr_t)paths, path, item) {
		json_object_foreach(item, key, json) {
			const char *method = method_name(key);

			if (!method)
				return spoilt(fail, path, "has something that is not a method");
			r = read_operation(rs, path, method, json, handlers, fail);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int check_all_described(const struct routes *rs, const struct route *routes,
			       struct fail *fail)
{
	for (; routes->operation; routes++) {
		bool found = false;

		for (size_t i = 0; i < rs->n_operations && !found; i++)
			found = rs->operations[i].route == routes;
		if (!found)
			return spoilt(fail, routes->operation, "is handled, but not described");
	}
	return 0;
}

int routes_new(const char *json, size_t len, const struct route *const handlers[_PLANE_MAX],
	       struct routes **ret, struct fail *fail)
{
	struct routes *rs = calloc(1, sizeof(*rs));
	json_error_t e;
	int r;

	if (!rs)
		return fail_set(fail, ENOMEM, "openapi.json", "out of memory");
	rs->doc = json_loadb(json, len, JSON_REJECT_DUPLICATES, &e);
	r = rs->doc ? read_paths(rs, handlers, fail) :
		      fail_set(fail, EINVAL, "openapi.json", "line %d: %s", e.line, e.text);
	for (size_t i = 0; r == 0 && i < _PLANE_MAX; i++)
		r = check_all_described(rs, handlers[i], fail);
	if (r < 0) {
		routes_free(rs);
		return r;
	}
	*ret = rs;
	return 0;
}

void routes_free(struct routes *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < rs->n_operations; i++)
		free(rs->operations[i].memory);
	free(rs->operations);
	json_decref(rs->doc);
	free(rs);
}

/* AP-08: literals are compared as they came; nothing is decoded, folded or tidied up first. */
static bool path_is(const struct operation *op, const struct uri_path *path)
{
	if (op->n_segments != path->n)
		return false;
	for (size_t i = 0; i < path->n; i++)
		if (!op->segment[i].is_param &&
		    (op->segment[i].len != path->segment[i].len ||
		     memcmp(op->segment[i].text, path->segment[i].text, path->segment[i].len) != 0))
			return false;
	return true;
}

static void allow(const char *method, char ret[ROUTES_ALLOW_SIZE])
{
	size_t n = strlen(ret);

	if (strstr(ret, method))
		return;
	(void)snprintf(ret + n, ROUTES_ALLOW_SIZE - n, "%s%s%s", n ? ", " : "", method,
		       strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

const struct operation *routes_match(const struct routes *rs, enum plane plane, const char *method,
				     const struct uri_path *path, char ret_allow[ROUTES_ALLOW_SIZE])
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	const struct operation *best = NULL;

	ret_allow[0] = '\0';
	for (size_t i = 0; i < rs->n_operations; i++) {
		const struct operation *op = &rs->operations[i];

		if (op->plane != plane || !path_is(op, path))
			continue;
		allow(op->method, ret_allow);
		/* "/sandboxes/metrics" before "/sandboxes/{id}". */
		if (strcmp(op->method, wanted) == 0 && (!best || op->n_params < best->n_params))
			best = op;
	}
	return best;
}
