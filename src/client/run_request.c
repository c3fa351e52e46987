/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glovebox run-request: for `glovebox run`, not for people. Takes the JSON of a run on standard
 * input, has the service run it, and passes on what comes, one JSON object per line. What goes
 * wrong is a line too: {"error": …}.
 */
#include "client/client.h"

#include "base/buf.h"
#include "client/api/api.h"

#define REQUEST_MAX ((size_t)2 << 20)
#define REASON_MAX 65536

struct passing_on {
	CURL *curl;
	struct buf reason; /* of a reply that is not the stream */
};

static size_t on_bytes(char *data, size_t size, size_t n, void *arg)
{
	struct passing_on *p = arg;
	size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return buf_add(&p->reason, data, len) < 0 ? 0 : len;
	return fwrite(data, 1, len, stdout) == len && fflush(stdout) == 0 ? len : 0;
}

static int say_error(const struct fail *fail)
{
	json_t *line = json_pack("{ss}", "error", fail->msg);

	(void)json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(line);
	return putchar('\n') == EOF || fflush(stdout) == EOF ? CLIENT_FAILURE : CLIENT_OK;
}

static int run_pass_on(struct api *a, const struct buf *request, struct fail *fail)
{
	struct passing_on p = { .reason = BUF_INIT(REASON_MAX) };
	struct curl_slist *headers = NULL, *more;
	long status = 0;
	CURLcode code;
	int r = 0;

	p.curl = api_handle(a, NULL, "/v1/run", &headers);
	if (!p.curl)
		return fail_set(fail, ENOMEM, "run", "out of memory");
	more = curl_slist_append(headers, "Content-Type: application/json");
	headers = more ? more : headers;
	more = curl_slist_append(headers, "Accept: application/x-ndjson");
	headers = more ? more : headers;
	curl_easy_setopt(p.curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(p.curl, CURLOPT_POSTFIELDS, (const char *)request->data);
	curl_easy_setopt(p.curl, CURLOPT_POSTFIELDSIZE, (long)request->len);
	curl_easy_setopt(p.curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(p.curl, CURLOPT_WRITEDATA, &p);
	code = curl_easy_perform(p.curl);
	(void)curl_easy_getinfo(p.curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status != 200)
		r = api_failed(code, status, (char *)p.reason.data, p.reason.len, fail);
	curl_easy_cleanup(p.curl);
	curl_slist_free_all(headers);
	buf_done(&p.reason);
	return r;
}

int client_run_request(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
	_cleanup_(api_closep) struct api a = { 0 };
	struct fail fail = { 0 };

	(void)argc;
	(void)argv;
	if (buf_read_fd(&request, STDIN_FILENO) < 0 || !request.len)
		return client_error(CLIENT_USAGE, "this is for 'glovebox run'");
	if (api_open(&a, &fail) < 0 || run_pass_on(&a, &request, &fail) < 0)
		return say_error(&fail);
	return CLIENT_OK;
}
