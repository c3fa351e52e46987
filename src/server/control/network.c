/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about a sandbox's network: changes/network.c does what they ask for. */
#include "server/control/control_priv.h"

#include "server/sandbox/outlet.h"

#define CONNECTIONS_DEFAULT 100

/* Everything that is not given is cleared; what belongs to the way in stays. */
static json_t *replaced_settings(struct sandbox *b, const json_t *body)
{
	static const char *const kept[] = { "allowPublicTraffic", "maskRequestHost", "httpsPorts" };
	_cleanup_(json_decrefp) json_t *old = network_settings_of(b);
	json_t *settings = network_settings(body, json_object_get(body, NETWORK_INTERNET_NAME));

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		(void)json_object_set(settings, kept[i], json_object_get(old, kept[i]));
	return settings;
}

/* Header values may be secret, and events go to webhooks. */
static json_t *without_values(const json_t *body)
{
	json_t *copy = json_deep_copy(body), *list, *value;
	const char *host, *name;
	void *next;

	json_object_foreach(json_object_get(copy, "rules"), host, list) {
		json_t *headers = json_object_get(
			json_object_get(json_array_get(list, 0), "transform"), "headers");

		json_object_foreach_safe(headers, next, name, value)
		{
			(void)json_object_set_new(headers, name, json_string("(hidden)"));
		}
	}
	return copy;
}

int handle_network(struct request *r)
{
	_cleanup_(request_end_change) struct sandbox *b = NULL;
	struct problem p = { 0 };

	if (network_check(r->body, &p) < 0)
		return problem_reply(r, &p);
	b = request_begin_change(r);
	if (!b)
		return 0;
	if (change_network(b, replaced_settings(b, r->body), &p) < 0)
		return problem_reply(r, &p);
	sandbox_log(b, "info", "its network settings were replaced");
	event_add(b, "updated", json_pack("{s:o}", "set_network", without_values(r->body)));
	return reply_empty(r, 204);
}

int handle_connections(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);
	size_t limit = request_number(r, "limit", CONNECTIONS_DEFAULT);
	const struct net_totals none = { 0 };
	struct outlet *o;
	json_t *reply;

	if (!b)
		return 0;
	o = sandbox_outlet(b);
	reply = o ? outlet_json(o, limit) :
		    json_pack("{s:b, s:o, s:[]}", "catches", 0, "totals", net_totals_json(&none),
			      "connections");
	(void)json_object_set_new(reply, "network", json_boolean(o));
	return reply_json(r, 200, reply);
}
