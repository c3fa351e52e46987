/* SPDX-License-Identifier: Apache-2.0 */
/* Text to values: JSON bodies, parameters, and the formats that texts may be required to have. */
#include "server/http/check_priv.h"

#include "base/parse.h"
#include "server/http/host.h"

#include <math.h>

#define PARAMETER_ITEMS_MAX 256 /* "a,b,c" */

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

static bool is_lower_hex(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool is_printable(const char *text)
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
	{ "line of text", is_printable },
};

bool format_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return true;
	return false;
}

bool format_ok(const char *name, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return formats[i].ok(text);
	return false;
}

static bool allows(const json_t *type, const char *name)
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

static json_t *integer_of(const char *text)
{
	bool negative = text[0] == '-';
	uint64_t value;

	if (parse_u64(text + negative, &value) < 0 || value > INT64_MAX)
		return NULL;
	return json_integer(negative ? -(json_int_t)value : (json_int_t)value);
}

static json_t *number_of(const char *text)
{
	char *end;
	double value;

	if (text[strspn(text, "0123456789+-.eE")] != '\0' || text[0] == '\0')
		return NULL;
	value = strtod(text, &end);
	return *end == '\0' && isfinite(value) ? json_real(value) : NULL;
}

static json_t *array_of(const json_t *items, const char *text);

/* The value that a text stands for where the schema wants this type; text as it is when it stands for none: the
 * check that follows says so. */
static json_t *value_of(const json_t *schema, const char *text)
{
	const json_t *type = json_object_get(schema, "type");
	json_t *v = NULL;

	if (allows(type, "array"))
		return array_of(json_object_get(schema, "items"), text);
	if (allows(type, "integer"))
		v = integer_of(text);
	if (!v && allows(type, "number"))
		v = number_of(text);
	if (!v && allows(type, "boolean"))
		v = strcmp(text, "true") == 0  ? json_true() :
		    strcmp(text, "false") == 0 ? json_false() :
						 NULL;
	return v ? v : json_string(text);
}

static json_t *array_of(const json_t *items, const char *text)
{
	json_t *list = json_array();

	while (list && *text && json_array_size(list) <= PARAMETER_ITEMS_MAX) {
		size_t n = strcspn(text, ",");
		_cleanup_(freep) char *one = strndup(text, n);

		if (!one || json_array_append_new(list, value_of(items, one)) < 0) {
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
	struct place at = { .name = name };
	json_t *v;
	int r;

	schema = schema_resolve(doc, schema);
	v = value_of(schema, text);
	if (!v)
		return -ENOMEM;
	r = check_at(doc, schema, v, &at, err);
	json_decref(v);
	return r;
}
