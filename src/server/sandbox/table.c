/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sandboxes that are running or paused, by id, and by key so that nobody's list costs a look at
 * other people's. The table has a reference to each.
 */
#include "server/sandbox/sandbox.h"

#include "server/server.h"

#define BUCKETS 4096 /* a power of two, about the number of sandboxes at once */

/* Those of one key. Stays when it is empty: a key's next sandbox comes soon, and keys are few. */
struct key_list {
	char key_id[STORE_ID_SIZE];
	struct sandbox *first;
	size_t n;
	size_t results; /* interp/event.c; atomic */
	struct key_list *next;
};

struct table {
	pthread_rwlock_t lock;
	/* For trying all tokens; taken before the other, never waited for with it. */
	pthread_mutex_t search_lock;
	size_t max;
	size_t n;
	struct sandbox *by_id[BUCKETS];
	struct sandbox *by_token[BUCKETS];
	struct key_list *keys;
	struct isolation isolation; /* of the newest box */
	bool has_isolation;
};

static size_t table_hash(const char *id)
{
	uint32_t h = 2166136261u; /* FNV-1a: ids are random, and made by us */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h % BUCKETS;
}

static struct sandbox **token_bucket(struct table *t, const unsigned char *digest)
{
	uint32_t h;

	memcpy(&h, digest, sizeof(h));
	return &t->by_token[h % BUCKETS];
}

/* Readers that overlap must not keep a writer out: one of those is the thread that hears what the
 * warden says. */
static void init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
}

int table_new(size_t max, struct table **ret)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->max = max;
	init_lock(&t->lock);
	pthread_mutex_init(&t->search_lock, NULL);
	*ret = t;
	return 0;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (t->by_id[i])
			(void)table_remove(t->by_id[i]);
	while (t->keys) {
		struct key_list *next = t->keys->next;

		free(t->keys);
		t->keys = next;
	}
	pthread_mutex_destroy(&t->search_lock);
	pthread_rwlock_destroy(&t->lock);
	free(t);
}

static struct sandbox *table_find(const struct table *t, const char *id)
{
	for (struct sandbox *b = t->by_id[table_hash(id)]; b; b = b->next)
		if (strcmp(b->info.id, id) == 0)
			return b;
	return NULL;
}

static struct key_list *table_find_key(const struct table *t, const char *key_id)
{
	for (struct key_list *k = t->keys; k; k = k->next)
		if (strcmp(k->key_id, key_id) == 0)
			return k;
	return NULL;
}

static struct key_list *find_or_add_key(struct table *t, const char *key_id)
{
	struct key_list *k = table_find_key(t, key_id);

	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	memcpy(k->key_id, key_id, sizeof(k->key_id));
	k->next = t->keys;
	t->keys = k;
	return k;
}

static void add_token(struct table *t, struct sandbox *b)
{
	struct sandbox **bucket = token_bucket(t, b->token_digest);

	b->token_next = *bucket;
	*bucket = b;
}

static void take_out_token(struct table *t, struct sandbox *b)
{
	struct sandbox **p = token_bucket(t, b->token_digest);

	while (*p != b)
		p = &(*p)->token_next;
	*p = b->token_next;
	b->token_next = NULL;
}

/* With the lock held for writing. */
static int table_insert(struct table *t, struct sandbox *b, size_t max_of_key)
{
	struct key_list *k;
	size_t i = table_hash(b->info.id);

	if (table_find(t, b->info.id))
		return -EEXIST;
	k = find_or_add_key(t, b->info.key_id);
	if (!k)
		return -ENOMEM;
	if (max_of_key && (t->n >= t->max || k->n >= max_of_key))
		return -EUSERS;
	b->key_results = &k->results;
	b->next = t->by_id[i];
	t->by_id[i] = b;
	b->key_next = k->first;
	if (k->first)
		k->first->key_prev = b;
	k->first = b;
	if (b->info.envd_token)
		add_token(t, b);
	k->n++;
	t->n++;
	b->listed = true;
	return 0;
}

int sandbox_add(struct server *s, struct store_sandbox *info, const struct warden_limits *limits,
		size_t max_of_key, struct sandbox **ret)
{
	struct sandbox *b = sandbox_new(s, info, limits);
	int r;

	if (!b)
		return -ENOMEM;
	sandbox_ref(b);              /* the table's; the first one is the caller's */
	b->counted = max_of_key > 0; /* a new one: all counters are zero */
	if (b->info.envd_token)
		token_digest(b->info.envd_token, b->token_digest);
	pthread_rwlock_wrlock(&s->table->lock);
	r = table_insert(s->table, b, max_of_key);
	pthread_rwlock_unlock(&s->table->lock);
	if (r < 0) {
		sandbox_put(b);
		sandbox_put(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* With the lock held for writing. */
static void table_take_out(struct table *t, struct sandbox *b)
{
	struct key_list *k = table_find_key(t, b->info.key_id);
	struct sandbox **p = &t->by_id[table_hash(b->info.id)];

	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	if (b->key_prev)
		b->key_prev->key_next = b->key_next;
	else if (k)
		k->first = b->key_next;
	if (b->key_next)
		b->key_next->key_prev = b->key_prev;
	b->next = b->key_next = b->key_prev = NULL;
	if (b->info.envd_token)
		take_out_token(t, b);
	b->listed = false;
	if (k) /* always: a list outlives its sandboxes */
		k->n--;
	t->n--;
}

bool table_remove(struct sandbox *b)
{
	struct table *t = b->server->table;
	bool listed;

	pthread_rwlock_wrlock(&t->lock);
	listed = b->listed;
	if (listed)
		table_take_out(t, b);
	pthread_rwlock_unlock(&t->lock);
	if (listed)
		sandbox_put(b);
	return listed;
}

void sandbox_remove(struct sandbox *b)
{
	(void)table_remove(b);
}

struct sandbox *sandbox_get(struct server *s, const char *id)
{
	struct sandbox *b;

	pthread_rwlock_rdlock(&s->table->lock);
	b = table_find(s->table, id);
	if (b)
		sandbox_ref(b);
	pthread_rwlock_unlock(&s->table->lock);
	return b;
}

struct sandbox *sandbox_by_token(struct server *s, const char *token)
{
	unsigned char digest[TOKEN_DIGEST_SIZE];
	struct sandbox *b;

	token_digest(token, digest);
	pthread_rwlock_rdlock(&s->table->lock);
	b = *token_bucket(s->table, digest);
	while (b && !token_digest_equal(b->token_digest, digest))
		b = b->token_next;
	if (b)
		sandbox_ref(b);
	pthread_rwlock_unlock(&s->table->lock);
	return b;
}

/*
 * The next one with a token: a reference, in exchange for that to b, the one before it (NULL:
 * none). The lock is not held between two. If b has gone meanwhile, its bucket is begun anew.
 */
static struct sandbox *next_secured(struct table *t, size_t *bucket, struct sandbox *b)
{
	struct sandbox *next;

	pthread_rwlock_rdlock(&t->lock);
	next = b && b->listed ? b->next : t->by_id[*bucket];
	while (next ? !next->info.envd_token : *bucket + 1 < BUCKETS)
		next = next ? next->next : t->by_id[++*bucket];
	if (next)
		sandbox_ref(next);
	pthread_rwlock_unlock(&t->lock);
	sandbox_put(b);
	return next;
}

struct sandbox *sandbox_by_signature(struct server *s,
				     bool (*matches)(const char *token, void *arg), void *arg)
{
	struct sandbox *b = NULL;
	size_t bucket = 0;

	pthread_mutex_lock(&s->table->search_lock);
	do
		b = next_secured(s->table, &bucket, b);
	while (b && !matches(b->info.envd_token, arg));
	pthread_mutex_unlock(&s->table->search_lock);
	return b;
}

static int newest_first(const void *a, const void *b)
{
	const struct sandbox *x = *(struct sandbox *const *)a, *y = *(struct sandbox *const *)b;

	if (x->info.started_ms != y->info.started_ms)
		return x->info.started_ms < y->info.started_ms ? 1 : -1;
	return strcmp(y->info.id, x->info.id);
}

/* With the lock held. list has space for all. */
static size_t table_collect(const struct table *t, const char *key_id, struct sandbox **list)
{
	size_t n = 0;

	for (const struct key_list *k = t->keys; k; k = k->next) {
		if (key_id && strcmp(k->key_id, key_id) != 0)
			continue;
		for (struct sandbox *b = k->first; b; b = b->key_next) {
			sandbox_ref(b);
			list[n++] = b;
		}
	}
	return n;
}

int sandbox_list(struct server *s, const char *key_id, struct sandbox ***ret, size_t *ret_n)
{
	struct table *t = s->table;
	const struct key_list *k;
	struct sandbox **list;
	size_t n;

	pthread_rwlock_rdlock(&t->lock);
	k = key_id ? table_find_key(t, key_id) : NULL;
	n = key_id ? (k ? k->n : 0) : t->n;
	list = calloc(n ? n : 1, sizeof(struct sandbox *));
	if (list)
		n = table_collect(t, key_id, list);
	pthread_rwlock_unlock(&t->lock);
	if (!list)
		return -ENOMEM;
	qsort(list, n, sizeof(struct sandbox *), newest_first);
	*ret = list;
	*ret_n = n;
	return 0;
}

void sandbox_list_free(struct sandbox **list, size_t n)
{
	for (size_t i = 0; list && i < n; i++)
		sandbox_put(list[i]);
	free(list);
}

size_t sandbox_count(struct server *s, const char *key_id)
{
	const struct key_list *k;
	size_t n;

	pthread_rwlock_rdlock(&s->table->lock);
	k = key_id ? table_find_key(s->table, key_id) : NULL;
	n = key_id ? (k ? k->n : 0) : s->table->n;
	pthread_rwlock_unlock(&s->table->lock);
	return n;
}

void table_note_isolation(struct table *t, const struct isolation *isolation)
{
	pthread_rwlock_wrlock(&t->lock);
	t->isolation = *isolation;
	t->has_isolation = true;
	pthread_rwlock_unlock(&t->lock);
}

bool sandbox_isolation(struct server *s, struct isolation *ret)
{
	bool has;

	pthread_rwlock_rdlock(&s->table->lock);
	has = s->table->has_isolation;
	*ret = s->table->isolation;
	pthread_rwlock_unlock(&s->table->lock);
	return has;
}
