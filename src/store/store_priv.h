/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share: the connection, and a query as something that is filled in
 * from left to right, stepped through and read from left to right. One query runs at a time:
 * query_open() takes the store's lock and query_close() gives it back.
 *
 * Each file has a table of columns that says what of a row is what in its struct. SQL says
 * {columns} for all of them, and {values} for the parameters that have their names.
 */
#pragma once

#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>

#define STORE_FILE "glovebox.db"
#define STORE_HASH_SIZE 32
#define STORE_CACHE_SIZE 256 /* keys whose answers are kept */
#define STORE_STATEMENTS_MAX 64

/* A key that was found good a moment ago. */
struct cached_key {
	unsigned char hash[STORE_HASH_SIZE];
	struct store_key key;
	uint64_t until_us; /* of the boot clock; 0: empty */
};

/* The thread that empties the log: checkpoint.c. */
struct checkpoint {
	sqlite3 *db; /* its own connection */
	pthread_t thread;
	pthread_mutex_t working; /* held by the thread that is at it */
	/* For what follows. Taken while the store's is held, never the other way round. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool wanted;
	bool stop;
	bool running; /* there is a thread */
	bool ready;
};

struct store {
	int dir_fd;
	struct checkpoint checkpoint;
	/* Its own: a key that is known already does not wait for the database. */
	pthread_mutex_t cache_lock;
	struct cached_key cache[STORE_CACHE_SIZE];
	pthread_mutex_t lock; /* for everything below */
	sqlite3 *db;
	/* Each is prepared once and kept. The address of its text is what it is known by. */
	struct {
		const char *sql;
		sqlite3_stmt *stmt;
	} statements[STORE_STATEMENTS_MAX];
};

#define COLUMNS_MAX 16

enum column_kind {
	COLUMN_NAME,   /* char[] */
	COLUMN_TEXT,   /* char *, or NULL */
	COLUMN_SECRET, /* the same, wiped when it is freed */
	COLUMN_JSON,   /* json_t *, or NULL */
	COLUMN_LAYERS, /* what "layers" is in a json_t *; written, never read */
	COLUMN_NUMBER, /* bool, unsigned, an enum or 64 bits */
	COLUMN_BYTES,  /* unsigned char *, with its size_t behind it; never empty */
};

struct column {
	const char *name;
	enum column_kind kind;
	size_t offset, size; /* in the struct */
};

/* ROW is the struct, which each file defines. */
#define COLUMN(of_kind, member)                                                                    \
	{                                                                                          \
		.name = #member, .kind = COLUMN_##of_kind, .offset = offsetof(ROW, member),        \
		.size = sizeof(((ROW *)0)->member) /* NOLINT(bugprone-sizeof-expression) */        \
	}

struct row_type {
	size_t size;
	const struct column *columns;
	size_t n_columns;
};

#define ROW_TYPE(list)                                                                             \
	{                                                                                          \
		.size = sizeof(ROW), .columns = (list), .n_columns = ARRAY_SIZE(list)              \
	}

struct query {
	struct store *store;
	sqlite3_stmt *stmt;
	int at;  /* the next parameter or column */
	int err; /* the first that went wrong, as a negative errno */
	const struct row_type *type;
	char *texts[COLUMNS_MAX]; /* of what a row has as JSON */
};

/* The negative errno behind an SQLite result. */
int store_errno(sqlite3 *db, int rc);

/*
 * Takes the lock. sql is a constant; type (may be NULL) is what {columns} stands for. What is put
 * into the query must live until query_close(). One that could not be opened remembers why: nothing
 * is done with it, and whatever closes it says so.
 */
struct query query_open(struct store *s, const char *sql, const struct row_type *type);
/*
 * The same, with a row in the parameters that have the names of its columns; a ? behind all of
 * these is the next. Clients decide how large a JSON value is, and all of them wait for the store's
 * lock: it becomes text before the lock is taken, here, and is read after it was given back, by
 * query_one() and query_all().
 */
struct query query_open_row(struct store *s, const char *sql, const struct row_type *type,
			    const void *row);
/* Gives the lock back; returns the first error of the query, or r. */
_must_check_ int query_close(struct query *q, int r);

void query_put_text(struct query *q, const char *text); /* NULL is NULL */
void query_put_int(struct query *q, int64_t number);
void query_put_blob(struct query *q, const void *data, size_t len);

/* 1: there is a row, 0: no more, or a negative errno. */
_must_check_ int query_step(struct query *q);
/* These step and close. The number of rows that were changed. */
_must_check_ int query_run(struct query *q);
/* 0, or `none` when no row was changed. */
_must_check_ int query_change(struct query *q, int none);
/* The one number that it answers. */
_must_check_ int query_number(struct query *q, size_t *ret);
/* The first row; -ENOENT. */
_must_check_ int query_one(struct query *q, void *ret);
/* All of them, in an array. */
_must_check_ int query_all(struct query *q, void **ret, size_t *ret_n);

/* Between query_step() and query_close(). The row must have no JSON in it. */
void query_get_row(struct query *q, void *ret);
void query_get_blob(struct query *q, void *ret, size_t len); /* -EUCLEAN when it has another size */

_must_check_ int store_json_text(const json_t *json, char **ret); /* NULL is NULL */
/* Frees what the row points to, and empties it. */
void row_done(const struct row_type *type, void *row);

/* From now on a thread writes writer's log into the database; c->db is a second connection to
 * it. */
_must_check_ int checkpoint_open(struct checkpoint *c, sqlite3 *writer);
void checkpoint_close(struct checkpoint *c);

/* What there is too much of. */
struct surplus {
	/* The keys, each with how many it has; the one with the fewest first. */
	const char *count_sql;
	const char *remove_sql; /* of this key the oldest, so many */
};

/* Keeps so many in all. What goes is of those keys that have the most: nobody pushes out what is
 * another's. */
_must_check_ int store_prune(struct store *s, const struct surplus *what, size_t keep);

/* Gives unused pages at the end of the file back, a few at a time. */
_must_check_ int store_shrink(struct store *s);

int64_t store_now_ms(void);
