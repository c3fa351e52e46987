/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/run/service.h"

#define RUN_SERVICE_BODY_MAX                                                                       \
	((size_t)700 << 10) /* what the service takes, less what base64 and JSON add */

/* The request; free() it. NULL: no memory, or an input cannot be read. */
char *run_service_request(const struct run_request *q);

/* Base64 of the service: free() it. NULL when it is none. */
unsigned char *run_service_decode(const json_t *text, size_t *ret_len);

/* Fills in *r and saves the outputs. */
_must_check_ int run_service_result(const struct run_request *q, json_t *o, struct run_result *r);
