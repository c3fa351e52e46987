/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define COLUMNS "id, key_id, sandbox_id, name, config, created_ms"
/* A key's own; everybody's when no key is named. */
#define OF_KEY "(?1 IS NULL OR key_id = ?1)"

void store_snapshot_done(struct store_snapshot *n)
{
	free(n->name);
	json_decref(n->config);
	*n = (struct store_snapshot){ 0 };
}

static void read_snapshot(struct query *q, struct store_snapshot *ret)
{
	query_get_name(q, ret->id, sizeof(ret->id));
	query_get_name(q, ret->key_id, sizeof(ret->key_id));
	query_get_name(q, ret->sandbox_id, sizeof(ret->sandbox_id));
	ret->name = query_get_text(q);
	ret->config = query_get_json(q);
	ret->created_ms = query_get_int(q);
}

/* A name is one snapshot: those that have it already are about to go. */
#define HAS_ROOM                                                                                   \
	"(SELECT count(*) FROM snapshots WHERE key_id = ?2 AND (?4 IS NULL OR name IS NOT ?4)) < ?1"

int store_snapshot_add(struct store *s, const struct store_snapshot *n, size_t max)
{
	_cleanup_(freep) char *config = NULL, *layers = NULL;
	struct query q;
	int r = store_json_text(n->config, &config);

	if (r == 0)
		r = store_json_text(json_object_get(n->config, "layers"), &layers);
	if (r == 0)
		r = query_open(s, QUERY_SNAPSHOT_ADD,
			       "INSERT INTO snapshots (" COLUMNS
			       ", layers) SELECT ?3, ?2, ?5, ?4, ?6, ?7, ?8 WHERE " HAS_ROOM,
			       &q);
	if (r < 0)
		return r;
	query_put_int(&q, (int64_t)max);
	query_put_text(&q, n->key_id);
	query_put_text(&q, n->id);
	query_put_text(&q, n->name);
	query_put_text(&q, n->sandbox_id);
	query_put_text(&q, config);
	query_put_int(&q, n->created_ms);
	query_put_text(&q, layers);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -EDQUOT : 0;
}

int store_snapshot_room(struct store *s, const char *key_id, const char *name, size_t max)
{
	struct query q;
	int r = query_open(s, QUERY_SNAPSHOT_ROOM, "SELECT 1 WHERE " HAS_ROOM, &q);

	if (r < 0)
		return r;
	query_put_int(&q, (int64_t)max);
	query_put_text(&q, key_id);
	query_put_text(&q, NULL);
	query_put_text(&q, name);
	r = query_step(&q);
	r = query_close(&q, r == 0 ? -EDQUOT : r);
	return MIN(r, 0);
}

/* Of several with one name the newest is meant; an id comes before all names. */
int store_snapshot_get(struct store *s, const char *key_id, const char *id_or_name,
		       struct store_snapshot *ret)
{
	_cleanup_(store_snapshot_done) struct store_snapshot n = { 0 };
	struct query q;
	int r = query_open(s, QUERY_SNAPSHOT_GET,
			   "SELECT " COLUMNS " FROM snapshots WHERE seq = coalesce("
			   "(SELECT seq FROM snapshots WHERE id = ?2 AND " OF_KEY "),"
			   " (SELECT max(seq) FROM snapshots WHERE key_id = ?1 AND name = ?2))",
			   &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id_or_name);
	r = query_step(&q);
	if (r > 0)
		read_snapshot(&q, &n);
	r = query_close(&q, r == 0 ? -ENOENT : r);
	if (r >= 0)
		r = store_json_parse(&n.config);
	if (r < 0)
		return r;
	*ret = n;
	n = (struct store_snapshot){ 0 };
	return 0;
}

static void free_snapshots(struct store_snapshot *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		store_snapshot_done(&rows[i]);
	free(rows);
}

/* Two statements, so that one can use its index. */
static int open_list(struct store *s, const char *key_id, struct query *ret)
{
#define LIST(condition)                                                                            \
	"SELECT " COLUMNS " FROM snapshots WHERE " condition                                       \
	" AND (?2 IS NULL OR sandbox_id = ?2) AND (?3 IS NULL OR name = ?3)"                       \
	" AND seq < CASE WHEN ?4 IS NULL THEN 9223372036854775807"                                 \
	" ELSE (SELECT seq FROM snapshots WHERE id = ?4) END"                                      \
	" ORDER BY seq DESC LIMIT ?5"
	return key_id ? query_open(s, QUERY_SNAPSHOT_LIST_KEY, LIST("key_id = ?1"), ret) :
			query_open(s, QUERY_SNAPSHOT_LIST, LIST("?1 IS NULL"), ret);
#undef LIST
}

int store_snapshot_list(struct store *s, const char *key_id, const char *sandbox_id,
			const char *name, const char *after, size_t limit,
			struct store_snapshot **ret, size_t *ret_n)
{
	struct store_snapshot *rows = NULL;
	size_t n = 0, size = 0;
	struct query q;
	int r = open_list(s, key_id, &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, sandbox_id);
	query_put_text(&q, name);
	query_put_text(&q, after);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(rows, n, size);
		if (r < 0)
			break;
		read_snapshot(&q, &rows[n++]);
	}
	r = query_close(&q, r);
	for (size_t i = 0; i < n && r == 0; i++)
		r = store_json_parse(&rows[i].config);
	if (r < 0) {
		free_snapshots(rows, n);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int store_snapshot_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q;
	int r = query_open(s, QUERY_SNAPSHOT_REMOVE,
			   "DELETE FROM snapshots WHERE " OF_KEY " AND id = ?2", &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}

int store_layer_users(struct store *s, const char *layer, size_t *ret_n)
{
	struct query q;
	size_t n = 0;
	int r = query_open(s, QUERY_LAYER_USERS, "SELECT count(*) FROM layer_users WHERE layer = ?",
			   &q);

	if (r < 0)
		return r;
	query_put_text(&q, layer);
	r = query_step(&q);
	if (r > 0)
		n = (size_t)query_get_int(&q);
	r = query_close(&q, r);
	if (r < 0)
		return r;
	*ret_n = n;
	return 0;
}

/* Such a server sets config and not layers. The triggers of sandboxes do the rest; a snapshot never changes. Where
 * all is well nothing is written. */
int store_layers_renew(struct store *s)
{
	static const char sql[] =
		"BEGIN IMMEDIATE;"
		"INSERT OR IGNORE INTO layer_users SELECT l.value, s.id"
		" FROM snapshots s, json_each(s.config, '$.layers') l"
		" WHERE s.layers IS NULL AND l.type = 'text';"
		"UPDATE snapshots SET layers = json_extract(config, '$.layers') WHERE layers IS NULL"
		" AND json_extract(config, '$.layers') IS NOT NULL;"
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
