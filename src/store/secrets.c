/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define COLUMNS "id, key_id, name, version, metadata, sealed, created_ms, updated_ms"

void store_secret_done(struct store_secret *s)
{
	json_decref(s->metadata);
	free(s->sealed);
	*s = (struct store_secret){ 0 };
}

static void read_secret(struct query *q, struct store_secret *ret)
{
	query_get_name(q, ret->id, sizeof(ret->id));
	query_get_name(q, ret->key_id, sizeof(ret->key_id));
	query_get_name(q, ret->name, sizeof(ret->name));
	ret->version = query_get_int(q);
	ret->metadata = query_get_json(q);
	ret->sealed = query_get_bytes(q, &ret->sealed_len);
	ret->created_ms = query_get_int(q);
	ret->updated_ms = query_get_int(q);
}

int store_secret_add(struct store *s, const struct store_secret *secret, size_t max)
{
	_cleanup_(freep) char *metadata = NULL;
	struct query q;
	int r = store_json_text(secret->metadata, &metadata);

	if (r == 0)
		r = query_open(s, QUERY_SECRET_ADD,
			       "INSERT INTO secrets (" COLUMNS ") SELECT ?, ?2, ?, ?, ?, ?, ?, ?"
			       " WHERE (SELECT count(*) FROM secrets WHERE key_id = ?2) < ?9",
			       &q);
	if (r < 0)
		return r;
	query_put_text(&q, secret->id);
	query_put_text(&q, secret->key_id);
	query_put_text(&q, secret->name);
	query_put_int(&q, secret->version);
	query_put_text(&q, metadata);
	query_put_blob(&q, secret->sealed, secret->sealed_len);
	query_put_int(&q, secret->created_ms);
	query_put_int(&q, secret->updated_ms);
	query_put_int(&q, (int64_t)max);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -EDQUOT : 0;
}

int store_secret_update(struct store *s, const struct store_secret *secret)
{
	_cleanup_(freep) char *metadata = NULL;
	struct query q;
	int r = store_json_text(secret->metadata, &metadata);

	if (r == 0)
		r = query_open(
			s, QUERY_SECRET_UPDATE,
			"UPDATE secrets SET version = ?1, metadata = ?2, sealed = ?3,"
			" updated_ms = ?4 WHERE id = ?5 AND key_id = ?6 AND version = ?1 - 1",
			&q);
	if (r < 0)
		return r;
	query_put_int(&q, secret->version);
	query_put_text(&q, metadata);
	query_put_blob(&q, secret->sealed, secret->sealed_len);
	query_put_int(&q, secret->updated_ms);
	query_put_text(&q, secret->id);
	query_put_text(&q, secret->key_id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ESTALE : 0;
}

int store_secret_get(struct store *s, const char *key_id, const char *id_or_name,
		     struct store_secret *ret)
{
	_cleanup_(store_secret_done) struct store_secret secret = { 0 };
	struct query q;
	int r = query_open(s, QUERY_SECRET_GET,
			   "SELECT " COLUMNS
			   " FROM secrets WHERE key_id = ?1 AND (id = ?2 OR name = ?2)",
			   &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id_or_name);
	r = query_step(&q);
	if (r > 0)
		read_secret(&q, &secret);
	r = query_close(&q, r == 0 ? -ENOENT : r);
	if (r >= 0)
		r = store_json_parse(&secret.metadata);
	if (r < 0)
		return r;
	*ret = secret;
	secret = (struct store_secret){ 0 };
	return 0;
}

static void free_secrets(struct store_secret *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		store_secret_done(&rows[i]);
	free(rows);
}

int store_secret_list(struct store *s, const char *key_id, const char *after, size_t limit,
		      struct store_secret **ret, size_t *ret_n)
{
	struct store_secret *rows = NULL;
	size_t n = 0, size = 0;
	struct query q;
	int r = query_open(s, QUERY_SECRET_LIST,
			   "SELECT " COLUMNS " FROM secrets WHERE key_id = ?1"
			   " AND (?2 IS NULL OR seq > (SELECT seq FROM secrets WHERE id = ?2))"
			   " ORDER BY seq LIMIT ?3",
			   &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, after);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(rows, n, size);
		if (r < 0)
			break;
		read_secret(&q, &rows[n++]);
	}
	r = query_close(&q, r);
	for (size_t i = 0; i < n && r == 0; i++)
		r = store_json_parse(&rows[i].metadata);
	if (r < 0) {
		free_secrets(rows, n);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int store_secret_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q;
	int r = query_open(s, QUERY_SECRET_REMOVE,
			   "DELETE FROM secrets WHERE key_id = ? AND id = ?", &q);

	if (r < 0)
		return r;
	query_put_text(&q, key_id);
	query_put_text(&q, id);
	r = query_run(&q);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}
