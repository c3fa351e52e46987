/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in the clear: one for each connection, checked, written anew, with the headers that
 * rules add. */
#include "egress/flow/conn.h"

/* --- the headers of a host ------------------------------------------------------------------ */

struct added {
	const struct net_header *header[EGRESS_HEADERS_MAX];
	size_t n;
	bool tls;
};

static void take_header(const struct net_header *h, void *arg)
{
	struct added *a = arg;

	if (a->n < ARRAY_SIZE(a->header))
		a->header[a->n++] = h;
	a->tls = a->tls || h->tls;
}

static void headers_for(const struct conn *c, struct added *ret)
{
	ret->n = 0;
	ret->tls = false;
	if (c->target.name[0] && !c->is_unnamed)
		net_headers_for(c->net, c->target.name, take_header, ret);
}

bool http_has_headers(const struct net *n, const char *name)
{
	struct added added = { .n = 0 };

	if (name[0])
		net_headers_for(n, name, take_header, &added);
	return added.n > 0;
}

/* --- the request ---------------------------------------------------------------------------- */

enum policy_reason http_read_origin(struct conn *c)
{
	ssize_t len = http_head_length(c->in.data, c->in.len);
	enum first first = first_bytes(c->in.data, c->in.len);

	if (first != FIRST_MORE && first != FIRST_HTTP)
		return POLICY_NOT_HTTP;
	if (len == 0)
		return 0;
	c->saw = FIRST_HTTP;
	if (len < 0)
		return POLICY_BAD_REQUEST;
	if (!c->head)
		c->head = malloc(sizeof(*c->head));
	return c->head ? http_head_read(c->in.data, (size_t)len, false, c->target.port, c->head) :
			 POLICY_BUSY;
}

void http_begin(struct egress *g, struct conn *c)
{
	struct added added;

	headers_for(c, &added);
	c->is_http = true;
	c->use_tls = added.tls;
	if (c->use_tls && c->target.port == 80)
		c->target.port = 443;
	/* As in a tunnel. */
	if (c->target.port == 443 && c->target.name[0] && !c->use_tls) {
		conn_refuse(g, c, POLICY_NOT_TLS);
		return;
	}
	/* A tunnel is there already, and it is not to be in TLS: on with it. */
	if (c->host_fd >= 0 && !c->use_tls) {
		http_send(g, c);
		return;
	}
	conn_drop_host(g, c);
	step_decide(g, c);
}

void http_send(struct egress *g, struct conn *c)
{
	struct added added;
	struct http_extra extra = { .port = c->target.port, .scheme_port = c->use_tls ? 443 : 80 };
	unsigned char *head;
	size_t len;

	headers_for(c, &added);
	/* The rules changed while it was dialed: a header for TLS does not go out in the clear. */
	if (added.tls && !c->use_tls) {
		conn_refuse(g, c, POLICY_CUT);
		return;
	}
	extra.headers = added.header;
	extra.n_headers = added.n;
	/* A tunnel through the proxy of this machine's network leads to the host itself. */
	extra.absolute = g->proxy.ss_family != AF_UNSPEC && !c->use_tls && !c->is_tunneled;
	extra.proxy_authorization = extra.absolute ? g->proxy_authorization : NULL;
	if (http_head_build(c->head, c->in.data, &extra, &head, &len) < 0) {
		conn_refuse(g, c, POLICY_BAD_REQUEST);
		return;
	}
	conn_tell(g, c);
	flow_put(c, &c->up, head, len);
	memmove(c->in.data, c->in.data + c->head->len, c->in.len - c->head->len);
	c->in.len -= c->head->len;
	c->body_parser = c->head->parser;
	c->body = c->head->body;
	c->up_mode = c->head->is_upgrade ? UP_WAIT : c->body == HTTP_BODY_NONE ? UP_NONE : UP_BODY;
	free(take_ptr(c->head));
	if (c->up_mode == UP_NONE)
		buf_done(&c->in); /* another request: not ours to answer */
	relay_begin(g, c);
}

void http_pass(struct egress *g, struct conn *c)
{
	c->is_http = true;
	c->is_unnamed = true;
	http_send(g, c);
}

/* --- saying no ------------------------------------------------------------------------------ */

static const char *status_of(enum policy_reason reason)
{
	switch ((unsigned)reason) {
	case POLICY_BAD_NAME:
	case POLICY_BAD_REQUEST:
	case POLICY_HOST_MISMATCH:
	case POLICY_NOT_HTTP:
	case POLICY_NOT_TLS:
	case POLICY_PROTOCOL:
		return "400 Bad Request";
	case POLICY_TOO_SLOW:
		return "408 Request Timeout";
	case POLICY_RESOLVE:
	case POLICY_NO_ADDRESS:
	case POLICY_CONNECT:
	case POLICY_TLS:
	case POLICY_UPSTREAM:
		return "502 Bad Gateway";
	case POLICY_TIMEOUT:
		return "504 Gateway Timeout";
	case POLICY_CONNECTIONS:
	case POLICY_LOOKUPS:
	case POLICY_BYTES:
		return "429 Too Many Requests";
	case POLICY_BUSY:
	case POLICY_CUT:
		return "503 Service Unavailable";
	default:
		return "403 Forbidden";
	}
}

/* What can be done about it; host: as in a rule. */
static void advice_for(enum policy_reason reason, const char *host, char *ret, size_t size)
{
	*ret = '\0';
	switch ((unsigned)reason) {
	case POLICY_NOT_ALLOWED:
	case POLICY_PORT_NOT_ALLOWED:
	case POLICY_ADDRESS:
		(void)snprintf(
			ret, size,
			"Allow it with `--allow %s` of glovebox run, or with allowOut of the sandbox's network.\n",
			host);
		break;
	case POLICY_PRIVATE:
		(void)snprintf(
			ret, size,
			"The operator of this machine can open the range: egress.private.\n");
		break;
	case POLICY_PROTOCOL:
		(void)snprintf(ret, size,
			       "This is a proxy for http:// URLs, CONNECT and SOCKS5.\n");
		break;
	default:
		break;
	}
}

void http_refusal(const struct conn *c, enum policy_reason reason, char *ret, size_t size)
{
	char host[TARGET_TEXT_SIZE] = "the request", advice[TARGET_TEXT_SIZE + 128], body[768];

	if (c->target.port)
		target_text(&c->target, 0, host);
	advice_for(reason, host, advice, sizeof(advice));
	(void)snprintf(body, sizeof(body), "glovebox: %s: %s.\n%s", host,
		       policy_reason_text(reason), advice);
	(void)snprintf(ret, size,
		       "HTTP/1.1 %s\r\n"
		       "Content-Type: text/plain; charset=utf-8\r\n"
		       "Content-Length: %zu\r\n"
		       "X-Glovebox-Reason: %s\r\n"
		       "Connection: close\r\n\r\n%s",
		       status_of(reason), strlen(body), policy_reason_word(reason), body);
}
