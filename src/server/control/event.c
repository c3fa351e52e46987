/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of events. changes/event.c makes them. */
#include "server/control/control_priv.h"

#define EVENTS_DEFAULT 10
#define EVENT_TYPES_MAX 16
#define EVENT_TYPE_SIZE 64

/* The types that are asked for: parameters may be repeated, and each may be a list. */
struct types {
	json_t *list;
	bool bad;
};

static enum MHD_Result add_types(void *arg, enum MHD_ValueKind kind, const char *name,
				 const char *value)
{
	struct types *t = arg;

	(void)kind;
	if (strcmp(name, "types") != 0 || !value)
		return MHD_YES;
	for (;;) {
		size_t n = strcspn(value, ",");

		if (json_array_size(t->list) == EVENT_TYPES_MAX || n == 0 || n >= EVENT_TYPE_SIZE ||
		    json_array_append_new(t->list, json_stringn(value, n)) < 0) {
			t->bad = true;
			return MHD_NO;
		}
		if (!value[n])
			return MHD_YES;
		value += n + 1;
	}
}

static int reply_event_list(struct request *r, const char *sandbox_id, const json_t *types)
{
	const char *order = request_query(r, "orderAsc");
	struct store_event *list = NULL;
	size_t n = 0;
	json_t *all;
	int e = store_event_list(r->server->store, request_key(r), sandbox_id, types,
				 order && strcmp(order, "true") == 0,
				 request_number(r, "offset", 0),
				 request_number(r, "limit", EVENTS_DEFAULT), &list, &n);

	if (e < 0) {
		struct fail fail;

		(void)fail_set(&fail, -e, "events", "cannot be read");
		return reply_failure(r, &fail);
	}
	all = json_array();
	for (size_t i = 0; i < n; i++) {
		(void)json_array_append(all, list[i].data);
		store_event_done(&list[i]);
	}
	free(list);
	return reply_json(r, 200, all);
}

static int reply_events(struct request *r, const char *sandbox_id)
{
	_cleanup_(json_decrefp) json_t *list = json_array();
	struct types types = { .list = list };

	(void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, add_types, &types);
	if (types.bad)
		return reply_error(r, 400, "types: at most %d event types", EVENT_TYPES_MAX);
	return reply_event_list(r, sandbox_id, list);
}

int handle_events(struct request *r)
{
	return reply_events(r, NULL);
}

int handle_sandbox_events(struct request *r)
{
	return reply_events(r, r->params[0]);
}
