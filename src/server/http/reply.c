/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/exchange.h"

#include "server/sandbox/reason.h"
#include "server/sandbox/sandbox.h"

#include <poll.h>
#include <stdarg.h>

#define STREAM_BLOCK ((size_t)64 << 10)
#define LARGE_BLOCK ((size_t)512 << 10)
#define LARGE (UINT64_C(4) << 20)
#define PAGE_MAX ((size_t)8 << 10)

void reply_header(struct request *r, const char *name, const char *value)
{
	struct exchange *x = exchange_of(r);
	char *n, *v;

	if (x->n_fields >= HTTP_REPLY_HEADERS_MAX)
		return;
	n = strdup(name);
	v = strdup(value);
	if (!n || !v) {
		free(n);
		free(v);
		return;
	}
	x->fields[x->n_fields++] = (struct reply_field){ n, v };
}

static int reply_add(struct MHD_Response *reply, const char *name, const char *value)
{
	return MHD_add_response_header(reply, name, value) == MHD_YES ? 0 : -EINVAL;
}

/* AG-14: the library refuses a value with a line end in it, so nothing can be smuggled into the
 * headers. */
static int reply_add_fields(struct exchange *x, struct MHD_Response *reply, const char *type)
{
	int r = reply_add(reply, "X-Content-Type-Options", "nosniff");

	if (r == 0)
		r = reply_add(reply, "X-Request-Id", x->r.id);
	if (r == 0 && type)
		r = reply_add(reply, "Content-Type", type);
	for (size_t i = 0; i < x->n_fields && r == 0; i++)
		r = reply_add(reply, x->fields[i].name, x->fields[i].value);
	if (r == 0 && x->plane != PLANE_CONTROL) {
		/* Browsers may use a sandbox's own ports: what protects them is the token. */
		r = reply_add(reply, "Access-Control-Allow-Origin", "*");
		if (r == 0)
			r = reply_add(reply, "Access-Control-Expose-Headers", "*");
	}
	return r;
}

int reply_made(struct request *r, unsigned status, struct MHD_Response *reply)
{
	struct exchange *x = exchange_of(r);

	if (r->replied) {
		MHD_destroy_response(reply);
		return -EALREADY;
	}
	x->reply = reply;
	x->status = status;
	r->replied = true;
	return 0;
}

/* Takes over the response. */
static int reply_keep(struct exchange *x, unsigned status, const char *type,
		      struct MHD_Response *reply)
{
	int r = reply_add_fields(x, reply, type);

	if (r < 0) {
		MHD_destroy_response(reply);
		return r;
	}
	return reply_made(&x->r, status, reply);
}

static int reply_buffer(struct request *r, unsigned status, const char *type, char *data,
			size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *reply = MHD_create_response_from_buffer(len, data, mode);
	struct exchange *x = exchange_of(r);
	int n;

	if (!reply) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(data);
		return -ENOMEM;
	}
	n = reply_keep(x, status, type, reply);
	if (n == 0) {
		x->text = data;
		x->text_len = len;
	}
	return n;
}

int reply_json(struct request *r, unsigned status, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(body);
	if (!text)
		return -ENOMEM;
	return reply_buffer(r, status, "application/json", text, strlen(text),
			    MHD_RESPMEM_MUST_FREE);
}

int reply_empty(struct request *r, unsigned status)
{
	static char nothing[1];

	return reply_buffer(r, status, NULL, nothing, 0, MHD_RESPMEM_PERSISTENT);
}

int reply_text(struct request *r, unsigned status, const char *type, const char *text)
{
	char *copy = strdup(text);

	return copy ? reply_buffer(r, status, type, copy, strlen(copy), MHD_RESPMEM_MUST_FREE) :
		      -ENOMEM;
}

/* The interpreter's clients show the body of an error as it is. */
static int reply_plain_error(struct request *r, unsigned status, const char *message)
{
	json_t *text = reply_safe_string(message);
	int n = text ? reply_text(r, status, "text/plain; charset=utf-8", json_string_value(text)) :
		       -ENOMEM;

	json_decref(text);
	return n;
}

int reply_error(struct request *r, unsigned status, const char *fmt, ...)
{
	char message[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (exchange_of(r)->plane == PLANE_INTERPRETER)
		return reply_plain_error(r, status, message);
	/* What clients sent may be quoted in it, and cut in the middle of a character. */
	return reply_json(r, status,
			  json_pack("{s:i, s:o}", "code", (int)status, "message",
				    reply_safe_string(message)));
}

int reply_failure(struct request *r, const struct fail *fail)
{
	server_log(r->server, "error", "failure",
		   json_pack("{s:s, s:s, s:o, s:i}", "request", r->id, "where", fail->where,
			     "message", reply_safe_string(fail->msg), "errno", fail->err));
	return reply_error(r, 500, "something went wrong on our side; its number in the log is %s",
			   r->id);
}

/* --- about a sandbox: JSON for programs, a page for people ------------------------------------ */

static bool wants_page(const struct request *r)
{
	const char *accept = request_header(r, "Accept");

	return accept && strstr(accept, "text/html");
}

/* Nothing in a page is taken for anything but text. */
static int page_add_escaped(struct buf *b, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++) {
		const char *as = *text == '&'  ? "&amp;" :
				 *text == '<'  ? "&lt;" :
				 *text == '>'  ? "&gt;" :
				 *text == '"'  ? "&quot;" :
				 *text == '\'' ? "&#39;" :
						 NULL;

		r = as ? buf_add(b, as, strlen(as)) : buf_add(b, text, 1);
	}
	return r;
}

/* No script, nothing from elsewhere: the policy in its header says so to the browser. */
static int page_make(struct buf *b, unsigned status, const char *id, const char *message,
		     const char *detail)
{
	char code[16];
	const struct {
		bool ours;
		const char *text;
	} part[] = {
		{ true, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
			"<meta name=\"viewport\" content=\"width=device-width\"><title>" },
		{ true, code },
		{ true, "</title><style>body{font:16px/1.5 sans-serif;max-width:36em;"
			"margin:15vh auto;padding:0 1em}code{color:#666}</style><h1>" },
		{ false, message },
		{ true, detail ? "</h1><p>" : "</h1>" },
		{ false, detail ? detail : "" },
		{ true, "<p>Sandbox <code>" },
		{ false, id },
		{ true, "</code></html>\n" },
	};
	int r = 0;

	(void)snprintf(code, sizeof(code), "%u", status);
	for (size_t i = 0; i < ARRAY_SIZE(part) && r == 0; i++)
		r = part[i].ours ? buf_add(b, part[i].text, strlen(part[i].text)) :
				   page_add_escaped(b, part[i].text);
	return r;
}

static int reply_page(struct request *r, unsigned status, const char *id, const char *message,
		      const char *detail)
{
	_cleanup_(buf_done) struct buf page = BUF_INIT(PAGE_MAX);
	int n = page_make(&page, status, id, message, detail);

	if (n < 0)
		return n;
	reply_header(r, "Content-Security-Policy",
		     "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'");
	reply_header(r, "Cache-Control", "no-store");
	return reply_text(r, status, "text/html; charset=utf-8", (const char *)page.data);
}

int reply_sandbox(struct request *r, unsigned status, const char *sandbox_id, const char *message,
		  const char *detail, bool with_port)
{
	json_t *body;

	if (wants_page(r))
		return reply_page(r, status, sandbox_id, message, detail);
	body = json_pack("{s:s, s:s, s:i}", "sandboxId", sandbox_id, "message", message, "code",
			 (int)status);
	if (body && with_port)
		(void)json_object_set_new(body, "port", json_integer(r->port));
	if (body && detail)
		(void)json_object_set_new(body, "detail", reply_safe_string(detail));
	return reply_json(r, status, body);
}

/* One that there is, but that cannot be talked to: it is paused, or it ended while it was asked. */
static void explain_gone(struct sandbox *b, const char **ret_word, char *text, size_t size)
{
	*ret_word = "paused";
	(void)snprintf(text, size, "it is paused");
	pthread_mutex_lock(&b->lock);
	if (b->info.state == STORE_ENDED) {
		*ret_word = reason_word(b->info.reason);
		reason_text(&b->info, text, size);
	}
	pthread_mutex_unlock(&b->lock);
}

int reply_gone(struct request *r, const char *id)
{
	struct store_sandbox info = { 0 };
	char text[160];
	const char *word = "not_found";

	(void)snprintf(text, sizeof(text), "there is no sandbox of this id");
	if (r->sandbox) {
		explain_gone(r->sandbox, &word, text, sizeof(text));
	} else if (store_sandbox_get(r->server->store, id, &info) == 0) {
		word = reason_word(info.reason);
		reason_text(&info, text, sizeof(text));
		store_sandbox_done(&info);
	}
	if (exchange_is_visit(exchange_of(r)) && wants_page(r))
		return reply_page(r, 502, id, "The sandbox was not found", text);
	return reply_json(r, 502,
			  json_pack("{s:s, s:s, s:i, s:s, s:o}", "sandboxId", id, "message",
				    "The sandbox was not found", "code", 502, "reason", word,
				    "detail", reply_safe_string(text)));
}

/* --- streams ---------------------------------------------------------------------------------- */

struct streaming {
	struct request *request;
	const struct stream *stream;
	void *arg;
	uint64_t left; /* UINT64_MAX: not known */
};

static ssize_t read_stream(void *cls, uint64_t pos, char *data, size_t max)
{
	struct streaming *st = cls;
	ssize_t n;

	(void)pos;
	n = st->stream->read(st->arg, data, max);
	if (n == 0 && st->left == UINT64_MAX)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n <= 0 || (size_t)n > max || (uint64_t)n > st->left) {
		exchange_of(st->request)->cut = n < 0 ? (int)n : -EPROTO;
		connection_reset(st->request->socket);
		return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (st->left != UINT64_MAX)
		st->left -= (uint64_t)n;
	return n;
}

static void free_stream(void *cls)
{
	struct streaming *st = cls;

	if (st->stream->close)
		st->stream->close(st->arg);
	free(st);
}

int reply_stream(struct request *r, unsigned status, const char *type, uint64_t size,
		 const struct stream *stream, void *arg)
{
	struct streaming *st = calloc(1, sizeof(*st));
	struct MHD_Response *reply;

	if (!st) {
		if (stream->close)
			stream->close(arg);
		return -ENOMEM;
	}
	*st = (struct streaming){ .request = r, .stream = stream, .arg = arg, .left = size };
	reply = MHD_create_response_from_callback(
		size == UINT64_MAX ? MHD_SIZE_UNKNOWN : size,
		size >= LARGE && size != UINT64_MAX ? LARGE_BLOCK : STREAM_BLOCK, read_stream, st,
		free_stream);
	if (!reply) {
		free_stream(st);
		return -ENOMEM;
	}
	return reply_keep(exchange_of(r), status, type, reply);
}

static int stream_wait_for(struct request *r, int fd, short events, int other_fd, int timeout_ms)
{
	struct pollfd p[] = {
		{ .fd = fd, .events = events },
		{ .fd = r->socket, .events = POLLRDHUP },
		{ .fd = r->server->stop_fd, .events = POLLIN },
		{ .fd = other_fd, .events = POLLIN },
	};
	int n;

	do {
		n = poll(p, ARRAY_SIZE(p), timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (p[0].revents || p[3].revents)
		return 1; /* what is there is passed on, even to the very end */
	if (p[1].revents)
		return -ECONNRESET;
	return p[2].revents ? -ESHUTDOWN : 0;
}

int stream_wait_either(struct request *r, int fd, int other_fd, int timeout_ms)
{
	return stream_wait_for(r, fd, POLLIN, other_fd, timeout_ms);
}

int stream_wait(struct request *r, int fd, int timeout_ms)
{
	return stream_wait_for(r, fd, POLLIN, -EBADF, timeout_ms);
}

int stream_wait_both_ways(struct request *r, int fd, int timeout_ms)
{
	return stream_wait_for(r, fd, POLLIN | POLLOUT, -EBADF, timeout_ms);
}

int stream_wait_space(struct request *r, int fd, int other_fd, int timeout_ms)
{
	return stream_wait_for(r, fd, POLLOUT, other_fd, timeout_ms);
}
