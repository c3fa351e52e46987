/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

/* A key's own; everybody's when no key is named. */
#define OF_KEY "(?1 IS NULL OR key_id = ?1)"
#define ROW struct store_snapshot

static const struct column columns[] = {
	COLUMN(NAME, id),
	COLUMN(NAME, key_id),
	COLUMN(NAME, sandbox_id),
	COLUMN(TEXT, name),
	COLUMN(JSON, config),
	COLUMN(NUMBER, created_ms),
	{ "layers", COLUMN_LAYERS, offsetof(ROW, config), sizeof(json_t *) },
};
static const struct row_type snapshot_row = ROW_TYPE(columns);

void store_snapshot_done(struct store_snapshot *n)
{
	row_done(&snapshot_row, n);
}

/* A name is one snapshot: those that have it already are about to go. */
#define HAS_SPACE                                                                                  \
	"(SELECT count(*) FROM snapshots WHERE key_id = :key_id"                                   \
	" AND (:name IS NULL OR name IS NOT :name)) < ?"

int store_snapshot_add(struct store *s, const struct store_snapshot *n, size_t max)
{
	struct query q = query_open_row(
		s, "INSERT INTO snapshots ({columns}) SELECT {values} WHERE " HAS_SPACE,
		&snapshot_row, n);

	query_put_int(&q, (int64_t)max);
	return query_change(&q, -EDQUOT);
}

int store_snapshot_fits(struct store *s, const char *key_id, const char *name, size_t max)
{
	struct query q = query_open(s, "SELECT 1 WHERE " HAS_SPACE, NULL);
	int r;

	query_put_text(&q, key_id);
	query_put_text(&q, name);
	query_put_int(&q, (int64_t)max);
	r = query_step(&q);
	r = query_close(&q, r == 0 ? -EDQUOT : r);
	return MIN(r, 0);
}

/* Of several with one name the newest is meant; an id comes before all names. */
int store_snapshot_get(struct store *s, const char *key_id, const char *id_or_name,
		       struct store_snapshot *ret)
{
	struct query q =
		query_open(s,
			   "SELECT {columns} FROM snapshots WHERE seq = coalesce("
			   "(SELECT seq FROM snapshots WHERE id = ?2 AND " OF_KEY "),"
			   " (SELECT max(seq) FROM snapshots WHERE key_id = ?1 AND name = ?2))",
			   &snapshot_row);

	query_put_text(&q, key_id);
	query_put_text(&q, id_or_name);
	return query_one(&q, ret);
}

/* Two statements, so that one can use its index. */
static struct query open_snapshots(struct store *s, const char *key_id)
{
#define LIST(condition)                                                                            \
	"SELECT {columns} FROM snapshots WHERE " condition                                         \
	" AND (?2 IS NULL OR sandbox_id = ?2) AND (?3 IS NULL OR name = ?3)"                       \
	" AND seq < CASE WHEN ?4 IS NULL THEN 9223372036854775807"                                 \
	" ELSE (SELECT seq FROM snapshots WHERE id = ?4) END"                                      \
	" ORDER BY seq DESC LIMIT ?5"
	return query_open(s, key_id ? LIST("key_id = ?1") : LIST("?1 IS NULL"), &snapshot_row);
#undef LIST
}

int store_snapshot_list(struct store *s, const char *key_id, const char *sandbox_id,
			const char *name, const char *after, size_t limit,
			struct store_snapshot **ret, size_t *ret_n)
{
	struct query q = open_snapshots(s, key_id);

	query_put_text(&q, key_id);
	query_put_text(&q, sandbox_id);
	query_put_text(&q, name);
	query_put_text(&q, after);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	return query_all(&q, (void **)ret, ret_n);
}

int store_snapshot_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q = query_open(s, "DELETE FROM snapshots WHERE " OF_KEY " AND id = ?2", NULL);

	query_put_text(&q, key_id);
	query_put_text(&q, id);
	return query_change(&q, -ENOENT);
}

int store_layer_users(struct store *s, const char *layer, size_t *ret_n)
{
	struct query q = query_open(s, "SELECT count(*) FROM layer_users WHERE layer = ?", NULL);

	query_put_text(&q, layer);
	return query_number(&q, ret_n);
}

/* Such a server sets config and not layers. The triggers of sandboxes do the rest; a snapshot never
 * changes. Where all is well nothing is written. */
int store_layers_renew(struct store *s)
{
	static const char sql[] =
		"BEGIN IMMEDIATE;"
		"INSERT OR IGNORE INTO layer_users SELECT l.value, s.id"
		" FROM snapshots s, json_each(s.config, '$.layers') l"
		" WHERE s.layers IS NULL AND l.type = 'text';"
		"UPDATE snapshots SET layers = json_extract(config, '$.layers')"
		" WHERE layers IS NULL AND json_extract(config, '$.layers') IS NOT NULL;"
		"UPDATE sandboxes SET layers = json_extract(config, '$.layers') WHERE state < 3"
		" AND layers IS NOT json_extract(config, '$.layers');"
		"COMMIT";
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = store_errno(s->db, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
	if (r < 0)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}
