/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers go into a box and which come out of it. */
#include "server/port.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <strings.h>

#define HEAD_MAX ((size_t)48 << 10) /* target, headers and what we add */
#define HOST_SIZE 300

/* Between two neighbours only, and never passed on. */
static const char *const hop_by_hop[] = {
	"Connection",
	"Keep-Alive",
	"Proxy-Connection",
	"Proxy-Authenticate",
	"Proxy-Authorization",
	"TE",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
	"Content-Length",
};

/* Of a request: what is ours and no business of a box's, and what we say ourselves. */
static const char *const kept_from_box[] = {
	"Host",
	"Expect", /* answered already */
	"HTTP2-Settings",
	"X-API-KEY",
	"X-Access-Token",
	"E2B-Traffic-Access-Token",
	"E2b-Sandbox-Id",
	"E2b-Sandbox-Port",
	"Forwarded",
	"X-Forwarded-For",
	"X-Forwarded-Proto",
	"X-Forwarded-Host",
	"X-Forwarded-Port",
	"X-Real-IP",
};

/*
 * Of an answer to a client that came by our own address: whatever would have an effect there beyond this answer. Cookies,
 * storage and workers would be ours, a promise about TLS would be about our host, and a cache would keep the answer under a
 * path of ours.
 */
static const char *const kept_from_our_origin[] = {
	"Set-Cookie",
	"Set-Cookie2",
	"Clear-Site-Data",
	"Service-Worker-Allowed",
	"Alt-Svc",
	"Strict-Transport-Security",
	"Public-Key-Pins",
	"Expect-CT",
	"NEL",
	"Report-To",
	"Reporting-Endpoints",
	"Refresh",
	"Cache-Control",
	"Expires",
	"Age",
	"X-Content-Type-Options",
};

static bool is_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((list[i][0] | 32) == (name[0] | 32) && strcasecmp(list[i], name) == 0)
			return true;
	return false;
}

/* --- in -------------------------------------------------------------------------------------------------- */

/* A key of ours, sent as the control plane would take it. */
static bool is_our_key(const char *name, const char *value)
{
	static const char bearer[] = "Bearer ", prefix[] = "e2b_";

	return strcasecmp(name, "Authorization") == 0 &&
	       strncasecmp(value, bearer, sizeof(bearer) - 1) == 0 &&
	       strncmp(value + sizeof(bearer) - 1, prefix, sizeof(prefix) - 1) == 0;
}

bool port_field_goes_in(const char *name, const char *value, const char *connection)
{
	return !is_in(name, hop_by_hop, ARRAY_SIZE(hop_by_hop)) &&
	       !is_in(name, kept_from_box, ARRAY_SIZE(kept_from_box)) &&
	       !(connection && port_list_has(connection, name)) && !is_our_key(name, value);
}

bool port_wants_upgrade(const struct request *r)
{
	const char *upgrade = request_header(r, "Upgrade");

	/* Others (h2c) would turn the connection into something whose requests we do not see. */
	return upgrade && strcasecmp(upgrade, "websocket") == 0 && strcmp(r->method, "GET") == 0 &&
	       port_list_has(request_header(r, "Connection"), "upgrade");
}

static int add_line(struct buf *b, const char *name, const char *value)
{
	int r = buf_add(b, name, strlen(name));

	if (r == 0)
		r = buf_add(b, ": ", 2);
	if (r == 0)
		r = buf_add(b, value, strlen(value));
	return r == 0 ? buf_add(b, "\r\n", 2) : r;
}

struct adding {
	struct buf *to;
	const char *connection;
	int r;
};

static enum MHD_Result add_field(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct adding *a = cls;

	(void)kind;
	value = value ? value : "";
	if (a->r == 0 && port_field_goes_in(name, value, a->connection))
		a->r = add_line(a->to, name, value);
	return a->r == 0 ? MHD_YES : MHD_NO;
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr(".-_:[]", c));
}

int port_mask_host(const char *mask, uint32_t port, char *ret, size_t size)
{
	static const char word[] = "${PORT}";
	size_t n = 0;

	while (*mask) {
		bool is_port = strncmp(mask, word, sizeof(word) - 1) == 0;
		int len;

		if (!is_port && !is_host_char(*mask))
			return -EINVAL;
		len = is_port ? snprintf(ret + n, size - n, "%u", port) :
				snprintf(ret + n, size - n, "%c", *mask);
		if (len < 0 || (size_t)len >= size - n)
			return -EINVAL;
		n += (size_t)len;
		mask += is_port ? sizeof(word) - 1 : 1;
	}
	return n > 0 ? 0 : -EINVAL;
}

bool port_mask_ok(const char *mask)
{
	char host[HOST_SIZE];

	return port_mask_host(mask, UINT16_MAX, host, sizeof(host)) == 0;
}

/* What the program is to believe its own name is, or false: as it came. */
static bool masked_host(struct sandbox *b, uint32_t port, char *ret, size_t size)
{
	const char *mask;
	bool ok;

	pthread_mutex_lock(&b->lock);
	mask = json_string_value(
		json_object_get(json_object_get(b->info.config, "network"), "maskRequestHost"));
	ok = mask && port_mask_host(mask, port, ret, size) == 0;
	pthread_mutex_unlock(&b->lock);
	return ok;
}

static int add_client(struct buf *b, struct request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char text[INET6_ADDRSTRLEN] = "";

	if (info && info->client_addr && info->client_addr->sa_family == AF_INET)
		(void)inet_ntop(
			AF_INET,
			&((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr,
			text, sizeof(text));
	else if (info && info->client_addr && info->client_addr->sa_family == AF_INET6)
		(void)inet_ntop(
			AF_INET6,
			&((const struct sockaddr_in6 *)(const void *)info->client_addr)->sin6_addr,
			text, sizeof(text));
	return text[0] ? add_line(b, "X-Forwarded-For", text) : 0;
}

/* In place of what the client said about itself. */
static int add_origin(struct buf *b, struct request *r)
{
	bool tls = r->server->config.server_tls_cert[0] != '\0';
	char masked[HOST_SIZE];
	const char *host = request_header(r, "Host");
	int n;

	n = add_line(b, "Host",
		     masked_host(r->sandbox, r->port, masked, sizeof(masked)) ? masked : host);
	if (n == 0)
		n = add_client(b, r);
	if (n == 0)
		n = add_line(b, "X-Forwarded-Proto", tls ? "https" : "http");
	return n == 0 ? add_line(b, "X-Forwarded-Host", host) : n;
}

/* How long the body is: one statement, ours. */
static int add_framing(struct buf *b, struct request *r, bool upgrade)
{
	const struct exchange *x = exchange_of(r);
	char length[24];

	if (upgrade)
		return add_line(b, "Connection", "Upgrade") < 0 ?
			       -ENOBUFS :
			       add_line(b, "Upgrade", "websocket");
	if (x->length == UINT64_MAX)
		return add_line(b, "Transfer-Encoding", "chunked");
	if (!request_header(r, "Content-Length"))
		return 0;
	(void)snprintf(length, sizeof(length), "%" PRIu64, x->length);
	return add_line(b, "Content-Length", length);
}

int port_request_head(struct request *r, bool upgrade, struct buf *ret)
{
	struct adding a = { .to = ret, .connection = request_header(r, "Connection") };
	char line[64];
	int n;

	ret->max = HEAD_MAX;
	(void)snprintf(line, sizeof(line), "%s ", r->method);
	n = buf_add(ret, line, strlen(line));
	if (n == 0)
		n = buf_add(ret, r->path, strlen(r->path));
	if (n == 0)
		n = buf_add(ret, " HTTP/1.1\r\n", 11);
	if (n == 0)
		n = add_origin(ret, r);
	if (n == 0)
		n = add_framing(ret, r, upgrade);
	if (n < 0)
		return n;
	(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, add_field, &a);
	return a.r == 0 ? buf_add(ret, "\r\n", 2) : a.r;
}

/* --- out --------------------------------------------------------------------------------------------------- */

bool port_field_goes_out(const struct port_answer *a, const struct port_field *f, bool own_address)
{
	const char *connection = port_answer_get(a, "Connection");

	return f->value_len > 0 && !is_in(f->name, hop_by_hop, ARRAY_SIZE(hop_by_hop)) &&
	       !(connection && port_list_has(connection, f->name)) &&
	       !(own_address &&
		 is_in(f->name, kept_from_our_origin, ARRAY_SIZE(kept_from_our_origin)));
}
