/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/schema.h"

#include "base/parse.h"
#include "server/http/host.h"

#include <math.h>
#include <stdarg.h>

#define REF_HOPS_MAX 4 /* "$ref" to a "$ref" … */
#define SCHEMA_DEPTH_MAX 16
#define PARAMETER_ITEMS_MAX 256 /* "a,b,c" */

/* Where in the value we are: a chain on the stack. */
struct check_place {
	const struct check_place *outer;
	const char *name; /* NULL: an array's item */
	size_t index;
};

/* --- what is wrong, and where ----------------------------------------------------------------- */

/* Appends the outer places first. */
static void place_text(const struct check_place *at, char *ret, size_t size)
{
	size_t n;

	if (!at)
		return;
	place_text(at->outer, ret, size);
	n = strlen(ret);
	if (at->name)
		(void)snprintf(ret + n, size - n, "%s%.64s", n ? "." : "", at->name);
	else
		(void)snprintf(ret + n, size - n, "[%zu]", at->index);
}

static _printf_(3, 4) int check_fail(struct check_error *err, const struct check_place *at,
				     const char *fmt, ...)
{
	va_list args;

	err->where[0] = '\0';
	place_text(at, err->where, sizeof(err->where));
	va_start(args, fmt);
	(void)vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return -EINVAL;
}

void check_error_text(const struct check_error *err, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s%s%s", err->where, err->where[0] ? ": " : "", err->what);
}

/* --- formats that a text may be required to have ---------------------------------------------- */

static bool is_lower_hex(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool is_one_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static const struct format {
	const char *name;
	bool (*ok)(const char *text);
} formats[] = {
	{ "sandbox id", host_id_ok },
	{ "hexadecimal text", is_lower_hex },
	{ "line of text", is_one_line },
};

static bool format_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return true;
	return false;
}

static bool format_ok(const char *name, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return formats[i].ok(text);
	return false;
}

/* --- a value ---------------------------------------------------------------------------------- */

/* What "$ref" leads to, or the schema itself; NULL when it leads nowhere. */
static const json_t *schema_resolve(const json_t *doc, const json_t *schema)
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

static int check_at(const json_t *doc, const json_t *schema, const json_t *v,
		    const struct check_place *at, struct check_error *err);

static const char *json_type_name(const json_t *v)
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
	return strcmp(type, json_type_name(v)) == 0 ||
	       (strcmp(type, "number") == 0 && json_is_integer(v));
}

/* "type" is a name or a list of names. */
static int check_type(const json_t *type, const json_t *v, const struct check_place *at,
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
					  json_string_value(type), json_type_name(v));
	json_array_foreach(type, i, one) {
		const char *name = json_string_value(one);

		if (type_is(v, name))
			return 0;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? " or " : "", name);
		if (n >= sizeof(names))
			n = sizeof(names) - 1;
	}
	return check_fail(err, at, "must be of type %s, not %s", names, json_type_name(v));
}

static int check_enum(const json_t *allowed, const json_t *v, const struct check_place *at,
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

static int check_number(const json_t *schema, const json_t *v, const struct check_place *at,
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
		       const char *what, const struct check_place *at, struct check_error *err)
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

static int check_string(const json_t *schema, const json_t *v, const struct check_place *at,
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
		       const struct check_place *at, struct check_error *err)
{
	const json_t *items = json_object_get(schema, "items"), *one;
	size_t i;
	int r = check_count(schema, "minItems", "maxItems", json_array_size(v), "items", at, err);

	if (r < 0 || !items)
		return r;
	json_array_foreach(v, i, one) {
		struct check_place inner = { .outer = at, .index = i };

		r = check_at(doc, items, one, &inner, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_required(const json_t *required, const json_t *v, const struct check_place *at,
			  struct check_error *err)
{
	const json_t *name;
	size_t i;

	json_array_foreach(required, i, name) {
		struct check_place inner = { .outer = at, .name = json_string_value(name) };

		if (!json_object_get(v, json_string_value(name)))
			return check_fail(err, &inner, "is required");
	}
	return 0;
}

/* Names and texts, all together: what many of the longest would come to is more than anybody
 * needs. */
static int check_bytes(const json_t *schema, const json_t *v, const struct check_place *at,
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
			const struct check_place *at, struct check_error *err)
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
		struct check_place inner = { .outer = at, .name = name };

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
static int check_any(const json_t *doc, const json_t *list, const json_t *v,
		     const struct check_place *at, struct check_error *err)
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

static int check_at(const json_t *doc, const json_t *schema, const json_t *v,
		    const struct check_place *at, struct check_error *err)
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

/* --- text to values: JSON bodies, parameters -------------------------------------------------- */

bool check_bounded(const char *text, size_t len, unsigned depth_max, size_t values_max)
{
	bool in_string = false;
	unsigned depth = 0;
	size_t values = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '[' || c == '{') {
			if (++depth > depth_max || ++values > values_max)
				return false;
		} else if (c == ']' || c == '}') {
			depth -= depth > 0;
		} else if (c == ',' && ++values > values_max) {
			return false;
		}
	}
	return true;
}

int check_parse(const char *text, size_t len, json_t **ret, struct check_error *err)
{
	json_error_t e;
	json_t *value;

	if (!check_bounded(text, len, CHECK_DEPTH_MAX, CHECK_VALUES_MAX))
		return check_fail(
			err, NULL,
			"the JSON is nested deeper than %d levels or has more than %d values",
			CHECK_DEPTH_MAX, CHECK_VALUES_MAX);
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!value)
		return check_fail(err, NULL, "this is not JSON: %.80s (byte %d)", e.text,
				  e.position);
	*ret = value;
	return 0;
}

static bool type_allows(const json_t *type, const char *name)
{
	const json_t *one;
	size_t i;

	if (json_is_string(type))
		return strcmp(json_string_value(type), name) == 0;
	json_array_foreach(type, i, one)
		if (strcmp(json_string_value(one), name) == 0)
			return true;
	return false;
}

static json_t *integer_from(const char *text)
{
	bool negative = text[0] == '-';
	uint64_t value;

	if (parse_u64(text + negative, &value) < 0 || value > INT64_MAX)
		return NULL;
	return json_integer(negative ? -(json_int_t)value : (json_int_t)value);
}

static json_t *number_from(const char *text)
{
	char *end;
	double value;

	if (text[strspn(text, "0123456789+-.eE")] != '\0' || text[0] == '\0')
		return NULL;
	value = strtod(text, &end);
	return *end == '\0' && isfinite(value) ? json_real(value) : NULL;
}

static json_t *array_from(const json_t *items, const char *text);

/* The value that a text stands for where the schema wants this type; text as it is when it stands
 * for none: the check that follows says so. */
static json_t *value_from(const json_t *schema, const char *text)
{
	const json_t *type = json_object_get(schema, "type");
	json_t *v = NULL;

	if (type_allows(type, "array"))
		return array_from(json_object_get(schema, "items"), text);
	if (type_allows(type, "integer"))
		v = integer_from(text);
	if (!v && type_allows(type, "number"))
		v = number_from(text);
	if (!v && type_allows(type, "boolean"))
		v = strcmp(text, "true") == 0  ? json_true() :
		    strcmp(text, "false") == 0 ? json_false() :
						 NULL;
	return v ? v : json_string(text);
}

static json_t *array_from(const json_t *items, const char *text)
{
	json_t *list = json_array();

	while (list && *text && json_array_size(list) <= PARAMETER_ITEMS_MAX) {
		size_t n = strcspn(text, ",");
		_cleanup_(freep) char *one = strndup(text, n);

		if (!one || json_array_append_new(list, value_from(items, one)) < 0) {
			json_decref(list);
			return NULL;
		}
		text += n + (text[n] == ',');
	}
	return list;
}

int check_text(const json_t *doc, const json_t *schema, const char *name, const char *text,
	       struct check_error *err)
{
	struct check_place at = { .name = name };
	json_t *v;
	int r;

	schema = schema_resolve(doc, schema);
	v = value_from(schema, text);
	if (!v)
		return -ENOMEM;
	r = check_at(doc, schema, v, &at, err);
	json_decref(v);
	return r;
}

/* --- a schema: everything in it must be something that is done above -------------------------- */

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

static int schema_look(const json_t *doc, const json_t *schema, const struct check_place *at,
		       unsigned depth, struct check_error *err);

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

static int schema_look_list(const json_t *doc, const json_t *list, const struct check_place *at,
			    unsigned depth, struct check_error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		struct check_place inner = { .outer = at, .index = i };
		int r = schema_look(doc, one, &inner, depth + 1, err);

		if (r < 0)
			return r;
	}
	return json_array_size(list) ? 0 : check_fail(err, at, "must be a list of schemas");
}

static int schema_look_map(const json_t *doc, const json_t *map, const struct check_place *at,
			   unsigned depth, struct check_error *err)
{
	const char *name;
	json_t *one;

	json_object_foreach((json_t *)(uintptr_t)map, name, one) {
		struct check_place inner = { .outer = at, .name = name };
		int r = schema_look(doc, one, &inner, depth + 1, err);

		if (r < 0)
			return r;
	}
	return json_is_object(map) ? 0 : check_fail(err, at, "must be a map of schemas");
}

static int schema_look_keyword(const json_t *doc, enum keyword_kind kind, const json_t *v,
			       const struct check_place *at, unsigned depth,
			       struct check_error *err)
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
		return schema_look(doc, v, at, depth + 1, err);
	case KEYWORD_SCHEMA:
		return schema_look(doc, v, at, depth + 1, err);
	case KEYWORD_SCHEMA_LIST:
		return schema_look_list(doc, v, at, depth, err);
	case KEYWORD_SCHEMA_MAP:
		return schema_look_map(doc, v, at, depth, err);
	}
	return ok ? 0 : check_fail(err, at, "has a value that is not understood");
}

static const struct keyword *keyword_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (strcmp(keywords[i].name, name) == 0)
			return &keywords[i];
	return NULL;
}

static int schema_look(const json_t *doc, const json_t *schema, const struct check_place *at,
		       unsigned depth, struct check_error *err)
{
	const char *name;
	json_t *v;

	schema = schema_resolve(doc, schema);
	if (!json_is_object(schema))
		return check_fail(err, at, "is not a schema, or a reference to none");
	if (depth > SCHEMA_DEPTH_MAX)
		return check_fail(err, at, "is nested too deeply, or refers to itself");
	json_object_foreach((json_t *)(uintptr_t)schema, name, v) {
		struct check_place inner = { .outer = at, .name = name };
		const struct keyword *k = keyword_find(name);
		int r = k ? schema_look_keyword(doc, k->kind, v, &inner, depth, err) :
			    check_fail(err, &inner, "is not implemented");

		if (r < 0)
			return r;
	}
	return 0;
}

int check_schema(const json_t *doc, const json_t *schema, struct check_error *err)
{
	return schema_look(doc, schema, NULL, 0, err);
}
