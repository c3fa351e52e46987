/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/transfer.h"

#include "base/buf.h"
#include "base/io.h"

#define REASON_MAX 4096

static int files_path(const struct transfer *t, const char *path, char *ret, size_t size)
{
	_cleanup_(freep) char *escaped = api_escape(path);
	_cleanup_(freep) char *user = t->user ? api_escape(t->user) : NULL;

	if (!escaped || (t->user && !user) ||
	    (size_t)snprintf(ret, size, "/files?path=%s%s%s", escaped, user ? "&username=" : "",
			     user ? user : "") >= size)
		return -ENAMETOOLONG;
	return 0;
}

struct fetch {
	CURL *curl;
	int fd;
	int err;
	struct buf reason;
};

static size_t on_download(char *data, size_t size, size_t n, void *arg)
{
	struct fetch *d = arg;
	size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return buf_add(&d->reason, data, len) < 0 ? 0 : len;
	d->err = -io_write_all(d->fd, data, len);
	return d->err ? 0 : len;
}

/* Performs and frees the handle. */
static int transfer_perform(CURL *curl, struct curl_slist *headers, struct buf *reason,
			    struct fail *fail)
{
	long status = 0;
	CURLcode code;

	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	code = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	if (code == CURLE_OK && status >= 200 && status <= 299)
		return 0;
	return api_failed(code, status, (char *)reason->data, reason->len, fail);
}

int transfer_get(struct transfer *t, const char *path, int to_fd, struct fail *fail)
{
	struct fetch d = { .fd = to_fd, .reason = BUF_INIT(REASON_MAX) };
	struct curl_slist *headers;
	char url[16384];
	int r = files_path(t, path, url, sizeof(url));

	d.curl = r < 0 ? NULL : api_handle(t->api, &t->sandbox, url, &headers);
	if (!d.curl)
		return fail_set(fail, ENOMEM, "cp", "%.60s…: the path is too long", path);
	curl_easy_setopt(d.curl, CURLOPT_WRITEFUNCTION, on_download);
	curl_easy_setopt(d.curl, CURLOPT_WRITEDATA, &d);
	r = transfer_perform(d.curl, headers, &d.reason, fail);
	buf_done(&d.reason);
	if (d.err)
		return fail_set(fail, d.err, "cp", "cannot write: %s", strerror(d.err));
	return r;
}

static size_t on_upload(char *data, size_t size, size_t n, void *arg)
{
	const int *fd = arg;
	ssize_t got;

	do {
		got = read(*fd, data, size * n);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static size_t on_reason(char *data, size_t size, size_t n, void *arg)
{
	(void)!buf_add(arg, data, size * n);
	return size * n;
}

int transfer_put(struct transfer *t, int from_fd, uint64_t size, const char *path,
		 struct fail *fail)
{
	_cleanup_(buf_done) struct buf reason = BUF_INIT(REASON_MAX);
	struct curl_slist *headers = NULL, *more;
	char url[16384];
	CURL *curl = files_path(t, path, url, sizeof(url)) < 0 ?
			     NULL :
			     api_handle(t->api, &t->sandbox, url, &headers);

	if (!curl)
		return fail_set(fail, ENOMEM, "cp", "%.60s…: the path is too long", path);
	more = curl_slist_append(headers, "Content-Type: application/octet-stream");
	headers = more ? more : headers;
	more = curl_slist_append(headers, "Expect:");
	headers = more ? more : headers;
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
	curl_easy_setopt(curl, CURLOPT_READDATA, &from_fd);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_reason);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reason);
	return transfer_perform(curl, headers, &reason, fail);
}

int transfer_mkdir(struct transfer *t, const char *path, struct fail *fail)
{
	int r = api_rpc(t->api, &t->sandbox, "filesystem.Filesystem/MakeDir",
			json_pack("{ss}", "path", path), NULL, fail);

	return r == -EBUSY ? 0 : r;
}

int transfer_list(struct transfer *t, const char *path, json_t **ret, struct fail *fail)
{
	return api_rpc(t->api, &t->sandbox, "filesystem.Filesystem/ListDir",
		       json_pack("{ss si}", "path", path, "depth", 1), ret, fail);
}

int transfer_type(struct transfer *t, const char *path, char *ret, size_t size, struct fail *fail)
{
	const char *type;
	json_t *answer = NULL;
	int r = api_rpc(t->api, &t->sandbox, "filesystem.Filesystem/Stat",
			json_pack("{ss}", "path", path), &answer, fail);

	type = json_string_value(json_object_get(json_object_get(answer, "entry"), "type"));
	(void)snprintf(ret, size, "%s", type ? type : "");
	json_decref(answer);
	return r;
}
