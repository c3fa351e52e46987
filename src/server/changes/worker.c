/* SPDX-License-Identifier: Apache-2.0 */
/* One thread for everybody's housekeeping, all of it soon done: layers to release, samples of usage, forgetting what is
 * old. What is done for one sandbox can take long, and is in changes/slow.c. */
#include "server/control/control_priv.h"
#include "server/envd/envd.h"

#include <pthread.h>

#define TICK_MS 250
#define PRUNE_EVERY_MS 5000
#define JOBS_MAX 65536 /* far beyond the number of sandboxes */

struct job {
	struct sandbox_config layers; /* to be released */
	struct job *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct job *first, **last;
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
	struct job *j = calloc(1, sizeof(*j));
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

static struct job *take_locked(void)
{
	struct job *j = worker.first;

	if (j) {
		worker.first = j->next;
		if (!worker.first)
			worker.last = &worker.first;
		worker.n--;
	}
	return j;
}

static void prune(struct server *s)
{
	int r = store_sandbox_prune(s->store, s->config.limits_ended_kept);

	if (r == 0)
		r = store_event_prune(s->store, s->config.limits_events_kept);
	if (r < 0)
		server_log(s, "error", "prune", json_pack("{s:s}", "error", strerror(-r)));
}

/* Waits for a job, at most one tick. NULL: the tick is over, or it is time to stop. */
static struct job *wait_for_job(void)
{
	struct timespec until;
	struct job *j;

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

static bool stopped(void)
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

static void *run(void *arg)
{
	struct server *s = arg;
	uint64_t next_tick = 0, next_prune = 0;

	while (!stopped()) {
		struct job *j = wait_for_job();
		uint64_t now = clock_boot_us() / 1000;

		if (j)
			layers_release(s, &j->layers);
		free(j);
		if (now >= next_tick) {
			next_tick = now + TICK_MS;
			layers_tick(s);
			orphans_tick(s);
			metrics_tick(s);
			envd_watchers_tick();
		}
		if (now >= next_prune && take_prune()) {
			next_prune = now + PRUNE_EVERY_MS;
			prune(s);
		}
	}
	return NULL;
}

int worker_start(struct server *s)
{
	int r;

	worker_prune();
	r = pthread_create(&worker.thread, NULL, run, s);
	worker.runs = r == 0;
	return r ? -r : slow_start();
}

void worker_stop(void)
{
	struct job *j;

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
	metrics_stop();
	layers_stop();
	orphans_stop();
	envd_watchers_stop();
}
