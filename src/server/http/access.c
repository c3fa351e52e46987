/* SPDX-License-Identifier: Apache-2.0 */
/* May the client? Keys, tokens, signatures, how often; then the parameters, once it is known that
 * the answer matters. */
#include "server/http/exchange.h"

#include "base/clock.h"
#include "server/http/schema.h"
#include "server/sandbox/clock.h"
#include "server/http/rate.h"
#include "server/sandbox/sandbox.h"
#include "server/http/signed_url.h"

#include <strings.h>

static int too_often(struct exchange *x, unsigned retry_s, const char *what)
{
	char seconds[16];

	(void)snprintf(seconds, sizeof(seconds), "%u", retry_s);
	reply_header(&x->r, "Retry-After", seconds);
	return reply_error(&x->r, 429, "%s; try again in %u s", what, retry_s);
}

/*
 * AP-01: wrong keys cost the address they come from. Right ones are never turned away for it, or
 * clients that share an address with an attacker (all on this machine do) would be locked out
 * together with it.
 */
int access_refuse(struct exchange *x, const char *message)
{
	unsigned wait_s = penalty_add(x->r.server->rates->failures, connection_peer(x->peer),
				      clock_boot_us());

	if (wait_s)
		return too_often(x, wait_s, "too many wrong keys or tokens from this address");
	return reply_error(&x->r, 401, "%s", message);
}

int access_rate(struct exchange *x, const char *key_id)
{
	const struct config *c = &x->r.server->config;
	struct rates *rates = x->r.server->rates;
	uint64_t now = clock_boot_us();
	unsigned retry_s;
	bool ok = key_id ? rate_take(rates->requests, key_id, c->limits_requests_per_second, now,
				     &retry_s) :
			   rate_take(rates->addresses, connection_peer(x->peer),
				     c->limits_requests_per_second, now, &retry_s);

	return ok ? 0 : too_often(x, retry_s, "too many requests");
}

int access_rate_search(struct exchange *x, size_t n)
{
	unsigned retry_s;

	if (rate_take(x->r.server->rates->searches, connection_peer(x->peer), rate_of_searches(n),
		      clock_boot_us(), &retry_s))
		return 0;
	return too_often(x, retry_s, "too many signed URLs that name no sandbox");
}

int request_take_create(struct request *r)
{
	unsigned retry_s;

	if (rate_take(r->server->rates->creates, r->key.id,
		      r->server->config.limits_creates_per_second, clock_boot_us(), &retry_s))
		return 0;
	return too_often(exchange_of(r), retry_s, "too many new sandboxes");
}

/* --- the control plane: keys ------------------------------------------------------------------ */

static const char *key_text(const struct exchange *x)
{
	static const char bearer[] = "Bearer ";
	const char *key = request_header(&x->r, "X-API-KEY");
	const char *authorization = request_header(&x->r, "Authorization");

	if (key)
		return key;
	if (authorization && strncasecmp(authorization, bearer, sizeof(bearer) - 1) == 0)
		return authorization + sizeof(bearer) - 1;
	return NULL;
}

static int check_key(struct exchange *x)
{
	const struct route *route = x->r.route;
	const char *text;
	int r;

	if (route->auth == HTTP_AUTH_NONE)
		return access_rate(x, NULL);
	text = key_text(x);
	if (!text)
		return access_refuse(x, "an API key is needed, in the header X-API-KEY");
	r = store_key_check(x->r.server->store, text, strlen(text), &x->r.key);
	if (r == -EACCES)
		return access_refuse(x, "this API key is not valid: unknown, expired or revoked");
	if (r < 0) {
		struct fail fail = { .err = -r, .where = "keys", .msg = "the store failed" };

		return reply_failure(&x->r, &fail);
	}
	if (route->scopes && !(x->r.key.scopes & (route->scopes | STORE_SCOPE_ADMIN)))
		return reply_error(&x->r, 403, "this API key may not do that");
	return access_rate(x, x->r.key.id);
}

/* --- the data plane: tokens ------------------------------------------------------------------- */

#define NO_TOKEN                                                                                   \
	"unauthorized access, please provide a valid access token or method signing if supported"

struct sign_request access_signed(struct exchange *x)
{
	const char *path = request_query(&x->r, "path"), *user = request_query(&x->r, "username");

	return (struct sign_request){
		.path = path ? path : "",
		.operation = strcmp(x->r.method, "POST") == 0 ? "write" : "read",
		.user = user ? user : "",
		.signature = request_query(&x->r, "signature"),
		.expiration = request_query(&x->r, "signature_expiration"),
	};
}

static int check_signature(struct exchange *x, const char *token)
{
	struct sign_request q = access_signed(x);

	if (!q.signature)
		return access_refuse(x, "missing signature query parameter");
	if (!sign_matches(&q, token))
		return access_refuse(x, "invalid signature");
	if (sign_expired(&q, clock_wall_ms() / 1000))
		return access_refuse(x, "signature is already expired");
	return 0;
}

static int check_token(struct exchange *x)
{
	const char *token = x->r.sandbox->info.envd_token;
	const char *given = request_header(&x->r, "X-Access-Token");

	if (!token || x->r.route->auth == HTTP_AUTH_NONE)
		return 0;
	if (given)
		return token_equal(given, token) ? 0 : access_refuse(x, NO_TOKEN);
	if (x->r.route->auth == HTTP_AUTH_FILES)
		return check_signature(x, token);
	return access_refuse(x, NO_TOKEN);
}

bool access_may_visit(const struct sandbox *b, const char *token)
{
	const char *wanted = b->info.traffic_token;

	return !wanted || (token && token_equal(token, wanted));
}

/* All ports but that of files and commands: a client that may not visit a sandbox does not wake it
 * either. */
static int check_traffic(struct exchange *x)
{
	const struct store_sandbox *info = &x->r.sandbox->info;

	if (x->r.port == HTTP_ENVD_PORT ||
	    access_may_visit(x->r.sandbox, request_header(&x->r, "E2B-Traffic-Access-Token")))
		return 0;
	return reply_sandbox(&x->r, 403, info->id, "the traffic access token is missing or wrong",
			     NULL, false);
}

/*
 * The key pays for the requests of clients that have shown the token; strangers are counted by
 * their address. Visits to the sandbox's own programs are not: a page has hundreds of parts. What
 * limits those is how many there are at once.
 */
static int rate_sandbox(struct exchange *x)
{
	if (exchange_is_visit(x))
		return 0;
	return access_rate(x,
			   x->r.route->auth == HTTP_AUTH_NONE ? NULL : x->r.sandbox->info.key_id);
}

static int check_sandbox(struct exchange *x)
{
	int r = check_token(x);

	if (r == 0 && !x->r.replied)
		r = rate_sandbox(x);
	if (r == 0 && !x->r.replied)
		r = check_traffic(x);
	if (r < 0 || x->r.replied)
		return r;
	return sandbox_wake(x->r.sandbox) < 0 ? reply_gone(&x->r, x->r.sandbox->info.id) : 0;
}

/* --- parameters ------------------------------------------------------------------------------- */

static int access_wrong(struct exchange *x, const struct check_error *err)
{
	char text[sizeof(*err) + 4];

	check_error_text(err, text, sizeof(text));
	return reply_error(&x->r, 400, "%s", text);
}

static int check_known(struct exchange *x)
{
	for (size_t i = 0; i < x->query.n; i++) {
		bool known = false;

		for (size_t k = 0; k < x->operation->n_query && !known; k++)
			known = strcmp(x->query.pair[i].name, x->operation->query[k].name) == 0;
		if (!known)
			return reply_error(&x->r, 400, "%.64s: there is no such parameter",
					   x->query.pair[i].name);
	}
	return 0;
}

static int check_parameters(struct exchange *x)
{
	const struct operation *op = x->operation;
	const json_t *doc = x->r.server->routes->doc;
	struct check_error err = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < op->n_segments; i++) {
		if (!op->segment[i].is_param)
			continue;
		/* What cannot be a name is the name of nothing. */
		if (op->segment[i].schema &&
		    check_text(doc, op->segment[i].schema, "path", x->r.params[n], &err) < 0)
			return reply_error(&x->r, 404, "there is nothing at this path");
		n++;
	}
	for (size_t i = 0; i < op->n_query; i++) {
		const char *value = request_query(&x->r, op->query[i].name);

		if (!value && op->query[i].required)
			return reply_error(&x->r, 400, "%s: is required", op->query[i].name);
		if (value &&
		    check_text(doc, op->query[i].schema, op->query[i].name, value, &err) < 0)
			return access_wrong(x, &err);
	}
	return check_known(x);
}

int access_check(struct exchange *x)
{
	int r = x->r.sandbox ? check_sandbox(x) : check_key(x);

	if (r < 0 || x->r.replied || exchange_is_visit(x))
		return r;
	return check_parameters(x);
}
