/* SPDX-License-Identifier: Apache-2.0 */
/* A host and a port as a client writes them. The grammar of names and addresses is the policy's
 * (NW-09, NW-10). */
#include "egress/parse/request.h"

#define PORT_DIGITS_MAX 5

static int parse_port(const char *text, size_t len, uint16_t *ret)
{
	unsigned port = 0;

	if (len == 0 || len > PORT_DIGITS_MAX || text[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int target_host(const void *data, size_t len, struct target *ret)
{
	const char *text = data;
	struct target t = { .port = ret->port };
	int r;

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
		r = memchr(text, ':', len) ? address_parse(text + 1, len - 2, &t.address) : -EINVAL;
	else if (memchr(text, ':', len))
		r = -EINVAL; /* where would its port begin? */
	else if (address_parse(text, len, &t.address) == 0)
		r = 0;
	else
		r = name_parse(text, len, t.name);
	if (r < 0)
		return -EINVAL;
	*ret = t;
	return 0;
}

int target_authority(const void *data, size_t len, uint16_t default_port, struct target *ret)
{
	const char *text = data;
	size_t host = len;
	struct target t = { .port = default_port };

	for (size_t i = len; i > 0 && text[i - 1] != ']'; i--)
		if (text[i - 1] == ':')
			host = i - 1;
	if (host < len && parse_port(text + host + 1, len - host - 1, &t.port) < 0)
		return -EINVAL;
	if (t.port == 0 || target_host(text, host, &t) < 0)
		return -EINVAL;
	*ret = t;
	return 0;
}

bool target_equal(const struct target *a, const struct target *b)
{
	return a->port == b->port && strcmp(a->name, b->name) == 0 &&
	       (a->name[0] || address_equal(&a->address, &b->address));
}

void target_text(const struct target *t, uint16_t without_port, char ret[static TARGET_TEXT_SIZE])
{
	char address[NET_ADDRESS_TEXT_SIZE], port[sizeof(":65535")] = "";

	if (t->port != without_port)
		(void)snprintf(port, sizeof(port), ":%u", t->port);
	if (t->name[0]) {
		(void)snprintf(ret, TARGET_TEXT_SIZE, "%s%s", t->name, port);
		return;
	}
	address_text(&t->address, address);
	(void)snprintf(ret, TARGET_TEXT_SIZE, address_is_v4(&t->address) ? "%s%s" : "[%s]%s",
		       address, port);
}
