/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AP-16: a request that is sent again with the same Idempotency-Key has one effect. Remembered in
 * memory for ten minutes, for each API key apart; a restart of the server forgets it.
 */
#include "server/control/control_priv.h"

#include <sodium.h>

#define WAIT_MS 60000

struct once {
	char text[132];
	unsigned char digest[32];
	json_t *reply; /* NULL: still at it */
	uint64_t at_ms;
	struct once *next; /* an older one */
};

/* What one key has. */
struct holder {
	char key_id[STORE_ID_SIZE];
	struct once *first;
	size_t n;
	struct holder *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct holder *first;
	size_t n; /* of all */
} memory = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

static struct holder *holder_of(const char *key_id)
{
	struct holder *h = memory.first;

	while (h && strcmp(h->key_id, key_id) != 0)
		h = h->next;
	return h;
}

static struct holder *holder_new(const char *key_id)
{
	struct holder *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	(void)snprintf(h->key_id, sizeof(h->key_id), "%s", key_id);
	h->next = memory.first;
	memory.first = h;
	return h;
}

static void once_forget(struct holder *h, struct once **p)
{
	struct once *o = *p;

	*p = o->next;
	json_decref(o->reply);
	free(o);
	h->n--;
	memory.n--;
}

/* Never one that is still at it. */
static void forget_old_of(struct holder *h, uint64_t now_ms)
{
	for (struct once **p = &h->first; *p;) {
		if ((*p)->reply && (*p)->at_ms + ONCE_KEPT_MS <= now_ms)
			once_forget(h, p);
		else
			p = &(*p)->next;
	}
}

static bool forget_oldest(struct holder *h)
{
	struct once **oldest = NULL;

	if (!h)
		return false;
	for (struct once **p = &h->first; *p; p = &(*p)->next)
		if ((*p)->reply)
			oldest = p;
	if (oldest)
		once_forget(h, oldest);
	return oldest != NULL;
}

static struct holder *with_most(void)
{
	struct holder *most = memory.first;

	for (struct holder *h = memory.first; h; h = h->next)
		if (h->n > most->n)
			most = h;
	return most;
}

static void drop_empty(void)
{
	for (struct holder **p = &memory.first; *p;) {
		struct holder *h = *p;

		if (h->n > 0) {
			p = &h->next;
			continue;
		}
		*p = h->next;
		free(h);
	}
}

/* Drops what is too old, and beyond the limit the oldest ones of the key that has the most. */
static void forget_old(uint64_t now_ms)
{
	for (struct holder *h = memory.first; h; h = h->next)
		forget_old_of(h, now_ms);
	while (memory.n >= ONCE_MAX && forget_oldest(with_most()))
		;
	drop_empty();
}

static struct once **once_find(struct holder *h, const char *text)
{
	struct once **p = &h->first;

	while (*p && strcmp((*p)->text, text) != 0)
		p = &(*p)->next;
	return p;
}

static int digest_of(const json_t *body, unsigned char ret[static 32])
{
	_cleanup_(freep) char *text =
		json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	if (!text)
		return -ENOMEM;
	(void)crypto_generichash(ret, 32, (const unsigned char *)text, strlen(text), NULL, 0);
	return 0;
}

static int once_remember(const char *key_id, const char *text,
			 const unsigned char digest[static 32], uint64_t now_ms)
{
	struct holder *h = holder_of(key_id);
	struct once *o;

	if (!h)
		h = holder_new(key_id);
	o = h ? calloc(1, sizeof(*o)) : NULL;
	if (!o)
		return -ENOMEM;
	(void)snprintf(o->text, sizeof(o->text), "%s", text);
	memcpy(o->digest, digest, sizeof(o->digest));
	o->at_ms = now_ms;
	o->next = h->first;
	h->first = o;
	h->n++;
	memory.n++;
	return 0;
}

static struct timespec once_deadline(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_MS / 1000;
	return until;
}

/* With the lock held: the reply of the first one, once there is one. 0: it failed or is
 * forgotten. */
static int once_wait(const char *key_id, const char *text, const unsigned char digest[static 32],
		     json_t **ret)
{
	struct timespec until = once_deadline();
	struct holder *h;
	struct once *o;

	while ((h = holder_of(key_id)) && (o = *once_find(h, text))) {
		if (memcmp(o->digest, digest, sizeof(o->digest)) != 0)
			return -EBADMSG;
		if (o->reply) {
			*ret = json_deep_copy(o->reply);
			return 1;
		}
		if (pthread_cond_clockwait(&memory.done, &memory.lock, CLOCK_MONOTONIC, &until) ==
		    ETIMEDOUT)
			return -EBUSY;
	}
	return 0;
}

int once_begin(const char *key_id, const char *text, const json_t *body, json_t **ret)
{
	unsigned char digest[32];
	int r = digest_of(body, digest);
	uint64_t now_ms;

	if (r < 0)
		return r;
	pthread_mutex_lock(&memory.lock);
	now_ms = clock_boot_us() / 1000;
	forget_old(now_ms);
	r = once_wait(key_id, text, digest, ret);
	if (r == 0)
		r = once_remember(key_id, text, digest, now_ms);
	pthread_mutex_unlock(&memory.lock);
	return r;
}

void once_done(const char *key_id, const char *text, json_t *reply)
{
	struct holder *h;
	struct once **p;

	pthread_mutex_lock(&memory.lock);
	h = holder_of(key_id);
	p = h ? once_find(h, text) : NULL;
	if (p && *p && reply)
		(*p)->reply = json_deep_copy(reply);
	else if (p && *p)
		once_forget(h, p);
	pthread_cond_broadcast(&memory.done);
	pthread_mutex_unlock(&memory.lock);
}

void once_stop(void)
{
	for (struct holder *h = memory.first; h; h = h->next)
		while (h->first)
			once_forget(h, &h->first);
	drop_empty();
}
