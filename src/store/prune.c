/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgetting what is too much. The limit is for all keys together, but it is not first come, first
 * served: below the mean a key keeps all that it has, and what is over is taken from the keys that
 * have the most.
 */
#include "store/store_priv.h"

#define AT_ONCE 100 /* so that nobody waits long for the lock */

struct holding {
	char key_id[STORE_ID_SIZE];
	size_t n;
};

#define ROW struct holding

static const struct column columns[] = { COLUMN(NAME, key_id), COLUMN(NUMBER, n) };
static const struct row_type holding_row = ROW_TYPE(columns);

/* How many a key can keep at most: what those leave that have less, divided by the others. */
static size_t most_of_key(const struct holding *rows, size_t n, size_t keep)
{
	for (size_t i = 0; i < n; i++) {
		size_t mean = keep / (n - i);

		if (rows[i].n > mean)
			return mean;
		keep -= rows[i].n;
	}
	return SIZE_MAX;
}

static int remove_oldest(struct store *s, const struct surplus *what, const char *key_id, size_t n)
{
	while (n > 0) {
		struct query q = query_open(s, what->remove_sql, NULL);
		int r;

		query_put_text(&q, key_id);
		query_put_int(&q, (int64_t)MIN(n, (size_t)AT_ONCE));
		r = query_run(&q);
		if (r <= 0)
			return r;
		n -= MIN(n, (size_t)r);
	}
	return 0;
}

int store_prune(struct store *s, const struct surplus *what, size_t keep)
{
	_cleanup_(freep) struct holding *rows = NULL;
	size_t n = 0, most;
	struct query q = query_open(s, what->count_sql, &holding_row);
	int r = query_all(&q, (void **)&rows, &n);

	if (r < 0)
		return r;
	most = most_of_key(rows, n, keep);
	for (size_t i = 0; i < n && r == 0; i++)
		if (rows[i].n > most)
			r = remove_oldest(s, what, rows[i].key_id, rows[i].n - most);
	return r < 0 ? r : store_shrink(s);
}
