/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies and parameters against their description. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/http/schema.h"

static const char description[] =
	"{ \"components\": { \"schemas\": {"
	"  \"Name\": { \"type\": \"string\", \"minLength\": 1, \"maxLength\": 4 },"
	"  \"Loop\": { \"type\": \"object\", \"properties\": { \"l\": { \"$ref\": \"#/components/schemas/Loop\" } } }"
	"} } }";

static json_t *doc;

static int set_up(void **state)
{
	(void)state;
	doc = json_loads(description, 0, NULL);
	return doc ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(doc);
	return 0;
}

/* What the check says about value; "" when it is content. */
static const char *verdict(const char *schema_text, const char *value_text)
{
	static char text[256];
	struct check_error err = { 0 };
	json_t *schema = json_loads(schema_text, 0, NULL);
	json_t *value = json_loads(value_text, JSON_DECODE_ANY, NULL);

	assert_non_null(schema);
	assert_non_null(value);
	assert_int_equal(check_schema(doc, schema, &err), 0);
	text[0] = '\0';
	if (check_value(doc, schema, value, &err) < 0)
		check_error_text(&err, text, sizeof(text));
	json_decref(schema);
	json_decref(value);
	return text;
}

#define FINE(schema, value) assert_string_equal(verdict(schema, value), "")
#define SAYS(schema, value, text) assert_string_equal(verdict(schema, value), text)

static void test_types(void **state)
{
	(void)state;
	FINE("{\"type\":\"integer\"}", "7");
	FINE("{\"type\":\"number\"}", "7");
	FINE("{\"type\":[\"string\",\"null\"]}", "null");
	FINE("{}", "[1,{}]");
	SAYS("{\"type\":\"integer\"}", "7.5", "must be of type integer, not number");
	SAYS("{\"type\":\"boolean\"}", "0", "must be of type boolean, not integer");
	SAYS("{\"type\":[\"string\",\"null\"]}", "{}",
	     "must be of type string or null, not object");
}

static void test_numbers(void **state)
{
	static const char schema[] = "{\"type\":\"number\",\"minimum\":1,\"maximum\":9}";

	(void)state;
	FINE(schema, "1");
	FINE(schema, "9");
	FINE(schema, "8.9");
	SAYS(schema, "0", "must be at least 1");
	SAYS(schema, "10", "must be at most 9");
	SAYS(schema, "9.01", "must be at most 9");
	SAYS(schema, "-9223372036854775808", "must be at least 1");
}

static void test_texts(void **state)
{
	(void)state;
	FINE("{\"$ref\":\"#/components/schemas/Name\"}", "\"abcd\"");
	SAYS("{\"$ref\":\"#/components/schemas/Name\"}", "\"\"", "must have at least 1 bytes");
	SAYS("{\"$ref\":\"#/components/schemas/Name\"}", "\"abcde\"", "must have at most 4 bytes");
	FINE("{\"enum\":[\"a\",\"b\"]}", "\"b\"");
	SAYS("{\"enum\":[\"a\",\"b\"]}", "\"c\"", "must be one of: a, b");
	FINE("{\"x-format\":\"sandbox id\"}", "\"iabc1\"");
	SAYS("{\"x-format\":\"sandbox id\"}", "\"i/1\"", "is not a valid sandbox id");
}

static void test_objects(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"required\":[\"a\"],\"maxProperties\":3,\"additionalProperties\":false,"
		"\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"object\",\"properties\":"
		"{\"c\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"string\"}}}}}}";

	(void)state;
	FINE(schema, "{\"a\":1}");
	FINE(schema, "{\"a\":1,\"b\":{\"c\":[\"x\",\"y\"],\"other\":1}}");
	SAYS(schema, "{}", "a: is required");
	SAYS(schema, "{\"a\":1,\"z\":1}", "z: there is no such option");
	SAYS(schema, "{\"a\":1,\"b\":{\"c\":[\"x\",2]}}",
	     "b.c[1]: must be of type string, not integer");
	SAYS(schema, "{\"a\":1,\"b\":{\"c\":[\"x\",\"y\",\"z\"]}}",
	     "b.c: must have at most 2 items");
	SAYS(schema, "{\"a\":1,\"b\":1,\"c\":1,\"d\":1}", "must have at most 3 entries");
	SAYS("{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"x\",\"b\":1}",
	     "b: must be of type string, not integer");
	FINE("{\"x-maxBytes\":6}", "{\"a\":\"xx\",\"b\":\"yy\"}");
	SAYS("{\"x-maxBytes\":5}", "{\"a\":\"xx\",\"b\":\"yy\"}",
	     "must have at most 5 bytes in all");
}

static void test_any(void **state)
{
	static const char schema[] =
		"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"integer\",\"minimum\":5}]}";

	(void)state;
	FINE(schema, "null");
	FINE(schema, "5");
	SAYS(schema, "4", "must be at least 5");
}

/* A name of the client's is shown, but not without end. */
static void test_long_names(void **state)
{
	char value[5000];

	(void)state;
	(void)snprintf(value, sizeof(value), "{\"%04000d\":1}", 7);
	assert_true(strlen(verdict("{\"additionalProperties\":false}", value)) < 200);
}

static int lint(const char *text)
{
	struct check_error err = { 0 };
	json_t *schema = json_loads(text, 0, NULL);
	int r;

	assert_non_null(schema);
	r = check_schema(doc, schema, &err);
	json_decref(schema);
	return r;
}

/* What is described and not checked would be a promise that nobody keeps. */
static void test_schemas(void **state)
{
	(void)state;
	assert_int_equal(lint("{\"description\":\"x\",\"default\":1,\"type\":\"integer\"}"), 0);
	assert_int_equal(lint("{\"pattern\":\"^a$\"}"), -EINVAL);
	assert_int_equal(lint("{\"properties\":{\"a\":{\"multipleOf\":2}}}"), -EINVAL);
	assert_int_equal(lint("{\"items\":{\"allOf\":[]}}"), -EINVAL);
	assert_int_equal(lint("{\"type\":\"text\"}"), -EINVAL);
	assert_int_equal(lint("{\"type\":[]}"), -EINVAL);
	assert_int_equal(lint("{\"minimum\":\"1\"}"), -EINVAL);
	assert_int_equal(lint("{\"maxLength\":-1}"), -EINVAL);
	assert_int_equal(lint("{\"x-format\":\"nothing\"}"), -EINVAL);
	assert_int_equal(lint("{\"$ref\":\"#/components/schemas/Nobody\"}"), -EINVAL);
	assert_int_equal(lint("{\"$ref\":\"http://elsewhere/\"}"), -EINVAL);
	assert_int_equal(lint("{\"$ref\":\"#/components/schemas/Loop\"}"), -EINVAL);
}

static int parse(const char *text, size_t len)
{
	struct check_error err = { 0 };
	json_t *value = NULL;
	int r = check_parse(text, len, &value, &err);

	assert_true(r == 0 ? err.what[0] == '\0' : err.what[0] != '\0');
	json_decref(value);
	return r;
}

/* AP-05 */
static void test_parse(void **state)
{
	char deep[2 * CHECK_DEPTH_MAX + 4];

	(void)state;
	assert_int_equal(parse("{\"a\":1}", 7), 0);
	assert_int_equal(parse("\"[[[\\\"[[[\"", 10), 0);
	assert_int_equal(parse("", 0), -EINVAL);
	assert_int_equal(parse("{\"a\":1,\"a\":2}", 13), -EINVAL);
	assert_int_equal(parse("{} {}", 5), -EINVAL);
	assert_int_equal(parse("1e400", 5), -EINVAL);
	assert_int_equal(parse("99999999999999999999", 20), -EINVAL);
	assert_int_equal(parse("\"\\u0000\"", 8), -EINVAL);
	assert_int_equal(parse("\"\\ud800\"", 8), -EINVAL);
	assert_int_equal(parse("\"\xff\"", 3), -EINVAL);
	assert_int_equal(parse("{}\0", 3), -EINVAL);
	assert_int_equal(parse("NaN", 3), -EINVAL);
	memset(deep, '[', CHECK_DEPTH_MAX);
	memset(deep + CHECK_DEPTH_MAX, ']', CHECK_DEPTH_MAX);
	assert_int_equal(parse(deep, 2 * CHECK_DEPTH_MAX), 0);
	memset(deep, '[', CHECK_DEPTH_MAX + 1);
	memset(deep + CHECK_DEPTH_MAX + 1, ']', CHECK_DEPTH_MAX + 1);
	assert_int_equal(parse(deep, 2 * CHECK_DEPTH_MAX + 2), -EINVAL);
}

/* AP-05: few bytes can be many values, each of which takes memory. */
static void test_parse_many(void **state)
{
	_cleanup_(freep) char *text = malloc(1 << 20);
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	text[n++] = '[';
	for (int i = 1; i < CHECK_VALUES_MAX; i++) {
		text[n++] = '0';
		text[n++] = ',';
	}
	memcpy(text + n, "0]", sizeof("0]"));
	assert_int_equal(parse(text, n + 2), 0);
	memcpy(text + n, "0,0]", sizeof("0,0]"));
	assert_int_equal(parse(text, n + 4), -EINVAL);
	n = 1;
	for (int i = 0; i < CHECK_VALUES_MAX; i++, n += 3)
		memcpy(text + n, "{},", sizeof("{},"));
	text[n - 1] = ']';
	assert_int_equal(parse(text, n), -EINVAL);
}

static int parameter(const char *schema_text, const char *value)
{
	struct check_error err = { 0 };
	json_t *schema = json_loads(schema_text, 0, NULL);
	int r = check_text(doc, schema, "p", value, &err);

	json_decref(schema);
	return r;
}

static void test_parameters(void **state)
{
	static const char integer[] = "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":100}";
	static const char list[] =
		"{\"type\":\"array\",\"maxItems\":2,\"items\":{\"enum\":[\"a\",\"b\"]}}";

	(void)state;
	assert_int_equal(parameter(integer, "100"), 0);
	assert_int_equal(parameter(integer, "-5"), 0);
	assert_int_equal(parameter(integer, "-6"), -EINVAL);
	assert_int_equal(parameter(integer, "101"), -EINVAL);
	assert_int_equal(parameter(integer, ""), -EINVAL);
	assert_int_equal(parameter(integer, "1.5"), -EINVAL);
	assert_int_equal(parameter(integer, "99999999999999999999"), -EINVAL);
	assert_int_equal(parameter("{\"type\":\"number\"}", "1.5"), 0);
	assert_int_equal(parameter("{\"type\":\"number\"}", "inf"), -EINVAL);
	assert_int_equal(parameter("{\"type\":\"number\"}", "1e999"), -EINVAL);
	assert_int_equal(parameter("{\"type\":\"boolean\"}", "true"), 0);
	assert_int_equal(parameter("{\"type\":\"boolean\"}", "1"), -EINVAL);
	assert_int_equal(parameter(list, "a,b"), 0);
	assert_int_equal(parameter(list, "a,c"), -EINVAL);
	assert_int_equal(parameter(list, "a,b,a"), -EINVAL);
	assert_int_equal(parameter("{\"type\":\"string\",\"maxLength\":3}", "12"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),      cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_texts),      cmocka_unit_test(test_objects),
		cmocka_unit_test(test_any),        cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_schemas),    cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_many), cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
