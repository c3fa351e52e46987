/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/ask.h"

#include "server/http/head_field.h"
#include "server/port/rules.h"

#include <inttypes.h>

static int add(struct buf *b, const char *text)
{
	return buf_add(b, text, strlen(text));
}

/* How long the body is: one statement, ours. */
static int add_framing(const struct port_ask *q, struct buf *b)
{
	char length[24];
	int r;

	if (q->upgrade) {
		r = head_add_line(b, "Connection", "Upgrade");
		return r == 0 ? head_add_line(b, "Upgrade", "websocket") : r;
	}
	if (q->length == UINT64_MAX)
		return head_add_line(b, "Transfer-Encoding", "chunked");
	if (!q->has_length)
		return 0;
	(void)snprintf(length, sizeof(length), "%" PRIu64, q->length);
	return head_add_line(b, "Content-Length", length);
}

static int add_origin(const struct port_ask *q, struct buf *b)
{
	int r = head_add_line(b, "Host", q->host_to_tell);

	if (r == 0 && q->client[0])
		r = head_add_line(b, "X-Forwarded-For", q->client);
	if (r == 0)
		r = head_add_line(b, "X-Forwarded-Proto", q->tls ? "https" : "http");
	return r == 0 ? head_add_line(b, "X-Forwarded-Host", q->host) : r;
}

int port_ask_begin(const struct port_ask *q, struct buf *ret)
{
	int r = add(ret, q->method);

	if (r == 0)
		r = buf_add(ret, " ", 1);
	if (r == 0)
		r = add(ret, q->target);
	if (r == 0)
		r = add(ret, " HTTP/1.1\r\n");
	if (r == 0)
		r = add_origin(q, ret);
	return r == 0 ? add_framing(q, ret) : r;
}

int port_ask_field(const struct port_ask *q, const char *name, const char *value, struct buf *ret)
{
	return port_field_goes_in(name, value, q->connection) ? head_add_line(ret, name, value) : 0;
}

int port_ask_end(struct buf *ret)
{
	return buf_add(ret, "\r\n", 2);
}
