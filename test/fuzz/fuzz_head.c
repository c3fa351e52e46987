/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request that would take the express way. What is taken must keep the promises of the header, and what a
 * program is then asked must be one head of the lines that we wrote.
 */
#include "fuzz.h"

#include "server/port/head.h"
#include "server/port/rules.h"

#define SIZE_MAX_HERE ((size_t)32 << 10)

static void check_head(const struct port_head *h, size_t size)
{
	assert(h->len > 0 && h->len <= size && h->len <= PORT_EXPRESS_HEAD_MAX);
	assert(head_target_ok(h->target) && h->host && h->n_fields > 0);
	assert(h->n_fields <= HTTP_HEADERS_MAX);
	for (size_t i = 0; i < h->n_fields; i++)
		assert(h->field[i].name[0] && !strpbrk(h->field[i].name, " \t\r\n:") &&
		       !strpbrk(h->field[i].value, "\r\n"));
}

/* Lines that go in are lines of ours or of the client's, and there is no second head behind the first. */
static void check_ask(const struct port_head *h)
{
	struct port_ask q = { .method = h->method,
			      .target = h->target,
			      .host = h->host,
			      .host_to_tell = h->host,
			      .client = "192.0.2.1",
			      .connection = h->connection };
	_cleanup_(buf_done) struct buf b = BUF_INIT(PORT_ASK_MAX);
	int r = port_ask_begin(&q, &b);

	for (size_t i = 0; r == 0 && i < h->n_fields; i++)
		r = port_ask_field(&q, h->field[i].name, h->field[i].value, &b);
	if (r == 0)
		r = port_ask_end(&b);
	assert(r == 0);
	assert(port_is_lines((const char *)b.data, b.len));
	assert(port_head_end((const char *)b.data, b.len) == b.len);
	assert(!strcasestr((const char *)b.data, "\r\nContent-Length:") &&
	       !strcasestr((const char *)b.data, "\r\nTransfer-Encoding:") &&
	       !strcasestr((const char *)b.data, "\r\nX-API-KEY:"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char memory[SIZE_MAX_HERE];
	static struct port_head h;

	if (size > sizeof(memory))
		return 0;
	memcpy(memory, data, size);
	if (!port_head_read(&h, memory, size))
		return 0;
	check_head(&h, size);
	check_ask(&h);
	return 0;
}
