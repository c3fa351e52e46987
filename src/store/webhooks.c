/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

/* A key's own; everybody's when no key is named. */
#define OF_KEY "(?1 IS NULL OR key_id = ?1)"
#define ROW struct store_webhook

static const struct column columns[] = {
	COLUMN(NAME, id),        COLUMN(NAME, key_id),       COLUMN(TEXT, name),
	COLUMN(TEXT, url),       COLUMN(SECRET, secret),     COLUMN(JSON, types),
	COLUMN(NUMBER, enabled), COLUMN(NUMBER, created_ms),
};
static const struct row_type webhook_row = ROW_TYPE(columns);

void store_webhook_done(struct store_webhook *w)
{
	row_done(&webhook_row, w);
}

int store_webhook_add(struct store *s, const struct store_webhook *w, size_t max)
{
	struct query q =
		query_open_row(s,
			       "INSERT INTO webhooks ({columns}) SELECT {values}"
			       " WHERE (SELECT count(*) FROM webhooks WHERE key_id = :key_id) < ?",
			       &webhook_row, w);

	query_put_int(&q, (int64_t)max);
	return query_change(&q, -EDQUOT);
}

int store_webhook_update(struct store *s, const struct store_webhook *w)
{
	struct query q =
		query_open_row(s,
			       "UPDATE webhooks SET name = :name, url = :url, secret = :secret,"
			       " types = :types, enabled = :enabled"
			       " WHERE id = :id AND key_id = :key_id",
			       &webhook_row, w);

	return query_change(&q, -ENOENT);
}

int store_webhook_get(struct store *s, const char *key_id, const char *id,
		      struct store_webhook *ret)
{
	struct query q = query_open(
		s, "SELECT {columns} FROM webhooks WHERE " OF_KEY " AND id = ?2", &webhook_row);

	query_put_text(&q, key_id);
	query_put_text(&q, id);
	return query_one(&q, ret);
}

int store_webhook_list(struct store *s, const char *key_id, struct store_webhook **ret,
		       size_t *ret_n)
{
	struct query q = query_open(
		s, "SELECT {columns} FROM webhooks WHERE " OF_KEY " ORDER BY seq", &webhook_row);

	query_put_text(&q, key_id);
	return query_all(&q, (void **)ret, ret_n);
}

int store_webhook_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q = query_open(s, "DELETE FROM webhooks WHERE " OF_KEY " AND id = ?2", NULL);

	query_put_text(&q, key_id);
	query_put_text(&q, id);
	return query_change(&q, -ENOENT);
}
