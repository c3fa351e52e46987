/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_priv.h"

int store_errno(sqlite3 *db, int rc)
{
	int err = db ? sqlite3_system_errno(db) : 0;

	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CONSTRAINT:
		return rc == SQLITE_CONSTRAINT_UNIQUE || rc == SQLITE_CONSTRAINT_PRIMARYKEY ?
			       -EEXIST :
			       -EINVAL;
	case SQLITE_TOOBIG:
		return -E2BIG;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		/* Making the index of the log says IOERR where writing says FULL. */
		return err > 0 ? -err : -EIO;
	default:
		return -EIO;
	}
}

int query_open(struct store *s, enum query_id id, const char *sql, struct query *ret)
{
	(void)pthread_mutex_lock(&s->lock);
	if (!s->queries[id]) {
		int rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
					    &s->queries[id], NULL);

		if (rc != SQLITE_OK) {
			rc = store_errno(s->db, rc);
			(void)pthread_mutex_unlock(&s->lock);
			return rc;
		}
	}
	*ret = (struct query){ .store = s, .stmt = s->queries[id], .at = 1 };
	return 0;
}

int query_close(struct query *q, int r)
{
	/* Its result is that of the last step, which has been looked at. */
	(void)sqlite3_reset(q->stmt);
	(void)sqlite3_clear_bindings(q->stmt);
	(void)pthread_mutex_unlock(&q->store->lock);
	return q->err < 0 ? q->err : r;
}

static void note(struct query *q, int err)
{
	if (q->err == 0)
		q->err = err;
}

static void note_rc(struct query *q, int rc)
{
	if (rc != SQLITE_OK)
		note(q, store_errno(q->store->db, rc));
}

void query_put_text(struct query *q, const char *text)
{
	note_rc(q, sqlite3_bind_text(q->stmt, q->at++, text, -1, SQLITE_STATIC));
}

void query_put_int(struct query *q, int64_t number)
{
	note_rc(q, sqlite3_bind_int64(q->stmt, q->at++, number));
}

void query_put_blob(struct query *q, const void *data, size_t len)
{
	note_rc(q, sqlite3_bind_blob64(q->stmt, q->at++, data, len, SQLITE_STATIC));
}

int query_step(struct query *q)
{
	int rc;

	if (q->err < 0)
		return q->err;
	rc = sqlite3_step(q->stmt);
	q->at = 0;
	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		note_rc(q, rc);
	return q->err;
}

int query_run(struct query *q)
{
	int r = query_step(q);

	if (r == 0)
		r = sqlite3_changes(q->store->db);
	return query_close(q, r);
}

int64_t query_get_int(struct query *q)
{
	return sqlite3_column_int64(q->stmt, q->at++);
}

void query_get_name(struct query *q, char *ret, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at++);
	size_t len = text ? strlen(text) : 0;

	if (!text || len >= size) {
		note(q, -EUCLEAN);
		return;
	}
	memcpy(ret, text, len + 1);
}

void query_get_blob(struct query *q, void *ret, size_t len)
{
	const void *data = sqlite3_column_blob(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);

	if (!data || n < 0 || (size_t)n != len)
		note(q, -EUCLEAN);
	else
		memcpy(ret, data, len);
}

unsigned char *query_get_bytes(struct query *q, size_t *ret_len)
{
	const void *data = sqlite3_column_blob(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);
	unsigned char *copy;

	if (!data || n <= 0) {
		note(q, -EUCLEAN);
		return NULL;
	}
	copy = malloc((size_t)n);
	if (!copy) {
		note(q, -ENOMEM);
		return NULL;
	}
	memcpy(copy, data, (size_t)n);
	*ret_len = (size_t)n;
	return copy;
}

char *query_get_text(struct query *q)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at++);
	char *copy = NULL;

	if (text) {
		copy = strdup(text);
		if (!copy)
			note(q, -ENOMEM);
	}
	return copy;
}

json_t *query_get_json(struct query *q)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);
	json_t *json = NULL;

	if (text) {
		json = json_stringn_nocheck(text, (size_t)MAX(n, 0));
		if (!json)
			note(q, -ENOMEM);
	}
	return json;
}

int store_json_text(const json_t *json, char **ret)
{
	char *text = NULL;

	if (json) {
		text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!text)
			return -ENOMEM;
	}
	*ret = text;
	return 0;
}

int store_json_parse(json_t **json)
{
	json_t *text = *json;

	if (!text)
		return 0;
	*json = json_loadb(json_string_value(text), json_string_length(text), JSON_DECODE_ANY,
			   NULL);
	json_decref(text);
	return *json ? 0 : -EUCLEAN;
}
