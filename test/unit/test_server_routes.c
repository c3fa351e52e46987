/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to operations, and descriptions that do not go with their handlers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/http/routes.h"

static int nothing(struct request *r)
{
	(void)r;
	return 0;
}

static const struct route control[] = {
	{ .operation = "list", .handle = nothing },
	{ .operation = "create", .handle = nothing, .body = HTTP_BODY_JSON },
	{ .operation = "metrics", .handle = nothing },
	{ .operation = "get", .handle = nothing },
	{ .operation = "sub", .handle = nothing },
	{ .operation = NULL },
};
static const struct route envd[] = {
	{ .operation = "read", .handle = nothing },
	{ .operation = NULL },
};
static const struct route interpreter[] = {
	{ .operation = "execute", .handle = nothing },
	{ .operation = NULL },
};
static const struct route none[] = { { .operation = NULL } };

#define BODY                                                                                       \
	"\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}}"

static const char description[] =
	"{\"paths\":{"
	"\"/boxes\":{\"get\":{\"operationId\":\"list\",\"x-plane\":\"control\",\"parameters\":"
	"[{\"name\":\"limit\",\"in\":\"query\",\"schema\":{\"type\":\"integer\"}}]},"
	"\"post\":{\"operationId\":\"create\",\"x-plane\":\"control\"," BODY "}},"
	"\"/boxes/{id}\":{\"get\":{\"operationId\":\"get\",\"x-plane\":\"control\"}},"
	"\"/boxes/metrics\":{\"get\":{\"operationId\":\"metrics\",\"x-plane\":\"control\"}},"
	"\"/boxes/{id}/sub/{name}\":{\"put\":{\"operationId\":\"sub\",\"x-plane\":\"control\"}},"
	"\"/envd/boxes\":{\"get\":{\"operationId\":\"read\",\"x-plane\":\"envd\",\"x-path\":\"/boxes\"}},"
	"\"/cells\":{\"get\":{\"operationId\":\"execute\",\"x-plane\":\"interpreter\",\"x-path\":\"/boxes\"}}"
	"}}";

static struct routes *make(void)
{
	const struct route *const handlers[_PLANE_MAX] = { control, envd, interpreter };
	struct routes *rs = NULL;
	struct fail fail = { 0 };

	assert_int_equal(routes_new(description, strlen(description), handlers, &rs, &fail), 0);
	return rs;
}

/* The operation's name, or "" and what is allowed. */
static const char *match(const struct routes *rs, enum plane plane, const char *method,
			 const char *path, char allow[ROUTES_ALLOW_SIZE])
{
	struct uri_path p;
	const struct operation *op;

	assert_int_equal(uri_split_path(path, strlen(path), &p), 0);
	op = routes_match(rs, plane, method, &p, allow);
	return op ? op->route->operation : "";
}

static void test_match(void **state)
{
	struct routes *rs = make();
	char allow[ROUTES_ALLOW_SIZE];

	(void)state;
	assert_string_equal(match(rs, PLANE_CONTROL, "GET", "/boxes", allow), "list");
	assert_string_equal(match(rs, PLANE_CONTROL, "HEAD", "/boxes", allow), "list");
	assert_string_equal(match(rs, PLANE_CONTROL, "POST", "/boxes", allow), "create");
	assert_string_equal(match(rs, PLANE_CONTROL, "GET", "/boxes/x", allow), "get");
	assert_string_equal(match(rs, PLANE_CONTROL, "GET", "/boxes/metrics", allow), "metrics");
	assert_string_equal(match(rs, PLANE_CONTROL, "PUT", "/boxes/a/sub/b", allow), "sub");
	assert_string_equal(match(rs, PLANE_ENVD, "GET", "/boxes", allow), "read");
	assert_string_equal(match(rs, PLANE_INTERPRETER, "GET", "/boxes", allow), "execute");
	routes_free(rs);
}

/* AP-08 */
static void test_no_match(void **state)
{
	struct routes *rs = make();
	char allow[ROUTES_ALLOW_SIZE];
	static const char *const paths[] = { "/",          "/Boxes",        "/box",
					     "/boxess",    "/%62oxes",      "/boxes;a=b",
					     "/boxes/a/b", "/boxes/a/Sub/b" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_string_equal(match(rs, PLANE_CONTROL, "GET", paths[i], allow), "");
		assert_string_equal(allow, "");
	}
	assert_string_equal(match(rs, PLANE_ENVD, "GET", "/boxes/x", allow), "");
	assert_string_equal(match(rs, PLANE_CONTROL, "DELETE", "/boxes", allow), "");
	assert_string_equal(allow, "GET, HEAD, POST");
	assert_string_equal(match(rs, PLANE_CONTROL, "get", "/boxes", allow), "");
	routes_free(rs);
}

static int refused(const char *text, const struct route *c, const struct route *e)
{
	struct routes *rs = NULL;
	struct fail fail = { 0 };
	const struct route *const handlers[_PLANE_MAX] = { c, e, none };
	int r = routes_new(text, strlen(text), handlers, &rs, &fail);

	if (r == 0)
		routes_free(rs);
	else
		assert_true(fail.msg[0] != '\0');
	return r;
}

#define ONE(more)                                                                                  \
	"{\"paths\":{\"/a\":{\"get\":{\"operationId\":\"list\",\"x-plane\":\"control\"" more "}}}}"

/* Both directions: nothing is handled that is not described, nothing described that is not handled. */
static void test_agreement(void **state)
{
	static const struct route list[] = { { .operation = "list", .handle = nothing },
					     { .operation = NULL } };
	static const struct route json[] = {
		{ .operation = "list", .handle = nothing, .body = HTTP_BODY_JSON },
		{ .operation = NULL }
	};

	(void)state;
	assert_int_equal(refused(ONE(""), list, none), 0);
	assert_int_equal(refused(ONE(""), none, none), -EINVAL);
	assert_int_equal(refused(ONE(""), control, none), -EINVAL);
	assert_int_equal(refused(ONE(""), none, list), -EINVAL);
	assert_int_equal(refused(ONE(""), json, none), -EINVAL);
	assert_int_equal(refused(ONE("," BODY), json, none), 0);
	assert_int_equal(refused(ONE(",\"parameters\":[{\"name\":\"p\",\"in\":\"query\","
				     "\"schema\":{\"pattern\":\"x\"}}]"),
				 list, none),
			 -EINVAL);
	assert_int_equal(refused("{\"paths\":{\"/a\":{\"trace\":{}}}}", list, none), -EINVAL);
	assert_int_equal(refused("{", list, none), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_no_match),
		cmocka_unit_test(test_agreement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
