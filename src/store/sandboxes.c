/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define COLUMNS                                                                                    \
	"id, key_id, template_id, alias, metadata, env, config, envd_token, traffic_token, state," \
	" started_ms, end_ms, reason, detail"

void store_sandbox_done(struct store_sandbox *b)
{
	free(b->template_id);
	free(b->alias);
	json_decref(b->metadata);
	json_decref(b->env);
	json_decref(b->config);
	free(b->envd_token);
	free(b->traffic_token);
	free(b->detail);
	*b = (struct store_sandbox){ 0 };
}

static void read_sandbox(struct query *q, struct store_sandbox *ret)
{
	query_get_name(q, ret->id, sizeof(ret->id));
	query_get_name(q, ret->key_id, sizeof(ret->key_id));
	ret->template_id = query_get_text(q);
	ret->alias = query_get_text(q);
	ret->metadata = query_get_json(q);
	ret->env = query_get_json(q);
	ret->config = query_get_json(q);
	ret->envd_token = query_get_text(q);
	ret->traffic_token = query_get_text(q);
	ret->state = (enum store_state)query_get_int(q);
	ret->started_ms = query_get_int(q);
	ret->end_ms = query_get_int(q);
	ret->reason = (uint32_t)query_get_int(q);
	ret->detail = query_get_text(q);
}

static int parse_sandbox(struct store_sandbox *b)
{
	int r = store_json_parse(&b->metadata);

	if (r == 0)
		r = store_json_parse(&b->env);
	return r < 0 ? r : store_json_parse(&b->config);
}

int store_sandbox_add(struct store *s, const struct store_sandbox *b)
{
	_cleanup_(freep) char *metadata = NULL, *env = NULL, *config = NULL, *layers = NULL;
	struct query q;
	int r = store_json_text(b->metadata, &metadata);

	if (r == 0)
		r = store_json_text(b->env, &env);
	if (r == 0)
		r = store_json_text(b->config, &config);
	if (r == 0)
		r = store_json_text(json_object_get(b->config, "layers"), &layers);
	if (r == 0)
		r = query_open(s, QUERY_SANDBOX_ADD,
			       "INSERT INTO sandboxes (" COLUMNS
			       ", layers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			       &q);
	if (r < 0)
		return r;
	query_put_text(&q, b->id);
	query_put_text(&q, b->key_id);
	query_put_text(&q, b->template_id);
	query_put_text(&q, b->alias);
	query_put_text(&q, metadata);
	query_put_text(&q, env);
	query_put_text(&q, config);
	query_put_text(&q, b->envd_token);
	query_put_text(&q, b->traffic_token);
	query_put_int(&q, b->state);
	query_put_int(&q, b->started_ms);
	query_put_int(&q, b->end_ms);
	query_put_int(&q, b->reason);
	query_put_text(&q, b->detail);
	query_put_text(&q, layers);
	r = query_run(&q);
	return r < 0 ? r : 0;
}

/* What has ended needs its secrets no longer. */
int store_sandbox_update(struct store *s, const struct store_sandbox *b)
{
	_cleanup_(freep) char *config = NULL, *layers = NULL;
	struct query q;
	int r = store_json_text(b->config, &config);

	static_assert(STORE_ENDED == 3, "as the statement has it");
	if (r == 0)
		r = store_json_text(json_object_get(b->config, "layers"), &layers);
	if (r == 0)
		r = query_open(
			s, QUERY_SANDBOX_UPDATE,
			"UPDATE sandboxes SET state = ?1, end_ms = ?2, reason = ?3, detail = ?4,"
			" config = ?5, env = CASE ?1 WHEN 3 THEN NULL ELSE env END,"
			" envd_token = CASE ?1 WHEN 3 THEN NULL ELSE envd_token END,"
			" traffic_token = CASE ?1 WHEN 3 THEN NULL ELSE traffic_token END"
			", layers = ?6 WHERE id = ?7",
			&q);
	if (r < 0)
		return r;
	query_put_int(&q, b->state);
	query_put_int(&q, b->end_ms);
	query_put_int(&q, b->reason);
	query_put_text(&q, b->detail);
	query_put_text(&q, config);
	query_put_text(&q, layers);
	query_put_text(&q, b->id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}

int store_sandbox_get(struct store *s, const char *id, struct store_sandbox *ret)
{
	_cleanup_(store_sandbox_done) struct store_sandbox b = { 0 };
	struct query q;
	int r = query_open(s, QUERY_SANDBOX_GET, "SELECT " COLUMNS " FROM sandboxes WHERE id = ?",
			   &q);

	if (r < 0)
		return r;
	query_put_text(&q, id);
	r = query_step(&q);
	if (r > 0)
		read_sandbox(&q, &b);
	r = query_close(&q, r == 0 ? -ENOENT : r);
	if (r >= 0)
		r = parse_sandbox(&b);
	if (r < 0)
		return r;
	*ret = b;
	b = (struct store_sandbox){ 0 };
	return 0;
}

static int read_live(struct store *s, struct store_sandbox **rows, size_t *n)
{
	size_t size = 0;
	struct query q;
	int r = query_open(s, QUERY_SANDBOX_LIVE,
			   "SELECT " COLUMNS
			   " FROM sandboxes WHERE state < 3 ORDER BY started_ms, rowid",
			   &q);

	static_assert(STORE_RUNNING < 3 && STORE_PAUSED < 3, "as the statement has it");
	if (r < 0)
		return r;
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(*rows, *n, size);
		if (r < 0)
			break;
		read_sandbox(&q, &(*rows)[(*n)++]);
	}
	return query_close(&q, r);
}

int store_sandbox_each_live(struct store *s, int (*each)(struct store_sandbox *b, void *arg),
			    void *arg)
{
	struct store_sandbox *rows = NULL;
	size_t n = 0;
	/* All are read before the first is handed out: each() may use the store. */
	int r = read_live(s, &rows, &n);

	for (size_t i = 0; i < n && r >= 0; i++)
		r = parse_sandbox(&rows[i]);
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
		QUERY_SANDBOX_ENDED,
		QUERY_SANDBOX_PRUNE,
		"SELECT key_id, count(*) FROM sandboxes INDEXED BY sandboxes_ended WHERE state = 3"
		" GROUP BY key_id ORDER BY 2",
		"DELETE FROM sandboxes WHERE rowid IN (SELECT rowid FROM sandboxes"
		" WHERE key_id = ? AND state = 3 ORDER BY end_ms LIMIT ?)",
	};

	return store_prune(s, &ended, keep);
}
