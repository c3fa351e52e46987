/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgetting what is too much. The limit is for all keys together, but it is not first come, first served: below the
 * mean everybody keeps all he has, and what is over is taken from those who have the most.
 */
#include "store/store_priv.h"

#define AT_ONCE 100 /* so that nobody waits long for the lock */

struct holding {
	char key_id[STORE_ID_SIZE];
	size_t n;
};

static int read_holdings(struct store *s, const struct surplus *what, struct holding **rows,
			 size_t *n)
{
	size_t size = 0;
	struct query q;
	int r = query_open(s, what->count, what->count_sql, &q);

	if (r < 0)
		return r;
	while ((r = query_step(&q)) > 0) {
		r = STORE_GROW(*rows, *n, size);
		if (r < 0)
			break;
		query_get_name(&q, (*rows)[*n].key_id, sizeof((*rows)[*n].key_id));
		(*rows)[(*n)++].n = (size_t)query_get_int(&q);
	}
	return query_close(&q, r);
}

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
		struct query q;
		int r = query_open(s, what->remove, what->remove_sql, &q);

		if (r < 0)
			return r;
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
	int r = read_holdings(s, what, &rows, &n);

	if (r < 0)
		return r;
	most = most_of_key(rows, n, keep);
	for (size_t i = 0; i < n && r == 0; i++)
		if (rows[i].n > most)
			r = remove_oldest(s, what, rows[i].key_id, rows[i].n - most);
	return r < 0 ? r : store_shrink(s);
}
