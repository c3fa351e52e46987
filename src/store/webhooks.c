/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define COLUMNS "id, key_id, name, url, secret, types, enabled, created_ms"
/* A key's own; everybody's when no key is named. */
#define OF_KEY "(?1 IS NULL OR key_id = ?1)"

void store_webhook_done(struct store_webhook *w)
{
	free(w->name);
	free(w->url);
	if (w->secret)
		explicit_bzero(w->secret, strlen(w->secret));
	free(w->secret);
	json_decref(w->types);
	*w = (struct store_webhook){ 0 };
}

static void read_webhook(struct query *q, struct store_webhook *ret)
{
	query_get_name(q, ret->id, sizeof(ret->id));
	query_get_name(q, ret->key_id, sizeof(ret->key_id));
	ret->name = query_get_text(q);
	ret->url = query_get_text(q);
	ret->secret = query_get_text(q);
	ret->types = query_get_json(q);
	ret->enabled = query_get_int(q) != 0;
	ret->created_ms = query_get_int(q);
}

int store_webhook_add(struct store *s, const struct store_webhook *w, size_t max)
{
	_cleanup_(freep) char *types = NULL;
	struct query q;
	int r = store_json_text(w->types, &types);

	if (r == 0)
		r = query_open(s, QUERY_WEBHOOK_ADD,
			       "INSERT INTO webhooks (" COLUMNS ") SELECT ?, ?2, ?, ?, ?, ?, ?, ?"
			       " WHERE (SELECT count(*) FROM webhooks WHERE key_id = ?2) < ?9",
			       &q);
	if (r < 0)
		return r;
	query_put_text(&q, w->id);
	query_put_text(&q, w->key_id);
	query_put_text(&q, w->name);
	query_put_text(&q, w->url);
	query_put_text(&q, w->secret);
	query_put_text(&q, types);
	query_put_int(&q, w->enabled);
	query_put_int(&q, w->created_ms);
	query_put_int(&q, (int64_t)max);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -EDQUOT : 0;
}

int store_webhook_update(struct store *s, const struct store_webhook *w)
{
	_cleanup_(freep) char *types = NULL;
	struct query q;
	int r = store_json_text(w->types, &types);

	if (r == 0)
		r = query_open(
			s, QUERY_WEBHOOK_UPDATE,
			"UPDATE webhooks SET name = ?, url = ?, secret = ?, types = ?, enabled = ?"
			" WHERE id = ? AND key_id = ?",
			&q);
	if (r < 0)
		return r;
	query_put_text(&q, w->name);
	query_put_text(&q, w->url);
	query_put_text(&q, w->secret);
	query_put_text(&q, types);
	query_put_int(&q, w->enabled);
	query_put_text(&q, w->id);
	query_put_text(&q, w->key_id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}

int store_webhook_get(struct store *s, const char *key_id, const char *id,
		      struct store_webhook *ret)
{
	_cleanup_(store_webhook_done) struct store_webhook w = { 0 };
	struct query q;
	int r = query_open(s, QUERY_WEBHOOK_GET,
			   "SELECT " COLUMNS " FROM webhooks WHERE " OF_KEY " AND id = ?2", &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id);
	r = query_step(&q);
	if (r > 0)
		read_webhook(&q, &w);
	r = query_close(&q, r == 0 ? -ENOENT : r);
	if (r >= 0)
		r = store_json_parse(&w.types);
	if (r < 0)
		return r;
	*ret = w;
	w = (struct store_webhook){ 0 };
	return 0;
}

static void free_webhooks(struct store_webhook *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		store_webhook_done(&rows[i]);
	free(rows);
}

int store_webhook_list(struct store *s, const char *key_id, struct store_webhook **ret,
		       size_t *ret_n)
{
	struct store_webhook *rows = NULL;
	size_t n = 0, size = 0;
	struct query q;
	int r = query_open(s, QUERY_WEBHOOK_LIST,
			   "SELECT " COLUMNS " FROM webhooks WHERE " OF_KEY " ORDER BY seq", &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(rows, n, size);
		if (r < 0)
			break;
		read_webhook(&q, &rows[n++]);
	}
	r = query_close(&q, r);
	for (size_t i = 0; i < n && r == 0; i++)
		r = store_json_parse(&rows[i].types);
	if (r < 0) {
		free_webhooks(rows, n);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int store_webhook_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q;
	int r = query_open(s, QUERY_WEBHOOK_REMOVE,
			   "DELETE FROM webhooks WHERE " OF_KEY " AND id = ?2", &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}
