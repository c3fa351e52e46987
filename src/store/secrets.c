/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

#define ROW struct store_secret

static const struct column columns[] = {
	COLUMN(NAME, id),           COLUMN(NAME, key_id),       COLUMN(NAME, name),
	COLUMN(NUMBER, version),    COLUMN(JSON, metadata),     COLUMN(BYTES, sealed),
	COLUMN(NUMBER, created_ms), COLUMN(NUMBER, updated_ms),
};
static const struct row_type secret_row = ROW_TYPE(columns);

static_assert(offsetof(ROW, sealed_len) == offsetof(ROW, sealed) + sizeof(unsigned char *),
	      "where COLUMN_BYTES has its length");

void store_secret_done(struct store_secret *s)
{
	row_done(&secret_row, s);
}

int store_secret_add(struct store *s, const struct store_secret *secret, size_t max)
{
	struct query q =
		query_open_row(s,
			       "INSERT INTO secrets ({columns}) SELECT {values}"
			       " WHERE (SELECT count(*) FROM secrets WHERE key_id = :key_id) < ?",
			       &secret_row, secret);

	query_put_int(&q, (int64_t)max);
	return query_change(&q, -EDQUOT);
}

int store_secret_update(struct store *s, const struct store_secret *secret)
{
	struct query q = query_open_row(
		s,
		"UPDATE secrets SET version = :version, metadata = :metadata, sealed = :sealed,"
		" updated_ms = :updated_ms"
		" WHERE id = :id AND key_id = :key_id AND version = :version - 1",
		&secret_row, secret);

	return query_change(&q, -ESTALE);
}

int store_secret_get(struct store *s, const char *key_id, const char *id_or_name,
		     struct store_secret *ret)
{
	struct query q = query_open(
		s, "SELECT {columns} FROM secrets WHERE key_id = ?1 AND (id = ?2 OR name = ?2)",
		&secret_row);

	query_put_text(&q, key_id);
	query_put_text(&q, id_or_name);
	return query_one(&q, ret);
}

int store_secret_list(struct store *s, const char *key_id, const char *after, size_t limit,
		      struct store_secret **ret, size_t *ret_n)
{
	struct query q =
		query_open(s,
			   "SELECT {columns} FROM secrets WHERE key_id = ?1"
			   " AND (?2 IS NULL OR seq > (SELECT seq FROM secrets WHERE id = ?2))"
			   " ORDER BY seq LIMIT ?3",
			   &secret_row);

	query_put_text(&q, key_id);
	query_put_text(&q, after);
	query_put_int(&q, (int64_t)MIN(limit, (size_t)INT32_MAX));
	return query_all(&q, (void **)ret, ret_n);
}

int store_secret_remove(struct store *s, const char *key_id, const char *id)
{
	struct query q = query_open(s, "DELETE FROM secrets WHERE key_id = ? AND id = ?", NULL);

	query_put_text(&q, key_id);
	query_put_text(&q, id);
	return query_change(&q, -ENOENT);
}
