/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a schema over when the service starts: everything in it must be something that http/check.c does. */
#include "server/http/check_priv.h"

#define SCHEMA_DEPTH_MAX 16

enum keyword_kind {
	KEYWORD_NOTE, /* for readers only */
	KEYWORD_TYPE,
	KEYWORD_NUMBER,
	KEYWORD_COUNT,
	KEYWORD_LIST,
	KEYWORD_SCHEMA,
	KEYWORD_SCHEMA_OR_BOOLEAN,
	KEYWORD_SCHEMA_LIST,
	KEYWORD_SCHEMA_MAP,
	KEYWORD_FORMAT,
};

static const struct keyword {
	const char *name;
	enum keyword_kind kind;
} keywords[] = {
	{ "description", KEYWORD_NOTE },    { "title", KEYWORD_NOTE },
	{ "default", KEYWORD_NOTE },        { "example", KEYWORD_NOTE },
	{ "examples", KEYWORD_NOTE },       { "deprecated", KEYWORD_NOTE },
	{ "format", KEYWORD_NOTE },         { "type", KEYWORD_TYPE },
	{ "minimum", KEYWORD_NUMBER },      { "maximum", KEYWORD_NUMBER },
	{ "minLength", KEYWORD_COUNT },     { "maxLength", KEYWORD_COUNT },
	{ "minItems", KEYWORD_COUNT },      { "maxItems", KEYWORD_COUNT },
	{ "minProperties", KEYWORD_COUNT }, { "maxProperties", KEYWORD_COUNT },
	{ "enum", KEYWORD_LIST },           { "required", KEYWORD_LIST },
	{ "items", KEYWORD_SCHEMA },        { "additionalProperties", KEYWORD_SCHEMA_OR_BOOLEAN },
	{ "anyOf", KEYWORD_SCHEMA_LIST },   { "properties", KEYWORD_SCHEMA_MAP },
	{ "x-format", KEYWORD_FORMAT },     { "x-maxBytes", KEYWORD_COUNT },
};

static int look(const json_t *doc, const json_t *schema, const struct place *at, unsigned depth,
		struct check_error *err);

static bool type_known(const json_t *name)
{
	static const char *const types[] = { "object", "array",   "string", "integer",
					     "number", "boolean", "null" };

	for (size_t i = 0; i < ARRAY_SIZE(types) && json_is_string(name); i++)
		if (strcmp(types[i], json_string_value(name)) == 0)
			return true;
	return false;
}

static bool types_known(const json_t *type)
{
	const json_t *one;
	size_t i;

	if (json_is_string(type))
		return type_known(type);
	json_array_foreach(type, i, one)
		if (!type_known(one))
			return false;
	return json_array_size(type) > 0;
}

static int look_list(const json_t *doc, const json_t *list, const struct place *at, unsigned depth,
		     struct check_error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		struct place inner = { .outer = at, .index = i };
		int r = look(doc, one, &inner, depth + 1, err);

		if (r < 0)
			return r;
	}
	return json_array_size(list) ? 0 : check_fail(err, at, "must be a list of schemas");
}

static int look_map(const json_t *doc, const json_t *map, const struct place *at, unsigned depth,
		    struct check_error *err)
{
	const char *name;
	json_t *one;

	json_object_foreach((json_t *)(uintptr_t)map, name, one) {
		struct place inner = { .outer = at, .name = name };
		int r = look(doc, one, &inner, depth + 1, err);

		if (r < 0)
			return r;
	}
	return json_is_object(map) ? 0 : check_fail(err, at, "must be a map of schemas");
}

static int look_keyword(const json_t *doc, enum keyword_kind kind, const json_t *v,
			const struct place *at, unsigned depth, struct check_error *err)
{
	bool ok = true;

	switch (kind) {
	case KEYWORD_NOTE:
		break;
	case KEYWORD_TYPE:
		ok = types_known(v);
		break;
	case KEYWORD_NUMBER:
		ok = json_is_integer(v);
		break;
	case KEYWORD_COUNT:
		ok = json_is_integer(v) && json_integer_value(v) >= 0;
		break;
	case KEYWORD_LIST:
		ok = json_array_size(v) > 0;
		break;
	case KEYWORD_FORMAT:
		ok = json_is_string(v) && format_known(json_string_value(v));
		break;
	case KEYWORD_SCHEMA_OR_BOOLEAN:
		if (json_is_boolean(v))
			break;
		return look(doc, v, at, depth + 1, err);
	case KEYWORD_SCHEMA:
		return look(doc, v, at, depth + 1, err);
	case KEYWORD_SCHEMA_LIST:
		return look_list(doc, v, at, depth, err);
	case KEYWORD_SCHEMA_MAP:
		return look_map(doc, v, at, depth, err);
	}
	return ok ? 0 : check_fail(err, at, "has a value that is not understood");
}

static const struct keyword *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (strcmp(keywords[i].name, name) == 0)
			return &keywords[i];
	return NULL;
}

static int look(const json_t *doc, const json_t *schema, const struct place *at, unsigned depth,
		struct check_error *err)
{
	const char *name;
	json_t *v;

	schema = schema_resolve(doc, schema);
	if (!json_is_object(schema))
		return check_fail(err, at, "is not a schema, or a reference to none");
	if (depth > SCHEMA_DEPTH_MAX)
		return check_fail(err, at, "is nested too deeply, or refers to itself");
	json_object_foreach((json_t *)(uintptr_t)schema, name, v) {
		struct place inner = { .outer = at, .name = name };
		const struct keyword *k = find(name);
		int r = k ? look_keyword(doc, k->kind, v, &inner, depth, err) :
			    check_fail(err, &inner, "is not implemented");

		if (r < 0)
			return r;
	}
	return 0;
}

int check_schema(const json_t *doc, const json_t *schema, struct check_error *err)
{
	return look(doc, schema, NULL, 0, err);
}
