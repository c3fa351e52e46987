/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/exchange.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "server/http/schema.h"
#include "server/sandbox/sandbox.h"

#include <sodium.h>
#include <strings.h>

static void exchange_make_id(char ret[static 17])
{
	unsigned char bytes[8];

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(ret, 17, bytes, sizeof(bytes));
}

json_t *reply_safe_string(const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(3 * strlen(text) + 1);

	if (utf8_replace_invalid(text, strlen(text), &b) < 0)
		return json_string("");
	return json_string(b.data ? (const char *)b.data : "");
}

struct exchange *exchange_new(struct server *s, struct MHD_Connection *c, struct connection *peer,
			      const char *target)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->target = strndup(target, HTTP_TARGET_MAX + 1);
	if (!x->target) {
		free(x);
		return NULL;
	}
	x->r.server = s;
	x->r.connection = c;
	x->r.socket = connection_fd(peer);
	x->peer = peer;
	x->body.max = HTTP_JSON_MAX;
	x->started_us = clock_boot_us();
	exchange_make_id(x->r.id);
	return x;
}

void exchange_free(struct exchange *x)
{
	if (x->reply)
		MHD_destroy_response(x->reply);
	if (x->r.route && x->r.route->done)
		x->r.route->done(&x->r);
	for (size_t i = 0; i < x->n_fields; i++) {
		free(x->fields[i].name);
		free(x->fields[i].value);
	}
	for (size_t i = 0; i < HTTP_PARAMS_MAX; i++)
		free(x->r.params[i]);
	sandbox_put(x->r.sandbox);
	json_decref(x->r.body);
	buf_done(&x->body);
	uri_query_done(&x->query);
	free(x->target);
	free(x);
}

const char *request_query(const struct request *r, const char *name)
{
	return uri_query_get(&((const struct exchange *)(const void *)r)->query, name);
}

const char *request_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

static int exchange_wrong_body(struct exchange *x, const struct check_error *err)
{
	char text[sizeof(*err) + 4];

	check_error_text(err, text, sizeof(text));
	return reply_error(&x->r, 400, "%s", text);
}

/* Only JSON is taken for JSON: a web page can send anything else here without being asked first
 * (AP-07). */
static bool is_json(const char *type)
{
	static const char json[] = "application/json";

	return type && strncasecmp(type, json, sizeof(json) - 1) == 0 &&
	       strchr("; \t", type[sizeof(json) - 1]);
}

static int exchange_too_large(struct exchange *x)
{
	return reply_error(&x->r, 413, "the body must not be larger than %zu bytes", x->body.max);
}

static int check_body_head(struct exchange *x)
{
	if (x->r.route->body_max)
		x->body.max = x->r.route->body_max;
	if (x->length != UINT64_MAX && x->length > x->body.max)
		return exchange_too_large(x);
	if (!is_json(request_header(&x->r, "Content-Type")))
		return reply_error(&x->r, 415, "the body must be of type application/json");
	return 0;
}

int exchange_begin(struct exchange *x, const char *method, const char *version)
{
	const struct route *route;
	int r = head_check(x, method, version);

	if (r == 0 && !x->r.replied)
		r = address_find(x);
	if (r == 0 && !x->r.replied)
		r = access_check(x);
	if (r < 0 || x->r.replied) {
		connection_set_body_deadline(x->peer, true);
		return r;
	}
	x->admitted = true;
	route = x->r.route;
	if (route->body == HTTP_BODY_JSON && x->has_body)
		r = check_body_head(x);
	if (r == 0 && !x->r.replied && route->begin)
		r = route->begin(&x->r);
	connection_set_body_deadline(x->peer, route->body != HTTP_BODY_STREAM || x->r.replied);
	return r;
}

int exchange_data(struct exchange *x, const char *data, size_t len)
{
	const struct route *route = x->r.route;
	int r;

	x->received += len;
	if (x->r.replied || route->body == HTTP_BODY_NONE)
		return x->received > HTTP_DROP_MAX && !x->admitted ? -EMSGSIZE : 0;
	if (route->body == HTTP_BODY_STREAM) {
		r = route->data(&x->r, data, len);
		/* Many clients hear nothing before they have said all: it is dropped, but not for
		 * ever. */
		if (x->r.replied)
			connection_set_body_deadline(x->peer, true);
		return r;
	}
	r = buf_add(&x->body, data, len);
	return r == -ENOBUFS ? exchange_too_large(x) : r;
}

static int exchange_read_body(struct exchange *x)
{
	struct check_error err = { 0 };

	if (x->body.len == 0)
		return x->operation->body_required ?
			       reply_error(&x->r, 400, "a JSON body is required") :
			       0;
	if (check_parse((const char *)x->body.data, x->body.len, &x->r.body, &err) < 0)
		return exchange_wrong_body(x, &err);
	if (check_value(x->r.server->routes->doc, x->operation->body, x->r.body, &err) < 0)
		return exchange_wrong_body(x, &err);
	return 0;
}

int exchange_end(struct exchange *x)
{
	int r = 0;

	/* The library read another length than we did: one of us would take the rest for the next
	 * request. */
	if (x->length != UINT64_MAX && x->received != x->length)
		return -EPROTO;
	if (!x->r.replied && x->r.route->body == HTTP_BODY_JSON)
		r = exchange_read_body(x);
	if (r == 0 && !x->r.replied)
		r = x->r.route->handle(&x->r);
	if (r < 0)
		return r;
	if (!x->r.replied) {
		struct fail fail = { .where = "handler", .msg = "no reply was made" };

		return reply_failure(&x->r, &fail);
	}
	return 0;
}

bool exchange_cannot_wait(const struct exchange *x)
{
	uint64_t drop_max = x->admitted ? HTTP_DROP_ADMITTED_MAX : HTTP_DROP_MAX;
	bool too_much = x->length != UINT64_MAX && x->length > drop_max;

	return x->r.replied && (x->is_last || x->expects_continue || too_much);
}

int exchange_queue(struct exchange *x)
{
	enum MHD_Result ok = MHD_queue_response(x->r.connection, x->status, x->reply);

	MHD_destroy_response(x->reply); /* the library has its own reference */
	x->reply = NULL;
	return ok == MHD_YES ? 0 : -EIO;
}
