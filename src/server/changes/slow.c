/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work for sandboxes that nobody waits for and that can take minutes: it waits for whoever changes the sandbox, for its
 * files to be copied, for egress. A few threads do it. A key has one of them at most, and the keys take turns, so
 * that one who has much to do, or something that takes long, keeps nobody else waiting.
 */
#include "server/control/control_priv.h"

#define THREADS 4
#define OF_KEY_MAX 32768 /* far beyond the number of sandboxes */

struct task {
	struct sandbox *sandbox;
	void (*run)(struct sandbox *b);
	struct task *next;
};

/* A key that has something to do. */
struct turn {
	char key_id[STORE_ID_SIZE];
	struct task *first, **last;
	size_t n;
	bool busy; /* a thread is at one that is no longer in the list */
	struct turn *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t threads[THREADS];
	size_t n_threads;
	struct turn *first; /* who has waited longest comes first */
	bool stop;
} slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void task_free(struct task *t)
{
	sandbox_put(t->sandbox);
	free(t);
}

static void append(struct turn *turn)
{
	struct turn **last = &slow.first;

	while (*last)
		last = &(*last)->next;
	turn->next = NULL;
	*last = turn;
}

static void take_out(struct turn *turn)
{
	struct turn **p = &slow.first;

	while (*p != turn)
		p = &(*p)->next;
	*p = turn->next;
}

static struct turn *turn_of(const char *key_id)
{
	struct turn *turn = slow.first;

	while (turn && strcmp(turn->key_id, key_id) != 0)
		turn = turn->next;
	if (turn)
		return turn;
	turn = calloc(1, sizeof(*turn));
	if (!turn)
		return NULL;
	(void)snprintf(turn->key_id, sizeof(turn->key_id), "%s", key_id);
	turn->last = &turn->first;
	append(turn);
	return turn;
}

static bool add(struct task *t)
{
	struct turn *turn = slow.stop ? NULL : turn_of(t->sandbox->info.key_id);

	if (!turn || turn->n == OF_KEY_MAX)
		return false;
	*turn->last = t;
	turn->last = &t->next;
	turn->n++;
	pthread_cond_signal(&slow.wake);
	return true;
}

void worker_add(struct sandbox *b, void (*run)(struct sandbox *b))
{
	struct task *t = calloc(1, sizeof(*t));
	bool added;

	if (!t)
		return;
	t->sandbox = b;
	t->run = run;
	sandbox_ref(b);
	pthread_mutex_lock(&slow.lock);
	added = add(t);
	pthread_mutex_unlock(&slow.lock);
	if (!added)
		task_free(t);
}

static struct task *pop(struct turn *turn)
{
	struct task *t = turn->first;

	turn->first = t->next;
	if (!turn->first)
		turn->last = &turn->first;
	turn->n--;
	return t;
}

/* The key that comes next; NULL: none that has no thread yet. */
static struct turn *next_turn(void)
{
	struct turn *turn = slow.first;

	while (turn && turn->busy)
		turn = turn->next;
	return turn;
}

/* Its next one comes after everybody else's. */
static void end_turn(struct turn *turn)
{
	turn->busy = false;
	take_out(turn);
	if (turn->first)
		append(turn);
	else
		free(turn);
}

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&slow.lock);
	while (!slow.stop) {
		struct turn *turn = next_turn();
		struct task *t;

		if (!turn) {
			(void)pthread_cond_wait(&slow.wake, &slow.lock);
			continue;
		}
		t = pop(turn);
		turn->busy = true;
		pthread_mutex_unlock(&slow.lock);
		t->run(t->sandbox);
		task_free(t);
		pthread_mutex_lock(&slow.lock);
		end_turn(turn);
	}
	pthread_mutex_unlock(&slow.lock);
	return NULL;
}

int slow_start(void)
{
	for (; slow.n_threads < THREADS; slow.n_threads++) {
		int r = pthread_create(&slow.threads[slow.n_threads], NULL, work, NULL);

		if (r != 0)
			return -r;
	}
	return 0;
}

void slow_stop(void)
{
	pthread_mutex_lock(&slow.lock);
	slow.stop = true;
	pthread_cond_broadcast(&slow.wake);
	pthread_mutex_unlock(&slow.lock);
	while (slow.n_threads > 0)
		(void)pthread_join(slow.threads[--slow.n_threads], NULL);
	while (slow.first) {
		struct turn *turn = slow.first;

		while (turn->first)
			task_free(pop(turn));
		take_out(turn);
		free(turn);
	}
}
