/* SPDX-License-Identifier: Apache-2.0 */
/* What the library knows of a request, for the head that a program in a box gets (port/ask.c). */
#include "server/port/port.h"

#include "server/port/ask.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

bool port_wants_upgrade(const struct request *r)
{
	const char *upgrade = request_header(r, "Upgrade");

	/* Others (h2c) would turn the connection into something whose requests we do not see. */
	return upgrade && strcasecmp(upgrade, "websocket") == 0 && strcmp(r->method, "GET") == 0 &&
	       port_list_has(request_header(r, "Connection"), "upgrade");
}

struct adding {
	const struct port_ask *ask;
	struct buf *to;
	int r;
};

static enum MHD_Result add_field(void *cls, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct adding *a = cls;

	(void)kind;
	if (a->r == 0)
		a->r = port_ask_field(a->ask, name, value ? value : "", a->to);
	return a->r == 0 ? MHD_YES : MHD_NO;
}

const char *port_host_to_tell(struct sandbox *b, uint32_t port, const char *host,
			      char memory[static HOST_MASKED_SIZE])
{
	const char *mask;
	bool ok;

	pthread_mutex_lock(&b->lock);
	mask = json_string_value(
		json_object_get(json_object_get(b->info.config, "network"), "maskRequestHost"));
	ok = mask && host_mask(mask, port, memory, HOST_MASKED_SIZE) == 0;
	pthread_mutex_unlock(&b->lock);
	return ok ? memory : host;
}

void port_client_text(const struct sockaddr *sa, char ret[static INET6_ADDRSTRLEN])
{
	ret[0] = '\0';
	if (sa && sa->sa_family == AF_INET)
		(void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
				ret, INET6_ADDRSTRLEN);
	else if (sa && sa->sa_family == AF_INET6)
		(void)inet_ntop(AF_INET6,
				&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, ret,
				INET6_ADDRSTRLEN);
}

int port_request_head(struct request *r, bool upgrade, struct buf *ret)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char client[INET6_ADDRSTRLEN], told[HOST_MASKED_SIZE];
	const char *host = request_header(r, "Host");
	struct port_ask q = {
		.method = r->method,
		.target = r->path,
		.host = host,
		.host_to_tell = port_host_to_tell(r->sandbox, r->port, host, told),
		.client = client,
		.connection = request_header(r, "Connection"),
		.tls = r->server->config.server_tls_cert[0] != '\0',
		.upgrade = upgrade,
		.has_length = request_header(r, "Content-Length"),
		.length = exchange_of(r)->length,
	};
	struct adding a = { .ask = &q, .to = ret };

	port_client_text(info ? info->client_addr : NULL, client);
	ret->max = PORT_ASK_MAX;
	a.r = port_ask_begin(&q, ret);
	if (a.r == 0)
		(void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, add_field, &a);
	return a.r == 0 ? port_ask_end(ret) : a.r;
}
