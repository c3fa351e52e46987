/* SPDX-License-Identifier: Apache-2.0 */
/* What could not be done and why, in words for the client. */
#pragma once

#include "base/util.h"
#include "wire/warden.h"

#include <jansson.h>

struct request;

struct problem {
	unsigned status;
	const char *code; /* error_code, or NULL */
	char message[512];
};

/*
 * These fill it and are -EBADMSG, for `return problem_…`; macros, so that compilers see that.
 *
 *	problem_set(p, status, code, fmt, …)
 *	problem_warden(p, reply, what)   what the warden could not do, in words for the client
 *	problem_internal(p, r, what)     the store or the way to the warden failed
 */
#define problem_set(...) (problem_fill(__VA_ARGS__), -EBADMSG)
#define problem_warden(p, reply, what) (problem_fill_warden((p), (reply), (what)), -EBADMSG)
#define problem_internal(p, r, what) (problem_fill_internal((p), (r), (what)), -EBADMSG)

void problem_fill(struct problem *p, unsigned status, const char *code, const char *fmt, ...)
	_printf_(4, 5);
void problem_fill_warden(struct problem *p, const struct warden_reply *reply, const char *what);
void problem_fill_internal(struct problem *p, int r, const char *what);
int problem_reply(struct request *r, const struct problem *p);
json_t *problem_json(const struct problem *p);
