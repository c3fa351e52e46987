/* SPDX-License-Identifier: Apache-2.0 */
/* A call from its first byte to its reply. */
#include "server/rpc/rpc.h"

#include "server/http/exchange.h"
#include "server/sandbox/sandbox.h"
#include "wire/wire.h"

#include <sodium.h>

#define UNARY_TYPE "application/json"
#define STREAM_TYPE "application/connect+json"
#define AUTHORIZATION_MAX 128 /* of Basic credentials that name a user and have no password */
#define DEFAULT_USER "user"
#define RPC_BODY_MAX (RPC_ENVELOPE_HEAD + RPC_MESSAGE_MAX)

/* What a route with these functions keeps in request->state. */
struct rpc_body {
	struct buf bytes;
	uint64_t dropped; /* what came after it was full */
};

bool rpc_type_is(const char *header, const char *type)
{
	size_t n = strlen(type);

	if (!header || strncasecmp(header, type, n) != 0)
		return false;
	return header[n] == '\0' || header[n] == ';' || header[n] == ' ';
}

/* What a client may ask of the protocol that we do not speak. */
static int rpc_check_protocol(const struct request *r, struct rpc_error *e)
{
	const char *version = request_header(r, "Connect-Protocol-Version");
	const char *encodings[] = { request_header(r, "Content-Encoding"),
				    request_header(r, "Connect-Content-Encoding") };

	if (version && strcmp(version, "1") != 0)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"Connect-Protocol-Version: only version 1 is known");
	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++)
		if (encodings[i] && strcasecmp(encodings[i], "identity") != 0)
			return rpc_fail(e, RPC_UNIMPLEMENTED,
					"messages must not be compressed: send them as they are");
	return 0;
}

static int rpc_begin(struct request *r, const char *type)
{
	struct rpc_error e = { 0 };
	struct rpc_body *body;

	if (!rpc_type_is(request_header(r, "Content-Type"), type)) {
		reply_header(r, "Accept-Post", type);
		return reply_error(r, 415, "Content-Type must be %s", type);
	}
	if (rpc_check_protocol(r, &e) < 0)
		return rpc_reply_error(r, &e);
	body = calloc(1, sizeof(*body));
	if (!body)
		return -ENOMEM;
	body->bytes.max = RPC_BODY_MAX;
	r->state = body;
	return 0;
}

int rpc_begin_unary(struct request *r)
{
	return rpc_begin(r, UNARY_TYPE);
}

int rpc_begin_stream(struct request *r)
{
	return rpc_begin(r, STREAM_TYPE);
}

/* A reply can be sent only once the body has come, so one that is too large is read to its end. */
int rpc_data(struct request *r, const char *data, size_t len)
{
	struct rpc_body *body = r->state;
	int n = body->dropped ? -ENOBUFS : buf_add(&body->bytes, data, len);

	if (n != -ENOBUFS)
		return n;
	body->dropped += len;
	return body->dropped > RPC_DROP_MAX ? -EFBIG : 0;
}

static int fail_too_large(struct rpc_error *e)
{
	return rpc_fail(e, RPC_RESOURCE_EXHAUSTED, "the message is larger than %d KiB",
			(int)(RPC_MESSAGE_MAX >> 10));
}

static int rpc_check_size(const struct rpc_body *body, struct rpc_error *e)
{
	return body->dropped ? fail_too_large(e) : 0;
}

void rpc_done(struct request *r)
{
	struct rpc_body *body = r->state;

	if (!body)
		return;
	buf_done(&body->bytes);
	free(body);
	r->state = NULL;
}

int rpc_user_check(const void *name, size_t len, char ret[RPC_USER_SIZE], struct rpc_error *e)
{
	const unsigned char *text = name;

	if (len == 0 || len > WIRE_USER_MAX)
		return rpc_fail(e, RPC_UNAUTHENTICATED, "a user's name has 1 to %d bytes, not %zu",
				WIRE_USER_MAX, len);
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == ':' || text[i] == '/')
			return rpc_fail(e, RPC_UNAUTHENTICATED,
					"a user's name must be letters, digits and signs");
	memcpy(ret, name, len);
	ret[len] = '\0';
	return 0;
}

/* "Basic " and base64 of "name:". Other schemes are not about the user. */
int rpc_user_parse(const char *authorization, char ret[RPC_USER_SIZE], struct rpc_error *e)
{
	unsigned char plain[AUTHORIZATION_MAX];
	const char *end;
	size_t len, n;

	if (!authorization || strncasecmp(authorization, "Basic ", 6) != 0) {
		(void)snprintf(ret, RPC_USER_SIZE, "%s", DEFAULT_USER);
		return 0;
	}
	authorization += 6;
	len = strlen(authorization);
	if (len > AUTHORIZATION_MAX ||
	    sodium_base642bin(plain, sizeof(plain), authorization, len, NULL, &n, NULL,
			      sodium_base64_VARIANT_ORIGINAL) < 0)
		return rpc_fail(e, RPC_UNAUTHENTICATED, "the user's name cannot be read");
	end = memchr(plain, ':', n);
	if (!end)
		return rpc_fail(e, RPC_UNAUTHENTICATED, "the user's name cannot be read");
	return rpc_user_check(plain, (size_t)(end - (const char *)plain), ret, e);
}

int rpc_user(const struct request *r, char ret[RPC_USER_SIZE], struct rpc_error *e)
{
	return rpc_user_parse(request_header(r, "Authorization"), ret, e);
}

int rpc_timeout(const struct request *r, uint64_t *ret_ms, struct rpc_error *e)
{
	if (rpc_timeout_parse(request_header(r, "Connect-Timeout-Ms"), ret_ms) < 0)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"Connect-Timeout-Ms: must be a number of at most ten digits");
	return 0;
}

int rpc_reply_error(struct request *r, const struct rpc_error *e)
{
	return reply_json(r, rpc_code_status(e->code),
			  json_pack("{s:s, s:o}", "code", rpc_code_name(e->code), "message",
				    rpc_text(e->message, strlen(e->message))));
}

int rpc_reply_gone(struct request *r, int err)
{
	switch (err) {
	case -ECONNRESET:
	case -ESHUTDOWN:
		return err;
	case -ETIMEDOUT:
		return reply_error(r, 504, "the sandbox did not answer in time");
	case -EPROTO:
		return reply_error(r, 500, "the sandbox gave an answer that makes no sense");
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return reply_error(r, 503, "the service is short of memory or descriptors");
	default:
		return reply_gone(r, r->sandbox->info.id);
	}
}

int rpc_unary(struct request *r, rpc_call call)
{
	const struct rpc_body *body = r->state;
	struct rpc_error e = { 0 };
	json_t *message = NULL, *answer = NULL;
	int n = rpc_check_size(body, &e);

	if (n == 0)
		n = rpc_parse(body->bytes.data, body->bytes.len, &message, &e);
	if (n == 0)
		n = call(r, message, &answer, &e);
	json_decref(message);
	if (n == -EREMOTEIO)
		return rpc_reply_error(r, &e);
	if (n < 0)
		return rpc_reply_gone(r, n);
	if (r->replied)
		return 0;
	return reply_json(r, 200, answer ? answer : json_object());
}

int rpc_stream_message(struct request *r, json_t **ret, struct rpc_error *e)
{
	const struct rpc_body *body = r->state;
	size_t len;
	int n = rpc_check_size(body, e);

	if (n < 0)
		return n;
	n = rpc_envelope_next(body->bytes.data, body->bytes.len, &len);
	if (n == -EMSGSIZE)
		return fail_too_large(e);
	if (n != 1 || len != body->bytes.len)
		return rpc_fail(e, RPC_INVALID_ARGUMENT,
				"the request must be exactly one uncompressed message");
	return rpc_parse(body->bytes.data + RPC_ENVELOPE_HEAD, len - RPC_ENVELOPE_HEAD, ret, e);
}
