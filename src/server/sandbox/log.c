/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sandbox/log.h"

#include "server/sandbox/clock.h"

#include <poll.h>
#include <pthread.h>

#define ROOM ((size_t)128 << 10)
#define GATHER_MS 5 /* so long a line waits for others to be written with it */

static struct {
	pthread_mutex_t
		lock; /* for everything here; held for no longer than it takes to copy a line */
	pthread_cond_t filled;
	pthread_t thread;
	bool running;
	bool stop;
	bool urgent;
	unsigned long long lost;
	size_t n;
	char data[ROOM];
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER };

/* False when it would have blocked. */
static bool log_try_write(const char *data, size_t len)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
	       write(STDERR_FILENO, data, len) == (ssize_t)len;
}

/* As many whole lines as a pipe takes at once. */
static size_t log_slice(const char *data, size_t len)
{
	const char *end = memrchr(data, '\n', MIN(len, (size_t)LOG_LINE_MAX));

	return end ? (size_t)(end - data) + 1 : MIN(len, (size_t)LOG_LINE_MAX);
}

/* How many lines could not be written. */
static unsigned long long log_write_all(const char *data, size_t len)
{
	unsigned long long lost = 0;

	while (len > 0) {
		size_t n = log_slice(data, len);

		if (!log_try_write(data, n))
			for (size_t i = 0; i < n; i++)
				lost += data[i] == '\n';
		data += n;
		len -= n;
	}
	return lost;
}

static bool write_note(unsigned long long lost)
{
	char note[64];
	int n = snprintf(note, sizeof(note), "{\"event\":\"log_lost\",\"lines\":%llu}\n", lost);

	return log_try_write(note, (size_t)n);
}

/* Takes what there is; with the lock free. */
static void log_flush(char *scratch)
{
	unsigned long long lost;
	size_t n;

	pthread_mutex_lock(&queue.lock);
	n = queue.n;
	memcpy(scratch, queue.data, n);
	queue.n = 0;
	queue.urgent = false;
	lost = queue.lost;
	queue.lost = 0;
	pthread_mutex_unlock(&queue.lock);
	if (lost && write_note(lost))
		lost = 0;
	lost += log_write_all(scratch, n);
	if (lost) {
		pthread_mutex_lock(&queue.lock);
		queue.lost += lost;
		pthread_mutex_unlock(&queue.lock);
	}
}

/* False when it is to end. */
static bool wait_for_lines(void)
{
	bool urgent, stop;

	pthread_mutex_lock(&queue.lock);
	while (queue.n == 0 && !queue.stop)
		pthread_cond_wait(&queue.filled, &queue.lock);
	urgent = queue.urgent;
	stop = queue.stop;
	pthread_mutex_unlock(&queue.lock);
	if (!urgent && !stop)
		(void)poll(NULL, 0, GATHER_MS);
	return !stop;
}

static void *write_lines(void *arg)
{
	static char scratch[ROOM];

	(void)arg;
	while (wait_for_lines())
		log_flush(scratch);
	log_flush(scratch);
	return NULL;
}

int log_queue_start(void)
{
	int r = pthread_create(&queue.thread, NULL, write_lines, NULL);

	if (r != 0)
		return -r;
	pthread_mutex_lock(&queue.lock);
	queue.running = true;
	pthread_mutex_unlock(&queue.lock);
	return 0;
}

void log_queue_stop(void)
{
	bool running;

	pthread_mutex_lock(&queue.lock);
	running = queue.running;
	queue.running = false;
	queue.stop = true;
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	if (running)
		pthread_join(queue.thread, NULL);
}

void log_queue_add(const char *line, size_t len, bool urgent)
{
	pthread_mutex_lock(&queue.lock);
	if (!queue.running) {
		if (!log_try_write(line, len))
			queue.lost++;
	} else if (len > ROOM - queue.n) {
		queue.lost++;
	} else {
		memcpy(queue.data + queue.n, line, len);
		queue.n += len;
		queue.urgent = queue.urgent || urgent;
		/* The first line wakes the thread, and one that cannot wait. */
		if (queue.n == len || urgent)
			pthread_cond_signal(&queue.filled);
	}
	pthread_mutex_unlock(&queue.lock);
}

static size_t dump(const json_t *line, char *ret, size_t size)
{
	size_t n = json_dumpb(line, ret, size, JSON_COMPACT | JSON_ENSURE_ASCII);

	return n <= size ? n : 0;
}

void server_log(struct server *s, const char *level, const char *event, json_t *fields)
{
	char now[CLOCK_TEXT_SIZE], text[LOG_LINE_MAX];
	json_t *line;
	size_t n;

	(void)s;
	clock_format(clock_wall_ms(), now);
	line = json_pack("{s:s, s:s, s:s}", "time", now, "level", level, "event", event);
	if (!line) {
		json_decref(fields);
		return;
	}
	(void)json_object_update(line, fields);
	n = dump(line, text, sizeof(text) - 1);
	if (n == 0) {
		/* Too long: say what happened without the particulars. */
		(void)json_object_clear(line);
		(void)json_object_set_new(line, "time", json_string(now));
		(void)json_object_set_new(line, "event", json_string(event));
		(void)json_object_set_new(line, "cut", json_true());
		n = dump(line, text, sizeof(text) - 1);
	}
	json_decref(fields);
	json_decref(line);
	text[n++] = '\n';
	log_queue_add(text, n, strcmp(level, "info") != 0);
}
