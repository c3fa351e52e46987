/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sandboxes. A key's own are looked at, never other people's. */
#include "server/control/control_priv.h"

struct list_filter {
	unsigned states;
	json_t *metadata;     /* or NULL */
	const char *template; /* or NULL */
	int64_t started_after;
	bool ascending;
	bool has_cursor;
	struct cursor cursor; /* the page begins behind it */
	size_t limit;
};

static void filter_done(struct list_filter *f)
{
	json_decref(f->metadata);
}

static int read_filter(struct request *r, struct list_filter *f, struct problem *p)
{
	const char *metadata = request_query(r, "metadata"), *states = request_query(r, "state");
	const char *after = request_query(r, "startedAfter"), *order = request_query(r, "order");
	const char *token = request_query(r, "nextToken");

	f->template = request_query(r, "template");
	f->ascending = order && strcmp(order, "asc") == 0;
	f->limit = request_number(r, "limit", PAGE_DEFAULT);
	if (metadata && filter_metadata(metadata, &f->metadata) < 0)
		return problem_set(p, 400, NULL, "metadata: not a list of encoded pairs");
	if (states && *states && filter_states(states, &f->states) < 0)
		return problem_set(p, 400, NULL,
				   "state: must be running, paused or both, with a comma between");
	if (after && time_parse(after, &f->started_after) < 0)
		return problem_set(p, 400, NULL, "startedAfter: must be a time as in RFC 3339");
	f->has_cursor = token && *token;
	if (f->has_cursor && cursor_parse(token, &f->cursor) < 0)
		return problem_set(p, 400, NULL, "nextToken: not one that X-Next-Token said");
	return 0;
}

/* A template's id or name, without a tag. */
static bool is_of_template(const struct sandbox *b, const char *template)
{
	return strcmp(b->info.template_id, template) == 0 ||
	       (b->info.alias && strcmp(b->info.alias, template) == 0);
}

static bool passes(struct sandbox *b, const struct list_filter *f, enum store_state *ret_state)
{
	*ret_state = sandbox_state(b);
	if (*ret_state == STORE_ENDED)
		return false;
	if (!(f->states & (*ret_state == STORE_PAUSED ? FILTER_PAUSED : FILTER_RUNNING)))
		return false;
	if (b->info.started_ms < f->started_after)
		return false;
	if (f->template && !is_of_template(b, f->template))
		return false;
	return !f->metadata || filter_matches(b->info.metadata, f->metadata);
}

static struct cursor cursor_of(const struct sandbox *b)
{
	struct cursor c = { .started_ms = b->info.started_ms };

	(void)snprintf(c.id, sizeof(c.id), "%s", b->info.id);
	return c;
}

static bool is_behind(const struct sandbox *b, const struct list_filter *f)
{
	struct cursor c = cursor_of(b);
	int order = cursor_compare(&c, &f->cursor);

	return !f->has_cursor || (f->ascending ? order > 0 : order < 0);
}

/* list is sorted, newest first. */
static json_t *page(struct request *r, struct sandbox **list, size_t n, const struct list_filter *f)
{
	json_t *page = json_array();
	char token[CURSOR_TEXT_SIZE] = "", total[24];
	size_t running = 0;
	bool more = false;

	for (size_t i = 0; i < n; i++) {
		struct sandbox *b = list[f->ascending ? n - 1 - i : i];
		enum store_state state;
		struct cursor c;

		if (!passes(b, f, &state))
			continue;
		running += state == STORE_RUNNING;
		if (!is_behind(b, f))
			continue;
		if (json_array_size(page) >= f->limit) {
			more = true;
			continue;
		}
		(void)json_array_append_new(page, show_listed(b));
		c = cursor_of(b);
		cursor_text(&c, token);
	}
	if (more)
		reply_header(r, "X-Next-Token", token);
	(void)snprintf(total, sizeof(total), "%zu", running);
	reply_header(r, "X-Total-Running", total);
	return page;
}

static int reply_list(struct request *r, struct list_filter *f)
{
	struct sandbox **list;
	size_t n;
	json_t *all;

	if (sandbox_list(r->server, request_key(r), &list, &n) < 0)
		return -ENOMEM;
	all = page(r, list, n, f);
	sandbox_list_free(list, n);
	return reply_json(r, 200, all);
}

int handle_list_v2(struct request *r)
{
	_cleanup_(filter_done) struct list_filter f = { .states = FILTER_RUNNING | FILTER_PAUSED };
	struct problem p = { 0 };

	return read_filter(r, &f, &p) < 0 ? problem_reply(r, &p) : reply_list(r, &f);
}

int handle_list_v1(struct request *r)
{
	_cleanup_(filter_done) struct list_filter f = { .states = FILTER_RUNNING,
							.limit = SIZE_MAX };
	const char *metadata = request_query(r, "metadata");

	if (metadata && filter_metadata(metadata, &f.metadata) < 0)
		return reply_error(r, 400, "metadata: not a list of encoded pairs");
	return reply_list(r, &f);
}
