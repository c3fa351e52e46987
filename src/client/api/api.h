/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to a running service. Where it is and which key to use: E2B_API_URL and E2B_API_KEY, else
 * what the service on this machine left for its user (service.json in the runtime directory,
 * local.key in its state directory).
 */
#pragma once

#include "base/fail.h"

#include <curl/curl.h>
#include <jansson.h>

#define API_ANSWER_MAX ((size_t)64 << 20)

struct api {
	char url[512];         /* without a slash at the end */
	char sandbox_url[512]; /* the data plane: the same unless E2B_SANDBOX_URL says otherwise */
	char key[128];
	CURL *curl; /* kept, for its connection */
};

_must_check_ int api_open(struct api *ret, struct fail *fail);
void api_close(struct api *a);
static inline void api_closep(struct api *a)
{
	api_close(a);
}

/* A sandbox that is to be talked to. */
struct api_sandbox {
	char id[64];
	char token[128]; /* empty: it has none */
	unsigned port;   /* which of its logical ports; 0: files and processes */
};

/*
 * One request with JSON both ways; body is taken over and may be NULL. 0 and the answer (NULL when
 * it had none) for a 2xx; otherwise -ENOENT for a 404, -EBUSY for a 409, -EACCES for a 401 or 403,
 * -EPROTO for the rest, with what the service said in *fail.
 */
_must_check_ int api_call(struct api *a, const char *method, const char *path, json_t *body,
			  json_t **ret, struct fail *fail);

/* The same, and a header of the answer ("" when it is not there). */
_must_check_ int api_call_header(struct api *a, const char *method, const char *path, json_t *body,
				 json_t **ret, const char *header, char *ret_header, size_t size,
				 struct fail *fail);

/* Finds the sandbox of that id and its token. */
_must_check_ int api_sandbox(struct api *a, const char *id, struct api_sandbox *ret,
			     struct fail *fail);

/* A unary call to the sandbox's agent: service/method, e.g. "process.Process/SendInput". */
_must_check_ int api_rpc(struct api *a, const struct api_sandbox *b, const char *method,
			 json_t *body, json_t **ret, struct fail *fail);

/* A call to one of the sandbox's logical ports. */
_must_check_ int api_sandbox_call(struct api *a, const struct api_sandbox *b, const char *method,
				  const char *path, json_t *body, json_t **ret, struct fail *fail);

/* --- for the verbs that stream ---------------------------------------------------------------- */

/* A handle of its own with address, key or token, and headers set; *ret_headers is freed after the
 * transfer. */
CURL *api_handle(struct api *a, const struct api_sandbox *b, const char *path,
		 struct curl_slist **ret_headers);

/* What a transfer that failed should be reported as; status is the HTTP status, text the body's
 * first bytes. */
int api_failed(CURLcode code, long status, const char *text, size_t len, struct fail *fail);

/* Percent-encodes one part of a path or query; free() it. */
char *api_escape(const char *text);
