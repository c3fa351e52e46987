/* SPDX-License-Identifier: Apache-2.0 */
/* What is meant: the service itself (control plane) or a port of a sandbox (data plane), and which
 * operation. */
#include "server/http/exchange.h"

#include "server/http/host.h"
#include "server/sandbox/sandbox.h"
#include "server/http/signed_url.h"

#include <strings.h>

/* What a request says about whom it is for. */
struct address {
	bool sandbox;
	bool by_name; /* by the host, that is */
	char id[HOST_ID_SIZE];
	uint32_t port;
};

/* The two headers with which clients name a sandbox where the host name cannot. */
static int address_read_headers(struct exchange *x, struct address *a)
{
	const char *id = request_header(&x->r, "E2b-Sandbox-Id");
	const char *port = request_header(&x->r, "E2b-Sandbox-Port");

	if (!id && !port)
		return 0;
	if (!id || !port)
		return reply_error(
			&x->r, 400,
			"missing header: E2b-Sandbox-Id and E2b-Sandbox-Port belong together");
	if (!host_id_ok(id))
		return reply_error(&x->r, 400, "Invalid sandbox ID");
	if (host_parse_port(port, strlen(port), &a->port) < 0)
		return reply_error(&x->r, 400, "Invalid sandbox port");
	a->sandbox = true;
	(void)snprintf(a->id, sizeof(a->id), "%s", id);
	return 0;
}

static int address_read(struct exchange *x, struct address *a)
{
	struct host h =
		host_parse(request_header(&x->r, "Host"), x->r.server->config.server_domain);

	switch (h.kind) {
	case HOST_SELF:
		return address_read_headers(x, a);
	case HOST_SANDBOX:
		a->sandbox = a->by_name = true;
		a->port = h.port;
		memcpy(a->id, h.id, sizeof(a->id));
		return 0;
	case HOST_BAD:
		return reply_error(&x->r, 400, "Invalid host");
	case HOST_FOREIGN:
	default:
		return reply_error(&x->r, 421,
				   "this is not a host name of this service; "
				   "server.domain in its settings can make it one");
	}
}

/* --- signed URLs, which name no sandbox ------------------------------------------------------- */

static bool made_signature(const char *token, void *arg)
{
	return sign_made_with(arg, token);
}

/* With nothing said about the sandbox all tokens have to be tried, so how often is bounded, right
 * or wrong. */
static int find_by_signature(struct exchange *x)
{
	struct sign_request q = access_signed(x);
	struct sign_search search;
	int r;

	if (!q.signature)
		return access_refuse(x, "missing signature query parameter");
	if (sign_prepare(&q, &search) < 0)
		return access_refuse(x, "invalid signature");
	r = access_rate_search(x, sandbox_count(x->r.server, NULL));
	if (r < 0 || x->r.replied)
		return r;
	x->r.sandbox = sandbox_by_signature(x->r.server, made_signature, &search);
	return x->r.sandbox ? 0 : access_refuse(x, "invalid signature");
}

/*
 * /files at our own address without a sandbox: a signed URL of a client that was told of one
 * address for everything, or a client so old that it sends only the token. Both name their sandbox
 * by what only it has.
 */
static int find_by_secret(struct exchange *x)
{
	const char *token = request_header(&x->r, "X-Access-Token");

	if (!token)
		return find_by_signature(x);
	x->r.sandbox = sandbox_by_token(x->r.server, token);
	if (x->r.sandbox)
		return 0;
	return access_refuse(x, request_query(&x->r, "signature") ?
					"invalid signature" :
					"missing signature query parameter");
}

static bool is_files(const struct exchange *x)
{
	return strcmp(x->target, "/files") == 0;
}

/* --- the operation ---------------------------------------------------------------------------- */

static int keep_params(struct exchange *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->path.n; i++) {
		char *text;

		if (!x->operation->segment[i].is_param)
			continue;
		text = malloc(x->path.segment[i].len + 1);
		if (!text)
			return -ENOMEM;
		x->r.params[n++] = text;
		if (uri_decode(x->path.segment[i].text, x->path.segment[i].len, false, text) < 0)
			return reply_error(&x->r, 404, "there is nothing at this path");
	}
	return 0;
}

static int find_operation(struct exchange *x)
{
	char allow[ROUTES_ALLOW_SIZE];

	x->operation = routes_match(x->r.server->routes, x->plane, x->r.method, &x->path, allow);
	if (!x->operation && allow[0]) {
		reply_header(&x->r, "Allow", allow);
		return reply_error(&x->r, 405, "%s does not go with this path", x->r.method);
	}
	if (!x->operation)
		return reply_error(&x->r, 404, "there is nothing at this path");
	x->r.route = x->operation->route;
	return keep_params(x);
}

/* What answers at a port of a sandbox; PLANE_CONTROL: none of ours. */
static enum plane plane_of(uint32_t port)
{
	if (port == HTTP_ENVD_PORT)
		return PLANE_ENVD;
	return port == HTTP_INTERPRETER_PORT ? PLANE_INTERPRETER : PLANE_CONTROL;
}

/* --- browsers ask first ----------------------------------------------------------------------- */

/* A preflight has none of the headers it asks about: at our own address the path must do. */
static bool is_preflight(struct exchange *x, const struct address *a)
{
	char allow[ROUTES_ALLOW_SIZE];

	if (strcmp(x->r.method, "OPTIONS") != 0 ||
	    !request_header(&x->r, "Access-Control-Request-Method"))
		return false;
	if (a->sandbox)
		return true;
	for (enum plane p = PLANE_ENVD; p < _PLANE_MAX; p++) {
		(void)routes_match(x->r.server->routes, p, "OPTIONS", &x->path, allow);
		if (allow[0])
			return true;
	}
	return false;
}

static int answer_preflight(struct exchange *x)
{
	x->plane = PLANE_ENVD;
	reply_header(&x->r, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE");
	reply_header(&x->r, "Access-Control-Allow-Headers", "*");
	reply_header(&x->r, "Access-Control-Max-Age", "7200");
	return reply_empty(&x->r, 204);
}

static int find_files(struct exchange *x)
{
	int r = access_rate(x, NULL);

	if (r < 0 || x->r.replied)
		return r;
	x->plane = PLANE_ENVD;
	x->r.port = HTTP_ENVD_PORT;
	r = find_by_secret(x);
	return r < 0 || x->r.replied ? r : find_operation(x);
}

/* A port of the sandbox's own programs: it has no operations, all of it is passed on. Our own
 * answers there are as those of the control plane: JSON, and no other site may read them. */
static int find_port(struct exchange *x, const struct address *a)
{
	int r;

	x->r.route = x->r.server->port_route;
	r = head_check_passed_on(x);
	if (r < 0 || x->r.replied)
		return r;
	x->r.port = a->port;
	x->by_name = a->by_name;
	x->r.sandbox = sandbox_get(x->r.server, a->id);
	return x->r.sandbox ? 0 : reply_gone(&x->r, a->id);
}

int address_find(struct exchange *x)
{
	struct address a = { 0 };
	int r = address_read(x, &a);

	if (r < 0 || x->r.replied)
		return r;
	if (a.sandbox && plane_of(a.port) == PLANE_CONTROL)
		return find_port(x, &a);
	r = head_check_own(x);
	if (r < 0 || x->r.replied)
		return r;
	if (is_preflight(x, &a))
		return answer_preflight(x);
	if (!a.sandbox && is_files(x))
		return find_files(x);
	if (!a.sandbox)
		return find_operation(x);
	x->plane = plane_of(a.port);
	x->r.port = a.port;
	x->r.sandbox = sandbox_get(x->r.server, a.id);
	if (!x->r.sandbox)
		return reply_gone(&x->r, a.id);
	return find_operation(x);
}
