/* SPDX-License-Identifier: Apache-2.0 */
#include "server/port/rules.h"

#include <strings.h>

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
 * Of an answer to a client that came by our own address: whatever would have an effect there beyond
 * this answer. Cookies, storage and workers would be ours, a promise about TLS would be about our
 * host, and a cache would keep the answer under a path of ours.
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

bool port_field_goes_out(const struct port_answer *a, const struct port_field *f, bool own_address)
{
	const char *connection = port_answer_get(a, "Connection");

	return f->value_len > 0 && !is_in(f->name, hop_by_hop, ARRAY_SIZE(hop_by_hop)) &&
	       !(connection && port_list_has(connection, f->name)) &&
	       !(own_address &&
		 is_in(f->name, kept_from_our_origin, ARRAY_SIZE(kept_from_our_origin)));
}

/* --- the host --------------------------------------------------------------------------------- */

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
	char host[PORT_HOST_SIZE];

	return port_mask_host(mask, UINT16_MAX, host, sizeof(host)) == 0;
}
