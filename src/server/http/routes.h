/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.json as a table: which operation a method and a path mean, and what its parameters and
 * its body must look like. Made once, when the service starts; a handler without a description, or
 * the other way round, is an error then.
 */
#pragma once

#include "base/fail.h"
#include "server/http/http.h"
#include "server/http/uri.h"

/* Whom a path belongs to: the service itself, or a logical port of a sandbox. */
enum plane { PLANE_CONTROL, PLANE_ENVD, PLANE_INTERPRETER, _PLANE_MAX };

#define OPERATION_QUERY_MAX 16

struct operation {
	const struct route *route;
	const char *method; /* "GET", … */
	enum plane plane;
	size_t n_segments;
	struct {
		const char *text;
		size_t len;
		bool is_param;
		const json_t *schema; /* of the parameter, or NULL */
	} segment[URI_SEGMENTS_MAX];
	size_t n_params;
	struct {
		const char *name;
		bool required;
		const json_t *schema;
	} query[OPERATION_QUERY_MAX];
	size_t n_query;
	const json_t *body; /* schema of a JSON body, or NULL */
	bool body_required;
	char *memory; /* what segment[].text is in */
};

struct routes {
	json_t *doc;
	struct operation *operations;
	size_t n_operations;
};

/* handlers has the routes of each plane. */
_must_check_ int routes_new(const char *json, size_t len,
			    const struct route *const handlers[_PLANE_MAX], struct routes **ret,
			    struct fail *fail);
void routes_free(struct routes *rs);

#define ROUTES_ALLOW_SIZE 64

/*
 * The operation of a path that was split, or NULL. *ret_allow is then "" when there is no such
 * path, or the methods that it has, for an Allow header. HEAD is where GET is.
 */
const struct operation *routes_match(const struct routes *rs, enum plane plane, const char *method,
				     const struct uri_path *path,
				     char ret_allow[ROUTES_ALLOW_SIZE]);
