/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contexts of a sandbox as the server knows them. The agent has the interpreters that live;
 * this table has the names that clients may use, so that a context whose interpreter died is made
 * anew by its next cell. It is lost with the server: the next one asks the agent (interp_sync()).
 *
 * All of it is guarded by the sandbox's lock.
 */
#include "server/sandbox/id.h"
#include "server/interp/interp.h"

#include <assert.h>

struct entry {
	char name[WIRE_CONTEXT_SIZE];
	char language[WIRE_LANGUAGE_SIZE];
	char *cwd;
	uint64_t generation; /* another one whenever its interpreter is ended on purpose */
	bool pinned;         /* always listed */
	bool used;           /* counts against the limit */
	bool begun;          /* it has been asked for by a cell */
};

struct interp_table {
	struct entry *entries[INTERP_CONTEXTS_MAX];
	size_t n;
	uint64_t generation; /* the last that was given */
	bool complete;       /* the agent was asked for what a server before this one made */
};

static void entry_free(struct entry *x)
{
	if (x)
		free(x->cwd);
	free(x);
}

/* NULL: no memory, or no room. */
static struct entry *context_append(struct interp_table *t, const char *name, const char *language,
				    const char *cwd)
{
	struct entry *x = calloc(1, sizeof(*x));

	if (!x || t->n >= INTERP_CONTEXTS_MAX || strlen(name) >= sizeof(x->name) ||
	    strlen(language) >= sizeof(x->language) || !(x->cwd = strdup(cwd))) {
		free(x);
		return NULL;
	}
	(void)snprintf(x->name, sizeof(x->name), "%s", name);
	(void)snprintf(x->language, sizeof(x->language), "%s", language);
	x->generation = ++t->generation;
	t->entries[t->n++] = x;
	return x;
}

/* Clients expect these two in every sandbox, whether they have run or not. */
static struct interp_table *table_make(void)
{
	struct interp_table *t = calloc(1, sizeof(*t));
	struct entry *python = t ? context_append(t, "python", "python", INTERP_HOME) : NULL;
	struct entry *javascript = t ? context_append(t, "javascript", "javascript", INTERP_HOME) :
				       NULL;

	if (!python || !javascript) {
		entry_free(python);
		entry_free(javascript);
		free(t);
		return NULL;
	}
	python->pinned = javascript->pinned = true;
	return t;
}

void interp_forget(struct sandbox *b)
{
	struct interp_table *t = b->interp;

	for (size_t i = 0; t && i < t->n; i++)
		entry_free(t->entries[i]);
	free(t);
	b->interp = NULL;
}

/* With the lock held. NULL: no memory. */
static struct interp_table *table_of(struct sandbox *b)
{
	if (!b->interp) {
		b->interp = table_make();
		b->interp_forget = interp_forget;
	}
	return b->interp;
}

static struct entry *context_find(const struct interp_table *t, const char *name)
{
	for (size_t i = 0; t && i < t->n; i++)
		if (strcmp(t->entries[i]->name, name) == 0)
			return t->entries[i];
	return NULL;
}

static size_t count_used(const struct interp_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->entries[i]->used;
	return n;
}

/* For a cell. */
static void copy_out(struct entry *x, struct interp_target *ret)
{
	ret->fresh = !x->begun;
	x->begun = true;
	memcpy(ret->name, x->name, sizeof(ret->name));
	(void)snprintf(ret->cwd, sizeof(ret->cwd), "%s", x->cwd);
	ret->generation = x->generation;
}

/* It is going to have an interpreter: does the sandbox have room for one more? */
static int use(struct sandbox *b, const struct interp_table *t, struct entry *x,
	       struct rpc_error *e)
{
	size_t max = b->server->config.interpreter_contexts;

	if (!x->used && count_used(t) >= max)
		return rpc_fail(e, RPC_RESOURCE_EXHAUSTED,
				"this sandbox has %zu contexts, as many as it may have; "
				"remove one first",
				max);
	x->used = true;
	return 0;
}

int interp_find(struct sandbox *b, const char *name, struct interp_target *ret, struct rpc_error *e)
{
	char language[WIRE_LANGUAGE_SIZE] = "";
	struct interp_table *t;
	struct entry *x;
	int r = 0;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	x = context_find(t, name);
	if (x) {
		r = use(b, t, x, e);
		copy_out(x, ret);
		memcpy(language, x->language, sizeof(language));
	}
	pthread_mutex_unlock(&b->lock);
	if (!x)
		return rpc_fail(e, RPC_NOT_FOUND, "Context %.200s not found", name);
	return r < 0 ? r : interp_language(language, &ret->language, e);
}

static_assert(LANGUAGE_KERNEL_NAME_MAX < WIRE_LANGUAGE_SIZE &&
		      LANGUAGE_KERNEL_NAME_MAX < WIRE_CONTEXT_SIZE,
	      "a language's name fits where its context's is told");

int interp_default(struct sandbox *b, const struct language *l, struct interp_target *ret,
		   struct rpc_error *e)
{
	struct interp_table *t;
	struct entry *x;
	int r = -ENOMEM;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	x = context_find(t, l->name);
	if (t && !x)
		x = context_append(t, l->name, l->name, INTERP_HOME);
	if (x) {
		r = use(b, t, x, e);
		copy_out(x, ret);
	}
	pthread_mutex_unlock(&b->lock);
	ret->language = l;
	return r;
}

int interp_add(struct sandbox *b, const struct language *l, const char *cwd,
	       struct interp_target *ret, struct rpc_error *e)
{
	char name[UUID_SIZE];
	struct interp_table *t;
	struct entry *x;
	int r = -ENOMEM;

	uuid_new(name);
	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	x = t ? context_append(t, name, l->name, cwd) : NULL;
	if (x) {
		r = use(b, t, x, e);
		copy_out(x, ret);
	}
	if (x && r < 0)
		entry_free(t->entries[--t->n]);
	pthread_mutex_unlock(&b->lock);
	ret->language = l;
	return r;
}

void interp_note(struct sandbox *b, const struct wire_context *context, const char *cwd)
{
	struct interp_table *t;
	struct entry *x;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	x = context_find(t, context->name);
	if (t && !x)
		x = context_append(t, context->name, context->language, cwd);
	if (x)
		x->used = true;
	pthread_mutex_unlock(&b->lock);
}

static void context_take_out(struct interp_table *t, const struct entry *x)
{
	size_t i = 0;

	while (i < t->n && t->entries[i] != x)
		i++;
	assert(i < t->n);
	entry_free(t->entries[i]);
	for (t->n--; i < t->n; i++)
		t->entries[i] = t->entries[i + 1];
}

bool interp_end(struct sandbox *b, const char *name, bool forever)
{
	struct interp_table *t;
	struct entry *x;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	x = context_find(t, name);
	if (x) {
		x->generation = ++t->generation;
		x->used = x->used && !forever;
	}
	if (x && forever && !x->pinned)
		context_take_out(t, x);
	pthread_mutex_unlock(&b->lock);
	return x != NULL;
}

enum interp_fate interp_fate(struct sandbox *b, const struct interp_target *t)
{
	enum interp_fate fate = INTERP_SAME;
	const struct entry *x;

	pthread_mutex_lock(&b->lock);
	x = context_find(b->interp, t->name);
	if (!x)
		fate = INTERP_REMOVED;
	else if (x->generation != t->generation)
		fate = INTERP_RESTARTED;
	pthread_mutex_unlock(&b->lock);
	return fate;
}

json_t *interp_list(struct sandbox *b)
{
	json_t *list = json_array();
	const struct interp_table *t;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	for (size_t i = 0; t && i < t->n; i++) {
		const struct entry *x = t->entries[i];

		(void)json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "id", x->name,
							    "language", x->language, "cwd",
							    rpc_text(x->cwd, strlen(x->cwd))));
	}
	pthread_mutex_unlock(&b->lock);
	return list;
}

bool interp_is_complete(struct sandbox *b)
{
	const struct interp_table *t;
	bool complete;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	complete = t && t->complete;
	pthread_mutex_unlock(&b->lock);
	return complete;
}

void interp_set_complete(struct sandbox *b)
{
	struct interp_table *t;

	pthread_mutex_lock(&b->lock);
	t = table_of(b);
	if (t)
		t->complete = true;
	pthread_mutex_unlock(&b->lock);
}
