/* SPDX-License-Identifier: Apache-2.0 */
/* One event on its way to one webhook. */
#pragma once

#include "server/control/text.h"
#include "server/server.h"

#include <curl/curl.h>

struct delivery {
	char hook_id[STORE_ID_SIZE];
	char key_id[STORE_ID_SIZE];
	char *url;
	char *body;
	size_t len;
	char signature[SIGNATURE_SIZE];
	unsigned attempts;
	uint64_t due_ms;
	size_t answer_len;
	CURL *easy; /* NULL: waiting */
	struct curl_slist *headers;
	struct delivery *next;
};

/* NULL: no memory. */
struct delivery *delivery_new(const struct store_webhook *w, const json_t *event);
void delivery_free(struct delivery *d);
/* One more attempt: a request that the multi handle carries out. False: no memory. */
bool delivery_begin(struct delivery *d, struct server *s, CURLM *multi);
void delivery_end(struct delivery *d, CURLM *multi);
