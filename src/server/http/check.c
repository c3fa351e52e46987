/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/check.h"

#include "server/http/check_priv.h"

const json_t *schema_resolve(const json_t *doc, const json_t *schema)
{
	static const char prefix[] = "#/components/schemas/";

	for (unsigned hops = 0; hops < REF_HOPS_MAX; hops++) {
		const char *ref = json_string_value(json_object_get(schema, "$ref"));

		if (!ref)
			return schema;
		if (strncmp(ref, prefix, sizeof(prefix) - 1) != 0)
			return NULL;
		schema = json_object_get(json_object_get(json_object_get(doc, "components"),
							 "schemas"),
					 ref + sizeof(prefix) - 1);
	}
	return NULL;
}

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "array";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
	default:
		return "null";
	}
}

static bool type_is(const json_t *v, const char *type)
{
	return strcmp(type, type_name(v)) == 0 ||
	       (strcmp(type, "number") == 0 && json_is_integer(v));
}

/* "type" is a name or a list of names. */
static int check_type(const json_t *type, const json_t *v, const struct place *at,
		      struct check_error *err)
{
	char names[80] = "";
	size_t n = 0, i;
	const json_t *one;

	if (!type)
		return 0;
	if (json_is_string(type))
		return type_is(v, json_string_value(type)) ?
			       0 :
			       check_fail(err, at, "must be of type %s, not %s",
					  json_string_value(type), type_name(v));
	json_array_foreach(type, i, one) {
		const char *name = json_string_value(one);

		if (type_is(v, name))
			return 0;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? " or " : "", name);
		if (n >= sizeof(names))
			n = sizeof(names) - 1;
	}
	return check_fail(err, at, "must be of type %s, not %s", names, type_name(v));
}

static int check_enum(const json_t *allowed, const json_t *v, const struct place *at,
		      struct check_error *err)
{
	char names[128] = "";
	size_t n = 0, i;
	const json_t *one;

	if (!allowed)
		return 0;
	json_array_foreach(allowed, i, one) {
		if (json_equal(one, v))
			return 0;
		if (json_is_string(one) && n < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      json_string_value(one));
	}
	return check_fail(err, at, "must be one of: %s", names);
}

static int check_number(const json_t *schema, const json_t *v, const struct place *at,
			struct check_error *err)
{
	const json_t *min = json_object_get(schema, "minimum");
	const json_t *max = json_object_get(schema, "maximum");

	if (json_is_integer(v)) {
		json_int_t value = json_integer_value(v);

		if (min && value < json_integer_value(min))
			return check_fail(err, at, "must be at least %" JSON_INTEGER_FORMAT,
					  json_integer_value(min));
		if (max && value > json_integer_value(max))
			return check_fail(err, at, "must be at most %" JSON_INTEGER_FORMAT,
					  json_integer_value(max));
	} else if (json_is_real(v)) {
		if (min && json_real_value(v) < json_number_value(min))
			return check_fail(err, at, "must be at least %g", json_number_value(min));
		if (max && json_real_value(v) > json_number_value(max))
			return check_fail(err, at, "must be at most %g", json_number_value(max));
	}
	return 0;
}

static int check_count(const json_t *schema, const char *min_key, const char *max_key, size_t n,
		       const char *what, const struct place *at, struct check_error *err)
{
	const json_t *min = json_object_get(schema, min_key);
	const json_t *max = json_object_get(schema, max_key);

	if (min && n < (size_t)json_integer_value(min))
		return check_fail(err, at, "must have at least %" JSON_INTEGER_FORMAT " %s",
				  json_integer_value(min), what);
	if (max && n > (size_t)json_integer_value(max))
		return check_fail(err, at, "must have at most %" JSON_INTEGER_FORMAT " %s",
				  json_integer_value(max), what);
	return 0;
}

static int check_string(const json_t *schema, const json_t *v, const struct place *at,
			struct check_error *err)
{
	const char *format = json_string_value(json_object_get(schema, "x-format"));
	int r = check_count(schema, "minLength", "maxLength", json_string_length(v), "bytes", at,
			    err);

	if (r < 0 || !format)
		return r;
	return format_ok(format, json_string_value(v)) ?
		       0 :
		       check_fail(err, at, "is not a valid %s", format);
}

static int check_array(const json_t *doc, const json_t *schema, const json_t *v,
		       const struct place *at, struct check_error *err)
{
	const json_t *items = json_object_get(schema, "items"), *one;
	size_t i;
	int r = check_count(schema, "minItems", "maxItems", json_array_size(v), "items", at, err);

	if (r < 0 || !items)
		return r;
	json_array_foreach(v, i, one) {
		struct place inner = { .outer = at, .index = i };

		r = check_at(doc, items, one, &inner, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_required(const json_t *required, const json_t *v, const struct place *at,
			  struct check_error *err)
{
	const json_t *name;
	size_t i;

	json_array_foreach(required, i, name) {
		struct place inner = { .outer = at, .name = json_string_value(name) };

		if (!json_object_get(v, json_string_value(name)))
			return check_fail(err, &inner, "is required");
	}
	return 0;
}

/* Names and texts, all together: what many of the longest would come to is more than anybody needs. */
static int check_bytes(const json_t *schema, const json_t *v, const struct place *at,
		       struct check_error *err)
{
	const json_t *max = json_object_get(schema, "x-maxBytes");
	const char *name;
	json_t *value;
	size_t n = 0;

	if (!max)
		return 0;
	json_object_foreach((json_t *)(uintptr_t)v, name, value)
		n += strlen(name) + json_string_length(value);
	if (n <= (size_t)json_integer_value(max))
		return 0;
	return check_fail(err, at, "must have at most %" JSON_INTEGER_FORMAT " bytes in all",
			  json_integer_value(max));
}

static int check_object(const json_t *doc, const json_t *schema, const json_t *v,
			const struct place *at, struct check_error *err)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *others = json_object_get(schema, "additionalProperties");
	const char *name;
	json_t *value;
	int r = check_count(schema, "minProperties", "maxProperties", json_object_size(v),
			    "entries", at, err);

	if (r == 0)
		r = check_bytes(schema, v, at, err);
	if (r == 0)
		r = check_required(json_object_get(schema, "required"), v, at, err);
	if (r < 0)
		return r;
	json_object_foreach((json_t *)(uintptr_t)v, name, value) {
		const json_t *inner_schema = json_object_get(properties, name);
		struct place inner = { .outer = at, .name = name };

		if (!inner_schema && json_is_false(others))
			return check_fail(err, &inner, "there is no such option");
		if (!inner_schema && json_is_object(others))
			inner_schema = others;
		r = inner_schema ? check_at(doc, inner_schema, value, &inner, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* One of them must hold; the error is that of the last. */
static int check_any(const json_t *doc, const json_t *list, const json_t *v, const struct place *at,
		     struct check_error *err)
{
	const json_t *one;
	size_t i;
	int r = 0;

	json_array_foreach(list, i, one) {
		r = check_at(doc, one, v, at, err);
		if (r == 0)
			return 0;
	}
	return r;
}

int check_at(const json_t *doc, const json_t *schema, const json_t *v, const struct place *at,
	     struct check_error *err)
{
	int r;

	schema = schema_resolve(doc, schema);
	r = check_type(json_object_get(schema, "type"), v, at, err);
	if (r == 0)
		r = check_enum(json_object_get(schema, "enum"), v, at, err);
	if (r == 0)
		r = check_any(doc, json_object_get(schema, "anyOf"), v, at, err);
	if (r == 0 && json_is_number(v))
		r = check_number(schema, v, at, err);
	if (r == 0 && json_is_string(v))
		r = check_string(schema, v, at, err);
	if (r == 0 && json_is_array(v))
		r = check_array(doc, schema, v, at, err);
	if (r == 0 && json_is_object(v))
		r = check_object(doc, schema, v, at, err);
	return r;
}

int check_value(const json_t *doc, const json_t *schema, const json_t *value,
		struct check_error *err)
{
	return check_at(doc, schema, value, NULL, err);
}
