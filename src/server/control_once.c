/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AP-16: a request that is sent again with the same Idempotency-Key has one effect. Remembered in
 * memory for ten minutes, for each API key apart; a restart of the server forgets it.
 */
#include "server/control_priv.h"

#include <sodium.h>

#define WAIT_MS 60000

struct once {
	char key_id[STORE_ID_SIZE];
	char text[132];
	unsigned char digest[32];
	json_t *reply; /* NULL: still at it */
	uint64_t at_ms;
	struct once *next; /* an older one */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct once *first;
	size_t n;
} memory = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

static void forget(struct once **p)
{
	struct once *o = *p;

	*p = o->next;
	json_decref(o->reply);
	free(o);
	memory.n--;
}

/* Drops what is too old, and the oldest ones beyond the limit; never one that is still at it. */
static void forget_old(uint64_t now_ms)
{
	size_t seen = 0;

	for (struct once **p = &memory.first; *p;) {
		bool old = now_ms - (*p)->at_ms >= ONCE_KEPT_MS || seen >= ONCE_MAX;

		seen++;
		if (old && (*p)->reply)
			forget(p);
		else
			p = &(*p)->next;
	}
}

static struct once **find(const char *key_id, const char *text)
{
	struct once **p = &memory.first;

	while (*p && (strcmp((*p)->key_id, key_id) != 0 || strcmp((*p)->text, text) != 0))
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

static int remember(const char *key_id, const char *text, const unsigned char digest[static 32],
		    uint64_t now_ms)
{
	struct once *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	(void)snprintf(o->key_id, sizeof(o->key_id), "%s", key_id);
	(void)snprintf(o->text, sizeof(o->text), "%s", text);
	memcpy(o->digest, digest, sizeof(o->digest));
	o->at_ms = now_ms;
	o->next = memory.first;
	memory.first = o;
	memory.n++;
	return 0;
}

static struct timespec deadline(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_MS / 1000;
	return until;
}

/* With the lock held: the reply of the first one, once there is one. 0: it failed or is
 * forgotten. */
static int wait_for(const char *key_id, const char *text, const unsigned char digest[static 32],
		    json_t **ret)
{
	struct timespec until = deadline();
	struct once *o;

	while ((o = *find(key_id, text))) {
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
	uint64_t now_ms = clock_boot_us() / 1000;
	unsigned char digest[32];
	int r = digest_of(body, digest);

	if (r < 0)
		return r;
	pthread_mutex_lock(&memory.lock);
	forget_old(now_ms);
	r = wait_for(key_id, text, digest, ret);
	if (r == 0)
		r = remember(key_id, text, digest, now_ms);
	pthread_mutex_unlock(&memory.lock);
	return r;
}

void once_done(const char *key_id, const char *text, json_t *reply)
{
	struct once **p;

	pthread_mutex_lock(&memory.lock);
	p = find(key_id, text);
	if (*p && reply)
		(*p)->reply = json_deep_copy(reply);
	else if (*p)
		forget(p);
	pthread_cond_broadcast(&memory.done);
	pthread_mutex_unlock(&memory.lock);
}

void once_stop(void)
{
	while (memory.first)
		forget(&memory.first);
}
