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

/* --- rows ------------------------------------------------------------------------------------- */

static void *member(const struct column *c, const void *row)
{
	return (char *)(uintptr_t)row + c->offset;
}

static int64_t member_number(const struct column *c, const void *row)
{
	int64_t number = 0;

	static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low bytes come first");
	memcpy(&number, member(c, row), c->size);
	return number;
}

static void set_member_number(const struct column *c, void *row, int64_t number)
{
	if (c->size == sizeof(bool))
		number = number != 0;
	memcpy(member(c, row), &number, c->size);
}

static size_t *member_len(const struct column *c, const void *row)
{
	return (size_t *)((char *)member(c, row) + sizeof(unsigned char *));
}

void row_done(const struct row_type *type, void *row)
{
	for (size_t i = 0; i < type->n_columns; i++) {
		const struct column *c = &type->columns[i];
		char **text = member(c, row);

		if (c->kind == COLUMN_JSON)
			json_decref(*(json_t **)member(c, row));
		if (c->kind == COLUMN_SECRET && *text)
			explicit_bzero(*text, strlen(*text));
		if (c->kind == COLUMN_TEXT || c->kind == COLUMN_SECRET || c->kind == COLUMN_BYTES)
			free(*text);
	}
	memset(row, 0, type->size);
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

#define PARAMETER_SIZE 32

static void parameter(const struct column *c, char ret[static PARAMETER_SIZE])
{
	(void)snprintf(ret, PARAMETER_SIZE, ":%s", c->name);
}

/* Of those columns that the statement has. */
static int row_texts(const char *sql, const struct row_type *type, const void *row,
		     char *ret[COLUMNS_MAX])
{
	bool has_all = strstr(sql, "{values}");
	int r = 0;

	for (size_t i = 0; i < type->n_columns && r == 0; i++) {
		const struct column *c = &type->columns[i];
		char name[PARAMETER_SIZE];

		parameter(c, name);
		if (!has_all && !strstr(sql, name))
			continue;
		if (c->kind == COLUMN_JSON)
			r = store_json_text(*(json_t **)member(c, row), &ret[i]);
		else if (c->kind == COLUMN_LAYERS)
			r = store_json_text(json_object_get(*(json_t **)member(c, row), c->name),
					    &ret[i]);
	}
	return r;
}

/* What was read of JSON is its text yet. */
static int row_parse(const struct row_type *type, void *row)
{
	for (size_t i = 0; i < type->n_columns; i++) {
		const struct column *c = &type->columns[i];
		json_t **json = member(c, row), *text;

		if (c->kind != COLUMN_JSON || !*json)
			continue;
		text = *json;
		*json = json_loadb(json_string_value(text), json_string_length(text),
				   JSON_DECODE_ANY, NULL);
		json_decref(text);
		if (!*json)
			return -EUCLEAN;
	}
	return 0;
}

/* --- statements ------------------------------------------------------------------------------- */

/* With the names of the columns for {columns}, and of their parameters for {values}. */
static char *write_sql(const char *text, const struct row_type *type)
{
	char *sql = NULL;
	size_t size;
	FILE *f = open_memstream(&sql, &size);

	for (; f && *text; text++) {
		const char *before = text[1] == 'v' ? ":" : "";

		if (*text != '{') {
			(void)fputc(*text, f);
			continue;
		}
		for (size_t i = 0; i < type->n_columns; i++)
			(void)fprintf(f, "%s%s%s", i ? ", " : "", before, type->columns[i].name);
		text = strchr(text, '}');
	}
	return f && fclose(f) == 0 ? sql : NULL;
}

/* With the lock held. */
static int prepare_statement(struct store *s, const char *text, const struct row_type *type,
			     sqlite3_stmt **ret)
{
	_cleanup_(freep) char *sql = NULL;
	size_t i = 0;
	int r;

	while (s->statements[i].sql && s->statements[i].sql != text)
		i++;
	assert(i < STORE_STATEMENTS_MAX - 1); /* the last one stays empty */
	if (!s->statements[i].sql) {
		sql = write_sql(text, type);
		if (!sql)
			return -ENOMEM;
		r = store_errno(s->db, sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
							  &s->statements[i].stmt, NULL));
		if (r < 0)
			return r;
		s->statements[i].sql = text;
	}
	*ret = s->statements[i].stmt;
	return 0;
}

struct query query_open(struct store *s, const char *sql, const struct row_type *type)
{
	struct query q = { .store = s, .at = 1, .type = type };

	(void)pthread_mutex_lock(&s->lock);
	q.err = prepare_statement(s, sql, type, &q.stmt);
	if (q.err < 0)
		(void)pthread_mutex_unlock(&s->lock);
	return q;
}

int query_close(struct query *q, int r)
{
	if (q->stmt) {
		/* Its result is that of the last step, which has been looked at. */
		(void)sqlite3_reset(q->stmt);
		(void)sqlite3_clear_bindings(q->stmt);
		(void)pthread_mutex_unlock(&q->store->lock);
	}
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		free(q->texts[i]);
	return q->err < 0 ? q->err : r;
}

static void query_note(struct query *q, int err)
{
	if (q->err == 0)
		q->err = err;
}

static void query_note_rc(struct query *q, int rc)
{
	if (rc != SQLITE_OK)
		query_note(q, store_errno(q->store->db, rc));
}

void query_put_text(struct query *q, const char *text)
{
	if (q->stmt)
		query_note_rc(q, sqlite3_bind_text(q->stmt, q->at++, text, -1, SQLITE_STATIC));
}

void query_put_int(struct query *q, int64_t number)
{
	if (q->stmt)
		query_note_rc(q, sqlite3_bind_int64(q->stmt, q->at++, number));
}

void query_put_blob(struct query *q, const void *data, size_t len)
{
	if (q->stmt)
		query_note_rc(q, sqlite3_bind_blob64(q->stmt, q->at++, data, len, SQLITE_STATIC));
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
		query_note_rc(q, rc);
	return q->err;
}

int query_run(struct query *q)
{
	int r = query_step(q);

	if (r == 0)
		r = sqlite3_changes(q->store->db);
	return query_close(q, r);
}

int query_change(struct query *q, int none)
{
	int r = query_run(q);

	return r > 0 ? 0 : r == 0 ? none : r;
}

int query_number(struct query *q, size_t *ret)
{
	int r = query_step(q);
	size_t n = r > 0 ? (size_t)sqlite3_column_int64(q->stmt, 0) : 0;

	r = query_close(q, r);
	if (r < 0)
		return r;
	*ret = n;
	return 0;
}

static void put_member(struct query *q, size_t i, const void *row)
{
	const struct column *c = &q->type->columns[i];

	switch (c->kind) {
	case COLUMN_NAME:
		query_put_text(q, member(c, row));
		break;
	case COLUMN_TEXT:
	case COLUMN_SECRET:
		query_put_text(q, *(char **)member(c, row));
		break;
	case COLUMN_JSON:
	case COLUMN_LAYERS:
		query_put_text(q, q->texts[i]);
		break;
	case COLUMN_NUMBER:
		query_put_int(q, member_number(c, row));
		break;
	case COLUMN_BYTES:
		query_put_blob(q, *(unsigned char **)member(c, row), *member_len(c, row));
		break;
	}
}

/* A statement need not have all of them. */
static void put_row(struct query *q, const void *row)
{
	int last = 0;

	for (size_t i = 0; i < q->type->n_columns; i++) {
		char name[PARAMETER_SIZE];

		parameter(&q->type->columns[i], name);
		q->at = sqlite3_bind_parameter_index(q->stmt, name);
		last = MAX(last, q->at);
		if (q->at > 0)
			put_member(q, i, row);
	}
	q->at = last + 1;
}

struct query query_open_row(struct store *s, const char *sql, const struct row_type *type,
			    const void *row)
{
	char *texts[COLUMNS_MAX] = { 0 };
	int r = row_texts(sql, type, row, texts);
	struct query q = { .err = r };

	if (r == 0)
		q = query_open(s, sql, type);
	memcpy(q.texts, texts, sizeof(texts));
	if (q.stmt)
		put_row(&q, row);
	return q;
}

/* --- what comes back -------------------------------------------------------------------------- */

static void get_name(struct query *q, char *ret, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at++);
	size_t len = text ? strlen(text) : 0;

	if (!text || len >= size)
		query_note(q, -EUCLEAN);
	else
		memcpy(ret, text, len + 1);
}

void query_get_blob(struct query *q, void *ret, size_t len)
{
	const void *data = sqlite3_column_blob(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);

	if (!data || n < 0 || (size_t)n != len)
		query_note(q, -EUCLEAN);
	else
		memcpy(ret, data, len);
}

static unsigned char *get_bytes(struct query *q, size_t *ret_len)
{
	const void *data = sqlite3_column_blob(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);
	unsigned char *copy;

	if (!data || n <= 0) {
		query_note(q, -EUCLEAN);
		return NULL;
	}
	copy = malloc((size_t)n);
	if (!copy) {
		query_note(q, -ENOMEM);
		return NULL;
	}
	memcpy(copy, data, (size_t)n);
	*ret_len = (size_t)n;
	return copy;
}

static char *get_text(struct query *q)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at++);
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		query_note(q, -ENOMEM);
	return copy;
}

/* Its text, as a JSON string: see row_parse(). */
static json_t *get_json(struct query *q)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, q->at);
	int n = sqlite3_column_bytes(q->stmt, q->at++);
	json_t *json = text ? json_stringn_nocheck(text, (size_t)MAX(n, 0)) : NULL;

	if (text && !json)
		query_note(q, -ENOMEM);
	return json;
}

static void get_member(struct query *q, const struct column *c, void *row)
{
	switch (c->kind) {
	case COLUMN_NAME:
		get_name(q, member(c, row), c->size);
		break;
	case COLUMN_TEXT:
	case COLUMN_SECRET:
		*(char **)member(c, row) = get_text(q);
		break;
	case COLUMN_JSON:
		*(json_t **)member(c, row) = get_json(q);
		break;
	case COLUMN_LAYERS:
		q->at++;
		break;
	case COLUMN_NUMBER:
		set_member_number(c, row, sqlite3_column_int64(q->stmt, q->at++));
		break;
	case COLUMN_BYTES:
		*(unsigned char **)member(c, row) = get_bytes(q, member_len(c, row));
		break;
	}
}

void query_get_row(struct query *q, void *ret)
{
	for (size_t i = 0; i < q->type->n_columns; i++)
		get_member(q, &q->type->columns[i], ret);
}

/* At most `limit`; what was read is given back even when it fails. */
static int read_rows(struct query *q, size_t limit, char **rows, size_t *n)
{
	size_t size = 0, row_size = q->type->size;
	int r = 0;

	while (*n < limit && (r = query_step(q)) > 0) {
		if (*n == size) {
			char *more = reallocarray(*rows, size ? 2 * size : 1, row_size);

			if (!more)
				return -ENOMEM;
			*rows = more;
			size = size ? 2 * size : 1;
		}
		memset(*rows + *n * row_size, 0, row_size);
		query_get_row(q, *rows + (*n)++ * row_size);
	}
	return MIN(r, 0);
}

static int query_rows(struct query *q, size_t limit, char **ret, size_t *ret_n)
{
	const struct row_type *type = q->type;
	char *rows = NULL;
	size_t n = 0;
	int r = query_close(q, read_rows(q, limit, &rows, &n));

	for (size_t i = 0; i < n && r == 0; i++)
		r = row_parse(type, rows + i * type->size);
	for (size_t i = 0; i < n && r < 0; i++)
		row_done(type, rows + i * type->size);
	if (r < 0) {
		free(rows);
		return r;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int query_one(struct query *q, void *ret)
{
	_cleanup_(freep) char *row = NULL;
	size_t n = 0, size = q->type->size;
	int r = query_rows(q, 1, &row, &n);

	if (r < 0)
		return r;
	if (n == 0)
		return -ENOENT;
	memcpy(ret, row, size);
	return 0;
}

int query_all(struct query *q, void **ret, size_t *ret_n)
{
	return query_rows(q, SIZE_MAX, (char **)ret, ret_n);
}
