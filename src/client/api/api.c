/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/api.h"

#include "base/buf.h"
#include "service/discovery.h"

#include <fcntl.h>
#include <pwd.h>

#define SMALL_FILE_MAX 4096
#define CONNECT_SECONDS 10L
#define ANSWER_SECONDS 120L
#define AGENT_PORT 49983u

/* --- where the service is --------------------------------------------------------------------- */

static int read_small(const char *path, char *ret, size_t size)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SMALL_FILE_MAX);
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return r;
	while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
		text.len--;
	if (text.len >= size)
		return -ENOBUFS;
	memcpy(ret, text.data ? text.data : (const unsigned char *)"", text.len);
	ret[text.len] = '\0';
	return 0;
}

static void copy_url(char *ret, size_t size, const char *url)
{
	(void)snprintf(ret, size, "%s", url);
	while (*ret && ret[strlen(ret) - 1] == '/')
		ret[strlen(ret) - 1] = '\0';
}

static int api_find_key(struct api *a, const char *state, struct fail *fail)
{
	const char *given = getenv("E2B_API_KEY");
	char path[640];
	int r;

	if (given && *given) {
		(void)snprintf(a->key, sizeof(a->key), "%s", given);
		return 0;
	}
	if (!*state)
		return fail_set(fail, EINVAL, "key", "set E2B_API_KEY to a key of %s", a->url);
	(void)snprintf(path, sizeof(path), "%s/local.key", state);
	r = read_small(path, a->key, sizeof(a->key));
	return r < 0 ? fail_set(
			       fail, -r, "key",
			       "cannot read %s (%s): set E2B_API_KEY, or make a key with 'sudo glovebox key create'",
			       path, strerror(-r)) :
		       0;
}

int api_open(struct api *ret, struct fail *fail)
{
	const char *url = getenv("E2B_API_URL"), *sandbox_url = getenv("E2B_SANDBOX_URL");
	struct api a = { 0 };
	struct discovery found = { 0 };
	int r = discovery_read(&found);

	if (url && *url) {
		copy_url(a.url, sizeof(a.url), url);
		/* The local service's key is for the local service. */
		if (strcmp(a.url, found.url) != 0)
			found.state[0] = '\0';
	} else if (r < 0) {
		return fail_set(
			fail, -r, "service",
			"no service is running here: start one with 'glovebox serve', or set E2B_API_URL and E2B_API_KEY");
	} else {
		copy_url(a.url, sizeof(a.url), found.url);
	}
	copy_url(a.sandbox_url, sizeof(a.sandbox_url),
		 sandbox_url && *sandbox_url ? sandbox_url : a.url);
	r = api_find_key(&a, found.state, fail);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(a.curl = curl_easy_init()))
		return fail_set(fail, ENOMEM, "curl", "out of memory");
	*ret = a;
	return 0;
}

void api_close(struct api *a)
{
	if (a->curl)
		curl_easy_cleanup(a->curl);
	explicit_bzero(a, sizeof(*a));
}

/* --- one request ------------------------------------------------------------------------------ */

char *api_escape(const char *text)
{
	char *escaped = curl_easy_escape(NULL, text, (int)strlen(text)), *ret;

	ret = escaped ? strdup(escaped) : NULL;
	curl_free(escaped);
	return ret;
}

static bool api_add_header(struct curl_slist **list, const char *name, const char *value)
{
	char text[512];
	struct curl_slist *next;

	if ((size_t)snprintf(text, sizeof(text), "%s: %s", name, value) >= sizeof(text))
		return false;
	next = curl_slist_append(*list, text);
	explicit_bzero(text, sizeof(text));
	if (!next)
		return false;
	*list = next;
	return true;
}

static bool api_set_up(CURL *curl, const struct api *a, const struct api_sandbox *b,
		       const char *path, struct curl_slist **headers)
{
	char url[4096], port[16];

	(void)snprintf(port, sizeof(port), "%u", b && b->port ? b->port : AGENT_PORT);
	if ((size_t)snprintf(url, sizeof(url), "%s%s", b ? a->sandbox_url : a->url, path) >=
	    sizeof(url))
		return false;
	if (b ? !api_add_header(headers, "E2b-Sandbox-Id", b->id) ||
			    !api_add_header(headers, "E2b-Sandbox-Port", port) ||
			    (b->token[0] && !api_add_header(headers, "X-Access-Token", b->token)) :
		!api_add_header(headers, "X-API-KEY", a->key))
		return false;
	curl_easy_setopt(curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "glovebox-client/" GLOVEBOX_VERSION);
	return true;
}

CURL *api_handle(struct api *a, const struct api_sandbox *b, const char *path,
		 struct curl_slist **ret_headers)
{
	CURL *curl = curl_easy_init();

	*ret_headers = NULL;
	if (curl && !api_set_up(curl, a, b, path, ret_headers)) {
		curl_easy_cleanup(curl);
		curl_slist_free_all(*ret_headers);
		*ret_headers = NULL;
		return NULL;
	}
	return curl;
}

static int status_error(long status)
{
	switch (status) {
	case 404:
		return ENOENT;
	case 409:
		return EBUSY;
	case 401:
	case 403:
		return EACCES;
	default:
		return EPROTO;
	}
}

int api_failed(CURLcode code, long status, const char *text, size_t len, struct fail *fail)
{
	json_t *o;
	const char *message;
	int r;

	if (code == CURLE_COULDNT_CONNECT)
		return fail_set(fail, ECONNREFUSED, "service",
				"the service does not answer: is it running? ('glovebox serve')");
	if (code != CURLE_OK && code != CURLE_WRITE_ERROR)
		return fail_set(fail, EIO, "service", "the service broke off: %s",
				curl_easy_strerror(code));
	o = json_loadb(text, len, 0, NULL);
	message = json_string_value(json_object_get(o, "message"));
	if (message)
		r = fail_set(fail, status_error(status), "service", "%.200s", message);
	else
		r = fail_set(fail, status_error(status), "service",
			     "the service answered with status %ld", status);
	json_decref(o);
	return r;
}

static size_t api_collect(char *data, size_t size, size_t n, void *arg)
{
	return buf_add(arg, data, size * n) < 0 ? 0 : size * n;
}

struct wanted_header {
	const char *name;
	char *value;
	size_t size;
};

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct wanted_header *w = arg;
	size_t len = size * n, name = w->name ? strlen(w->name) : 0;

	if (name && len > name + 1 && data[name] == ':' && strncasecmp(data, w->name, name) == 0) {
		const char *from = data + name + 1, *end = data + len;

		while (from < end && *from == ' ')
			from++;
		while (end > from && (end[-1] == '\r' || end[-1] == '\n'))
			end--;
		(void)snprintf(w->value, w->size, "%.*s", (int)(end - from), from);
	}
	return len;
}

static int api_perform(CURL *curl, const char *method, struct curl_slist **headers,
		       const char *text, struct wanted_header *wanted, json_t **ret,
		       struct fail *fail)
{
	_cleanup_(buf_done) struct buf answer = BUF_INIT(API_ANSWER_MAX);
	CURLcode code;
	long status = 0;

	if (text && !api_add_header(headers, "Content-Type", "application/json"))
		return fail_set(fail, ENOMEM, "service", "out of memory");
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_SECONDS);
	if (text)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, api_collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, wanted);
	code = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status < 200 || status > 299)
		return api_failed(code, status, (char *)answer.data, answer.len, fail);
	if (!ret)
		return 0;
	*ret = NULL;
	if (answer.len == 0)
		return 0;
	*ret = json_loadb((char *)answer.data, answer.len, JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 0 : fail_set(fail, EBADMSG, "service", "the service's answer is not JSON");
}

static int call(struct api *a, const struct api_sandbox *b, const char *method, const char *path,
		json_t *body, struct wanted_header *wanted, json_t **ret, struct fail *fail)
{
	_cleanup_(freep) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct curl_slist *headers = NULL;
	bool lost = body && !text;
	int r;

	json_decref(body);
	curl_easy_reset(a->curl);
	if (lost || !api_set_up(a->curl, a, b, path, &headers))
		r = fail_set(fail, ENOMEM, "service", "out of memory, or a name is too long");
	else
		r = api_perform(a->curl, method, &headers, text, wanted, ret, fail);
	curl_slist_free_all(headers);
	return r;
}

int api_call_header(struct api *a, const char *method, const char *path, json_t *body, json_t **ret,
		    const char *header, char *ret_header, size_t size, struct fail *fail)
{
	struct wanted_header wanted = { .name = header, .value = ret_header, .size = size };

	*ret_header = '\0';
	return call(a, NULL, method, path, body, &wanted, ret, fail);
}

int api_call(struct api *a, const char *method, const char *path, json_t *body, json_t **ret,
	     struct fail *fail)
{
	struct wanted_header none = { 0 };

	return call(a, NULL, method, path, body, &none, ret, fail);
}

int api_rpc(struct api *a, const struct api_sandbox *b, const char *method, json_t *body,
	    json_t **ret, struct fail *fail)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "/%s", method);
	return api_sandbox_call(a, b, "POST", path, body, ret, fail);
}

int api_sandbox_call(struct api *a, const struct api_sandbox *b, const char *method,
		     const char *path, json_t *body, json_t **ret, struct fail *fail)
{
	struct wanted_header none = { 0 };

	return call(a, b, method, path, body, &none, ret, fail);
}

int api_sandbox(struct api *a, const char *id, struct api_sandbox *ret, struct fail *fail)
{
	_cleanup_(freep) char *escaped = api_escape(id);
	char path[256];
	const char *token;
	json_t *o;
	int r;

	if (!escaped ||
	    (size_t)snprintf(path, sizeof(path), "/sandboxes/%s", escaped) >= sizeof(path) ||
	    strlen(id) >= sizeof(ret->id))
		return fail_set(fail, ENOENT, "sandbox", "there is no sandbox of that name");
	r = api_call(a, "GET", path, NULL, &o, fail);
	if (r < 0)
		return r;
	token = json_string_value(json_object_get(o, "envdAccessToken"));
	(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	(void)snprintf(ret->token, sizeof(ret->token), "%s", token ? token : "");
	ret->port = 0;
	json_decref(o);
	return 0;
}
