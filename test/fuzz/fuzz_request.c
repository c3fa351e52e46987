/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client writes into a request: its target, query, host name, and a body against a description. The first byte
 * says which. What is accepted must keep the promises of the headers.
 */
#include "fuzz.h"

#include "base/utf8.h"
#include "server/http/schema.h"
#include "server/http/host.h"
#include "server/http/uri.h"

#define TEXT_SIZE 4097

static const char description[] =
	"{\"components\":{\"schemas\":{\"Name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8}}}}";
static const char schema_text[] =
	"{\"type\":\"object\",\"required\":[\"a\"],\"maxProperties\":4,\"additionalProperties\":false,\"properties\":{"
	"\"a\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":9},"
	"\"b\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"$ref\":\"#/components/schemas/Name\"}},"
	"\"c\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}]},"
	"\"d\":{\"enum\":[\"x\",\"y\"],\"x-format\":\"line of text\"}}}";

static json_t *doc, *schema;

static void fuzz_path(const char *text, size_t len)
{
	struct uri_path p;
	char out[TEXT_SIZE];

	if (uri_split_path(text, len, &p) < 0)
		return;
	assert(p.n <= URI_SEGMENTS_MAX);
	for (size_t i = 0; i < p.n; i++) {
		assert(p.segment[i].len > 0 && !memchr(p.segment[i].text, '/', p.segment[i].len));
		if (uri_decode(p.segment[i].text, p.segment[i].len, false, out) == 0)
			assert(strlen(out) <= p.segment[i].len);
	}
}

static void fuzz_query(const char *text)
{
	struct uri_query q;

	if (uri_parse_query(text, &q) < 0)
		return;
	assert(q.n <= URI_QUERY_MAX);
	for (size_t i = 0; i < q.n; i++) {
		assert(utf8_valid(q.pair[i].name, strlen(q.pair[i].name), NULL));
		assert(utf8_valid(q.pair[i].value, strlen(q.pair[i].value), NULL));
		assert(uri_query_get(&q, q.pair[i].name) == q.pair[i].value);
	}
	uri_query_done(&q);
}

static void fuzz_host(const char *text)
{
	struct host h = host_parse(text, "sbx.test:8443");

	if (h.kind == HOST_SANDBOX)
		assert(host_id_ok(h.id) && h.port >= 1 && h.port <= UINT16_MAX);
}

static void fuzz_body(const char *text, size_t len)
{
	struct check_error err = { 0 };
	char line[sizeof(err) + 4];
	json_t *value = NULL, *a;

	if (check_parse(text, len, &value, &err) == 0 &&
	    check_value(doc, schema, value, &err) == 0) {
		a = json_object_get(value, "a");
		assert(json_is_null(a) ||
		       (json_integer_value(a) >= 1 && json_integer_value(a) <= 9));
		assert(json_array_size(json_object_get(value, "b")) <= 2);
	}
	check_error_text(&err, line, sizeof(line));
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[TEXT_SIZE];
	struct check_error err = { 0 };
	size_t n;

	if (!doc) {
		doc = json_loads(description, 0, NULL);
		schema = json_loads(schema_text, 0, NULL);
		assert(doc && schema && check_schema(doc, schema, &err) == 0);
	}
	if (size == 0)
		return 0;
	n = MIN(size - 1, sizeof(text) - 1);
	memcpy(text, data + 1, n);
	text[n] = '\0';
	switch (data[0] % 5) {
	case 0:
		fuzz_path(text, n);
		break;
	case 1:
		fuzz_query(text);
		break;
	case 2:
		fuzz_host(text);
		break;
	case 3:
		(void)!check_text(doc, schema, "parameter", text, &err);
		break;
	default:
		fuzz_body(text, n);
		break;
	}
	return 0;
}
