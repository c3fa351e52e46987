/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that nobody waits for.
 *
 * One thread does everybody's housekeeping, all of it soon done: layers to release, forgetting what
 * is old, and the chores of other parts.
 *
 * Work for one sandbox can take minutes: it waits for another change of the sandbox, for its files
 * to be copied, for egress. A few threads do it. A key has one of them at most, and the keys take
 * turns, so that one with much to do, or with something that takes long, keeps nobody else waiting.
 */
#include "server/changes/changes.h"

#define TICK_MS 250
#define PRUNE_EVERY_MS 5000
#define JOBS_MAX 65536 /* far beyond the number of sandboxes */
#define THREADS 4
#define OF_KEY_MAX 32768 /* far beyond the number of sandboxes */

/* --- for one sandbox, in turn ----------------------------------------------------------------- */

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
	struct turn *first; /* the one that has waited longest comes first */
	bool stop;
} slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void task_free(struct task *t)
{
	sandbox_put(t->sandbox);
	free(t);
}

static void turn_append(struct turn *turn)
{
	struct turn **last = &slow.first;

	while (*last)
		last = &(*last)->next;
	turn->next = NULL;
	*last = turn;
}

static void turn_take_out(struct turn *turn)
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
	turn_append(turn);
	return turn;
}

static bool task_add(struct task *t)
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
	added = task_add(t);
	pthread_mutex_unlock(&slow.lock);
	if (!added)
		task_free(t);
}

static struct task *turn_pop(struct turn *turn)
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
	turn_take_out(turn);
	if (turn->first)
		turn_append(turn);
	else
		free(turn);
}

static void *slow_thread(void *arg)
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
		t = turn_pop(turn);
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

static int slow_start(void)
{
	for (; slow.n_threads < THREADS; slow.n_threads++) {
		int r = pthread_create(&slow.threads[slow.n_threads], NULL, slow_thread, NULL);

		if (r != 0)
			return -r;
	}
	return 0;
}

static void slow_stop(void)
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
			task_free(turn_pop(turn));
		turn_take_out(turn);
		free(turn);
	}
}

/* --- everybody's housekeeping ----------------------------------------------------------------- */

struct layers_job {
	struct sandbox_config layers; /* to be released */
	struct layers_job *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	const struct chore *chores;
	struct layers_job *first, **last;
	size_t n;
	bool prune;
	bool stop;
	bool runs;
} worker = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.last = &worker.first,
};

void worker_add_layers(const struct sandbox_config *c)
{
	struct layers_job *j = calloc(1, sizeof(*j));
	bool added = false;

	if (!j)
		return;
	j->layers = *c;
	pthread_mutex_lock(&worker.lock);
	if (worker.n < JOBS_MAX && !worker.stop) {
		*worker.last = j;
		worker.last = &j->next;
		worker.n++;
		added = true;
		pthread_cond_signal(&worker.wake);
	}
	pthread_mutex_unlock(&worker.lock);
	if (!added)
		free(j);
}

void worker_prune(void)
{
	pthread_mutex_lock(&worker.lock);
	worker.prune = true;
	pthread_mutex_unlock(&worker.lock);
}

static struct layers_job *take_locked(void)
{
	struct layers_job *j = worker.first;

	if (j) {
		worker.first = j->next;
		if (!worker.first)
			worker.last = &worker.first;
		worker.n--;
	}
	return j;
}

static void worker_prune_now(struct server *s)
{
	int r = store_sandbox_prune(s->store, s->config.limits_ended_kept);

	if (r == 0)
		r = store_event_prune(s->store, s->config.limits_events_kept);
	if (r < 0)
		server_log(s, "error", "prune", json_pack("{s:s}", "error", strerror(-r)));
}

/* Waits for a job, at most one tick. NULL: the tick is over, or it is time to stop. */
static struct layers_job *wait_for_job(void)
{
	struct timespec until;
	struct layers_job *j;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&worker.lock);
	if (!worker.first && !worker.stop)
		(void)pthread_cond_clockwait(&worker.wake, &worker.lock, CLOCK_MONOTONIC, &until);
	j = take_locked();
	pthread_mutex_unlock(&worker.lock);
	return j;
}

static bool worker_stopped(void)
{
	bool stop;

	pthread_mutex_lock(&worker.lock);
	stop = worker.stop;
	pthread_mutex_unlock(&worker.lock);
	return stop;
}

static bool take_prune(void)
{
	bool wanted;

	pthread_mutex_lock(&worker.lock);
	wanted = worker.prune;
	worker.prune = false;
	pthread_mutex_unlock(&worker.lock);
	return wanted;
}

static void *worker_thread(void *arg)
{
	struct server *s = arg;
	uint64_t next_tick = 0, next_prune = 0;

	while (!worker_stopped()) {
		struct layers_job *j = wait_for_job();
		uint64_t now = clock_boot_us() / 1000;

		if (j)
			layers_release(s, &j->layers);
		free(j);
		if (now >= next_tick) {
			next_tick = now + TICK_MS;
			for (const struct chore *c = worker.chores; c->tick; c++)
				c->tick(s);
		}
		if (now >= next_prune && take_prune()) {
			next_prune = now + PRUNE_EVERY_MS;
			worker_prune_now(s);
		}
	}
	return NULL;
}

int worker_start(struct server *s, const struct chore *chores)
{
	int r;

	worker.chores = chores;
	worker_prune();
	r = pthread_create(&worker.thread, NULL, worker_thread, s);
	worker.runs = r == 0;
	return r ? -r : slow_start();
}

void worker_stop(void)
{
	struct layers_job *j;

	slow_stop();
	if (!worker.runs)
		return;
	pthread_mutex_lock(&worker.lock);
	worker.stop = true;
	pthread_cond_signal(&worker.wake);
	pthread_mutex_unlock(&worker.lock);
	(void)pthread_join(worker.thread, NULL);
	worker.runs = false;
	while ((j = take_locked()))
		free(j);
	for (const struct chore *c = worker.chores; c->tick; c++)
		c->stop();
}
