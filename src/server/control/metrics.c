/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes use. The worker's thread goes round all running ones every five seconds, a few at
 * each tick; a request about one whose newest sample is older gets a new one. The history is a
 * ring in memory that grows as it fills.
 */
#include "server/control/control_priv.h"

#define SAMPLE_EVERY_MS 5000
#define SAMPLES_MAX 720 /* an hour */
#define SAMPLES_FIRST 12
#define SAMPLES_PER_TICK 20 /* what a tick may cost, however many sandboxes there are */
#define MANY_MAX 100

struct sample {
	int64_t ms;
	float cpu_percent; /* of all its CPUs */
	uint64_t memory_used;
	uint64_t memory_cache;
	uint64_t disk_used;
};

/* sandbox->metrics: a ring of samples, guarded by sandbox->lock. One block, so that anybody can
 * free it. */
struct metrics {
	uint64_t last_cpu_us;
	uint64_t last_ms; /* of the boot clock */
	size_t n, size, first;
	struct sample ring[];
};

/* Space for one more: at the end while it can grow, then in the oldest one's place. With the lock
 * held. */
static struct sample *ring_next(struct sandbox *b)
{
	struct metrics *m = b->metrics;

	if (!m || (m->n == m->size && m->size < SAMPLES_MAX)) {
		size_t size = m ? MIN(m->size * 2, (size_t)SAMPLES_MAX) : SAMPLES_FIRST;
		struct metrics *grown = realloc(m, sizeof(*m) + size * sizeof(m->ring[0]));

		if (!grown)
			return NULL;
		if (!m)
			*grown = (struct metrics){ 0 };
		grown->size = size;
		b->metrics = m = grown;
	}
	if (m->n < m->size)
		return &m->ring[m->n++];
	m->first = (m->first + 1) % m->size;
	return &m->ring[(m->first + m->size - 1) % m->size];
}

static const struct sample *ring_at(const struct metrics *m, size_t i)
{
	return &m->ring[(m->first + i) % m->n];
}

/* The clock on the wall is for people: somebody may set it while we count. */
static void add_sample(struct sandbox *b, const struct warden_usage *u)
{
	uint64_t now = clock_boot_us() / 1000;
	int64_t wall = clock_wall_ms();
	int64_t passed = b->metrics ? (int64_t)(now - b->metrics->last_ms) :
				      wall - b->info.started_ms;
	struct sample *s = ring_next(b);
	struct metrics *m = b->metrics;
	double cpu_us;

	if (!s)
		return;
	/* A box that was made anew begins to count anew. */
	cpu_us = (double)(u->cpu_us >= m->last_cpu_us ? u->cpu_us - m->last_cpu_us : u->cpu_us);
	*s = (struct sample){
		.ms = wall,
		/* The files it wrote are memory too, but they are counted as disk. */
		.memory_used =
			u->memory_now - MIN(u->memory_now, MIN(u->memory_shmem, u->disk_used)),
		.memory_cache = u->memory_cache,
		.disk_used = u->disk_used,
	};
	if (passed > 0 && b->limits.cpu_milli)
		s->cpu_percent = (float)(cpu_us / (double)passed * 100.0 / b->limits.cpu_milli);
	m->last_cpu_us = u->cpu_us;
	m->last_ms = now;
}

static void take_sample(struct sandbox *b)
{
	struct warden_usage usage;

	if (sandbox_usage(b, &usage) < 0)
		return;
	pthread_mutex_lock(&b->lock);
	add_sample(b, &usage);
	pthread_mutex_unlock(&b->lock);
}

static bool is_due(struct sandbox *b)
{
	bool due;

	pthread_mutex_lock(&b->lock);
	due = b->info.state == STORE_RUNNING && b->control_fd >= 0 &&
	      (!b->metrics || clock_boot_us() / 1000 - b->metrics->last_ms >= SAMPLE_EVERY_MS);
	pthread_mutex_unlock(&b->lock);
	return due;
}

/* The round that is under way: only the worker's thread knows of it. */
static struct {
	struct sandbox **list;
	size_t n, next;
	uint64_t began_ms;
} tour;

static void tour_begin(struct server *s, uint64_t now_ms)
{
	metrics_stop();
	tour.began_ms = now_ms;
	if (sandbox_list(s, NULL, &tour.list, &tour.n) < 0)
		tour.n = 0;
}

void metrics_tick(struct server *s)
{
	uint64_t now_ms = clock_boot_us() / 1000;

	if (tour.next >= tour.n) {
		if (tour.began_ms && now_ms - tour.began_ms < SAMPLE_EVERY_MS)
			return;
		tour_begin(s, now_ms);
	}
	for (size_t i = 0; i < SAMPLES_PER_TICK && tour.next < tour.n; tour.next++) {
		struct sandbox *b = tour.list[tour.next];

		if (is_due(b)) {
			take_sample(b);
			i++;
		}
		sandbox_putp(&tour.list[tour.next]);
	}
}

void metrics_stop(void)
{
	for (; tour.next < tour.n; tour.next++)
		sandbox_put(tour.list[tour.next]);
	free(tour.list);
	tour.list = NULL;
	tour.n = tour.next = 0;
}

static json_t *sample_json(const struct sandbox *b, const struct sample *s)
{
	return json_pack("{s:o, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "timestamp",
			 clock_json(s->ms), "timestampUnix", (json_int_t)(s->ms / 1000),
			 "cpuUsedPct", (double)s->cpu_percent, "cpuCount",
			 (json_int_t)limits_cpus(&b->limits), "memUsed", (json_int_t)s->memory_used,
			 "memTotal", (json_int_t)b->limits.memory_bytes, "memCache",
			 (json_int_t)s->memory_cache, "diskUsed", (json_int_t)s->disk_used,
			 "diskTotal", (json_int_t)b->limits.disk_bytes);
}

int handle_metrics(struct request *r)
{
	_cleanup_(sandbox_putp) struct sandbox *b = request_sandbox(r);
	uint64_t start = request_number(r, "start", 0), end = request_number(r, "end", UINT64_MAX);
	json_t *list;

	if (!b)
		return 0;
	if (is_due(b))
		take_sample(b);
	list = json_array();
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; b->metrics && i < b->metrics->n; i++) {
		const struct sample *s = ring_at(b->metrics, i);
		uint64_t second = (uint64_t)s->ms / 1000;

		if (second >= start && second <= end)
			(void)json_array_append_new(list, sample_json(b, s));
	}
	pthread_mutex_unlock(&b->lock);
	return reply_json(r, 200, list);
}

json_t *control_newest_sample(struct sandbox *b)
{
	json_t *newest = NULL;

	if (is_due(b))
		take_sample(b);
	pthread_mutex_lock(&b->lock);
	if (b->metrics)
		newest = sample_json(b, ring_at(b->metrics, b->metrics->n - 1));
	pthread_mutex_unlock(&b->lock);
	return newest;
}

static void add_newest(struct request *r, const char *id, json_t *all)
{
	_cleanup_(sandbox_putp) struct sandbox *b = sandbox_get(r->server, id);
	json_t *newest;

	if (!b || !request_owns(r, b->info.key_id))
		return;
	newest = control_newest_sample(b);
	if (newest)
		(void)json_object_set_new(all, id, newest);
}

int handle_metrics_many(struct request *r)
{
	const char *text = request_query(r, "sandbox_ids");
	_cleanup_(freep) char *ids = strdup(text ? text : "");
	json_t *all = json_object();
	char *rest = ids;
	size_t n = 0;

	if (!ids || !all) {
		json_decref(all);
		return -ENOMEM;
	}
	while (rest) {
		const char *id = strsep(&rest, ",");

		if (++n > MANY_MAX) {
			json_decref(all);
			return reply_error(r, 400, "sandbox_ids: at most %d ids", MANY_MAX);
		}
		add_newest(r, id, all);
	}
	return reply_json(r, 200, json_pack("{s:o}", "sandboxes", all));
}
