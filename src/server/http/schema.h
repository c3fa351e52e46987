/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks values against the schemas of openapi.json: the part of JSON Schema that our description
 * uses. A keyword that is not implemented here is an error when the service starts, so nothing that
 * is described goes unchecked.
 */
#pragma once

#include "base/util.h"

#include <jansson.h>

#define CHECK_DEPTH_MAX 32 /* of JSON from clients */
/* in it: several times what any schema admits; each costs some 100 bytes */
#define CHECK_VALUES_MAX 16384

struct check_error {
	char where[96]; /* "network.allowOut[2]", "" for the whole body */
	char what[136]; /* "must be at least 1" */
};

/* Reads a body: -EINVAL with the reason for anything that is not one JSON value, has a key twice, a
 * NUL, a number or a text that cannot be kept, is nested too deeply or has too many values. */
_must_check_ int check_parse(const char *text, size_t len, json_t **ret, struct check_error *err);

/* AP-05: is the JSON text, which need not be any, nested this deep at most, with so many values at
 * most? To be asked before the library reads it: that recurses for each level and allocates for
 * each value. */
bool check_bounded(const char *text, size_t len, unsigned depth_max, size_t values_max);

/* Is the value what the schema says? doc is the whole description, for "$ref". */
_must_check_ int check_value(const json_t *doc, const json_t *schema, const json_t *value,
			     struct check_error *err);

/* The same for a parameter, which is text: "7", "true", "a,b". */
_must_check_ int check_text(const json_t *doc, const json_t *schema, const char *name,
			    const char *text, struct check_error *err);

/* Does the schema use only what is implemented? */
_must_check_ int check_schema(const json_t *doc, const json_t *schema, struct check_error *err);

/* As one line for people: "timeout: must be at least 1". */
void check_error_text(const struct check_error *err, char *ret, size_t size);
