/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request as a box gets it. */
#include "server/port.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <strings.h>

#define HEAD_MAX ((size_t)48 << 10) /* target, headers and what we add */

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
	char masked[PORT_HOST_SIZE];
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
