/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define COLUMNS "id, key_id, sandbox_id, type, data, at_ms"

void store_event_done(struct store_event *e)
{
	json_decref(e->data);
	*e = (struct store_event){ 0 };
}

static void read_event(struct query *q, struct store_event *ret)
{
	query_get_name(q, ret->id, sizeof(ret->id));
	query_get_name(q, ret->key_id, sizeof(ret->key_id));
	query_get_name(q, ret->sandbox_id, sizeof(ret->sandbox_id));
	query_get_name(q, ret->type, sizeof(ret->type));
	ret->data = query_get_json(q);
	ret->at_ms = query_get_int(q);
}

int store_event_add(struct store *s, const struct store_event *e)
{
	_cleanup_(freep) char *data = NULL;
	struct query q;
	int r = store_json_text(e->data, &data);

	if (r == 0)
		r = query_open(s, QUERY_EVENT_ADD,
			       "INSERT INTO events (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?)", &q);
	if (r < 0)
		return r;
	query_put_text(&q, e->id);
	query_put_text(&q, e->key_id);
	query_put_text(&q, e->sandbox_id);
	query_put_text(&q, e->type);
	query_put_text(&q, data);
	query_put_int(&q, e->at_ms);
	r = query_run(&q);
	return r < 0 ? r : 0;
}

/* Six statements instead of one with more conditions: each can use its index. */
static int open_list(struct store *s, const char *key_id, const char *sandbox_id, bool ascending,
		     struct query *ret)
{
	static const struct {
		enum query_id id;
		const char *sql;
	} lists[][2] = {
#define LIST(which, condition, order)                                                              \
	{ QUERY_EVENT_##which, "SELECT " COLUMNS " FROM events WHERE " condition                   \
			       " AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))"    \
			       " ORDER BY seq " order " LIMIT ?4 OFFSET ?5" }
#define BOTH(which, condition)                                                                     \
	{                                                                                          \
		LIST(which##_NEWEST, condition, "DESC"), LIST(which##_OLDEST, condition, "ASC")    \
	}
		BOTH(ALL, "?1 IS NULL AND ?2 IS NULL"),
		BOTH(KEY, "key_id = ?1 AND ?2 IS NULL"),
		BOTH(SANDBOX, "(?1 IS NULL OR key_id = ?1) AND sandbox_id = ?2"),
#undef BOTH
#undef LIST
	};
	size_t i = sandbox_id ? 2 : key_id ? 1 : 0;

	return query_open(s, lists[i][ascending].id, lists[i][ascending].sql, ret);
}

static void free_events(struct store_event *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		store_event_done(&rows[i]);
	free(rows);
}

int store_event_list(struct store *s, const char *key_id, const char *sandbox_id,
		     const json_t *types, bool ascending, size_t offset, size_t limit,
		     struct store_event **ret, size_t *ret_n)
{
	_cleanup_(freep) char *types_text = NULL;
	struct store_event *rows = NULL;
	size_t n = 0, size = 0;
	struct query q;
	int r = store_json_text(json_array_size(types) ? types : NULL, &types_text);

	if (r == 0)
		r = open_list(s, key_id, sandbox_id, ascending, &q);
	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, sandbox_id);
	query_put_text(&q, types_text);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	query_put_int(&q, (int64_t)MIN(offset, (size_t)INT32_MAX));
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(rows, n, size);
		if (r < 0)
			break;
		read_event(&q, &rows[n++]);
	}
	r = query_close(&q, r);
	for (size_t i = 0; i < n && r == 0; i++)
		r = store_json_parse(&rows[i].data);
	if (r < 0) {
		free_events(rows, n);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int store_event_prune(struct store *s, size_t keep)
{
	static const struct surplus events = {
		QUERY_EVENT_COUNT,
		QUERY_EVENT_PRUNE,
		"SELECT key_id, n FROM event_counts ORDER BY n",
		"DELETE FROM events WHERE seq IN"
		" (SELECT seq FROM events WHERE key_id = ? ORDER BY seq LIMIT ?)",
	};

	return store_prune(s, &events, keep);
}
