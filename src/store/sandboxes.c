/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define ROW struct store_sandbox

static const struct column columns[] = {
	COLUMN(NAME, id),
	COLUMN(NAME, key_id),
	COLUMN(TEXT, template_id),
	COLUMN(TEXT, alias),
	COLUMN(JSON, metadata),
	COLUMN(JSON, env),
	COLUMN(JSON, config),
	COLUMN(TEXT, envd_token),
	COLUMN(TEXT, traffic_token),
	COLUMN(NUMBER, state),
	COLUMN(NUMBER, started_ms),
	COLUMN(NUMBER, end_ms),
	COLUMN(NUMBER, reason),
	COLUMN(TEXT, detail),
	{ "layers", COLUMN_LAYERS, offsetof(ROW, config), sizeof(json_t *) },
};
static const struct row_type sandbox_row = ROW_TYPE(columns);

void store_sandbox_done(struct store_sandbox *b)
{
	row_done(&sandbox_row, b);
}

int store_sandbox_add(struct store *s, const struct store_sandbox *b)
{
	struct query q = query_open_row(s, "INSERT INTO sandboxes ({columns}) VALUES ({values})",
					&sandbox_row, b);

	return query_change(&q, 0);
}

/* What has ended needs its secrets no longer. */
int store_sandbox_update(struct store *s, const struct store_sandbox *b)
{
	struct query q = query_open_row(
		s,
		"UPDATE sandboxes SET state = :state, end_ms = :end_ms,"
		" reason = :reason, detail = :detail, config = :config, layers = :layers,"
		" env = CASE :state WHEN 3 THEN NULL ELSE env END,"
		" envd_token = CASE :state WHEN 3 THEN NULL ELSE envd_token END,"
		" traffic_token = CASE :state WHEN 3 THEN NULL ELSE traffic_token END"
		" WHERE id = :id",
		&sandbox_row, b);

	static_assert(STORE_ENDED == 3, "as the statement has it");
	return query_change(&q, -ENOENT);
}

int store_sandbox_get(struct store *s, const char *id, struct store_sandbox *ret)
{
	struct query q =
		query_open(s, "SELECT {columns} FROM sandboxes WHERE id = ?", &sandbox_row);

	query_put_text(&q, id);
	return query_one(&q, ret);
}

int store_sandbox_each_live(struct store *s, int (*each)(struct store_sandbox *b, void *arg),
			    void *arg)
{
	struct store_sandbox *rows = NULL;
	size_t n = 0;
	struct query q = query_open(s,
				    "SELECT {columns} FROM sandboxes WHERE state < 3"
				    " ORDER BY started_ms, rowid",
				    &sandbox_row);
	/* All are read before the first is handed out: each() may use the store. */
	int r = query_all(&q, (void **)&rows, &n);

	static_assert(STORE_RUNNING < 3 && STORE_PAUSED < 3, "as the statement has it");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = each(&rows[i], arg);
	for (size_t i = 0; i < n; i++)
		store_sandbox_done(&rows[i]);
	free(rows);
	return MIN(r, 0);
}

int store_sandbox_prune(struct store *s, size_t keep)
{
	static const struct surplus ended = {
		"SELECT key_id, count(*) FROM sandboxes INDEXED BY sandboxes_ended WHERE state = 3"
		" GROUP BY key_id ORDER BY 2",
		"DELETE FROM sandboxes WHERE rowid IN (SELECT rowid FROM sandboxes"
		" WHERE key_id = ? AND state = 3 ORDER BY end_ms LIMIT ?)",
	};

	return store_prune(s, &ended, keep);
}
