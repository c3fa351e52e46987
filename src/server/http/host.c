/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/host.h"

#include <arpa/inet.h>
#include <strings.h>

#define NAME_SIZE 256

bool host_id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && n < HOST_ID_SIZE && id[n] == '\0';
}

int host_parse_port(const char *text, size_t len, uint32_t *ret)
{
	uint32_t port = 0;

	if (len == 0 || len > 5 || text[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (uint32_t)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return -EINVAL;
	*ret = port;
	return 0;
}

/* Copies the name without its port, in lower case. False when it cannot be a host. */
static bool host_name(const char *text, char ret[NAME_SIZE])
{
	const char *end = text[0] == '[' ? strchr(text, ']') : strchrnul(text, ':');
	size_t n;
	uint32_t port;

	if (!end)
		return false;
	n = (size_t)(end - text) + (*end == ']');
	if (n == 0 || n >= NAME_SIZE)
		return false;
	if (text[n] != '\0' &&
	    (text[n] != ':' || host_parse_port(text + n + 1, strlen(text + n + 1), &port) < 0))
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
	ret[n] = '\0';
	return true;
}

static bool is_address(const char *name)
{
	unsigned char addr[sizeof(struct in6_addr)];
	char v6[NAME_SIZE];
	size_t n = strlen(name);

	if (inet_pton(AF_INET, name, addr) == 1)
		return true;
	if (n < 2 || name[0] != '[')
		return false;
	memcpy(v6, name + 1, n - 2);
	v6[n - 2] = '\0';
	return inet_pton(AF_INET6, v6, addr) == 1;
}

/* "PORT-ID" or "PORT-ID-anything", which old clients wrote. */
static struct host parse_label(const char *label, size_t len)
{
	struct host h = { .kind = HOST_BAD };
	const char *dash = memchr(label, '-', len), *id, *end;
	size_t n;

	if (!dash || host_parse_port(label, (size_t)(dash - label), &h.port) < 0)
		return h;
	id = dash + 1;
	end = memchr(id, '-', len - (size_t)(id - label));
	n = (size_t)((end ? end : label + len) - id);
	if (n == 0 || n >= sizeof(h.id))
		return h;
	memcpy(h.id, id, n);
	h.id[n] = '\0';
	if (host_id_ok(h.id))
		h.kind = HOST_SANDBOX;
	return h;
}

static struct host parse_below(const char *name, const char *domain)
{
	const char *dot = strchr(name, '.');

	if (strcmp(name, domain) == 0)
		return (struct host){ .kind = HOST_SELF };
	if (!dot || strcmp(dot + 1, domain) != 0)
		return (struct host){ .kind = HOST_FOREIGN };
	if (strncmp(name, "api.", 4) == 0 || strncmp(name, "sandbox.", 8) == 0)
		return (struct host){ .kind = HOST_SELF };
	return parse_label(name, (size_t)(dot - name));
}

struct host host_parse(const char *text, const char *domain)
{
	struct host h = { .kind = HOST_FOREIGN };
	char name[NAME_SIZE], ours[NAME_SIZE];

	if (!host_name(text, name))
		return h;
	if (is_address(name))
		return (struct host){ .kind = HOST_SELF };
	/* No foreign name leads to localhost in any resolver, so it is as good as a configured
	 * domain. */
	h = parse_below(name, "localhost");
	if (h.kind == HOST_FOREIGN && host_name(domain, ours))
		h = parse_below(name, ours);
	return h;
}

static bool is_mask_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr(".-_:[]", c));
}

int host_mask(const char *mask, uint32_t port, char *ret, size_t size)
{
	static const char word[] = "${PORT}";
	size_t n = 0;

	while (*mask) {
		bool is_port = strncmp(mask, word, sizeof(word) - 1) == 0;
		int len;

		if (!is_port && !is_mask_char(*mask))
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

bool host_mask_ok(const char *mask)
{
	char host[HOST_MASKED_SIZE];

	return host_mask(mask, UINT16_MAX, host, sizeof(host)) == 0;
}
