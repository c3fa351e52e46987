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
