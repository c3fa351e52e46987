/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox's log: what happened to it and which commands ran. Kept in memory by sandbox/sandbox.c,
 * newest last. */
#include "server/control/control_priv.h"

#define LOGS_DEFAULT 1000

struct log_filter {
	int64_t from_ms, to_ms;
	size_t limit;
	bool backward;
	int level;          /* this one or worse */
	const char *search; /* or NULL */
};

static int level_number(const char *level)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (strcmp(level, levels[i]) == 0)
			return (int)i;
	return 0;
}

static bool entry_passes(const json_t *entry, const struct log_filter *f)
{
	const char *message = json_string_value(json_object_get(entry, "message"));
	int64_t ms;

	if (time_parse(json_string_value(json_object_get(entry, "timestamp")), &ms) < 0)
		return false;
	if (ms < f->from_ms || ms > f->to_ms)
		return false;
	if (level_number(json_string_value(json_object_get(entry, "level"))) < f->level)
		return false;
	return !f->search || strstr(message, f->search);
}

static json_t *collect_entries(struct sandbox *b, const struct log_filter *f)
{
	json_t *list = json_array();
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = json_array_size(b->log);
	for (size_t i = 0; i < n && json_array_size(list) < f->limit; i++) {
		json_t *entry = json_array_get(b->log, f->backward ? n - 1 - i : i);

		if (entry_passes(entry, f))
			(void)json_array_append_new(list, json_deep_copy(entry));
	}
	pthread_mutex_unlock(&b->lock);
	return list;
}

/* The old form of an entry: its line is JSON too, which E2B's command line client reads. */
static json_t *log_line_of(json_t *entry)
{
	json_t *inner = json_pack("{s:O, s:O, s:s}", "level", json_object_get(entry, "level"),
				  "message", json_object_get(entry, "message"), "logger",
				  "sandbox");
	_cleanup_(freep) char *text = json_dumps(inner, JSON_COMPACT);

	json_decref(inner);
	return json_pack("{s:O, s:s}", "timestamp", json_object_get(entry, "timestamp"), "line",
			 text ? text : "{}");
}

int handle_logs_v1(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);
	struct log_filter f = {
		.from_ms = (int64_t)request_number(r, "start", 0),
		.to_ms = INT64_MAX,
		.limit = request_number(r, "limit", LOGS_DEFAULT),
	};
	json_t *entries, *lines, *entry;
	size_t i;

	if (!b)
		return 0;
	entries = collect_entries(b, &f);
	lines = json_array();
	json_array_foreach(entries, i, entry)
		(void)json_array_append_new(lines, log_line_of(entry));
	return reply_json(r, 200, json_pack("{s:o, s:o}", "logs", lines, "logEntries", entries));
}

int handle_logs_v2(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);
	const char *direction = request_query(r, "direction"), *level = request_query(r, "level");
	const char *search = request_query(r, "search");
	struct log_filter f = {
		.to_ms = INT64_MAX,
		.limit = request_number(r, "limit", LOGS_DEFAULT),
		.backward = direction && strcmp(direction, "backward") == 0,
		.level = level ? level_number(level) : 0,
		.search = search && *search ? search : NULL,
	};

	if (!b)
		return 0;
	if (f.backward)
		f.to_ms = (int64_t)request_number(r, "cursor", INT64_MAX);
	else
		f.from_ms = (int64_t)request_number(r, "cursor", 0);
	return reply_json(r, 200, json_pack("{s:o}", "logs", collect_entries(b, &f)));
}
