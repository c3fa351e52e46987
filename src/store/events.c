/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define ROW struct store_event

static const struct column columns[] = {
	COLUMN(NAME, id),   COLUMN(NAME, key_id), COLUMN(NAME, sandbox_id),
	COLUMN(NAME, type), COLUMN(JSON, data),   COLUMN(NUMBER, at_ms),
};
static const struct row_type event_row = ROW_TYPE(columns);

void store_event_done(struct store_event *e)
{
	row_done(&event_row, e);
}

int store_event_add(struct store *s, const struct store_event *e)
{
	struct query q = query_open_row(s, "INSERT INTO events ({columns}) VALUES ({values})",
					&event_row, e);

	return query_change(&q, 0);
}

/* Six statements instead of one with more conditions: each can use its index. */
static struct query open_events(struct store *s, const char *key_id, const char *sandbox_id,
				bool ascending)
{
	static const char *const lists[][2] = {
#define LIST(condition, order)                                                                     \
	"SELECT {columns} FROM events WHERE " condition                                            \
	" AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))"                           \
	" ORDER BY seq " order " LIMIT ?4 OFFSET ?5"
#define BOTH(condition) { LIST(condition, "DESC"), LIST(condition, "ASC") }
		BOTH("?1 IS NULL AND ?2 IS NULL"),
		BOTH("key_id = ?1 AND ?2 IS NULL"),
		BOTH("(?1 IS NULL OR key_id = ?1) AND sandbox_id = ?2"),
#undef BOTH
#undef LIST
	};
	size_t i = sandbox_id ? 2 : key_id ? 1 : 0;

	return query_open(s, lists[i][ascending], &event_row);
}

int store_event_list(struct store *s, const char *key_id, const char *sandbox_id,
		     const json_t *types, bool ascending, size_t offset, size_t limit,
		     struct store_event **ret, size_t *ret_n)
{
	_cleanup_(freep) char *types_text = NULL;
	struct query q;
	int r = store_json_text(json_array_size(types) ? types : NULL, &types_text);

	if (r < 0)
		return r;
	q = open_events(s, key_id, sandbox_id, ascending);
	query_put_text(&q, key_id);
	query_put_text(&q, sandbox_id);
	query_put_text(&q, types_text);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	query_put_int(&q, (int64_t)MIN(offset, (size_t)INT32_MAX));
	return query_all(&q, (void **)ret, ret_n);
}

int store_event_prune(struct store *s, size_t keep)
{
	static const struct surplus events = {
		"SELECT key_id, n FROM event_counts ORDER BY n",
		"DELETE FROM events WHERE seq IN"
		" (SELECT seq FROM events WHERE key_id = ? ORDER BY seq LIMIT ?)",
	};

	return store_prune(s, &events, keep);
}
